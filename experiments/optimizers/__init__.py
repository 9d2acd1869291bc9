"""Every optimiser by name, from `jahs.optimizers` and from other tools, which are imported on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Final

from jahs.errors import MissingDependency
from jahs.optimizers.registry import OPTIMIZERS as OWN
from jahs.optimizers.registry import Entry, Trait, entry_of
from jahs.optimizers.registry import make as make_own


def _entry(path: str, title: str, *traits: Trait, needs: tuple[str, ...] = (), **preset: object) -> Entry:
    return entry_of(f"experiments.optimizers.tools.{path}", title, *traits, needs=needs, **preset)


_entry_optuna = partial(_entry, "optuna:Optuna", needs=("optuna",))
_entry_smac = partial(_entry, "smac:Smac", needs=("smac",))
_entry_neps = partial(_entry, "neps:Neps", needs=("neural-pipeline-search", "torch==2.13.0"))

OPTIMIZERS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        **OWN,
        "optuna_tpe": _entry_optuna("TPE (Optuna)", "many", "model", sampler="tpe"),
        "optuna_nsga2": _entry_optuna("NSGA-II (Optuna)", "many", sampler="nsga2"),
        "smac_black_box": _entry_smac("SMAC", "many", "model", facade="black_box"),
        "smac_multi_fidelity": _entry_smac("SMAC (multi-fidelity)", "many", "model", facade="multi_fidelity"),
        "bananas": _entry("bananas:Bananas", "BANANAS", "model", needs=("torch==2.13.0",)),
        "dehb": _entry("dehb:Dehb", "DEHB", needs=("dehb",)),
        "syne_tune_bohb": _entry("syne_tune:Bohb", "BOHB (Syne Tune)", "model", needs=("syne-tune", "huggingface_hub")),
        "neps_random_search": _entry_neps("random search (NePS)", algorithm="random_search"),
        "neps_hyperband": _entry_neps("Hyperband (NePS)", algorithm="hyperband"),
        "neps_priorband": _entry_neps("PriorBand (NePS)", algorithm="priorband"),
        "neps_pibo": _entry_neps("πBO (NePS)", "model", algorithm="pibo"),
    }
)
"""Every optimiser by name."""


make: Final = partial(make_own, registry=OPTIMIZERS)  # `jahs.optimizers.make` for every optimiser


def refuse_lacking(arms: Mapping[str, str]) -> None:
    """Refuse arms, each with the name of its optimiser, that need packages that are not installed."""
    lacking = {name: packages for name, optimizer in arms.items() if (packages := _lacking(optimizer))}
    if lacking:
        lines = [f"{name} needs {', '.join(packages)}" for name, packages in lacking.items()]
        advice = "install the missing packages, or exclude these arms with --family or --arms"
        raise MissingDependency("\n".join([*lines, advice]))


def _lacking(optimizer: str) -> list[str]:
    """Return the requirements of an optimiser that are not installed."""
    lacking = []
    for requirement in OPTIMIZERS[optimizer].needs:
        try:
            version(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        except PackageNotFoundError:  # noqa: PERF203  # a handful
            lacking.append(requirement)
    return lacking
