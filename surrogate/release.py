"""Fit, score and write the models of a task: the release folder that `jahs.Benchmark` opens.

Over 300 lines: it is one command, step by step in the order in which a release is made.

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
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from jahs.errors import InvalidArgument, UnknownName
from jahs.files.atomic import change_folder, out_of_space
from jahs.queries.benchmark import Benchmark
from jahs.queries.exhaustive import LARGEST, cells_to_ask, exhaustive_best
from jahs.queries.references import MAIN, build_references
from jahs.release import read_release
from jahs.release.models import FAMILIES
from jahs.release.writing import clear_leftovers, fill_release
from jahs.spaces.configs import Config
from jahs.tasks.metrics import ACCURACIES, LEARNED
from jahs.tasks.own import task_facts
from splits.split import Split
from surrogate.command import add_fewest, add_release_flags, check_integers, runs_parser
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import (
    EXACT,
    FEWEST,
    FEWEST_TO_FIT,
    Facts,
    Rows,
    assemble,
    assemble_answered,
    assemble_repeats,
    by_part,
    join_rows,
    training_rows,
    unmeasured,
)
from surrogate.judging.noise import noise_of
from surrogate.judging.quality import (
    QUALITY_FORMAT,
    compared_facts,
    curve_facts,
    data_facts,
    metric_facts,
    requirements,
    rounded,
    search_facts,
)
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import fit_each, read_params
from surrogate.models.refits import N_REFITS
from surrogate.packing import (
    FIRST,
    check_answers,
    lightgbm_of,
    number_facts,
    pack_models,
    recorded_table,
    reference_config,
    refits_of,
    standing_release,
)
from surrogate.timing import times_of
from surrogate.tune import data_of, read_history
from workshop.command import add_workers, run_command
from workshop.folders import commit, package_versions, writing
from workshop.jobs import check_workers

MOST_BYTES: Final = 15_000_000
"""A release is embedded in the package, so it stays small."""

_N_REFERENCE_CONFIGS: Final = 20_000

_log = logging.getLogger(__name__)


def make_release(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    params: Path | None = None,
    fewest: int = FEWEST,
    seed: int = 0,
    curve_seeds: int = 5,
    distilled: int | None = None,
    n_refits: int = N_REFITS,
    families: Sequence[str] = (),
    rates: int = 0,
    workers: int = 2,
) -> Facts:
    """Write a release and return its quality; everything is checked before the first model is fitted.

    Args:
        split: the split of the measured configs; see `read_with_split`.
        out: the release; one that is there is replaced.
        params: settings that `surrogate.tune` found, its history beside it; None: the default ones.
        fewest: training configs that every fidelity group needs.
        seed: seed of bootstraps, noise and reference points.
        curve_seeds: subsets of each size of the learning curve; 0: no curve.
        distilled: drawn configs that models of accuracies learn from a teacher (`surrogate.models.teacher`); None: as
            many as `params` says.
        n_refits: models of each accuracy that are fitted again to resampled configs; 0: none.
        families: other model families to fit as well: "lightgbm", or none.
        rates: values of each rate in the exhaustive search for the best config at full size, where the search for the
            fronts starts, too; 0: no such search.

    Raises:
        InvalidArgument: a number is out of range, `out` cannot be written or is something else, or the release is too
            large to be embedded.
    """
    check_workers(workers)
    check_numbers(seed=seed, curve_seeds=curve_seeds, n_refits=n_refits, rates=rates)
    if unknown := [name for name in families if name not in FAMILIES]:
        raise UnknownName.of("family", unknown[0], FAMILIES)
    settings, history = (
        ({}, {}) if params is None else (read_params(params), read_history(params.with_name("history.json")))
    )
    if distilled is not None:
        settings |= {m: replace(settings.get(m, ForestSettings()), n_distilled=distilled) for m in ACCURACIES}
    missing = unmeasured(measured, split)
    parts = training_rows([m for m in LEARNED if m not in missing], measured, split, fewest=fewest)
    _check_parts(parts)
    of_data = data_of(measured, split)
    searches = {m: search_facts(history, m, of_data=of_data, settings=settings.get(m, ForestSettings())) for m in parts}
    with _beside(out) as folder:
        replaced = standing_release(out)
        times = times_of(measured, split)
        fitted, refitted = (
            fit_each(_training(parts, *more), measured.task, settings, times=times, workers=workers)
            for more in ((), ("valid",))
        )
        quality = _quality(measured, split, missing, workers=workers)
        for metric, rows in parts.items():
            _log.info("%s: scoring", metric)
            answered = by_part(assemble_answered(metric, measured), split)
            repeats = assemble_repeats(metric, measured)
            facts = metric_facts(fitted[metric], refitted[metric], answered, repeats, seed=seed)
            facts["search"] = searches[metric]
            facts["learning_curve"] = curve_facts(
                metric, measured, rows, fitted[metric].settings, times=times, n_seeds=curve_seeds, workers=workers
            )
            quality["metrics"][metric] = facts
        quality["requirements"] = requirements(
            quality["metrics"],
            n_configs={metric: sum(rows.n_configs for rows in of.values()) for metric, of in parts.items()},
        )
        own_settings = {metric: model.settings for metric, model in fitted.items()}
        noise, quality["noise"] = noise_of(measured, split, own_settings, times=times, seed=seed, workers=workers)
        numbers: dict[str, object] = {"fewest": fewest, "seed": seed, "curve_seeds": curve_seeds, "refits": n_refits}
        numbers |= {} if distilled is None else {"distilled": distilled}
        numbers |= {"families": " ".join(families)} if families else {}
        numbers |= {"rates": rates} if rates else {}
        facts = _manifest_facts(measured, split, has_params=params is not None, numbers=numbers)
        models, forests = pack_models(refitted)
        table = recorded_table(measured)
        fill_release(folder, manifest_facts=facts, models=models, forests=forests, noise=noise, table=table)
        if n_refits:
            how = {"seed": seed, "n_refits": n_refits, "workers": workers}
            refits, refit_forests, quality["uncertainty"] = refits_of(parts, fitted, models, noise, **how)
            fill_release(folder, manifest_facts=facts, refits=refits, refit_forests=refit_forests)
        if "lightgbm" in families:
            others, other_forests, quality["lightgbm"] = lightgbm_of(parts, fitted, refitted)
            fill_release(folder, manifest_facts=facts, families={"lightgbm": (others, other_forests)})
        check_answers(folder, refitted, parts)
        references, quality["references"] = _references_of(folder, measured.task.name, seed=seed, rates=rates)
        fill_release(folder, manifest_facts=facts, references=references, quality=rounded(quality))
        if (size := sum(path.stat().st_size for path in folder.rglob("*"))) > MOST_BYTES:
            raise InvalidArgument(f"the release has {size:,} bytes, more than {MOST_BYTES:,}; tune with fewer --trees")
        facts |= number_facts(replaced, read_release(folder).manifest)
        fill_release(folder, manifest_facts=facts)
    return quality


def check_numbers(**numbers: int) -> None:
    """Refuse seeds and numbers of seeds that are invalid.

    Raises:
        InvalidArgument: one is not an integer of at least 0.
    """
    check_integers(numbers, **dict.fromkeys(numbers, 0))
    if numbers.get("rates") == 1:
        raise InvalidArgument("rates=1 must be 0 or at least 2")


def _quality(measured: Measurements, split: Split, missing: Mapping[str, str], *, workers: int) -> Facts:
    """Return the content of quality.json without metrics."""
    return {
        "format": QUALITY_FORMAT,
        "task": measured.task.name,
        "protocol": measured.protocol,
        "split": split.digest,
        "data": data_facts(measured, split),
        "missing": dict(missing),
        "metrics": {},
        "compared": _compared(measured, split, workers=workers),
    }


def _check_parts(parts: Mapping[str, Mapping[str, Rows]]) -> None:
    if faults := [
        f"{metric}: {rows['train'].n_configs} training configs; a model needs at least {FEWEST_TO_FIT}; collect more"
        for metric, rows in parts.items()
        if rows["train"].n_configs < FEWEST_TO_FIT
    ]:
        raise InvalidArgument("\n".join(faults))


def _training(parts: Mapping[str, Mapping[str, Rows]], *more: str) -> dict[str, Rows]:
    return {metric: join_rows([rows[part] for part in ("train", *more)]) for metric, rows in parts.items()}


def _compared(measured: Measurements, split: Split, *, workers: int) -> Facts:
    """Return the scores of models of the exact metrics, for comparison only."""
    parts = {metric: by_part(assemble(metric, measured), split) for metric in EXACT}
    fitted = fit_each(_training(parts), measured.task, {}, workers=workers)
    return {metric: compared_facts(model, parts[metric]["test"]) for metric, model in fitted.items()}


def _references_of(release: Path, task: str, *, seed: int, rates: int) -> tuple[Facts | None, Facts]:
    """Return Pareto fronts and reference points of a release that has its models already."""
    bench = Benchmark(task, release=release)
    starts = [_best_of_all(bench, release, rates)] if rates and MAIN in bench.metrics else []
    try:
        found = build_references(bench, n_configs=_N_REFERENCE_CONFIGS, seed=seed, starts=starts)
    except InvalidArgument as err:
        return None, {"reason": str(err)}
    fronts = [{"metrics": list(names), "configs": len(found.front(names).F)} for names in found.combinations]
    return found.to_dict(), {"fronts": fronts}


def _best_of_all(bench: Benchmark, release: Path, rates: int) -> Config:
    """Return the config with the best accuracy of an exhaustive search at full size."""
    cells = cells_to_ask(read_release(release), MAIN)
    found = exhaustive_best(bench, MAIN, sizes=LARGEST, cells=cells, n_floats=rates)
    _log.info("best %s of %d configs: %.4f", MAIN, found.n_asked, found.value)
    return found.config


def _manifest_facts(
    measured: Measurements, split: Split, *, has_params: bool, numbers: Mapping[str, object]
) -> dict[str, Any]:  # Any: JSON
    """Return the manifest. Its command has placeholders for folders, whose content the digests identify."""
    options = [f"--{name.replace('_', '-')} {value}" for name, value in sorted(numbers.items())]
    given = ["--params PARAMS"] if has_params else []
    reference = reference_config(measured, split)
    return {
        "own_task": task_facts(measured.task),
        "task": measured.task.name,
        "version": FIRST,  # until it is compared with the release that it replaces
        "source": "measured",
        "protocol": measured.protocol,
        "measurements": digest_measurements(measured),
        "split": split.digest,
        "seed": numbers["seed"],
        "versions": package_versions(),
        "commit": commit(),
        "command": " ".join(["python -m surrogate.release RUNS --split SPLIT", *given, *options, "--out RELEASE"]),
        **({} if reference is None else {"reference_config": reference}),
    }


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
            if out.exists() and not (out / "manifest.json").is_file() and (not out.is_dir() or any(out.iterdir())):
                raise InvalidArgument(f"{out} exists and is not a release; choose another folder, or empty it")
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
        "--curve-seeds", type=int, default=5, help="fits of each size of the learning curve (%(default)s)"
    )
    parser.add_argument(
        "--refits", type=int, default=N_REFITS, dest="n_refits", help="refits of each accuracy; 0: none (%(default)s)"
    )
    add_release_flags(parser)
    add_fewest(parser)
    add_workers(parser)
    given = vars(parser.parse_args(argv))
    runs, split, out = (given.pop(name) for name in ("runs", "split", "out"))

    def work() -> object:
        quality = make_release(*read_with_split(runs, split), out, **given)
        return {"configs": quality["data"]["configs"], "metrics": sorted(quality["metrics"])}

    return run_command("surrogate.release", work)


if __name__ == "__main__":
    sys.exit(main())
