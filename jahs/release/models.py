"""The content of `models.json` and of `refits.json`.

models.json has the forest, the features and the transform of every learned metric. refits.json lists models that were
fitted again to resampled configs; their spread is the model error:

    RELEASE/refits.json     number of refits, their metrics, and the scales of their spread
    RELEASE/refits-0.npz    their forests, in the format of forests-0.npz: all metrics of refit 0, then of refit 1, ...

A refit has the transform, target and features of its metric in models.json.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from jahs.errors import InvalidArgument, UnknownFormat, refuse
from jahs.files.strict_json import check_format, reading_state
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FEATURES_VERSION, FeatureSet, joint_times
from jahs.spaces.parameters import is_number, is_real, show
from jahs.tasks.metrics import ACCURACIES, METRICS, Metric

MODELS_FORMAT: Final = 1
"""Version of `Models.to_dict`; a reader refuses any other."""

FAMILIES: Final = ("lightgbm",)
"""Families of models that a release may have beside its own, in `<family>.json` and `<family>-*.npz`."""

Costs: TypeAlias = Literal["exact", "published", "repaired"]
"""exact: parameters and multiply-adds are computed, runtime strictly increases. published: an imported release answers
as its authors' code does. repaired: an imported release made exact, increasing and constant where it should be."""

Target: TypeAlias = Literal["value", "per_epoch"]

_OVERRIDES: Final[Mapping[str, tuple[type, ...]]] = {
    "unit": (str,),
    "description": (str,),
    "by_epoch": (bool,),
    "published_scale": (float, int),
}
_MOST_METRICS: Final = 1000

REFITS_FORMAT: Final = 1
"""Version of `Refits.to_dict`; a reader refuses any other."""

REFITS: Final = "refits.json"
_FEWEST: Final = 2
_MOST: Final = 1000
_LARGEST_SCALE: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Forests that read the same features."""

    file: str  # name of the npz, or of the folder of arrays that are mapped instead of read ("forests-0")
    features: FeatureSet  # their inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricModel:
    """The model of one metric."""

    pack: int  # place of its pack
    forest: int  # place of its forest in the pack
    transform: BoundedTransform | None  # from the forest's answer to the target; None: the answer is the target
    target: Target = "value"  # "per_epoch": the target is multiplied by the epoch
    overrides: Mapping[str, Any] = field(default_factory=dict)  # Any: each has the type of its field

    def metric(self, name: str) -> Metric:
        """Return the predicted metric, with its overrides."""
        return dataclasses.replace(METRICS[name], kind="learned", **self.overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """All models of a release."""

    costs: Costs
    packs: tuple[Pack, ...]
    metrics: Mapping[str, MetricModel]  # in the order in which results list them
    counts: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    def __post_init__(self) -> None:
        """Refuse models that cannot be queried, every fault at once."""
        faults = []
        try:
            joint_times([pack.features for pack in self.packs])
        except InvalidArgument as err:
            faults.append(str(err))
        if self.costs not in get_args(Costs):
            faults.append(f"costs={self.costs!r} is not one of {', '.join(get_args(Costs))}")
        for name, model in self.metrics.items():
            if name not in METRICS:
                faults.append(f"metric {name!r} does not exist; metrics are {', '.join(METRICS)}")
            if self.costs == "exact" and name in METRICS and METRICS[name].kind == "exact":
                faults.append(f"metric {name!r} is computed exactly where costs='exact'; it needs no model")
            faults += [
                f"metric {name!r}: {where}={value!r} is not an integer >= 0"
                for where, value in (("pack", model.pack), ("forest", model.forest))
                if type(value) is not int or value < 0
            ]
            faults += [f"metric {name!r}: {fault}" for fault in _bound_faults(METRICS.get(name), model, self.costs)]
            if type(model.pack) is int and model.pack >= len(self.packs):
                faults.append(f"metric {name!r}: pack={model.pack}, but there are {len(self.packs)} packs")
            if model.target not in get_args(Target):
                faults.append(f"metric {name!r}: target={model.target!r} is not one of {', '.join(get_args(Target))}")
            faults += [
                f"metric {name!r}: {key}={value!r} cannot be set for a metric"
                for key, value in model.overrides.items()
                if key not in _OVERRIDES or type(value) not in _OVERRIDES[key]
            ]
            scale = model.overrides.get("published_scale", 1.0)
            if is_real(scale) and not (is_number(scale) and scale > 0):
                faults.append(f"metric {name!r}: published_scale={show(scale)} is not a finite number above 0")
        refuse(*faults)

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the models as JSON can hold them."""
        metrics = {
            name: {
                "place": place,
                "pack": model.pack,
                "forest": model.forest,
                "transform": None if model.transform is None else model.transform.to_dict(),
                "target": model.target,
                **model.overrides,
            }
            for place, (name, model) in enumerate(self.metrics.items())
        }
        return {
            "format": MODELS_FORMAT,
            "features_version": FEATURES_VERSION,
            "costs": self.costs,
            "packs": [{"file": pack.file, "features": pack.features.to_dict()} for pack in self.packs],
            "metrics": metrics,
            "counts": dict(self.counts),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Models:
        """Return the models that `to_dict` described; UnknownFormat if this version builds other features."""
        check_format(state.get("format"), MODELS_FORMAT, of="models")
        if type(version := state.get("features_version")) is not int or version != FEATURES_VERSION:
            raise UnknownFormat(
                f"models that read features of version {version!r}; this version of jahs builds version "
                f"{FEATURES_VERSION}: install the jahs that wrote the release, or write the release again"
            )
        with reading_state("models"):
            metrics = dict(sorted(state["metrics"].items(), key=lambda item: item[1].get("place", _MOST_METRICS)))
            return cls(
                costs=state["costs"],
                packs=tuple(
                    Pack(file=str(pack["file"]), features=FeatureSet.from_dict(pack["features"]))
                    for pack in state["packs"]
                ),
                metrics=MappingProxyType({name: _model(entry) for name, entry in metrics.items()}),
                counts=MappingProxyType(dict(state.get("counts", {}))),
            )


def _bound_faults(metric: Metric | None, model: MetricModel, costs: str) -> Iterator[str]:
    """Yield how answers could leave the metric's bounds; an imported release may, as its authors' code does."""
    transform = model.transform
    if transform is None:
        if costs == "exact":
            yield "transform is null, so answers have no bounds"
    elif metric is not None and not metric.lower <= transform.lower < transform.upper <= metric.upper:
        yield f"the bounds [{transform.lower}, {transform.upper}] are not within [{metric.lower}, {metric.upper}]"
    if transform is not None and transform.published and costs == "exact":
        yield "published=true is for imported releases, whose answers may leave their bounds"
    if metric is not None and math.isfinite(metric.upper) and model.target == "per_epoch":
        yield f"target='per_epoch' multiplies by the epoch, so answers may leave {metric.upper:g}, the upper bound"


def _model(entry: Mapping[str, Any]) -> MetricModel:
    known = ("place", "pack", "forest", "transform", "target")
    return MetricModel(
        pack=entry["pack"],
        forest=entry["forest"],
        transform=None if entry["transform"] is None else BoundedTransform.from_dict(entry["transform"]),
        target=entry.get("target", "value"),
        overrides=MappingProxyType({key: value for key, value in entry.items() if key not in known}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitPack:
    """Refits of metrics that read the same features."""

    file: str  # name of the npz
    pack: int  # place in models.json of the pack whose features they read
    metrics: tuple[str, ...]  # in the order of their forests


@dataclass(frozen=True, slots=True, kw_only=True)
class Refits:
    """The refits of a release."""

    n_refits: int  # refits per metric; refit k of every metric was fitted to the same resampled configs
    packs: tuple[RefitPack, ...]
    scales: Mapping[str, float]  # factors from the standard deviation between refits to the model's error, by metric
    facts: Mapping[str, Any] = field(default_factory=dict)  # about the fits; kept as written; Any: JSON

    def __post_init__(self) -> None:
        """Refuse refits that cannot be queried, every fault at once."""
        faults = []
        if type(self.n_refits) is not int or not _FEWEST <= self.n_refits <= _MOST:
            faults.append(f"n_refits={show(self.n_refits)} is not an integer in {_FEWEST}..{_MOST}")
        names = list(self.metrics)
        if len(set(names)) != len(names) or not names:
            faults.append(f"packs: metrics must be one or more, each once, got {', '.join(map(show, names)) or 'none'}")
        faults += [
            f"packs: {show(name)} is not one of {', '.join(ACCURACIES)}" for name in names if name not in ACCURACIES
        ]
        for pack in self.packs:
            if not isinstance(pack.file, str) or not pack.file.endswith(".npz"):
                faults.append(f"packs: file={show(pack.file)} is not the name of an npz")
            if type(pack.pack) is not int or pack.pack < 0:
                faults.append(f"packs: pack={show(pack.pack)} is not an integer >= 0")
        if set(self.scales) != set(names):
            faults.append(f"scales must be for {', '.join(names)}, got {', '.join(map(str, self.scales))}")
        faults += [
            f"scales: {name}={show(scale)} is not a number in (0, {_LARGEST_SCALE:g}]"
            for name, scale in self.scales.items()
            if type(scale) is not float or not math.isfinite(scale) or not 0 < scale <= _LARGEST_SCALE
        ]
        refuse(*faults)

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
