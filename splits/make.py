"""Split the configs of a folder of runs 70/15/15; extend an old split without moving any config.

python -m splits.make RUNS --out split.json --seed 1
python -m splits.make RUNS --out split-2.json --extend split.json
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jahs.errors import InvalidArgument, JahsError
from splits.balance import balance, broken_promises
from splits.partition import LEAST_PER_GROUP, check_seed, partition
from splits.recorded import read_recorded
from splits.split import Split, read_split, split_text, write_split
from workshop.command import new_parser, run_command

__all__ = ["SplitSettings", "main", "make_split"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """What `make_split` does; one field per flag.

    Attributes:
        runs: folder of runs.
        out: the split to write.
        seed: decides which configs go where; None: the seed of `extend`, or 0.
        extend: a split whose sides are kept; None: none.
        fewest: configs that every fidelity group needs; with fewer than the default, parts may lack groups.
    """

    runs: Path
    out: Path
    seed: int | None = None
    extend: Path | None = None
    fewest: int = LEAST_PER_GROUP


def make_split(settings: SplitSettings) -> Split:
    """Make a split and write it.

    Raises:
        JahsError: bad settings, bad runs, or the split cannot be written; nothing was left behind.
    """
    old = None if settings.extend is None else read_split(settings.extend)
    seed = settings.seed if settings.seed is not None else 0 if old is None else old.seed
    check_seed(seed)
    recorded = read_recorded(settings.runs)
    split = partition(recorded, seed=seed, old=old, fewest=settings.fewest)
    for marginal in broken_promises(balance(recorded, split.parts)):
        _log.warning("%s: off by %.2f configs, more than one", marginal.name, marginal.off)
    _check_out(settings, split)
    write_split(settings.out, split)
    return split


def _check_out(settings: SplitSettings, split: Split) -> None:
    """Refuse to replace another split than the one that is extended."""
    out = settings.out
    if not out.exists() or (settings.extend is not None and out.samefile(settings.extend)):
        return
    with contextlib.suppress(JahsError, OSError):
        if split_text(read_split(out)) == split_text(split):
            return
    raise InvalidArgument(f"out={out} exists and is something else; write beside it, or keep its sides: --extend {out}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    about = "Put every config of a folder of runs on one side: train, valid or test (70/15/15)."
    parser = new_parser("splits.make", about, example="RUNS --out split.json --seed 1")
    parser.add_argument("runs", type=Path, metavar="RUNS", help="folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="the split to write")
    parser.add_argument("--seed", type=int, help="which configs go where (default: the old split's, or 0)")
    parser.add_argument("--extend", type=Path, metavar="OLD", help="a split whose every side is kept")
    parser.add_argument(
        "--fewest", type=int, default=LEAST_PER_GROUP, help="configs that every group needs (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = vars(parser.parse_args(argv))
    is_json = given.pop("json")
    settings = SplitSettings(**given)

    def work() -> object:
        split = make_split(settings)
        if is_json:
            return {"counts": split.counts, "digest": split.digest, "extends": split.extends, "seed": split.seed}
        counts = ", ".join(f"{part} {count}" for part, count in split.counts.items())
        kept = "" if split.extends is None else f"; every side of {split.extends} was kept"
        return f"{settings.out}: {counts}; seed {split.seed}, digest {split.digest}{kept}"

    return run_command("splits.make", work)


if __name__ == "__main__":
    sys.exit(main())
