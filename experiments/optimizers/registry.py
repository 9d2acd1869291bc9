"""Every optimiser by name: those of `jahs.optimizers`, and those of other tools, which are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from jahs.optimizers.registry import OPTIMIZERS as OWN
from jahs.optimizers.registry import Entry, Optimizer, Trait, entry_of, make_from
from jahs.queries.views import Queryable
from jahs.simulate import Visible

__all__ = ["OPTIMIZERS", "make"]


def _entry(path: str, title: str, *traits: Trait, needs: tuple[str, ...] = (), **preset: object) -> Entry:
    return entry_of(f"experiments.optimizers.tools.{path}", title, *traits, needs=needs, **preset)


_entry_optuna = partial(_entry, "optuna:Optuna", needs=("optuna",))
_entry_smac = partial(_entry, "smac:Smac", needs=("smac",))
_entry_neps = partial(_entry, "neps:Neps", needs=("neural-pipeline-search", "torch==2.13.0"))
_entry_dehb = partial(_entry, "dehb:Dehb", needs=("dehb",))
_entry_bohb = partial(_entry, "syne_tune:Bohb", needs=("syne-tune", "huggingface_hub"))

OPTIMIZERS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        **OWN,
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
    """Return the optimiser called `name`, as `jahs.optimizers.make` does.

    Raises:
        MissingDependency: its tool is not installed.
    """
    return make_from(OPTIMIZERS, name, view, seed=seed, objectives=objectives, settings=settings)
