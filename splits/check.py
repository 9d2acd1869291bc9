"""Check a split against its runs: nothing leaks, nobody is missing or unknown; then show how each marginal is divided.

python -m splits.check RUNS split.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jahs.errors import InvalidTable, Leakage, ProtocolMismatch
from splits.balance import Marginal, balance, balance_table, broken_promises
from splits.leaks import find_leaks, leak_lines
from splits.recorded import Recorded, examples, read_recorded
from splits.split import Split, read_split
from workshop.command import new_parser, run_command

__all__ = ["check_split", "main"]


def check_split(recorded: Recorded, split: Split) -> list[Marginal]:
    """Return how the split divides every marginal.

    Raises:
        Leakage: the same network is in several parts.
        InvalidTable: recorded configs are missing in the split, or it has configs that were not recorded.
        ProtocolMismatch: it is a split of other runs.
    """
    if split.protocol != recorded.protocol:
        raise ProtocolMismatch(
            f"the split is of protocol {split.protocol} ({split.task}), "
            f"the runs are of {recorded.protocol} ({recorded.task})"
        )
    ids = recorded.config_ids
    parts = split.parts_of(ids)
    leaks = find_leaks(recorded.configs, parts)
    faults = leak_lines(leaks)
    if (missing := ids[parts < 0]).size:
        faults.append(
            f"{len(missing)} of {len(ids)} recorded configs are not in the split: {examples(missing)}; "
            "extend it: python -m splits.make RUNS --out NEW --extend SPLIT"
        )
    if (unknown := split.config_ids[~np.isin(split.config_ids, ids)]).size:
        faults.append(
            f"{len(unknown)} of {len(split.config_ids)} configs of the split were not recorded: {examples(unknown)}; "
            "is it a split of other runs?"
        )
    if faults:
        raise (Leakage if leaks else InvalidTable)("\n".join(faults))
    return balance(recorded, parts)


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
    split = read_split(arguments.split)
    marginals = check_split(read_recorded(arguments.runs), split)
    broken = broken_promises(marginals)
    if arguments.json:
        return {
            "balance": [marginal.to_dict() for marginal in marginals],
            "counts": split.counts,
            "digest": split.digest,
            "is_balanced": not broken,
        }
    verdict = (
        f"! {len(broken)} promised marginals are off by more than one config"
        if broken
        else "every group and every third of the repeated configs is 70/15/15 to within one config"
    )
    return f"{balance_table(marginals)}\n\nsplit {split.digest}: nothing leaks; {verdict}"


if __name__ == "__main__":
    sys.exit(main())
