"""The content of `models.json`: for every learned metric its forest, its features, and its transform."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from jahs.errors import InvalidArgument, UnknownFormat
from jahs.files.strict_json import check_format, reading_state
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FEATURES_VERSION, FeatureSet, joint_times
from jahs.tasks.metrics import METRICS, Metric

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Forests that read the same features."""

    file: str  # name of the npz, or of the folder of mapped arrays ("forests-0")
    features: FeatureSet  # their inputs

    @property
    def is_mapped(self) -> bool:
        """Whether it is a folder, which is mapped into memory instead of read."""
        return not self.file.endswith(".npz")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricModel:
    """The model of one metric."""

    pack: int  # place of its pack
    forest: int  # place of its forest in the pack
    transform: BoundedTransform | None  # from the forest's answer to the target; None: it is the target, without bounds
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
        """Refuse models that cannot be asked, every fault at once."""
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
                f"metric {name!r}: {key}={value!r} cannot be said of a metric"
                for key, value in model.overrides.items()
                if key not in _OVERRIDES or type(value) not in _OVERRIDES[key]
            ]
        if faults:
            raise InvalidArgument("\n".join(faults))

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
        if not isinstance(state, Mapping):
            raise InvalidArgument(f"models must be a mapping, got {type(state).__name__}")
        _check_versions(state)
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
    """Say in which way answers could leave the metric's bounds; an imported release may, as its authors' code does."""
    transform = model.transform
    if transform is None:
        if costs == "exact":
            yield "transform is null, so answers have no bounds"
    elif metric is not None and not metric.lower <= transform.lower < transform.upper <= metric.upper:
        yield f"the bounds [{transform.lower}, {transform.upper}] are not within [{metric.lower}, {metric.upper}]"
    if transform is not None and transform.published and costs == "exact":
        yield "published=true is for imported releases, whose answers may leave their bounds"


def _check_versions(state: Mapping[str, Any]) -> None:
    check_format(state.get("format"), MODELS_FORMAT, of="models")
    if type(found := state.get("features_version")) is not int or found != FEATURES_VERSION:
        raise UnknownFormat(
            f"models that read features of version {found!r}; this version of jahs builds version {FEATURES_VERSION}: "
            "install the jahs that wrote the release, or write the release again"
        )


def _model(entry: Mapping[str, Any]) -> MetricModel:
    known = ("place", "pack", "forest", "transform", "target")
    return MetricModel(
        pack=entry["pack"],
        forest=entry["forest"],
        transform=None if entry["transform"] is None else BoundedTransform.from_dict(entry["transform"]),
        target=entry.get("target", "value"),
        overrides=MappingProxyType({key: value for key, value in entry.items() if key not in known}),
    )
