"""Compare two tasks on the configs that were trained on both: what is learned on one, does it hold on the other?

    python -m experiments.tasks data/fashion_mnist_mini/runs data/cifar10_mini/runs --out docs/studies/tasks
    python -m experiments.tasks RUNS OTHER_RUNS --landscape releases/cifar10 --out out/tasks

Config number i is the same config on every task. The page compares the ranks of the recorded configs, the main effects
of keys and warm starts; with releases of both tasks, also fronts and the order of optimisers. `--landscape` is an
imported release of JAHS-Bench-201's cifar10, which both tasks are compared with. The same inputs give the same bytes.
"""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np

from experiments.analysis.paired import Paired, Recorded, pair, read_recorded
from experiments.analysis.transfer import front_transfers, order_transfer
from experiments.report.build import check_target, write_document
from experiments.report.tasks_page import Released, tasks_document
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.comparison.terms import open_terms
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.queries.benchmark import Benchmark
from jahs.queries.exhaustive import LARGEST
from workshop.command import new_parser, run_command
from workshop.pages.style import style
from workshop.real_landscape import EPOCHS, real_accuracies

_STUDY: Final = "baselines"


def compare_tasks(runs: Sequence[Path], *, landscape: Path | None, release: Path | None, seeds: int, out: Path) -> Path:
    """Write the page README.md, with its figures and paired.csv, and return its path.

    Raises:
        InvalidArgument: the runs are of one task, or share too few configs; or the landscape has too few epochs.
        ProtocolMismatch: a release was fitted to runs of another protocol.
    """
    if seeds < 1:
        raise InvalidArgument(f"seeds={seeds} must be at least 1")
    target = check_target(out)
    recorded = [read_recorded(path) for path in runs]
    paired = pair(*recorded)
    real, sha256 = {}, None
    if landscape is not None:
        bench = Benchmark("cifar10", release=landscape)
        real, sha256 = real_accuracies(paired.columns, bench), release_of(bench).sha256
    released, releases = _released(recorded, release, n_seeds=seeds)
    facts = [
        ("command", shlex.join(_command(runs, seeds, has_landscape=landscape is not None))),
        *((f"protocol of {each.task.title}", each.protocol) for each in recorded),
        *releases,
        *([("landscape", sha256[:16])] if sha256 else []),
    ]
    with mpl.rc_context(dict(style())):
        document = tasks_document(paired, real, released, facts)
    data = {"paired.csv": _csv(paired, real)}
    return write_document(document, target, is_for_docs=True, name="README.md", data=data)


def _released(
    recorded: Sequence[Recorded], release: Path | None, *, n_seeds: int
) -> tuple[Released, list[tuple[str, str]]]:
    """Compare both releases, or name the tasks without one; return the digests of the releases as facts too."""
    benches, missing = [], []
    for each in recorded:
        try:
            bench = open_benchmark(each.task.name, release)
        except MissingData:
            missing.append(each.task.title)
            continue
        made_from = release_of(bench).facts.get("protocol")
        if made_from != each.protocol:
            raise ProtocolMismatch(
                f"{bench.release} was fitted to runs of protocol {made_from}, but the runs of {each.task.name} have "
                f"{each.protocol}; name releases of these runs with --release"
            )
        benches.append(bench)
    if missing:
        return Released(missing=tuple(missing)), []
    terms = [open_terms(_STUDY, each.task.name, release) for each in recorded]
    released = Released(fronts=tuple(front_transfers(benches)), orders=order_transfer(terms, n_seeds=n_seeds))
    return released, [(f"release of {bench.task.title}", release_of(bench).sha256[:16]) for bench in benches]


def _csv(paired: Paired, real: dict[int, Floats]) -> str:
    """Return a row for each config: its number, id, source and sizes, and all its accuracies."""
    names = [f"{task.name} seed {i}" for task in paired.tasks for i in range(paired.accuracies.shape[2])]
    columns = [paired.configs[key].tolist() for key in ("config_index", "config_id", "source", *LARGEST)]
    columns += [list(map(_cell, values)) for of in paired.accuracies for values in of.T]
    columns += [list(map(_cell, real[epoch])) for epoch in EPOCHS if real]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names += [f"cifar10 epoch {epoch}" for epoch in EPOCHS if real]
    writer.writerow(["number", "config_id", "source", *LARGEST, *names])
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"


def _command(runs: Sequence[Path], n_seeds: int, *, has_landscape: bool) -> list[str]:
    """Return the command line without the paths of releases and of the page."""
    folders = [path.as_posix() if not path.is_absolute() else path.name for path in runs]
    real = ["--landscape", "CIFAR10"] if has_landscape else []
    return ["python", "-m", "experiments.tasks", *folders, *real, "--seeds", str(n_seeds), "--out", "DIR"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser(
        "experiments.tasks",
        "Compare two tasks on the configs that were trained on both.",
        example="data/fashion_mnist_mini/runs data/cifar10_mini/runs --out out/tasks",
        more="`jahs import` makes the landscape of JAHS-Bench-201's surrogates.",
    )
    parser.add_argument("runs", type=Path, nargs=2, metavar="RUNS", help="the folders of runs of two tasks")
    parser.add_argument("--landscape", type=Path, help="imported release of JAHS-Bench-201's cifar10")
    parser.add_argument("--release", type=Path, help="folder of releases, one per task (default: found by jahs)")
    parser.add_argument("--seeds", type=int, default=20, help="of each optimizer (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page: new, empty, or of an older page")
    given = vars(parser.parse_args(argv))
    return run_command("experiments.tasks", lambda: {"page": str(compare_tasks(**given))})


if __name__ == "__main__":
    sys.exit(main())
