"""Check a split against its runs (no leaks, no missing or unknown configs), and show how it divides each marginal.

python -m splits.check RUNS split.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable, Leakage, ProtocolMismatch
from jahs.files.runs import read_configs, read_runs
from jahs.schema import SIZE_KEYS, SOURCES, SPLIT_PARTS
from jahs.spaces.parameters import PARAMETERS
from splits.final import FinalTest, final_beside, is_final, n_reads
from splits.kinship import fidelity_groups, find_leaks, group_name, source_groups
from splits.quotas import WHOLE, deviations
from splits.recorded import RecordedConfigs, examples, read_recorded
from splits.split import Split, read_split
from workshop.command import new_parser, run_command

_MOST_EXAMPLES: Final = 3


def check_split(recorded: RecordedConfigs, split: Split) -> list[Marginal]:
    """Return the division of every marginal by the split.

    Raises:
        Leakage: the same network is in several parts, or the split has configs that are held out.
        InvalidTable: recorded configs are missing in the split, or it has configs that were not recorded.
        ProtocolMismatch: the split belongs to other runs.
    """
    if split.protocol != recorded.protocol:
        raise ProtocolMismatch(
            f"the split has protocol {split.protocol} ({split.task}), "
            f"but the runs have {recorded.protocol} ({recorded.task})"
        )
    ids = recorded.config_ids
    parts = split.parts_of(ids)
    leaks = find_leaks(recorded.configs, parts)
    faults = []
    if leaks:
        what = "groups of configs with equal canonical cells and hyperparameters are in several parts"
        faults.append(f"{len(leaks)} {what}: {'; '.join(leaks[:_MOST_EXAMPLES])}")
    faults += recorded.held_out_faults(split.config_ids)
    is_leak = bool(faults)
    if (missing := ids[parts < 0]).size:
        faults.append(
            f"{len(missing)} of {len(ids)} recorded configs are not in the split: {examples(missing)}; "
            "extend it: python -m splits.make RUNS --out NEW --extend SPLIT"
        )
    if (unknown := np.setdiff1d(split.config_ids, np.union1d(ids, recorded.held_out))).size:
        faults.append(
            f"{len(unknown)} of {len(split.config_ids)} configs of the split were not recorded: {examples(unknown)}; "
            "does the split belong to other runs?"
        )
    if faults:
        raise (Leakage if is_leak else InvalidTable)("\n".join(faults))
    return balance(recorded, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """The division of configs that have something in common."""

    name: str  # their common property
    counts: tuple[int, int, int]  # numbers in train, valid and test
    is_promised: bool  # whether the split promises 70/15/15 to within one config here

    @property
    def off(self) -> float:
        """The largest difference of a count from 70/15/15, in configs."""
        return int(np.abs(deviations(np.array(self.counts))).max()) / WHOLE

    def to_dict(self) -> dict[str, object]:
        """Return the marginal as JSON."""
        counts = dict(zip(SPLIT_PARTS, self.counts, strict=True))
        return {"name": self.name, **counts, "off": self.off, "is_promised": self.is_promised}


def balance(recorded: RecordedConfigs, parts: NDArray[np.int8]) -> list[Marginal]:
    """Return every marginal, given the part of every config; the promised ones come first."""
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


def _marginals(recorded: RecordedConfigs) -> Iterator[tuple[str, NDArray[np.bool_], bool]]:
    """Yield the name and the members of each marginal, and whether it is promised."""
    configs, is_repeated = recorded.configs, recorded.is_repeated
    group, groups = fidelity_groups(configs)
    for i, values in enumerate(groups):
        yield group_name(values), group == i, True
    pair, pair_groups, sources = source_groups(configs)
    for i, (number, source) in enumerate(zip(pair_groups.tolist(), sources, strict=True)):
        if (pair_groups == number).sum() > 1:
            yield f"{group_name(groups[number])} {source}", pair == i, True
    for key in SIZE_KEYS:
        for value in PARAMETERS[key].choices:
            yield f"repeated, {key}={value}", is_repeated & (configs[key] == value), True
    yield "all", np.ones(len(group), dtype=bool), False
    for source in sorted(set(sources), key=SOURCES.index) if len(set(sources)) > 1 else ():
        yield f"source={source}", np.array(sources)[pair] == source, False
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    about = "Refuse a split that leaks or does not fit its runs; show how it divides every marginal."
    parser = new_parser("splits.check", about, example="RUNS split.json")
    parser.add_argument("runs", type=Path, metavar="RUNS", help="folder of runs")
    parser.add_argument("split", type=Path, metavar="SPLIT", help="the split")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args(argv)
    return run_command("splits.check", lambda: _check(arguments))


def _check(arguments: argparse.Namespace) -> object:
    split, final = read_split(arguments.split), final_beside(arguments.split)
    marginals = check_split(read_recorded(arguments.runs, final=final), split)
    final_facts = _final_facts(arguments, final)
    broken = broken_promises(marginals)
    if arguments.json:
        return {
            "balance": [marginal.to_dict() for marginal in marginals],
            "counts": split.counts,
            "digest": split.digest,
            "final_test": final_facts,
            "is_balanced": not broken,
        }
    verdict = (
        f"! {len(broken)} promised marginals are off by more than one config"
        if broken
        else "every group, its sources and every third of the repeated configs are 70/15/15 to within one config"
    )
    return f"{balance_table(marginals)}\n\nsplit {split.digest}: nothing leaks; {verdict}\n{_final_line(final_facts)}"


def _final_facts(arguments: argparse.Namespace, final: FinalTest | None) -> dict[str, Any] | None:  # Any: JSON
    """Count the final test set: who drew its configs, how many are trained with every seed, how often it was read."""
    if final is None:
        return None
    configs, runs = read_configs(arguments.runs), read_runs(arguments.runs)
    trained = set(zip(runs["config_id"].tolist(), runs["seed"].tolist(), strict=True))
    held_out = configs["config_id"][is_final(configs, final)]
    return {
        "counts": final.counts,
        "n_kin": len(np.setdiff1d(held_out, final.config_ids)),
        "n_reads": n_reads(arguments.split),
        "n_trained": sum(all((i, seed) in trained for seed in final.seeds) for i in final.config_ids.tolist()),
        "seeds": list(final.seeds),
    }


def _final_line(facts: dict[str, Any] | None) -> str:  # Any: JSON
    if facts is None:
        return "there is no final test set; python -m surrogate.freeze draws one"
    groups = ", ".join(f"{count} {group}" for group, count in facts["counts"].items())
    return (
        f"final test set: {sum(facts['counts'].values())} configs at full size ({groups}), in no part; "
        f"{facts['n_trained']} trained with seeds {', '.join(map(str, facts['seeds']))}; {facts['n_kin']} more configs "
        f"are held out as their kin; its measurements were read {facts['n_reads']} times"
    )


if __name__ == "__main__":
    sys.exit(main())
