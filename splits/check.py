"""Check a split against its runs: nothing leaks, nobody is missing or unknown; then show how each marginal is divided.

python -m splits.check RUNS split.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidTable, Leakage, ProtocolMismatch
from jahs.files.runs import read_configs, read_runs
from splits.balance import Marginal, balance, balance_table, broken_promises
from splits.final import FinalTest, final_beside, is_final, n_reads
from splits.kinship import find_leaks
from splits.recorded import Recorded, examples, read_recorded
from splits.split import Split, read_split
from workshop.command import new_parser, run_command

_MOST_EXAMPLES: Final = 3


def check_split(recorded: Recorded, split: Split, final: FinalTest | None = None) -> list[Marginal]:
    """Return the division of every marginal by the split.

    Args:
        recorded: the configs, without the final test set.
        final: the final test set, which must not be in it.

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
    faults = []
    if leaks:
        what = "configs with equal canonical cells and bit-equal hyperparameters in several parts"
        faults.append(f"{len(leaks)} times {what}: {'; '.join(leaks[:_MOST_EXAMPLES])}")
    if final is not None and (inside := np.intersect1d(final.config_ids, split.config_ids)).size:
        faults.append(f"{len(inside)} configs of the final test set are in the split: {examples(inside)}")
        raise Leakage("\n".join(faults))
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
    split, final = read_split(arguments.split), final_beside(arguments.split)
    marginals = check_split(read_recorded(arguments.runs, final=final), split, final)
    of_final = _final_facts(arguments, final)
    broken = broken_promises(marginals)
    if arguments.json:
        return {
            "balance": [marginal.to_dict() for marginal in marginals],
            "counts": split.counts,
            "digest": split.digest,
            "final_test": of_final,
            "is_balanced": not broken,
        }
    verdict = (
        f"! {len(broken)} promised marginals are off by more than one config"
        if broken
        else "every group, its sources and every third of the repeated configs are 70/15/15 to within one config"
    )
    return f"{balance_table(marginals)}\n\nsplit {split.digest}: nothing leaks; {verdict}\n{_final_line(of_final)}"


def _final_facts(arguments: argparse.Namespace, final: FinalTest | None) -> dict[str, Any] | None:  # Any: JSON
    """Count the final test set: who drew its configs, how many are trained with every seed, how often it was read."""
    if final is None:
        return None
    configs, runs = read_configs(arguments.runs), read_runs(arguments.runs)
    trained = set(zip(runs["config_id"].tolist(), runs["seed"].tolist(), strict=True))
    held = configs["config_id"][is_final(configs, final)]
    return {
        "counts": final.counts,
        "n_kin": len(np.setdiff1d(held, final.config_ids)),
        "n_reads": n_reads(arguments.split),
        "n_trained": sum(all((one, seed) in trained for seed in final.seeds) for one in final.config_ids.tolist()),
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
