"""Renew a task's release from its recorded runs: split, search, release and card.

python -m surrogate.renew RUNS --split SPLIT --recorded DIR --searches DIR --out RELEASE --card DIR

SPLIT is made, or extended so that every old config stays in its part, or kept if there is no new config. Settings are
searched again for the new rows, in a folder below --searches that belongs to these rows, so the same command continues
an interrupted search. The result of the search is written to --recorded (params.json, history.json), which
`--evaluations 0` uses unchanged. `make release` passes the folders of this repository.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import MissingData, ProtocolMismatch
from jahs.files.atomic import make_folder
from jahs.files.hashing import digest_facts
from jahs.release import Release, read_release
from jahs.tasks.metrics import LEARNED
from splits.final import final_beside
from splits.make import make_split
from splits.recorded import read_recorded
from splits.split import Split, read_split
from surrogate.card.figures import figures_of
from surrogate.card.page import write_card
from surrogate.command import add_release_flags, runs_parser
from surrogate.contents import ReleaseSettings
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import Facts, assemble, by_part, unmeasured
from surrogate.release import check_replaceable, make_release
from surrogate.tune import tune_all, what_is_searched
from workshop.command import add_workers, run_command
from workshop.folders import write_text

_SEARCH_FILES: Final = ("history.json", "params.json")
"""In this order: if the copy is interrupted, settings and history differ, which surrogate.release refuses."""

_log = logging.getLogger(__name__)


def renew(
    runs: Path,
    split_file: Path,
    out: Path,
    *,
    recorded: Path,
    searches: Path,
    card: Path,
    evaluations: int,
    trees: int,
    settings: ReleaseSettings,
) -> Facts:
    """Do every step on the runs recorded at the start, and return the release's quality.

    If a step fails, the files of earlier steps are kept.

    Args:
        settings: how the release is made; the other arguments are flags, which `--help` explains.
    """
    settings.check()
    _renew_split(runs, split_file, settings)
    measured, split = read_with_split(runs, split_file)
    _log.info("split %s: %s", split.digest, ", ".join(f"{n} {part}" for part, n in split.counts.items()))
    check_replaceable(out)  # refused here, not after hours of searches
    for path in (recorded, out.parent, card):
        make_folder(path)
    if evaluations and (folder := _search(measured, split, searches, settings, evaluations=evaluations, trees=trees)):
        for name in _SEARCH_FILES:
            write_text(recorded / name, (folder / name).read_text(encoding="utf-8"))
    params = recorded / "params.json"
    quality = make_release(measured, split, out, replace(settings, params=params if params.is_file() else None))
    release = read_release(out)
    write_card(release, card, _figures(split_file.with_name("figures.json"), release))
    return quality


def _figures(path: Path, release: Release) -> Facts | None:
    """Return the figures beside the split if they belong to this release; otherwise None."""
    with suppress(MissingData, ProtocolMismatch):
        return figures_of(path, release)
    _log.info("%s has no figures of the new release; python -m surrogate.figures measures them", path)
    return None


def _renew_split(runs: Path, split_file: Path, settings: ReleaseSettings) -> None:
    has_split = split_file.exists()
    if has_split:
        old = read_split(split_file)
        if np.array_equal(old.config_ids, read_recorded(runs, final=final_beside(split_file)).config_ids):
            return
    split_file.parent.mkdir(parents=True, exist_ok=True)
    options = {"extend": split_file} if has_split else {"seed": settings.seed}
    make_split(runs, split_file, fewest=settings.fewest, **options)


def _search(
    measured: Measurements, split: Split, searches: Path, settings: ReleaseSettings, *, evaluations: int, trees: int
) -> Path | None:
    """Tune hyperparameters for every metric that has validation rows; return the search folder, or None if none has."""
    missing = unmeasured(measured, split)
    metrics = [m for m in LEARNED if m not in missing and len(by_part(assemble(m, measured), split)["valid"])]
    if not metrics:
        _log.info("there are no validation rows, so nothing is searched")
        return None
    options = {"n_trees": trees, "distilled": settings.distilled or 0}
    facts = {m: what_is_searched(m, measured, split, **options) for m in metrics}
    folder = searches / f"{measured.task.name}-{digest_measurements(measured)}-{digest_facts(facts)}"
    more = {"evaluations": evaluations, "workers": settings.workers, "fewest": settings.fewest}
    tune_all(measured, split, folder, metrics=metrics, **options, **more)
    return folder


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    example = "runs/ --split split.json --recorded found/ --searches build/ --out release/ --card card/"
    parser = runs_parser("renew", __doc__, example=example)
    parser.add_argument("--recorded", type=Path, required=True, help="a folder for the settings that were found")
    parser.add_argument("--searches", type=Path, required=True, help="a folder for searches to work in")
    parser.add_argument("--out", type=Path, required=True, help="the release; one that is there is replaced")
    parser.add_argument("--card", type=Path, required=True, help="a folder for quality.md and quality.html")
    parser.add_argument("--evaluations", type=int, default=20, help="searched per metric; 0: as recorded (%(default)s)")
    parser.add_argument("--trees", type=int, default=500, help="trees of every searched forest (%(default)s)")
    parser.add_argument("--fewest", type=int, default=0, help="configs that every group needs (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of a new split and of the release (%(default)s)")
    add_release_flags(parser)
    add_workers(parser)
    flags = vars(parser.parse_args(argv))
    runs, split_file, out = (flags.pop(name) for name in ("runs", "split", "out"))
    settings = ReleaseSettings(**{f.name: flags.pop(f.name) for f in fields(ReleaseSettings) if f.name in flags})

    def work() -> str:
        quality = renew(runs, split_file, out, settings=settings, **flags)
        unmet = [f"{r['metric']} {r['score']}" for r in quality["requirements"] if r["is_met"] is False]
        state = f"; not reached: {', '.join(unmet)}" if unmet else ""
        digest = f'the line of jahs/release/find.py: "{quality["task"]}": "{read_release(out).sha256}",'
        return f"{out}: {', '.join(quality['metrics'])} from {quality['data']['configs']} configs{state}\n{digest}"

    return run_command("surrogate.renew", work)


if __name__ == "__main__":
    sys.exit(main())
