"""The part of the space that a study searches, and its fidelities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jahs.queries.views import Queryable, View
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import GROUPS, space


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """The part of the space that an arm searches, and its fidelities.

    `search` is "all", "nas" (the cell), "hpo" (the hyperparameters) or "sizes" (everything, with N, W and Resolution).
    `fixed_part` says which values the other keys have: their "default", or the values of the release's "reference"
    config; `experiments.views` has the others. N, W and Resolution are at their highest values, as in JAHS-Bench-201,
    unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)  # without "epoch", every training runs to the last epoch
    fixed_part: Literal["default", "reference", "random", "tuned", "resnet", "nasbench201"] = "default"


def open_view(bench: Queryable, choice: ViewChoice, *, part: Mapping[str, object] | None = None) -> View:
    """Return the view of an arm; `part` is a config with the values of the keys that are not searched.

    Without it, they are those that `choice` names.
    """
    sizes = {name: value for name, value in LARGEST.items() if name not in choice.fidelities}
    if choice.search in {"all", "sizes"}:
        return View(bench, fidelities=choice.fidelities, fixed=sizes if choice.search == "all" else {})
    if choice.fixed_part == "reference":
        return View(bench, fidelities=choice.fidelities, fixed=sizes, search=choice.search)
    if part is None:
        assert choice.fixed_part == "default", "any other part is given"
        part = space().default()
    keys = GROUPS["hyperparameters" if choice.search == "nas" else "architecture"]
    fixed = {**sizes, **{key: part[key] for key in keys}}
    return View(bench, fidelities=choice.fidelities, fixed=fixed, search=choice.search)
