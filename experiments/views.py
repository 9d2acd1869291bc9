"""The values of the keys that an arm does not search: random, tuned or those of a known cell."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from jahs.comparison import terms
from jahs.comparison.benches import refits_of
from jahs.comparison.terms import ViewChoice
from jahs.queries.benchmark import Benchmark
from jahs.queries.best import search_best
from jahs.queries.views import Queryable, View
from jahs.spaces.cell import Cell
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space

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


def open_view(bench: Queryable, choice: ViewChoice, *, seed: int) -> View:
    """Return the view of an arm. A random fixed part depends only on the seed, so all optimisers get the same one.

    A "random" part is a sample for each seed; a name in `CELLS` is that cell with the default hyperparameters; "tuned"
    is `tuned_config`.
    """
    return terms.open_view(bench, choice, part=_part(bench, choice, seed))


def _part(bench: Queryable, choice: ViewChoice, seed: int) -> Mapping[str, object] | None:
    if choice.search in {"all", "sizes"} or choice.fixed_part in {"default", "reference"}:
        return None
    if choice.fixed_part == "random":
        return space().sample(seed=_FIXED_PART + seed)
    if choice.fixed_part == "tuned":
        return tuned_config(bench)
    return space(fixed=CELLS[choice.fixed_part].to_config()).default()


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
