"""The division of every marginal by a split: fidelity groups, thirds, repeats, and each value of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jahs.schema import SOURCES, SPLIT_PARTS
from jahs.spaces.parameters import PARAMETERS
from splits.kinship import FIDELITY_KEYS, fidelity_groups, group_name, source_groups
from splits.quotas import WHOLE, deviations
from splits.recorded import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """The division of configs that have something in common.

    Attributes:
        name: their common property.
        counts: numbers in train, valid and test.
        is_promised: whether the split promises 70/15/15 to within one config here.
    """

    name: str
    counts: tuple[int, int, int]
    is_promised: bool

    @property
    def off(self) -> float:
        """The largest difference of a count from 70/15/15, in configs."""
        return int(np.abs(deviations(np.array(self.counts))).max()) / WHOLE

    def to_dict(self) -> dict[str, object]:
        """Return the marginal as JSON."""
        counts = dict(zip(SPLIT_PARTS, self.counts, strict=True))
        return {"name": self.name, **counts, "off": self.off, "is_promised": self.is_promised}


def balance(recorded: Recorded, parts: NDArray[np.int8]) -> list[Marginal]:
    """Return every marginal, given the part of every config; what is promised comes first."""
    return [
        Marginal(
            name=name,
            counts=tuple(np.bincount(parts[is_in], minlength=len(SPLIT_PARTS)).tolist()),
            is_promised=is_promised,
        )
        for name, is_in, is_promised in _marginals(recorded)
    ]


def broken_promises(marginals: Sequence[Marginal]) -> list[Marginal]:
    """Return the promised marginals that are off by more than one config."""
    return [marginal for marginal in marginals if marginal.is_promised and marginal.off > 1]


def balance_table(marginals: Sequence[Marginal]) -> str:
    """Return marginals as text; a `!` marks a broken promise."""
    width = max(len(marginal.name) for marginal in marginals)
    heads = ["configs", *SPLIT_PARTS, *(f"{part} %" for part in SPLIT_PARTS), "off by"]
    lines = [" ".join([" " * width, *(f"{head:>8}" for head in heads)])]
    for marginal in marginals:
        n = sum(marginal.counts)
        shares = [f"{100 * count / n:8.1f}" if n else " " * 8 for count in marginal.counts]
        numbers = [f"{count:8}" for count in (n, *marginal.counts)]
        mark = " !" if broken_promises([marginal]) else ""
        lines.append(" ".join([f"{marginal.name:<{width}}", *numbers, *shares, f"{marginal.off:8.2f}"]) + mark)
    return "\n".join(lines)


def _marginals(recorded: Recorded) -> Iterator[tuple[str, NDArray[np.bool_], bool]]:
    """Yield name, members and whether it is promised, for each."""
    configs, is_repeated = recorded.configs, recorded.is_repeated
    group, groups = fidelity_groups(configs)
    for i, values in enumerate(groups):
        yield group_name(values), group == i, True
    pair, of_group, sources = source_groups(configs)
    for i, (number, source) in enumerate(zip(of_group.tolist(), sources, strict=True)):
        if (of_group == number).sum() > 1:
            yield f"{group_name(groups[number])} {source}", pair == i, True
    for key in FIDELITY_KEYS:
        for value in PARAMETERS[key].choices:
            yield f"repeated, {key}={value}", is_repeated & (configs[key] == value), True
    yield "all", np.ones(len(group), dtype=bool), False
    for source in sorted(set(sources), key=SOURCES.index) if len(set(sources)) > 1 else ():
        yield f"source={source}", np.isin(pair, [i for i, one in enumerate(sources) if one == source]), False
    yield "repeated", is_repeated, False
    yield "every run diverged", recorded.is_diverged, False
    for key, parameter in PARAMETERS.items():
        if parameter.kind == "float":
            yield from _decades(key, configs[key].astype(np.float64))
        else:
            for value in parameter.choices:
                yield f"{key}={value}", configs[key] == value, False


def _decades(key: str, values: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.bool_], bool]]:
    parameter = PARAMETERS[key]
    ends = np.round(np.log10([parameter.lower, parameter.upper])).astype(int).tolist()
    decade = np.clip(np.floor(np.log10(values)), ends[0], ends[1] - 1)  # the upper end belongs to the last decade
    for power in range(ends[0], ends[1]):
        yield f"{key} 1e{power}..1e{power + 1}", decade == power, False
