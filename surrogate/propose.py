"""Write a list of configs to train next, which `pipeline.collect --configs` reads, one JSON object a line.

python -m surrogate.propose SOURCE RUNS --split SPLIT [--release RELEASE] --n 100 --round 1 --out LIST

    best          the best configs that local search, evolution and TPE find on the release at full size, one per
                  cell; the first ten with two seeds
    disagreement  predicted among the best 5 % at full size, where models fitted without one fold each differ most
    full          uniform at full size: numbers --start to --start + n - 1 of a stream of its own
    seeds         the measured best configs of train and valid, with three seeds in all
    paired        configs of the stream at full size, each at eight sizes
    poor          cells with at most one path and extreme rates, alternating; at any size

The same arguments and files give the same list. Recorded configs and the final test set are not proposed, except by
`full` and `paired`, which depend on their numbers alone, and by `seeds`, which proposes recorded configs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import jahs
from jahs.errors import InvalidArgument, MissingData, UnknownName, refuse
from jahs.release import Release, read_release
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.spaces.columns import Columns, Configs, config_ids, rows, validate_columns
from jahs.spaces.configs import Config
from jahs.tasks.definitions import BUILT_IN
from splits.final import FinalTest, final_beside, is_final
from splits.split import Split
from surrogate.command import integer_faults, runs_parser
from surrogate.data.measurements import Measurements, check_release, read_with_split
from surrogate.data.rows import development_rows
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import leave_folds_out
from surrogate.models.optima import MAIN, Ask, IsKnown, asking, best_found, disagreed_on, poor
from workshop.command import run_command
from workshop.folders import check_file, write_text
from workshop.measured import rows_of
from workshop.numbered import full_range

KINDS: Final = ("best", "disagreement", "full", "seeds", "paired", "poor")
"""The sources of configs that this command can propose."""

PAIRED_SIZES: Final = tuple(product((1, 5), (4, 16), (0.25, 1.0)))
"""N, W and Resolution at which a config of `paired` is trained: the corners."""

_SEARCHES: Final = ("local_search", "regularized_evolution", "tpe")
_OF_RELEASE: Final = ("best", "disagreement")
_REPEATS: Final = (0, 1, 2)
_TWICE: Final = (0, 1)
_N_TWICE: Final = 10
_EVALUATIONS: Final = 10_000  # per search; TPE: a tenth
_N_FOLDS: Final = 8  # refits of `disagreement`


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeSettings:
    """Settings of `propose`: one field per flag, which `--help` explains."""

    source: str
    n: int
    round: int
    seed: int
    start: int

    def __post_init__(self) -> None:
        """Refuse values out of range, every fault at once."""
        if self.source not in KINDS:
            raise UnknownName.of("source", self.source, KINDS)
        refuse(*integer_faults(asdict(self), n=1, round=0, seed=0, start=0))
        if self.start and self.source not in ("full", "paired"):
            raise InvalidArgument(f"start={self.start} is not used by {self.source}; leave it out")


def propose(
    settings: ProposeSettings,
    measured: Measurements,
    split: Split,
    *,
    final: FinalTest | None = None,
    release: Release | None = None,
) -> str:
    """Return the text of a list.

    Args:
        final: the final test set, which is never proposed.
        release: a release of the same protocol; `best` and `disagreement` need one.

    Raises:
        InvalidArgument: there is no release, or there are fewer than `n` configs to propose.
        ProtocolMismatch: the release has another task or protocol.
        MissingData: the release has no settings to refit, or nothing is measured to choose from.
    """
    if release is not None:
        check_release(release, measured)
    elif settings.source in _OF_RELEASE:
        raise InvalidArgument(f"{settings.source} is proposed by a release; name one: --release RELEASE")
    proposed = _configs(settings, measured, split, _known(measured, final), release)
    n_proposed = len(proposed["N"])
    seeds: list[Sequence[int]] = [_REPEATS if settings.source == "seeds" else (0,)] * n_proposed
    if settings.source == "best":
        seeds[:_N_TWICE] = [_TWICE] * min(n_proposed, _N_TWICE)
    sha256 = release.sha256 if release is not None and settings.source in _OF_RELEASE else ""
    facts = {"protocol": measured.protocol, "release": sha256, "round": settings.round, "source": settings.source}
    return lines_of(rows(proposed), seeds, facts)


def _configs(
    settings: ProposeSettings, measured: Measurements, split: Split, known: IsKnown, release: Release | None
) -> Columns:
    """Return the configs that the source of the settings proposes."""
    n, seed, start = settings.n, settings.seed, settings.start
    match settings.source:
        case "full":
            return full_range(start, start + n)
        case "paired":
            return _paired(full_range(start, start + n))
        case "poor":
            return poor(n=n, seed=seed, is_known=known)
        case "seeds":
            return _measured_best(measured, split, n)
    assert release is not None
    ask = answers_of(release)
    if settings.source == "best":
        return best_found(ask, _SEARCHES, n=n, evaluations=_EVALUATIONS, seed=seed, is_known=known)
    forest = settings_of(release)
    fits = leave_folds_out(MAIN, measured, split, n_folds=_N_FOLDS, seed=seed, settings=forest)
    return disagreed_on(ask, [asking(model) for model in fits], n=n, seed=seed, is_known=known)


def _first_bytes(path: Path, n: int) -> bytes:
    with path.open("rb") as file:
        return file.read(n)


def check_list(path: Path) -> None:
    """Refuse a path that cannot be written, or where there is anything but a list of configs."""
    start = b'{"config":'
    check_file(path)
    if path.exists() and not (path.is_file() and _first_bytes(path, len(start)) in (start, b"")):
        raise InvalidArgument(f"out={path} exists and is not a list of configs; choose another file")


def write_list(path: Path, text: str, measured: Measurements, runs: Path, source: str) -> str:
    """Write a list of configs, and return the command that trains it."""
    write_text(path, text)
    name = measured.task.name
    task = name if name in BUILT_IN else f"{name}.json --data-dir IMAGES"
    return f"python -m pipeline.collect --task {task} --out {runs} --configs {path} --source {source}"


def lines_of(configs: Sequence[Config], seeds: Sequence[Sequence[int]], facts: Mapping[str, object]) -> str:
    """Return a list of configs as text, with the seeds of each; `facts` are on every line."""
    lines = [json.dumps({"config": c, "seeds": list(s), **facts}) for c, s in zip(configs, seeds, strict=True)]
    return "\n".join(lines) + "\n"


def answers_of(release: Release) -> Ask:
    """Return the function that asks a release for its predictions at the last epoch."""
    bench = jahs.Benchmark(release.task.name, release=release.path)

    def ask(configs: Configs) -> NDArray[np.float64]:
        return bench.query_many(configs, metrics=(MAIN,))[MAIN]

    return ask


def settings_of(release: Release) -> ForestSettings:
    """Return the settings that a release's model was fitted with."""
    try:
        return ForestSettings.from_dict(release.quality["metrics"][MAIN]["settings"])
    except (KeyError, TypeError) as err:
        raise MissingData(f"{release.path} has no settings of {MAIN} in quality.json; make it again") from err


def _measured_best(measured: Measurements, split: Split, n: int) -> Columns:
    """Return the configs of train and valid with the highest mean accuracies at the last epoch."""
    last = development_rows(MAIN, measured, split)
    ids, means = last.take(last.epoch == measured.task.max_epoch).config_means
    if not len(ids):
        raise MissingData(f"no config of train and valid is trained to epoch {measured.task.max_epoch}; collect more")
    if len(ids) < n:
        raise InvalidArgument(f"n={n} must be at most {len(ids)}, the number of configs trained to the last epoch")
    configs = rows_of(measured.configs, ids[np.lexsort((ids, -means))[:n]])
    return {key: configs[key] for key in CONFIG_KEYS}


def _paired(drawn: Columns) -> Columns:
    """Return each config at each of `PAIRED_SIZES`."""
    columns = {key: np.repeat(values, len(PAIRED_SIZES)) for key, values in drawn.items()}
    for key, values in zip(SIZE_KEYS, zip(*PAIRED_SIZES, strict=True), strict=True):
        columns[key] = np.tile(np.array(values), len(drawn[key]))
    return validate_columns(columns)


def _known(measured: Measurements, final: FinalTest | None) -> IsKnown:
    recorded = np.unique(measured.runs["config_id"])

    def is_known(columns: Columns) -> NDArray[np.bool_]:
        ids = config_ids(columns)
        return np.isin(ids, recorded) | is_final({**columns, "config_id": ids}, final)

    return is_known


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    example = "best runs/ --split split.json --release release/ --n 100 --round 1 --out best.jsonl"
    parser = runs_parser("propose", __doc__, example=example, before="source")
    parser.add_argument("--release", type=Path, help="the release that proposes best and disagreement")
    parser.add_argument("--out", type=Path, required=True, help="the list to write")
    about = "number of configs; for paired, before each is repeated at eight sizes (%(default)s)"
    parser.add_argument("--n", type=int, default=100, help=about)
    parser.add_argument("--round", type=int, default=0, help="number of the round of proposals (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of searches and draws (%(default)s)")
    parser.add_argument("--start", type=int, default=0, help="first number, for full and paired (%(default)s)")
    given = vars(parser.parse_args(argv))
    files = {name: given.pop(name) for name in ("runs", "split", "release", "out")}

    def work() -> str:
        check_list(files["out"])
        settings = ProposeSettings(**given)
        release = None if files["release"] is None else read_release(files["release"])
        measured, split = read_with_split(files["runs"], files["split"])
        text = propose(settings, measured, split, final=final_beside(files["split"]), release=release)
        command = write_list(files["out"], text, measured, files["runs"], settings.source)
        n_lines = text.count("\n")
        return f"{files['out']}: {n_lines} configs; {command}"

    return run_command("surrogate.propose", work)


if __name__ == "__main__":
    sys.exit(main())
