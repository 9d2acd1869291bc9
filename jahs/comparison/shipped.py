"""Results of the studies that come with the package, so that anyone's logs are compared without running baselines.

    jahs/seasons/<study>-<task>.json    a sealed file: season, release, and each run's result so far over time

`python -m experiments.report STUDY --ship jahs/seasons` writes them. They are valid for the releases they were made on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.comparison.standings import Rollout, Rollouts
from jahs.comparison.steps import Steps
from jahs.errors import CorruptFile
from jahs.files.sealed_json import read_sealed

SEASONS: Final = Path(__file__).parents[1] / "seasons"
"""The folder of the embedded results."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShippedResults:
    """The results of one study on one task."""

    study: str
    task: str
    season: str  # names and numbers of the releases of the study
    release: str  # sha256 of its manifest
    rollouts: Rollouts


def read_shipped(study: str, task: str, releases: Collection[str], *, folder: Path = SEASONS) -> ShippedResults | None:
    """Return the shipped results of a study on a task; None unless they were made on one of these releases (sha256)."""
    path = folder / f"{study}-{task}.json"
    if not path.is_file():
        return None
    content = read_sealed(path)
    if content.get("release") not in releases:
        return None
    try:
        rollouts = {
            name: {int(seed): _rollout(run) for seed, run in runs.items()}
            for name, runs in content["optimizers"].items()
        }
        return ShippedResults(
            study=study, task=task, season=content["season"], release=content["release"], rollouts=rollouts
        )
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise CorruptFile(f"{path} has no results of optimisers: {err!r}; install the package again") from err


def _error(known: float | None) -> float:
    return np.nan if known is None else float(known)


def _rollout(run: Mapping[str, Any]) -> Rollout:  # Any: JSON
    steps = Steps(times=np.array(run["times"], dtype=np.float64), values=np.array(run["values"], dtype=np.float64))
    return Rollout(steps=steps, test_error=_error(run["test_error"]), refit_error=_error(run["refit_error"]))
