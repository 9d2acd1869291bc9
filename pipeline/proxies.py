"""Score the untrained network of every config of a folder of runs with zero-cost proxies.

    python -m pipeline.proxies --task fashion_mnist_mini --runs out/mini

Each config that has a run is scored with every proxy of `pipeline.zero_cost` and with several seeds. A seed determines
the weights, which are the initial weights of a training with this seed, and the batch: 64 training images without
augmentation, the same for every config. A score that cannot be computed is NaN, and the row gives the reason.

Every scored config is made durable in `proxies.parquet`, so the command resumes after any interruption.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from jahs.errors import refuse
from jahs.files.runs import SCORES, read_configs, read_runs
from jahs.files.tables import Table, concatenate, sort_by, take, typed
from jahs.schema import CONFIG_KEYS, PROXIES, PROXIES_FORMAT, PROXY_COLUMNS, PROXY_KEY, PROXY_TIMES
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config, config_id
from jahs.spaces.seeds import read_seed
from jahs.tasks.definitions import Task
from pipeline.command import runs_parser
from pipeline.data import ImageSet
from pipeline.one_core import one_core
from pipeline.probe import Probe
from pipeline.protocol import shared_protocol, trained_task
from pipeline.runs import RunsFolder
from pipeline.train import Training
from pipeline.worker import images_of
from pipeline.zero_cost import ProxyScores, score_all
from workshop.command import add_minutes, run_command
from workshop.jobs import Where, add_where, run_jobs
from workshop.machine import processor_model
from workshop.measured import read_proxies
from workshop.progress import Progress

_N_IMAGES: Final = 64
_BATCH_KEY: Final = 642_014_377
_RESOLUTION: Final = 1e-4  # seconds that times are rounded to, so that their columns compress

_Job: TypeAlias = tuple[Config, tuple[int, ...]]  # a config, and the seeds that it still lacks scores for


def check_limits(where: Where, n_seeds: int, minutes: float | None) -> None:
    """Refuse numbers that are out of range, every fault at once."""
    faults = where.faults()
    if n_seeds < 1:
        faults.append(f"seeds={n_seeds} must be at least 1")
    if minutes is not None and not minutes > 0:
        faults.append(f"minutes={minutes} must be more than 0")
    refuse(*faults)


def score_config(config: Config, of_task: Task, images: ImageSet, *, seed: int = 0) -> ProxyScores:
    """Return every proxy of a config with the weights and the batch of a seed."""
    seed = read_seed(seed)
    with one_core():
        return score_all(probe_of(config, of_task, images, seed=seed))


def probe_of(config: Config, of_task: Task, images: ImageSet, *, seed: int = 0) -> Probe:
    """Return the untrained network of a config with the weights and the batch of a seed."""
    with torch.random.fork_rng(devices=[]):
        training = Training(config, of_task, images, seed=seed)
        part = training.images.train
        batch = _batch(len(part.labels), seed)
        return Probe(training.network, training.prepare(part.images[batch]), part.labels[batch], seed=seed)


def proxy_folder(
    folder: Path,
    of_task: Task,
    *,
    where: Where,
    n_seeds: int = 3,
    minutes: float | None = None,
    data_dir: Path | None = None,
    is_wanted: NDArray[np.bool_] | None = None,
) -> int:
    """Score the configs of a folder of runs until a limit is reached; return how many configs were scored.

    Args:
        n_seeds: number of seeds of each config: 0, 1, 2 and so on.
        is_wanted: mask of the rows of the folder's config table to score; None: the configs that have a run.

    Raises:
        InvalidArgument: a number is out of range; every fault at once.
        ProtocolMismatch: the folder holds runs of another protocol.
        MissingData, CorruptFile: the folder or the images cannot be read.
    """
    check_limits(where, n_seeds, minutes)
    protocol, configs = shared_protocol(folder, of_task), read_configs(folder)
    if is_wanted is None:
        is_wanted = np.isin(configs["config_id"], read_runs(folder)["config_id"])
    todo = _todo(take(configs, is_wanted), read_proxies(folder), n_seeds)
    if not todo:
        return 0
    data_dir = data_dir and data_dir.absolute()
    images_of(of_task, data_dir)  # refuse missing images here, not in workers
    limit_s = None if minutes is None else minutes * 60
    call = functools.partial(_score_job, task=of_task, data_dir=data_dir, protocol=protocol)
    n_done = 0
    with closing(Progress(len(todo), "proxies", limit_s=limit_s)) as progress:
        started = time.monotonic()
        jobs = takewhile(lambda _: limit_s is None or time.monotonic() - started <= limit_s, todo)
        for n_done, done in enumerate(run_jobs(call, jobs, where=where), start=1):
            _add_scores(folder, done.result)
            n_missing = np.isnan([done.result[name] for name in PROXIES]).sum()
            note = f"config {config_id(done.job[0]):016x} {n_missing} missing"
            progress.update(n_done, note, spent_s=done.spent_s)
    return n_done


def merge_proxies(folder: Path, others: Sequence[Table]) -> None:
    """Add other folders' scores; a config and seed in several folders is taken from the first."""
    for scores in others:
        if len(scores["config_id"]):
            _add_scores(folder, scores)


def _batch(n_images: int, seed: int) -> torch.Tensor:
    """Return the positions of the images of a seed's batch."""
    ranks = np.random.Philox(key=_BATCH_KEY + seed).random_raw(n_images)  # raw bits, which numpy never changes
    return torch.from_numpy(np.argsort(ranks, kind="stable")[:_N_IMAGES])


def _todo(configs: Table, scored: Table, n_seeds: int) -> list[_Job]:
    """Return the configs that lack scores, with the seeds to score, in the order of the table."""
    known = {*zip(scored["config_id"].tolist(), scored["seed"].tolist(), strict=True)}
    jobs = []
    for identity, config in zip(
        configs["config_id"].tolist(), rows({key: configs[key] for key in CONFIG_KEYS}), strict=True
    ):
        if missing := tuple(seed for seed in range(n_seeds) if (identity, seed) not in known):
            jobs.append((config, missing))
    return jobs


def _score_job(job: _Job, *, task: Task, data_dir: Path | None, protocol: str) -> Table:
    config, seeds = job
    images = images_of(task, data_dir)[config["Resolution"]]
    return _table_of(job, [score_config(config, task, images, seed=seed) for seed in seeds], protocol=protocol)


def _table_of(job: _Job, by_seed: Sequence[ProxyScores], *, protocol: str) -> Table:
    """Return scores that this process computed as rows that name its machine."""
    config, seeds = job
    columns = {
        "config_id": config_id(config),
        "seed": seeds,
        **{name: [scores.values[name] for scores in by_seed] for name in PROXIES},
        "reason": ["; ".join(f"{name}: {why}" for name, why in scores.reasons.items()) for scores in by_seed],
        **{
            column: [round(scores.cpu_s[name] / _RESOLUTION) * _RESOLUTION for scores in by_seed]
            for name, column in PROXY_TIMES.items()
        },
        "machine": processor_model(),
        "torch_version": torch.__version__,
        "protocol": protocol,
        "format": PROXIES_FORMAT,
    }
    return typed(columns, PROXY_COLUMNS)


def _add_scores(folder: Path, scores: Table) -> None:
    """Add scores to the file as it is now, because another process may have added scores in the meantime."""
    runs = RunsFolder(folder)
    with runs.lock("proxies"):
        merged = sort_by(concatenate([read_proxies(folder), scores], PROXY_COLUMNS), PROXY_KEY)
        keys = [merged[name] for name in PROXY_KEY]
        is_first = np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))
        runs.commit(SCORES, take(merged, is_first), PROXY_COLUMNS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = runs_parser("proxies", "Score the untrained network of every config of a folder of runs.")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each config (default: %(default)s)")
    add_minutes(parser, "config")
    add_where(parser)
    given = parser.parse_args(argv)

    def work() -> dict[str, object]:
        where = Where(workers=given.workers, backend=given.backend, scheduler=given.scheduler)
        options = {"n_seeds": given.seeds, "minutes": given.minutes, "data_dir": given.data_dir}
        n_scored = proxy_folder(given.runs, trained_task(given.task), where=where, **options)
        return {"task": given.task, "runs": str(given.runs), "configs_scored": n_scored}

    return run_command("pipeline.proxies", work, stopped="every scored config is recorded, start again to continue")


if __name__ == "__main__":
    sys.exit(main())
