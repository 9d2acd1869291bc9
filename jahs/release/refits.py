"""The content of `refits.json`: models fitted again to resampled configs, whose spread is the model error.

    RELEASE/refits.json     how many refits there are, of which metrics, and how their spread is scaled
    RELEASE/refits-0.npz    their forests, in the format of forests-0.npz: all metrics of refit 0, then of refit 1, ...

Transform, target and features of a refit are those of the metric in models.json.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from jahs.errors import InvalidArgument
from jahs.files.strict_json import check_format, reading_state
from jahs.spaces.parameters import show
from jahs.tasks.metrics import ACCURACIES

REFITS_FORMAT: Final = 1
"""Version of `Refits.to_dict`; a reader refuses any other."""

REFITS: Final = "refits.json"
_FEWEST: Final = 2
_MOST: Final = 1000
_LARGEST_SCALE: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitPack:
    """Refits of metrics that read the same features."""

    file: str  # name of the npz
    pack: int  # place of the pack in models.json whose features they read
    metrics: tuple[str, ...]  # in the order of their forests


@dataclass(frozen=True, slots=True, kw_only=True)
class Refits:
    """The refits of a release."""

    n_refits: int  # of each metric; refit k of every metric was fitted to the same resampled configs
    packs: tuple[RefitPack, ...]
    scales: Mapping[str, float]  # of the standard deviation between refits, to be the error of the model; by metric
    facts: Mapping[str, Any] = field(default_factory=dict)  # about the fits; kept as written; Any: JSON

    def __post_init__(self) -> None:
        """Refuse refits that cannot be asked, every fault at once."""
        faults = []
        if type(self.n_refits) is not int or not _FEWEST <= self.n_refits <= _MOST:
            faults.append(f"n_refits={show(self.n_refits)} is not an integer in {_FEWEST}..{_MOST}")
        named = list(self.metrics)
        if len(set(named)) != len(named) or not named:
            faults.append(f"packs: metrics must be one or more, each once, got {', '.join(map(show, named)) or 'none'}")
        faults += [
            f"packs: {show(name)} is not one of {', '.join(ACCURACIES)}" for name in named if name not in ACCURACIES
        ]
        for pack in self.packs:
            if not isinstance(pack.file, str) or not pack.file.endswith(".npz"):
                faults.append(f"packs: file={show(pack.file)} is not the name of an npz")
            if type(pack.pack) is not int or pack.pack < 0:
                faults.append(f"packs: pack={show(pack.pack)} is not an integer >= 0")
        if set(self.scales) != set(named):
            faults.append(f"scales are of {', '.join(map(str, self.scales))}, not of {', '.join(named)}")
        faults += [
            f"scales: {name}={show(scale)} is not a number in (0, {_LARGEST_SCALE:g}]"
            for name, scale in self.scales.items()
            if type(scale) is not float or not math.isfinite(scale) or not 0 < scale <= _LARGEST_SCALE
        ]
        if faults:
            raise InvalidArgument("\n".join(faults))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that have refits."""
        return tuple(name for pack in self.packs for name in pack.metrics)

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the refits as JSON can hold them."""
        return {
            "format": REFITS_FORMAT,
            "n_refits": self.n_refits,
            "packs": [{"file": p.file, "pack": p.pack, "metrics": list(p.metrics)} for p in self.packs],
            "scales": dict(self.scales),
            "facts": dict(self.facts),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Refits:  # Any: JSON
        """Return the refits that `to_dict` described; UnknownFormat or InvalidArgument if they are not such refits."""
        check_format(state.get("format"), REFITS_FORMAT, of="refits")
        with reading_state("refits"):
            return cls(
                n_refits=state["n_refits"],
                packs=tuple(
                    RefitPack(file=pack["file"], pack=pack["pack"], metrics=tuple(map(str, pack["metrics"])))
                    for pack in state["packs"]
                ),
                scales=MappingProxyType(dict(state["scales"])),
                facts=MappingProxyType(dict(state.get("facts", {}))),
            )
