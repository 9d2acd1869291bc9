"""The part of the space that a study searches, and its fidelities."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from jahs.comparison.benches import refits_of
from jahs.queries.benchmark import Benchmark
from jahs.queries.best import search_best
from jahs.queries.views import Queryable, View
from jahs.spaces.cell import Cell
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import GROUPS, space

_FIXED_PART: Final = 2**32
"""Seeds of random fixed parts start here, apart from the optimisers' seeds."""

CELLS: Final[Mapping[str, Cell]] = MappingProxyType(
    {
        "resnet": Cell.from_nb201_string(
            "|nor_conv_3x3~0|+|none~0|nor_conv_3x3~1|+|skip_connect~0|none~1|skip_connect~2|"
        ),
        "nasbench201": Cell.from_nb201_string(
            "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
        ),
    }
)
"""NAS-Bench-201's residual block (93.97 % on CIFAR-10) and, of its two cells with 94.37 %, the better on CIFAR-100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """The part of the space that an arm searches, and its fidelities.

    `search` is "all", "nas" (the cell), "hpo" (the hyperparameters) or "sizes" (everything, with N, W and Resolution).
    `fixed_part` says which values the other keys have: their "default", the values of the release's "reference" config,
    a "random" sample for each seed, a cell in `CELLS`, or hyperparameters "tuned" for the cell "resnet". N, W and
    Resolution are at their highest values, as in JAHS-Bench-201, unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)  # without "epoch", every training runs to the last epoch
    fixed_part: Literal["default", "reference", "random", "tuned", "resnet", "nasbench201"] = "default"


def open_view(bench: Queryable, choice: ViewChoice, *, seed: int) -> View:
    """Return the view of an arm. A random fixed part depends only on the seed, so all optimisers get the same one."""
    sizes = {name: value for name, value in LARGEST.items() if name not in choice.fidelities}
    if choice.search in {"all", "sizes"}:
        return View(bench, fidelities=choice.fidelities, fixed=sizes if choice.search == "all" else {})
    if choice.fixed_part == "reference":
        return View(bench, fidelities=choice.fidelities, fixed=sizes, search=choice.search)
    keys = GROUPS["hyperparameters" if choice.search == "nas" else "architecture"]
    part = _part(bench, choice, seed)
    fixed = {**sizes, **{key: part[key] for key in keys}}  # type: ignore[literal-required]  # keys of Config
    return View(bench, fidelities=choice.fidelities, fixed=fixed, search=choice.search)


def _part(bench: Queryable, choice: ViewChoice, seed: int) -> Config:
    """Return a config with the values of the keys that are not searched."""
    if choice.fixed_part == "random":
        return space().sample(seed=_FIXED_PART + seed)
    if choice.fixed_part == "tuned":
        return tuned_config(bench)
    cell = CELLS.get(choice.fixed_part)
    return space(fixed=cell.to_config()).default() if cell else space().default()


def tuned_config(bench: Queryable) -> Config:
    """Return the cell "resnet" with the best hyperparameters for it, at full size.

    Each refit is searched for its best, of which the best mean validation accuracy over the refits decides. So the
    hyperparameters do not exploit the errors of the released model. A benchmark without refits is searched itself.
    """
    return _tuned_on((isinstance(bench, Benchmark) and refits_of(bench, "valid_acc")) or (bench,))


@functools.lru_cache(maxsize=4)
def _tuned_on(models: tuple[Queryable, ...]) -> Config:
    fixed = {**LARGEST, **CELLS["resnet"].to_config()}
    found = [search_best(View(model, fixed=fixed, search="hpo"), [], "valid_acc").config for model in models]
    means = np.mean([model.query_many(found, metrics=("valid_acc",))["valid_acc"] for model in models], axis=0)
    return found[int(means.argmax())]
