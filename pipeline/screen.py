"""Compare candidate protocols by how well two trainings of a config, with different seeds, agree.

    python -m pipeline.screen --train 4096 --valid 3072 --test 1024 --epochs 20 --out out/screen
    python -m pipeline.screen --runs FOLDER

The first trains the same configs with two seeds under the candidate and reports Kendall's tau between the seeds of the
last epoch's validation accuracy, with a bootstrap interval over configs, and the mean CPU seconds of a run. The second
reports the same of the repeated configs in a folder of runs, the seconds of one processor alone. What is not known or
not defined is null.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable
from jahs.files.atomic import write_beside
from jahs.files.tables import take
from jahs.runs import is_timed, last_rows, read_profile, read_runs, timing_machine
from jahs.tasks import Task, task
from pipeline.data import load_images
from pipeline.protocol import protocol_digest
from pipeline.sampling import N_GROUPS, sample_config
from pipeline.train import train
from workshop.command import new_parser, run_command
from workshop.jobs import in_processes
from workshop.ranks import kendall_tau

__all__ = ["main", "recorded_rows", "screen_one", "summarise"]

_START: Final = 40_000 * N_GROUPS  # far beyond what is ever collected
_SEEDS: Final = (0, 1)
_log = logging.getLogger(__name__)


def screen_one(candidate: Task, number: int, seed: int, out: Path) -> dict[str, Any]:  # Any: JSON
    """Train config `number` under `candidate`, or read what was measured before; return one row."""
    # A candidate is not frozen, so it has no digest of its split; the split follows from its other facts.
    protocol = protocol_digest(dataclasses.replace(candidate, index_digest=""))
    sizes = f"{candidate.n_train}-{candidate.n_valid}-{candidate.n_test}-{candidate.max_epoch}"
    path = out / f"{candidate.name}-{sizes}-{protocol[:8]}-{number}-{seed}.json"
    if not path.exists():
        config = sample_config(number)
        images = load_images(candidate)[config["Resolution"]]
        started = time.thread_time()
        run = train(config, candidate, images, seed=seed)
        row = {
            "number": number,
            "seed": seed,
            "status": run.status,
            "cpu_time_s": time.thread_time() - started,
            "valid_acc": float(run.epochs[-1, 1]) if len(run.epochs) else None,
            "curve": [[round(float(v), 3) for v in epoch[:3]] for epoch in run.epochs],
        }
        with write_beside(path) as beside:
            beside.write_text(json.dumps(row))
        _log.info("%s %s %.1fs", path.stem, row["valid_acc"], row["cpu_time_s"])
    return dict(json.loads(path.read_text()))


def recorded_rows(path: Path) -> list[dict[str, Any]]:  # Any: JSON
    """Return a row like `screen_one`'s for every run of a folder whose seed is one of the two.

    Its seconds are None where they do not compare with the others': see `jahs.runs.is_timed`.
    """
    runs = read_runs(path)
    machine = timing_machine(runs, read_profile(path))
    runs["runtime"] = np.where(is_timed(runs, machine), runs["runtime"], np.nan)
    last = last_rows(runs)
    last = take(last, np.isin(last["seed"], _SEEDS))
    named = {
        "number": "config_id",
        "seed": "seed",
        "status": "status",
        "valid_acc": "valid_acc",
        "cpu_time_s": "runtime",
    }
    columns = [last[column].tolist() for column in named.values()]
    rows = [dict(zip(named, values, strict=True)) for values in zip(*columns, strict=True)]
    return [{**row, "cpu_time_s": _known(row["cpu_time_s"])} for row in rows]


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, float | None]:  # Any: JSON
    """Return tau between the seeds with its 95 % interval, the mean difference and the mean cost.

    The interval is of the resamples whose tau is defined. None: no tau is, or no cost is known.
    """
    by_config: dict[int, dict[int, float]] = {}
    for row in rows:
        if row["status"] == "finished":
            by_config.setdefault(row["number"], {})[row["seed"]] = row["valid_acc"]
    pairs = np.array([[two[s] for s in _SEEDS] for two in by_config.values() if len(two) == len(_SEEDS)])
    if len(pairs) < 2:
        raise InvalidTable(f"{len(pairs)} configs finished with both seeds; at least 2 are needed to compare")
    rng = np.random.default_rng(0)
    taus = np.array([_tau(pairs[rng.integers(0, len(pairs), len(pairs))]) for _ in range(2000)])
    low, high = (None, None) if np.isnan(taus).all() else np.nanquantile(taus, [0.025, 0.975]).tolist()
    costs = [row["cpu_time_s"] for row in rows if row["cpu_time_s"] is not None]
    return {
        "n_configs": len(pairs),
        "n_diverged_runs": sum(row["status"] != "finished" for row in rows),
        "tau": _known(_tau(pairs)),
        "tau_low": low,
        "tau_high": high,
        "mean_abs_difference": float(np.abs(pairs[:, 0] - pairs[:, 1]).mean()),
        "median_valid_acc": float(np.median(pairs)),
        "mean_cpu_time_s": float(np.mean(costs)) if costs else None,
    }


def _tau(pairs: NDArray[np.float64]) -> float:
    return kendall_tau(pairs[:, 0], pairs[:, 1])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser("pipeline.screen", __doc__.split("\n\n")[0], example="--runs out/digits")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="report on recorded runs; train nothing")
    for name in ("train", "valid", "test", "epochs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--task", default="fashion_mnist_mini")
    parser.add_argument("--configs", type=int, default=2 * N_GROUPS)
    parser.add_argument("--start", type=int, default=_START, help="first config number (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder of one small JSON per training")
    args = parser.parse_args(argv)

    def work() -> object:
        return summarise(_trained_rows(args, parser) if args.runs is None else recorded_rows(args.runs))

    return run_command("pipeline.screen", work)


def _trained_rows(args: argparse.Namespace, parser: argparse.ArgumentParser) -> list[dict[str, Any]]:  # Any: JSON
    if None in {args.train, args.valid, args.test, args.epochs, args.out}:
        parser.error("--train, --valid, --test, --epochs and --out are needed, or --runs")
    candidate = dataclasses.replace(
        task(args.task),
        n_train=args.train,
        n_valid=args.valid,
        n_test=args.test,
        max_epoch=args.epochs,
        index_digest=None,
    )
    args.out.mkdir(parents=True, exist_ok=True)
    numbers = range(args.start, args.start + args.configs)
    same = {"candidate": candidate, "out": args.out}
    calls = [{**same, "number": number, "seed": seed} for number in numbers for seed in _SEEDS]
    return in_processes(screen_one, calls, workers=args.workers)


if __name__ == "__main__":
    sys.exit(main())
