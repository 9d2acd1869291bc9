"""Split the configs of a folder of runs 70/15/15; extend an old split without moving any config.

python -m splits.make RUNS --out split.json --seed 1
python -m splits.make RUNS --out split-2.json --extend split.json
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from jahs.errors import InvalidArgument, JahsError
from splits.check import balance, broken_promises
from splits.final import final_beside, final_path
from splits.partition import LEAST_PER_GROUP, partition
from splits.recorded import read_recorded
from splits.split import Split, read_split, split_text, write_split
from workshop.command import new_parser, run_command

_log = logging.getLogger(__name__)


def make_split(
    runs: Path, out: Path, *, seed: int | None = None, extend: Path | None = None, fewest: int = LEAST_PER_GROUP
) -> Split:
    """Split the configs of a folder of runs, and write the split; a final test set beside it is left out.

    Args:
        seed: seed that assigns configs to parts; None: the seed of `extend`, or 0.
        extend: a split whose configs stay in their parts.
        fewest: configs that every fidelity group needs; with fewer than the default, parts may lack groups.

    Raises:
        JahsError: an argument or the runs are invalid, or the split cannot be written; nothing was left behind.
    """
    old = None if extend is None else read_split(extend)
    seed = seed if seed is not None else 0 if old is None else old.seed
    final = final_beside(out)
    if final is None and extend is not None and final_beside(extend) is not None:
        raise InvalidArgument(
            f"out={out} would lack the final test set {final_path(extend)}; write the split beside {extend}, or copy "
            f"{final_path(extend).name} to {out.absolute().parent} first"
        )
    recorded = read_recorded(runs, final=final)
    split = partition(recorded, seed=seed, old=old, fewest=fewest)
    for marginal in broken_promises(balance(recorded, split.parts)):
        _log.warning("%s: off by %.2f configs, more than one", marginal.name, marginal.off)
    if out.exists() and not (extend is not None and out.samefile(extend)):
        _check_same(out, split)
    write_split(out, split)
    return split


def _check_same(out: Path, split: Split) -> None:
    """Refuse to replace another split."""
    advice = "choose another file"
    with contextlib.suppress(JahsError, OSError):
        if split_text(read_split(out)) == split_text(split):
            return
        advice += f", or keep its parts: --extend {out}"
    raise InvalidArgument(f"out={out} exists and differs; {advice}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    about = "Put every config of a folder of runs in one part: train, valid or test (70/15/15)."
    parser = new_parser("splits.make", about, example="RUNS --out split.json --seed 1")
    parser.add_argument("runs", type=Path, metavar="RUNS", help="folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="the split to write")
    parser.add_argument("--seed", type=int, help="seed of the assignment (default: the old split's, or 0)")
    parser.add_argument("--extend", type=Path, metavar="OLD", help="a split whose configs stay in their parts")
    parser.add_argument(
        "--fewest", type=int, default=LEAST_PER_GROUP, help="configs that every group needs (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = vars(parser.parse_args(argv))
    is_json = given.pop("json")

    def work() -> object:
        split = make_split(**given)
        if is_json:
            return {"counts": split.counts, "digest": split.digest, "extends": split.extends, "seed": split.seed}
        counts = ", ".join(f"{part} {count}" for part, count in split.counts.items())
        note = "" if split.extends is None else f"; every config of split {split.extends} stays in its part"
        return f"{given['out']}: {counts}; seed {split.seed}, digest {split.digest}{note}"

    return run_command("splits.make", work)


if __name__ == "__main__":
    sys.exit(main())
