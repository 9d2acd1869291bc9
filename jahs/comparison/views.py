"""The part of the space that a study searches, and its fidelities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from jahs.queries.exhaustive import LARGEST
from jahs.queries.views import Queryable, View
from jahs.spaces.space import GROUPS, space

_FIXED_PART: Final = 2**32
"""Seeds of random fixed parts start here, apart from the optimisers' seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """The part of the space that an arm searches, and its fidelities.

    Attributes:
        search: "all", "nas" (the cell), "hpo" (the hyperparameters) or "sizes" (everything, with N, W and Resolution).
        fidelities: their names; without "epoch", every training runs to the last epoch.
        fixed_part: the values of keys that are not searched: their "default", the values of the release's
            "reference" config, or a "random" sample for each seed. N, W and Resolution are at their highest values, as
            in JAHS-Bench-201, unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)
    fixed_part: Literal["default", "reference", "random"] = "default"


def open_view(bench: Queryable, choice: ViewChoice, *, seed: int) -> View:
    """Return the view of an arm. A random fixed part only depends on the seed, so all optimisers get the same."""
    sizes = {name: value for name, value in LARGEST.items() if name not in choice.fidelities}
    if choice.search in {"all", "sizes"}:
        return View(bench, fidelities=choice.fidelities, fixed=sizes if choice.search == "all" else {})
    if choice.fixed_part == "reference":
        return View(bench, fidelities=choice.fidelities, fixed=sizes, search=choice.search)
    other = GROUPS["hyperparameters" if choice.search == "nas" else "architecture"]
    part = space().sample(seed=_FIXED_PART + seed) if choice.fixed_part == "random" else space().default()
    fixed = {**sizes, **{key: part[key] for key in other}}  # type: ignore[literal-required]  # keys of Config
    return View(bench, fidelities=choice.fidelities, fixed=fixed, search=choice.search)
