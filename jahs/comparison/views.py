"""The part of the space that a study searches, and its fidelities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from jahs.queries.exhaustive import search_best
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
    a "random" sample for each seed, or a cell in `CELLS`: the cell itself, or the hyperparameters with the best mean
    validation accuracy that a search finds for it. N, W and Resolution are at their highest values, as in
    JAHS-Bench-201, unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)  # without "epoch", every training runs to the last epoch
    fixed_part: Literal["default", "reference", "random", "resnet", "nasbench201"] = "default"


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
    if (cell := CELLS.get(choice.fixed_part)) is None:
        return space().default()
    view = View(bench, fixed={**LARGEST, **cell.to_config()}, search="hpo")
    return search_best(view, [], "valid_acc").config if choice.search == "nas" else view.space.default()
