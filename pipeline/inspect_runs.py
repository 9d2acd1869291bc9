"""The commands `status`, `verify` and `merge` of `python -m pipeline.collect`; they print JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jahs.errors import InvalidArgument
from pipeline.merge import merge
from pipeline.retrain import retrain
from pipeline.status import status
from pipeline.verify import verify
from workshop.command import Failed, run_command


def main(argv: Sequence[str]) -> int:
    """Run `status`, `verify` or `merge`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.collect")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("status", help="counts per fidelity group, rate, cost, estimate of what is left")
    check = commands.add_parser("verify", help="check every row; exit status 1 if anything is wrong")
    check.add_argument("--retrain", type=int, default=0, metavar="K", help="train K random runs again and compare")
    check.add_argument("--seed", type=int, default=0, help="which runs are trained again (default: %(default)s)")
    check.add_argument("--data-dir", type=Path, help="folder of the original images")
    join = commands.add_parser("merge", help="add the runs of other folders and compact them")
    for command in (show, check, join):
        command.add_argument("folder", type=Path, help="folder of runs")
    join.add_argument("others", type=Path, nargs="*", help="folders to add")
    given = parser.parse_args(argv)
    work = {"status": lambda: status(given.folder), "verify": lambda: _verify(given), "merge": lambda: _merge(given)}
    return run_command("pipeline.collect", work[given.command])


def _merge(given: argparse.Namespace) -> dict[str, object]:
    n_runs, n_left_out = merge(given.folder, given.others)
    return {"folder": str(given.folder), "n_runs": n_runs, "n_left_out": n_left_out}


def _verify(given: argparse.Namespace) -> object:
    if given.retrain < 0:
        raise InvalidArgument(f"retrain={given.retrain} must be a number of runs >= 0")
    faults = verify(given.folder)
    lines: list[str] = []
    if given.retrain and not faults:
        lines, faults = retrain(given.folder, given.retrain, seed=given.seed, data_dir=given.data_dir)
    verdict = "sound" if not faults else f"{len(faults)} faults"
    found = {"verdict": verdict, "faults": faults, "retrained": lines}
    return Failed(found) if faults else found
