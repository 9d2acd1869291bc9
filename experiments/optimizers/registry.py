"""Every optimiser by name. Factories are imported on first use, so a tool must be installed only when it is used.

A factory is called as `factory(view, seed=..., objectives=..., settings=...)` and returns an `Optimizer`. `view` is a
`jahs.simulate.Visible`, which cannot be queried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.views import Queryable
from jahs.simulate import Optimizer as Driven
from jahs.simulate import Visible, visible
from jahs.spaces.seeds import read_seed

__all__ = ["OPTIMIZERS", "Entry", "Optimizer", "make"]


class Optimizer(Driven, Protocol):
    """An optimiser of a `jahs.simulate.Simulation` with a name and settings."""

    @property
    def name(self) -> str:
        """The name in the registry."""

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything that the run depends on, seed and objectives included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How to make an optimiser.

    Attributes:
        title: name for people.
        factory, settings: "module:name" of the factory and of its `OptimizerSettings`.
        preset: settings that select this optimiser where a factory makes several.
        has_many_objectives: whether it takes more than one objective.
        family: whether it fits a model.
        needs: requirements for `pip install`.
    """

    title: str
    factory: str
    settings: str
    preset: Mapping[str, object] = field(default_factory=dict)
    has_many_objectives: bool = False
    family: Literal["model-free", "model-based"] = "model-free"
    needs: tuple[str, ...] = ()


_Trait: TypeAlias = Literal["many", "model"]
"""Takes several objectives; fits a model."""


def _entry(path: str, title: str, *traits: _Trait, needs: tuple[str, ...] = (), **preset: object) -> Entry:
    factory = f"experiments.optimizers.{path}"
    return Entry(
        title=title,
        factory=factory,
        settings=f"{factory}Settings",
        preset=preset,
        has_many_objectives="many" in traits,
        family="model-based" if "model" in traits else "model-free",
        needs=needs,
    )


_entry_optuna = partial(_entry, "tools.optuna:Optuna", needs=("optuna",))
_entry_smac = partial(_entry, "tools.smac:Smac", needs=("smac",))
_entry_neps = partial(_entry, "tools.neps:Neps", needs=("neural-pipeline-search", "torch==2.13.0"))
_entry_dehb = partial(_entry, "tools.dehb:Dehb", needs=("dehb",))
_entry_bohb = partial(_entry, "tools.syne_tune:Bohb", needs=("syne-tune", "huggingface_hub"))

OPTIMIZERS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "random_search": _entry("random_search:RandomSearch", "random search", "many"),
        "local_search": _entry("local_search:LocalSearch", "local search"),
        "evolution": _entry("evolution:Evolution", "non-regularized evolution", removes="worst"),
        "regularized_evolution": _entry("evolution:Evolution", "regularized evolution", removes="oldest"),
        "reinforce": _entry("reinforce:Reinforce", "REINFORCE"),
        "successive_halving": _entry("halving:Halving", "successive halving", "many", brackets="deepest"),
        "hyperband": _entry("halving:Halving", "Hyperband", "many", brackets="all"),
        "asha": _entry("asha:Asha", "ASHA", "many"),
        "nsga2": _entry("nsga2:Nsga2", "NSGA-II", "many"),
        "optuna_tpe": _entry_optuna("TPE (Optuna)", "many", "model", sampler="tpe"),
        "optuna_nsga2": _entry_optuna("NSGA-II (Optuna)", "many", sampler="nsga2"),
        "smac_black_box": _entry_smac("SMAC (black box)", "many", "model", facade="black_box"),
        "smac_multi_fidelity": _entry_smac("SMAC (multi-fidelity)", "many", "model", facade="multi_fidelity"),
        "dehb": _entry_dehb("DEHB"),
        "syne_tune_bohb": _entry_bohb("BOHB (Syne Tune)", "model"),
        "neps_random_search": _entry_neps("random search (NePS)", algorithm="random_search"),
        "neps_hyperband": _entry_neps("Hyperband (NePS)", algorithm="hyperband"),
        "neps_priorband": _entry_neps("PriorBand (NePS)", algorithm="priorband"),
        "neps_pibo": _entry_neps("πBO (NePS)", "model", algorithm="pibo"),
    }
)
"""Every optimiser by name."""


def make(
    name: str,
    view: Queryable | Visible,
    *,
    seed: int,
    objectives: Sequence[str] = ("valid_acc",),
    **settings: object,
) -> Optimizer:
    """Return the optimiser called `name` for a benchmark or a view.

    Args:
        name: one of `OPTIMIZERS`.
        view: the space to search; the optimiser cannot query it.
        seed: seeds the optimiser's choices.
        objectives: metrics to optimise, each in its own direction.
        settings: settings that replace the optimiser's defaults.

    Raises:
        UnknownName: the optimiser, a metric or a setting does not exist; lists the valid names. Optimisers cannot use
            test metrics.
        InvalidArgument: the seed or a setting is out of range, or there are too many objectives.
        MissingDependency: its tool is not installed.
    """
    if name not in OPTIMIZERS:
        raise UnknownName.of("optimizer", name, OPTIMIZERS)
    entry = OPTIMIZERS[name]
    if not entry.has_many_objectives and len(objectives) > 1:
        many = ", ".join(key for key, other in OPTIMIZERS.items() if other.has_many_objectives)
        raise InvalidArgument(f"{name} takes one objective, not {', '.join(objectives)}; these take several: {many}")
    dataclass_ = _load(entry.settings)
    known = {each.name for each in fields(dataclass_)} - set(entry.preset)
    for key in settings:
        if key not in known:
            raise UnknownName.of(f"setting of {name}", key, sorted(known))
    seed = read_seed(seed)
    chosen = dataclass_(**entry.preset, **settings)
    factory = _load(entry.factory)
    return cast("Optimizer", factory(visible(view), seed=seed, objectives=tuple(objectives), settings=chosen))


def _load(path: str) -> Any:  # Any: a class or a function
    module, name = path.split(":")
    return getattr(import_module(module), name)
