"""Every optimiser by name. A factory is imported when it is asked for, so that no tool is needed before it is used.

An entry's factory is called as `factory(view, seed=..., objectives=..., settings=...)` and returns an `Optimizer`;
`view` is a `jahs.simulate.Visible`, which cannot be queried. Adapters of other tools enter in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, cast

from experiments.optimizers.settings import read_numbers
from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.views import Queryable
from jahs.simulate import Optimizer as Driven
from jahs.simulate import Visible, visible
from jahs.spaces.seeds import read_seed

__all__ = ["OPTIMIZERS", "Entry", "Optimizer", "make"]


class Optimizer(Driven, Protocol):
    """An optimiser with a name and settings, asked and told by a `jahs.simulate.Simulation`."""

    @property
    def name(self) -> str:
        """Its name in the registry."""

    @property
    def settings(self) -> Mapping[str, object]:
        """All that it depends on, its seed and objectives included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How to make an optimiser.

    Attributes:
        title: name for people.
        factory, settings: "module:name" of what makes it, and of its frozen dataclass of settings.
        preset: settings that make it this one of those that the factory makes.
        has_many_objectives: whether it takes more than one objective.
        uses_fidelities: whether it trains at less than the full fidelity.
        family: whether it fits a model.
        needs: what has to be installed, for `pip install`.
    """

    title: str
    factory: str
    settings: str
    preset: Mapping[str, object] = field(default_factory=dict)
    has_many_objectives: bool = False
    uses_fidelities: bool = False
    family: Literal["model-free", "model-based"] = "model-free"
    needs: tuple[str, ...] = ()


def _own(module: str, name: str, title: str, **more: Any) -> Entry:  # Any: an entry's own fields
    path = f"experiments.optimizers.{module}:{name}"
    return Entry(title=title, factory=path, settings=f"{path}Settings", **more)


def _tool(module: str, name: str, title: str, *needs: str, **more: Any) -> Entry:  # Any: an entry's own fields
    return _own(f"tools.{module}", name, title, needs=needs, **more)


def _neps(algorithm: str, title: str, **more: Any) -> Entry:  # Any: an entry's own fields
    needs = ("neural-pipeline-search", "torch==2.13.0")
    return _tool("neps", "Neps", title, *needs, preset={"algorithm": algorithm}, **more)


OPTIMIZERS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "random_search": _own("random_search", "RandomSearch", "Random search", has_many_objectives=True),
        "local_search": _own("local_search", "LocalSearch", "Local search"),
        "evolution": _own("evolution", "Evolution", "Evolution", preset={"removes": "worst"}),
        "regularized_evolution": _own("evolution", "Evolution", "Regularized evolution", preset={"removes": "oldest"}),
        "reinforce": _own("reinforce", "Reinforce", "REINFORCE"),
        "successive_halving": _own(
            "halving",
            "Halving",
            "Successive halving",
            preset={"brackets": "deepest"},
            has_many_objectives=True,
            uses_fidelities=True,
        ),
        "hyperband": _own(
            "halving",
            "Halving",
            "Hyperband",
            preset={"brackets": "all"},
            has_many_objectives=True,
            uses_fidelities=True,
        ),
        "asha": _own("asha", "Asha", "ASHA", has_many_objectives=True, uses_fidelities=True),
        "nsga2": _own("nsga2", "Nsga2", "NSGA-II", has_many_objectives=True),
        "optuna_tpe": _tool(
            "optuna",
            "Optuna",
            "TPE (Optuna)",
            "optuna",
            preset={"sampler": "tpe"},
            has_many_objectives=True,
            family="model-based",
        ),
        "optuna_nsga2": _tool(
            "optuna", "Optuna", "NSGA-II (Optuna)", "optuna", preset={"sampler": "nsga2"}, has_many_objectives=True
        ),
        "smac_black_box": _tool(
            "smac",
            "Smac",
            "SMAC (black box)",
            "smac",
            preset={"facade": "black_box"},
            has_many_objectives=True,
            family="model-based",
        ),
        "smac_multi_fidelity": _tool(
            "smac",
            "Smac",
            "SMAC (multi-fidelity)",
            "smac",
            preset={"facade": "multi_fidelity"},
            has_many_objectives=True,
            uses_fidelities=True,
            family="model-based",
        ),
        "dehb": _tool("dehb", "Dehb", "DEHB", "dehb", uses_fidelities=True),
        "syne_tune_bohb": _tool(
            "syne_tune",
            "Bohb",
            "BOHB (Syne Tune)",
            "syne-tune",
            "huggingface_hub",
            uses_fidelities=True,
            family="model-based",
        ),
        "neps_random_search": _neps("random_search", "Random search (NePS)"),
        "neps_hyperband": _neps("hyperband", "Hyperband (NePS)", uses_fidelities=True),
        "neps_priorband": _neps("priorband", "PriorBand (NePS)", uses_fidelities=True),
        "neps_pibo": _neps("pibo", "πBO (NePS)", family="model-based"),
    }
)
"""Every optimiser by its name."""


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
        view: what it searches; it can look at it, not query it.
        seed: of the optimiser's choices.
        objectives: metrics to optimise, in their own directions.
        settings: of this optimiser, in place of its defaults.

    Raises:
        UnknownName: an optimiser, a metric or a setting does not exist; lists those that do. Metrics of the test images
            do not exist for optimisers.
        InvalidArgument: the seed or a setting is out of its range, or there are more objectives than it takes.
        MissingDependency: the tool behind it is not installed.
    """
    if name not in OPTIMIZERS:
        raise UnknownName.of("optimizer", name, OPTIMIZERS)
    entry = OPTIMIZERS[name]
    if not entry.has_many_objectives and len(objectives) > 1:
        many = ", ".join(key for key, other in OPTIMIZERS.items() if other.has_many_objectives)
        raise InvalidArgument(
            f"{name} takes one objective, not {', '.join(objectives)}; those that take several: {many}"
        )
    dataclass_ = _load(entry.settings)
    known = {each.name for each in fields(dataclass_)} - set(entry.preset)
    for key in settings:
        if key not in known:
            raise UnknownName.of(f"setting of {name}", key, sorted(known))
    seed = read_seed(seed)
    chosen = dataclass_(**entry.preset, **read_numbers(dataclass_, settings))
    factory = _load(entry.factory)
    return cast("Optimizer", factory(visible(view), seed=seed, objectives=tuple(objectives), settings=chosen))


def _load(path: str) -> Any:  # Any: a class or a function
    module, name = path.split(":")
    return getattr(import_module(module), name)
