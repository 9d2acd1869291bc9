"""The commands `status`, `verify` and `merge` of `python -m pipeline.collect`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jahs.errors import InvalidTable
from jahs.tasks.definitions import RESOLUTIONS
from pipeline.merge import merge
from pipeline.retrain import retrain
from pipeline.sampling import FIDELITY_GROUPS, N_GROUPS
from pipeline.status import status
from pipeline.verify import verify
from workshop.command import Failed, run_command

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Run `status`, `verify` or `merge`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.collect")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("status", help="counts per group, rate, estimate")
    check = commands.add_parser("verify", help="check every row; exit 1 if anything is wrong")
    check.add_argument("--retrain", type=int, default=0, metavar="K", help="train K random runs again and compare")
    check.add_argument("--seed", type=int, default=0, help="which runs are trained again")
    check.add_argument("--data-dir", type=Path)
    join = commands.add_parser("merge", help="put runs together and compact them")
    for command in (show, check, join):
        command.add_argument("folder", type=Path)
        command.add_argument("--json", action="store_true", help="for machines")
    join.add_argument("others", type=Path, nargs="*")
    args = parser.parse_args(argv)
    return run_command("pipeline.collect", lambda: _dispatch(args))


def _dispatch(args: argparse.Namespace) -> object:
    if args.command == "status":
        facts = status(args.folder)
        as_lines = {"per_source": _source_lines(facts), "configs_per_group": _group_lines(facts)}
        return facts if args.json else _as_text({**facts, **as_lines})
    if args.command == "merge":
        n_runs, n_left_out = merge(args.folder, args.others)
        merged = {"folder": str(args.folder), "n_runs": n_runs, "n_left_out": n_left_out}
        return merged if args.json else _as_text(merged)
    if args.retrain < 0:
        raise InvalidTable(f"retrain={args.retrain} is not a number of runs")
    faults = verify(args.folder)
    lines: list[str] = []
    if args.retrain and not faults:
        lines, faults = retrain(args.folder, args.retrain, seed=args.seed, data_dir=args.data_dir)
    verdict = "sound" if not faults else f"{len(faults)} faults"
    found = {"verdict": verdict, "faults": faults, "retrained": lines}
    result = found if args.json else _as_text(found)
    return Failed(result) if faults else result


def _source_lines(facts: dict[str, Any]) -> list[str]:  # Any: JSON
    """Configs and runs of each source as a table."""
    rows = [(name, counts["n_configs"], counts["n_runs"]) for name, counts in facts["per_source"].items()]
    return [f"{name:12} {n_configs:>8} {n_runs:>8}" for name, n_configs, n_runs in [("", "configs", "runs"), *rows]]


def _group_lines(facts: dict[str, Any]) -> list[str]:  # Any: JSON
    """Configs per fidelity group as a table: a row for each N and W, a column for each Resolution."""
    n_resolutions = len(RESOLUTIONS)
    lines = ["  N   W" + "".join(f"{resolution:>8}" for resolution in RESOLUTIONS)]
    for first in range(0, N_GROUPS, n_resolutions):
        n, width, _ = FIDELITY_GROUPS[first]
        counts = facts["configs_per_group"][first : first + n_resolutions]
        lines.append(f"{n:>3} {width:>3}" + "".join(f"{count:>8}" for count in counts))
    return lines


def _as_text(facts: dict[str, Any]) -> str:  # Any: JSON
    lines = []
    for name, value in facts.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            lines += [f"{name}:", *(f"  {line}" for line in value)]
        else:
            lines.append(f"{name:22} {round(value, 2) if isinstance(value, float) else value}")
    return "\n".join(lines)
