"""Our optimisers by name. Factories are imported on first use, so a tool must be installed only when it is used.

A factory is called as `factory(view, seed=..., objectives=..., settings=...)` and returns an `Optimizer`. `view` is a
`jahs.simulate.Visible`, which cannot be queried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.views import Queryable
from jahs.simulate import Optimizer as Driven
from jahs.simulate import Visible, visible
from jahs.spaces.seeds import read_seed
from jahs.tasks.objectives import read_objectives


class Optimizer(Driven, Protocol):
    """An optimiser of a `jahs.simulate.Simulation` with a name and settings."""

    @property
    def name(self) -> str:
        """The name in the registry."""

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything that determines the run, seed and objectives included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recipe for an optimiser.

    Attributes:
        title: readable name.
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


Trait: TypeAlias = Literal["many", "model"]
"""Takes several objectives; fits a model."""


def entry_of(path: str, title: str, *traits: Trait, needs: tuple[str, ...] = (), **preset: object) -> Entry:
    """Return the entry of the factory at `path`, "module:name" in this package unless the module has a dot."""
    factory = path if "." in path else f"jahs.optimizers.{path}"
    return Entry(
        title=title,
        factory=factory,
        settings=f"{factory}Settings",
        preset=preset,
        has_many_objectives="many" in traits,
        family="model-based" if "model" in traits else "model-free",
        needs=needs,
    )


OPTIMIZERS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "random_search": entry_of("random_search:RandomSearch", "random search", "many"),
        "local_search": entry_of("local_search:LocalSearch", "local search"),
        "evolution": entry_of("evolution:Evolution", "non-regularized evolution", removes="worst"),
        "regularized_evolution": entry_of("evolution:Evolution", "regularized evolution", removes="oldest"),
        "differential_evolution": entry_of("evolution:DifferentialEvolution", "differential evolution"),
        "reinforce": entry_of("reinforce:Reinforce", "REINFORCE"),
        "successive_halving": entry_of("rungs:Halving", "successive halving", "many", brackets="deepest"),
        "hyperband": entry_of("rungs:Halving", "Hyperband", "many", brackets="all"),
        "asha": entry_of("rungs:Asha", "ASHA", "many"),
        "nsga2": entry_of("evolution:Nsga2", "NSGA-II", "many"),
    }
)
"""Our optimisers by name."""


def make(
    name: str,
    view: Queryable | Visible,
    *,
    seed: int,
    objectives: Sequence[str] = ("valid_acc",),
    registry: Mapping[str, Entry] = OPTIMIZERS,
    **settings: object,
) -> Optimizer:
    """Return the optimiser called `name` for a benchmark or a view.

    Args:
        name: one of `registry`.
        view: the space to search; the optimiser cannot query it.
        seed: seeds the optimiser's choices.
        objectives: metrics to optimise, each in its own direction.
        registry: optimisers by name.
        settings: settings that replace the optimiser's defaults.

    Raises:
        UnknownName: the optimiser, a metric or a setting does not exist; lists the valid names. Optimisers cannot use
            test metrics.
        InvalidArgument: the seed or a setting is out of range, or there are too many objectives.
        MissingDependency: the optimiser's tool is not installed.

    Example:
        >>> import jahs
        >>> view = jahs.Benchmark("cifar10_mini").view(fixed={"N": 1, "W": 8, "Resolution": 0.5})
        >>> len(jahs.Simulation(view, n_trials=20).run(make("hyperband", view, seed=0, eta=4)))
        20
    """
    if not isinstance(name, str) or name not in registry:
        raise UnknownName.of("optimizer", name, registry)
    entry = registry[name]
    seen = visible(view)
    objectives = [each.metric.name for each in read_objectives(objectives, known=seen.metrics, name="objectives")]
    if not entry.has_many_objectives and len(objectives) > 1:
        many = ", ".join(key for key, other in registry.items() if other.has_many_objectives)
        raise InvalidArgument(f"{name} takes one objective, not {', '.join(objectives)}; these take several: {many}")
    settings_class = _load(entry.settings)
    known = {each.name for each in fields(settings_class)} - set(entry.preset)
    for key in settings:
        if key not in known:
            raise UnknownName.of(f"setting of {name}", key, sorted(known))
    seed = read_seed(seed)
    checked_settings = settings_class(**entry.preset, **settings)
    factory = _load(entry.factory)
    return cast("Optimizer", factory(seen, seed=seed, objectives=tuple(objectives), settings=checked_settings))


def _load(path: str) -> Any:  # Any: a class or a function
    module, name = path.split(":")
    return getattr(import_module(module), name)
