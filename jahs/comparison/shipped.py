"""Results of the studies that come with the package, so that anyone's logs are compared without running baselines.

    jahs/seasons/<study>-<task>.json    a sealed file: season, release, and each run's result so far over time

`python -m experiments.report STUDY --ship jahs/seasons` writes them. They are valid for the releases they were made on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.comparison.standings import REFERENCE, Rollout, Rollouts
from jahs.comparison.steps import Steps
from jahs.comparison.terms import SAME_TERMS
from jahs.errors import CorruptFile, InvalidArgument, UnknownName
from jahs.files.sealed_json import read_sealed
from jahs.optimizers import QUALITIES
from jahs.spaces.parameters import show

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
    """Return the shipped results of a study on a task; None unless they were made on one of these releases (sha256).

    Results of studies under the same terms are added if they are of the same season.
    """
    found = _read_file(study, task, releases, folder)
    if found is None:
        return None
    for other in [name for name, same in SAME_TERMS.items() if same == study]:
        more = _read_file(other, task, releases, folder)
        if more is not None and (more.season, more.release) == (found.season, found.release):
            found = replace(found, rollouts={**more.rollouts, **found.rollouts})
    return found


def choose_shown(shipped: ShippedResults, names: Sequence[str] | None) -> ShippedResults:
    """Return the results of these optimisers and of random search; None: of all that were given no prior.

    Raises:
        InvalidArgument: `names` is not a list.
        UnknownName: a name is not an optimiser of the results; lists those that exist.
    """
    if isinstance(names, str):
        raise InvalidArgument(f"beside={show(names)} is not a list of names; for one give [{show(names)}]")
    for name in names or ():
        if name not in shipped.rollouts:
            raise UnknownName.of("beside", name, sorted(shipped.rollouts))
    if names is None:
        # The last part of a name, as in "neps_priorband-good", is the quality of a prior made from the release.
        chosen = [name for name in shipped.rollouts if name.rpartition("-")[2] not in QUALITIES]
    else:
        chosen = list(dict.fromkeys((REFERENCE, *names)))
    return replace(shipped, rollouts={name: shipped.rollouts[name] for name in chosen})


def _read_file(study: str, task: str, releases: Collection[str], folder: Path) -> ShippedResults | None:
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


def _rollout(run: Mapping[str, Any]) -> Rollout:  # Any: JSON
    steps = Steps(times=np.array(run["times"], dtype=np.float64), values=np.array(run["values"], dtype=np.float64))
    errors = np.array([run["test_error"], run["refit_error"]], dtype=np.float64).tolist()  # NaN for None
    return Rollout(steps=steps, test_error=errors[0], refit_error=errors[1])
