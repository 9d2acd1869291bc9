"""The features that models read: their meaning, their groups, and the sets that models choose.

A feature set is a list of columns with a name and a version. Trees see only the order of a column's values, so a
logarithm or the epoch's share of the task adds nothing to the plain value; products help, as sums of logarithms.
`jahs.models.features` builds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jahs.errors import InvalidArgument, UnknownName
from jahs.models.features.cells import CELL_FEATURES, SIGNAL_FEATURES
from jahs.models.features.formulas import columns_of, published_rest
from jahs.models.features.timing import DEFAULT_TIMES, WORK, TimeCoefficients, time_terms

FEATURES_VERSION: Final = 3
"""Increased whenever a column that a set reads changes its values or is removed; a release built with another version
is refused.

A set may gain columns without an increase: a release lists the columns that its models read.
"""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "hyperparameters": ("Activation", "LearningRate", "TrivialAugment", "WeightDecay"),
        "sizes": ("N", "Resolution", "W"),
        "epoch": ("epoch",),
        "cost": WORK[:2],
        "time": WORK[2:],
        **CELL_FEATURES,
        "signal": (*SIGNAL_FEATURES, "epochs_per_conv", "pools_per_conv", "pools_per_resolution"),
        "rates": ("rate_times_decay", "rate_over_decay"),
        "rates_by_size": (
            "rate_times_N",
            "rate_times_W",
            "rate_over_W",
            "rate_times_params",
            "decay_times_params",
            "rate_times_decay_times_N",
            "rate_times_live_paths",
        ),
        "size": ("network_depth", "network_conv3x3", "network_view", "N_times_W", "W_times_resolution"),
        "epochs": ("rate_spent", "rate_left", "rate_now", "decay_spent"),
        "time_terms": columns_of(time_terms),
        "published_rest": columns_of(published_rest),
    }
)
"""The columns of each group."""

_KNOWN: Final = frozenset(name for names in GROUPS.values() for name in names)

VARYING: Final = frozenset(("epoch", "epochs_per_conv", "rate_spent", "decay_spent", "rate_left", "rate_now"))
"""The columns that change with the epoch, each in one direction; every other column is fixed along a trajectory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """The columns that a model reads."""

    name: str
    columns: tuple[str, ...]  # in order
    is_canonical: bool  # whether cells that compute the same function get the same features
    times: TimeCoefficients = DEFAULT_TIMES  # coefficients of the columns of the group "time"

    def __post_init__(self) -> None:
        """Refuse columns that do not exist or are repeated, and an empty set."""
        if unknown := [name for name in self.columns if name not in _KNOWN]:
            raise UnknownName.of("feature", unknown[0], sorted(_KNOWN))
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise InvalidArgument(f"feature set {self.name!r}: columns={self.columns} must be some, each once")

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the set as JSON can hold it, with `times` only if they are not the default."""
        times = {} if self.times == DEFAULT_TIMES else {"times": self.times.to_dict()}
        return {"name": self.name, "columns": list(self.columns), "is_canonical": self.is_canonical, **times}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> FeatureSet:
        """Return the set that `to_dict` described."""
        return cls(
            name=str(state["name"]),
            columns=tuple(state["columns"]),
            is_canonical=state["is_canonical"] is True,
            times=TimeCoefficients.from_dict(state["times"]) if "times" in state else DEFAULT_TIMES,
        )


def joint_times(sets: Sequence[FeatureSet]) -> TimeCoefficients:
    """Return the coefficients of all sets that read times, which must agree; the default ones if none does."""
    timed = [s for s in sets if not {*GROUPS["time"]}.isdisjoint(s.columns)]
    if len({s.times for s in timed}) > 1:
        raise InvalidArgument(f"times: {', '.join(s.name for s in timed)} must have the same coefficients")
    return timed[0].times if timed else DEFAULT_TIMES


_ACCURACY: Final = tuple(
    name
    for group in (
        *("hyperparameters", "sizes", "epoch", "operations", "shortcuts", "signal", "cost"),
        *("rates", "rates_by_size", "size", "epochs"),
    )
    for name in GROUPS[group]
)
_PUBLISHED: Final = (
    *GROUPS["published_rest"][:3],
    *GROUPS["one_hot"],
    *GROUPS["published_rest"][3:],
    "LearningRate",
    "N",
    "Resolution",
    "W",
    "WeightDecay",
    "epoch",
)
_WORK: Final = tuple(name for group in ("cost", "counts", "operations", "time") for name in GROUPS[group])

FEATURE_SETS: Final[Mapping[str, FeatureSet]] = MappingProxyType(
    {
        features.name: features
        for features in (
            FeatureSet(name="published", columns=_PUBLISHED, is_canonical=False),
            FeatureSet(name="accuracy", columns=_ACCURACY, is_canonical=True),
            FeatureSet(name="latency", columns=("Activation", *GROUPS["sizes"], *_WORK), is_canonical=False),
            FeatureSet(
                name="epoch_time",
                columns=("Activation", "TrivialAugment", *GROUPS["sizes"], *_WORK),
                is_canonical=False,
            ),
        )
    }
)
"""published: JAHS-Bench-201's 41 columns, in its order. accuracy: ours, equal for cells that compute the same function.
latency and epoch_time: columns that affect time, without hyperparameters and epochs that cannot. time_terms, which no
set reads: the terms whose sums form the group time."""


def feature_set(name: str) -> FeatureSet:
    """Return the feature set called `name`; UnknownName lists those that exist."""
    if name in FEATURE_SETS:
        return FEATURE_SETS[name]
    raise UnknownName.of("features", name, FEATURE_SETS)
