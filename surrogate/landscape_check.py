"""Compare a release with JAHS-Bench-201's CIFAR-10: does it rank configs as 200 epochs there do?

    python -m surrogate.landscape_check fashion_mnist_mini --landscape releases/cifar10
    python -m surrogate.landscape_check jahs/releases/digits --landscape releases/cifar10 --cells accuracies.csv --json

Both surrogates answer for the same uniform configs: ours at its last epoch, the real task's at epochs 200, 20 and 3.
`--cells` also compares NAS-Bench-201 cells at full size with default hyperparameters, by both surrogates, with
the published accuracies. `python -m pipeline.pilot --runs` does the same for recorded trainings.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidArgument
from jahs.queries.benchmark import Benchmark
from jahs.release import read_release
from jahs.schema import OPS
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from surrogate.card.cells import score_text
from workshop.command import new_parser, run_command
from workshop.real_landscape import (
    EPOCHS,
    N_CELLS,
    as_good_as,
    cell_configs,
    compare_cells,
    compare_with_landscape,
    read_cell_accuracies,
)

_N_CELLS: Final = 1000  # cells that are compared


def check_cells(
    bench: Benchmark, landscape: Benchmark, published: Mapping[int, Mapping[int, float]], *, seed: int
) -> dict[str, Any]:  # Any: JSON
    """Return Spearman's rho of both benchmarks' answers for cells with the published ones, see `compare_cells`."""
    configs = cell_configs(np.random.default_rng(seed).choice(N_CELLS, _N_CELLS, replace=False).tolist())
    ops = np.array([[config[key] for key in OPS] for config in configs])
    return {
        whose: compare_cells(ops, oracle.query_many(configs, metrics=["valid_acc"])["valid_acc"], published)
        for whose, oracle in (("ours", bench), ("real", landscape))
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser(
        "surrogate.landscape_check",
        "Compare a release with JAHS-Bench-201's CIFAR-10.",
        example="fashion_mnist_mini --landscape releases/cifar10",
    )
    parser.add_argument("release", metavar="TASK_OR_RELEASE", help="a task, or a release's folder")
    parser.add_argument("--landscape", type=Path, required=True, help="JAHS-Bench-201's cifar10, from `jahs import`")
    parser.add_argument("--configs", type=int, default=3000, help="uniform configs (default: %(default)s)")
    parser.add_argument("--cells", type=Path, metavar="CSV", help="NAS-Bench-201's accuracies; compares cells as well")
    parser.add_argument("--seed", type=int, default=0, help="seed of configs and cells (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    given = parser.parse_args(argv)

    def work() -> object:
        published = None if given.cells is None else read_cell_accuracies(given.cells)
        bench, landscape = _open(given.release), Benchmark("cifar10", release=given.landscape)
        columns = space().sample_columns(given.configs, seed=given.seed)
        accuracies = bench.query_many(columns, metrics=["valid_acc"])["valid_acc"]
        facts = compare_with_landscape(columns, accuracies, landscape)
        if published is not None:
            facts["cells"] = check_cells(bench, landscape, published, seed=given.seed)
        return facts if given.json else _text(bench, facts)

    return run_command("surrogate.landscape_check", work, stopped="nothing is kept")


def _open(task_or_release: str) -> Benchmark:
    if task_or_release in TASKS:
        return Benchmark(task_or_release)
    if not Path(task_or_release).is_dir():
        raise InvalidArgument(f"{task_or_release} is neither a release's folder nor a task; tasks: {', '.join(TASKS)}")
    return Benchmark(read_release(Path(task_or_release)).task.name, release=task_or_release)


def _text(bench: Benchmark, facts: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the facts as text."""
    lines = [f"{bench.task.title} against CIFAR-10 (JAHS-Bench-201): {facts['n_configs']:,} uniform configs", ""]
    for epoch in map(str, EPOCHS):
        scores = facts["epochs"][epoch]
        interval = f"({score_text(scores['rho_low'])} to {score_text(scores['rho_high'])})"
        lines.append(f"Spearman's rho with epoch {epoch:>3}  {score_text(scores['rho'])}  {interval}")
    lines += ["", "Spearman's rho by epoch              ours with it    of it with the last"]
    for at in facts["curve"]:
        lines.append(f"  epoch {at['epoch']:<28} {score_text(at['ours']):>12}    {score_text(at['real']):>19}")
    lines.append(f"Ours agree with the last epoch as well as the real task's epoch {as_good_as(facts['curve']) or '–'}")
    gain = facts["resolution"]
    gains = f"ours {score_text(gain['ours'])}  real {score_text(gain['real'])}"
    lines += ["", f"Resolution 0.25 to 1, points       {gains}"]
    lines += ["", "Share of the variance of ranks       ours    real"]
    ours, real = facts["shares"]["ours"], facts["shares"]["real"]
    lines += [f"  {name:32} {score_text(ours[name]):>6}  {score_text(real[name]):>6}" for name in ours]
    lines += ["", "Mean validation accuracy, %          ours    real"]
    for key, values in facts["marginals"].items():
        lines += [f"  {key + ' ' + row['value']:32} {row['ours']:6.2f}  {row['real']:6.2f}" for row in values]
    for whose, cells in facts.get("cells", {}).items():
        lines += ["", f"NAS-Bench-201's accuracies, {cells['n_cells']} cells: Spearman's rho with them, {whose}"]
        lines += [
            f"  after {epoch} epochs: {score_text(row['rho'])}, better half {score_text(row['rho_better_half'])}"
            for epoch, row in cells.items()
            if epoch != "n_cells"
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
