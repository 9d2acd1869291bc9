"""Fit, score and write the models of a task: the release folder that `jahs.Benchmark` opens.

python -m surrogate.release RUNS --split SPLIT [--params TUNED/params.json] --out RELEASE

Models are fitted on the training part and scored on the test part, then fitted again on training and validation part;
the refits ship, and both scores are kept. A `history.json` beside the settings, as surrogate.tune writes it, goes
into the release's quality.json. The same measurements, split, settings, seed, commit and package versions give the same
bytes wherever the folders are, except for the version number, which is derived from the release that is already at
RELEASE (`surrogate.packing`). That release is replaced once the new one is complete and answers the test part as its
models do.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from jahs.errors import InvalidArgument, refuse
from jahs.files.atomic import change_folder, out_of_space
from jahs.queries.benchmark import Benchmark
from jahs.queries.best import best_of, search_best
from jahs.queries.references import MAIN, References, build_references
from jahs.release import read_release
from jahs.release.manifest import MANIFEST
from jahs.release.quality import QUALITY_FORMAT
from jahs.release.writing import fill_release
from jahs.spaces.configs import Config
from jahs.tasks.metrics import ACCURACIES, LEARNED
from jahs.tasks.own import task_facts
from splits.split import Split
from surrogate.command import add_fewest, add_release_flags, runs_parser
from surrogate.contents import ReleaseSettings, compare_exact, contents_of, fit_models, score_models
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import FEWEST_TO_FIT, Facts, Rows, training_rows, unmeasured
from surrogate.judging.quality import data_facts, requirements, rounded, search_facts
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import read_params
from surrogate.models.refits import N_REFITS, weights_of
from surrogate.models.teacher import FEWEST_CURVES, n_whole
from surrogate.packing import FIRST, check_answers, number_facts, reference_config, standing_release
from surrogate.tune import data_of, read_history
from workshop.command import add_workers, run_command
from workshop.exhaustive import cells_to_ask, exhaustive_best
from workshop.folders import commit, package_versions, writing

MOST_BYTES: Final = 15_000_000  # a release is embedded in the package, so it stays small
_N_REFERENCE_CONFIGS: Final = 20_000

_log = logging.getLogger(__name__)


def make_release(measured: Measurements, split: Split, out: Path, settings: ReleaseSettings) -> Facts:
    """Write a release and return its quality; everything is checked before the first model is fitted.

    Raises:
        InvalidArgument: a number is out of range, `out` cannot be written or is something else, or the release is too
            large to be embedded.
    """
    settings.check()
    params, history = _read_settings(settings)
    missing = unmeasured(measured, split)
    parts = training_rows([m for m in LEARNED if m not in missing], measured, split, fewest=settings.fewest)
    _check_parts(parts)
    _check_distilled(parts, params, settings)
    data = data_of(measured, split)
    searches = {m: search_facts(history, m, of_data=data, settings=params.get(m, ForestSettings())) for m in parts}
    with _beside(out) as folder:
        old = standing_release(out)
        models = fit_models(measured, split, parts, params, workers=settings.workers)
        quality = _quality(measured, split, missing, workers=settings.workers)
        quality["metrics"] = score_models(models, searches, settings)
        quality["requirements"] = requirements(
            quality["metrics"],
            n_configs={metric: sum(rows.n_configs for rows in by_part.values()) for metric, by_part in parts.items()},
        )
        facts = _manifest_facts(measured, split, settings)
        contents, model_facts = contents_of(models, settings)
        fill_release(folder, manifest_facts=facts, **contents)
        quality |= model_facts
        check_answers(folder, models.shipped, parts)
        references, quality["references"] = _references_of(folder, measured.task.name, settings)
        fill_release(folder, manifest_facts=facts, references=references, quality=rounded(quality))
        if (size := sum(path.stat().st_size for path in folder.rglob("*"))) > MOST_BYTES:
            raise InvalidArgument(f"the release has {size:,} bytes, more than {MOST_BYTES:,}; tune with fewer --trees")
        facts |= number_facts(old, read_release(folder).manifest)
        fill_release(folder, manifest_facts=facts)
    return quality


def _read_settings(settings: ReleaseSettings) -> tuple[dict[str, ForestSettings], Facts]:
    """Return the settings of each metric, and the history of their search."""
    if settings.params is None:
        params, history = {}, {}
    else:
        params, history = read_params(settings.params), read_history(settings.params.with_name("history.json"))
    if settings.distilled is not None:
        params |= {m: replace(params.get(m, ForestSettings()), n_distilled=settings.distilled) for m in ACCURACIES}
    return params, history


def _quality(measured: Measurements, split: Split, missing: Mapping[str, str], *, workers: int) -> Facts:
    """Return the content of quality.json that needs no model of the release."""
    return {
        "format": QUALITY_FORMAT,
        "task": measured.task.name,
        "protocol": measured.protocol,
        "split": split.digest,
        "data": data_facts(measured, split),
        "missing": dict(missing),
        "compared": compare_exact(measured, split, workers=workers),
    }


def _check_parts(parts: Mapping[str, Mapping[str, Rows]]) -> None:
    few = {metric: n for metric, rows in parts.items() if (n := rows["train"].n_configs) < FEWEST_TO_FIT}
    needed = f"a model needs at least {FEWEST_TO_FIT}; collect more"
    refuse(*(f"{metric}: {n} training configs; {needed}" for metric, n in few.items()))


def _check_distilled(
    parts: Mapping[str, Mapping[str, Rows]], params: Mapping[str, ForestSettings], settings: ReleaseSettings
) -> None:
    """Refuse distillation from too few configs; refits learn from bootstrap samples, which have fewer."""
    faults = []
    for metric in (name for name in parts if params.get(name, ForestSettings()).n_distilled):
        train = parts[metric]["train"]
        drawn = (weights_of(train.config_id, refit=k, seed=settings.seed) > 0 for k in range(settings.n_refits))
        if (n := min(map(n_whole, [train, *map(train.take, drawn)]))) < FEWEST_CURVES:
            faults.append(
                f"{metric}: {n} training configs of a bootstrap sample have all epochs; distillation needs "
                f"{FEWEST_CURVES}; collect more, or give --distilled 0"
            )
    refuse(*faults)


def _references_of(release: Path, task: str, settings: ReleaseSettings) -> tuple[Facts | None, Facts]:
    """Return Pareto fronts and reference points of a release that has its models already."""
    bench = Benchmark(task, release=release)
    starts = [_best_of_all(bench, release, settings.rates)] if settings.rates and MAIN in bench.metrics else []
    try:
        references = _build(bench, settings, starts)
    except InvalidArgument as err:
        return None, {"reason": str(err)}
    while starts:  # until a search from the references, as that of `bench.best` in a view, finds none better
        known, found = references.configs, search_best(bench, references.configs, MAIN)
        if found.value <= best_of(bench, known, MAIN, is_exact=False).value:
            break
        starts.append(found.config)
        references = _build(bench, settings, starts)
    fronts = [{"metrics": list(names), "configs": len(references.front(names).F)} for names in references.combinations]
    return references.to_dict(), {"fronts": fronts}


def _build(bench: Benchmark, settings: ReleaseSettings, starts: Sequence[Config]) -> References:
    return build_references(bench, n_configs=_N_REFERENCE_CONFIGS, seed=settings.seed, starts=starts)


def _best_of_all(bench: Benchmark, release: Path, rates: int) -> Config:
    """Return the config with the best accuracy of an exhaustive search at full size."""
    cells = cells_to_ask(read_release(release), MAIN)
    best = exhaustive_best(bench, MAIN, cells=cells, n_floats=rates)
    _log.info("best %s of %d configs: %.4f", MAIN, best.n_asked, best.value)
    return best.config


def _manifest_facts(measured: Measurements, split: Split, settings: ReleaseSettings) -> dict[str, Any]:  # Any: JSON
    """Return the manifest. Its command has placeholders for folders, whose content the digests identify."""
    reference = reference_config(measured, split)
    return {
        "own_task": task_facts(measured.task),
        "task": measured.task.name,
        "version": FIRST,  # until it is compared with the release that it replaces
        "source": "measured",
        "protocol": measured.protocol,
        "measurements": digest_measurements(measured),
        "split": split.digest,
        "seed": settings.seed,
        "versions": package_versions(*settings.families),
        "commit": commit(),
        "command": settings.command(),
        **({} if reference is None else {"reference_config": reference}),
    }


def clear_leftovers(path: Path) -> None:
    """Clean up beside a release whose writer was killed; no other process may be writing it.

    A release that was moved aside for a new one that never came gets its name back; unfinished files are removed.
    """
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.(part|old)")
    for leftover in sorted(p for p in path.parent.iterdir() if pattern.fullmatch(p.name)):
        if leftover.suffix == ".old" and (leftover / MANIFEST).is_file() and not path.exists():
            leftover.rename(path)
        else:
            shutil.rmtree(leftover)


def check_replaceable(out: Path) -> None:
    """Refuse a path with anything but a release or an empty folder."""
    if out.exists() and not (out / "manifest.json").is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidArgument(f"{out} exists and is not a release; choose another folder, or empty it")


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces `out` on success; a path that cannot be written is refused at once.

    Leftovers of a killed process are removed, unless another process is making a release in the same folder.
    """
    with ExitStack() as stack:
        with writing(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(out.parent, os.O_RDONLY)
            stack.callback(os.close, handle)
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                clear_leftovers(out)
            fcntl.flock(handle, fcntl.LOCK_SH)
            check_replaceable(out)
            folder = stack.enter_context(change_folder(out))
        with out_of_space(out):
            yield folder


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = runs_parser(
        "release", __doc__, example="runs/ --split split.json --params tuned/params.json --out release/"
    )
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--out", type=Path, required=True, help="the release; one that is there is replaced")
    parser.add_argument("--seed", type=int, default=0, help="seed of bootstraps and reference points (%(default)s)")
    parser.add_argument(
        "--curve-seeds", type=int, default=2, help="fits of each size of the learning curve (%(default)s)"
    )
    parser.add_argument(
        "--refits",
        type=int,
        default=N_REFITS,
        dest="n_refits",
        help="refits of each accuracy, two or more; 0: none (%(default)s)",
    )
    add_release_flags(parser)
    add_fewest(parser)
    add_workers(parser)
    given = vars(parser.parse_args(argv))
    runs, split, out = (given.pop(name) for name in ("runs", "split", "out"))

    def work() -> object:
        quality = make_release(*read_with_split(runs, split), out, ReleaseSettings(**given))
        return {"configs": quality["data"]["configs"], "metrics": sorted(quality["metrics"])}

    return run_command("surrogate.release", work, stopped="nothing is kept")


if __name__ == "__main__":
    sys.exit(main())
