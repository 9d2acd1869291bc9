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
from dataclasses import dataclass, fields, replace
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
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import Facts, assemble, by_part, unmeasured
from surrogate.release import check_replaceable, make_release
from surrogate.release_settings import ReleaseSettings
from surrogate.tune import tune_all, what_is_searched
from workshop.command import add_workers, run_command
from workshop.folders import write_text

_SEARCH_FILES: Final = ("history.json", "params.json")
"""In this order: if the copy is interrupted, settings and history differ, which surrogate.release refuses."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewSettings:
    """Settings of `renew`: flags, which `--help` explains, and how the release is made."""

    runs: Path
    split: Path
    recorded: Path
    searches: Path
    out: Path
    card: Path
    evaluations: int
    trees: int
    release: ReleaseSettings


def renew(settings: RenewSettings) -> Facts:
    """Do every step on the runs recorded at the start, and return the release's quality.

    If a step fails, the files of earlier steps are kept.
    """
    settings.release.check()
    _renew_split(settings)
    measured, split = read_with_split(settings.runs, settings.split)
    _log.info("split %s: %s", split.digest, ", ".join(f"{n} {part}" for part, n in split.counts.items()))
    check_replaceable(settings.out)  # refused here, not after hours of searches
    for folder in (settings.recorded, settings.out.parent, settings.card):
        make_folder(folder)
    if settings.evaluations:
        _search(settings, measured, split)
    params = settings.recorded / "params.json"
    release_settings = replace(settings.release, params=params if params.is_file() else None)
    quality = make_release(measured, split, settings.out, release_settings)
    release = read_release(settings.out)
    write_card(release, settings.card, _figures(settings, release))
    return quality


def _figures(settings: RenewSettings, release: Release) -> Facts | None:
    """Return the figures beside the split if they belong to this release; otherwise None."""
    path = settings.split.with_name("figures.json")
    with suppress(MissingData, ProtocolMismatch):
        return figures_of(path, release)
    _log.info("%s has no figures of the new release; python -m surrogate.figures measures them", path)
    return None


def _renew_split(settings: RenewSettings) -> None:
    has_split = settings.split.exists()
    if has_split:
        old = read_split(settings.split)
        recorded = read_recorded(settings.runs, final=final_beside(settings.split))
        if np.array_equal(old.config_ids, recorded.config_ids):
            return
    settings.split.parent.mkdir(parents=True, exist_ok=True)
    options = {"extend": settings.split} if has_split else {"seed": settings.release.seed}
    make_split(settings.runs, settings.split, fewest=settings.release.fewest, **options)


def _search(settings: RenewSettings, measured: Measurements, split: Split) -> None:
    """Search settings for the metrics with validation rows, and record them."""
    missing = unmeasured(measured, split)
    metrics = [m for m in LEARNED if m not in missing and len(by_part(assemble(m, measured), split)["valid"])]
    if not metrics:
        _log.info("there are no validation rows, so nothing is searched")
        return
    distilled = settings.release.distilled or 0
    facts = {m: what_is_searched(m, measured, split, n_trees=settings.trees, distilled=distilled) for m in metrics}
    folder = settings.searches / f"{measured.task.name}-{digest_measurements(measured)}-{digest_facts(facts)}"
    tune_all(
        measured,
        split,
        folder,
        metrics=metrics,
        evaluations=settings.evaluations,
        workers=settings.release.workers,
        n_trees=settings.trees,
        distilled=distilled,
        fewest=settings.release.fewest,
    )
    for name in _SEARCH_FILES:
        write_text(settings.recorded / name, (folder / name).read_text(encoding="utf-8"))


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
    given = parser.parse_args(argv)
    flags = vars(given)
    release = ReleaseSettings(**{f.name: flags.pop(f.name) for f in fields(ReleaseSettings) if f.name in flags})

    def work() -> str:
        quality = renew(RenewSettings(**flags, release=release))
        unmet = [f"{r['metric']} {r['score']}" for r in quality["requirements"] if r["is_met"] is False]
        state = f"; not reached: {', '.join(unmet)}" if unmet else ""
        digest = f'the line of jahs/release/find.py: "{quality["task"]}": "{read_release(given.out).sha256}",'
        return (
            f"{given.out}: {', '.join(quality['metrics'])} from {quality['data']['configs']} configs{state}\n{digest}"
        )

    return run_command("surrogate.renew", work)


if __name__ == "__main__":
    sys.exit(main())
