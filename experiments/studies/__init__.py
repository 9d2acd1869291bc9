"""The studies: declarations of optimisers, views, tasks, seeds and budgets."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from experiments.studies.baselines import BASELINES
from experiments.studies.fidelity import FIDELITY
from experiments.studies.joint import JOINT
from experiments.studies.long import LONG, WORKERS
from experiments.studies.multiobjective import MULTIOBJECTIVE
from experiments.studies.strong import STRONG
from experiments.studies.study import Study
from experiments.studies.truth import TRUTH
from jahs.errors import UnknownName

STUDIES: Final[Mapping[str, Study]] = MappingProxyType(
    {study.name: study for study in (JOINT, FIDELITY, MULTIOBJECTIVE, BASELINES, STRONG, TRUTH, LONG, WORKERS)}
)
"""Every study by name."""


def find_study(name: str) -> Study:
    """Return the study of this name.

    Raises:
        UnknownName: there is no such study; lists the studies.
    """
    if name in STUDIES:
        return STUDIES[name]
    raise UnknownName.of("study", name, STUDIES)
