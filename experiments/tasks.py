"""Compare two tasks on the configs that were trained on both: do findings on one hold on the other?

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.

    python -m experiments.tasks data/fashion_mnist_mini/runs data/cifar10_mini/runs --out docs/studies/tasks
    python -m experiments.tasks RUNS OTHER_RUNS --landscape releases/cifar10 --out out/tasks

Config number i is the same config on every task. The page compares the ranks of the recorded configs, the main effects
of keys and warm starts; with releases of both tasks, also fronts and the order of optimisers. `--landscape` is an
imported release of JAHS-Bench-201's cifar10, which both tasks are compared with. The same inputs give the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.analysis.paired import (
    FEWEST,
    Agreement,
    PairedConfigs,
    RecordedTask,
    agreement,
    agreements,
    effects_of_keys,
    effects_of_values,
    pair,
    read_recorded,
    warm_starts,
)
from experiments.analysis.transfer import OPTIMIZERS, front_transfers, order_transfer
from experiments.report.writing import check_target, table, write_document
from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text
from jahs.comparison.terms import open_terms
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.optimizers import OPTIMIZERS as ENTRIES
from jahs.queries.benchmark import Benchmark
from jahs.spaces.parameters import LARGEST
from jahs.tasks.definitions import caveats_of
from workshop.command import add_release, new_parser, run_command
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import new_drawing, set_rows
from workshop.pages.style import LIGHT, marker, series
from workshop.ranks import spearman
from workshop.real_landscape import EPOCHS, real_accuracies
from workshop.resampling import interval_text

_STUDY: Final = "baselines"
_REAL: Final = "CIFAR-10 of JAHS-Bench-201"
_HEIGHT_OF_ROW: Final = 0.3  # inches


class _Row(NamedTuple):
    """A line of a figure: values with intervals, and a ceiling."""

    title: str
    values: Sequence[Interval]
    ceiling: float = math.nan


def compare_tasks(runs: Sequence[Path], *, landscape: Path | None, release: Path | None, seeds: int, out: Path) -> Path:
    """Write the page README.md, with its figures and paired.csv, and return its path."""
    if seeds < 1:
        raise InvalidArgument(f"seeds={seeds} must be at least 1")
    target = check_target(out)
    recorded = [read_recorded(path) for path in runs]
    paired = pair(*recorded)
    real, origin = {}, []
    if landscape is not None:
        bench = Benchmark("cifar10", release=landscape)
        real, origin = real_accuracies(paired.columns, bench), [("landscape", release_of(bench).sha256[:16])]
    benches = _open_releases(recorded, release)
    names = [task.title for task in paired.tasks]
    on_both = list(agreements(paired))
    on_real = [
        agreement(f"{name}, real epoch {epoch}", values[None], accuracies)
        for name, values in zip(names, paired.accuracies, strict=True)
        for epoch, accuracies in real.items()
    ]
    sections = chain(
        _ranks(paired, on_both, on_real),
        _real_blocks(on_real),
        _effects(paired, real, names),
        _warm(paired, names),
        _release_blocks(recorded, benches, release, n_seeds=seeds),
    )
    folders = [path.name if path.is_absolute() else path.as_posix() for path in runs]
    flags = ["--landscape", "CIFAR10"] if landscape else []
    document = Document(
        title=f"{names[0]} and {names[1]}: what carries over",
        caveats=caveats_of(paired.tasks),
        subtitle=_finding(names, on_both[0], on_real),
        sections=sections_of(sections),
        facts=(
            ("command", f"python -m experiments.tasks {shlex.join([*folders, *flags])} --seeds {seeds} --out DIR"),
            *((f"protocol of {record.task.title}", record.protocol) for record in recorded),
            *((f"release of {b.task.title}", release_of(b).sha256[:16]) for b in benches if len(benches) == 2),
            *origin,
            ("data", "paired.csv: every config of this page with its accuracies"),
        ),
    )
    data = {"paired.csv": _csv(paired, real)}
    return write_document(document, target, is_for_docs=True, name="README.md", data=data)


def _open_releases(recorded: Sequence[RecordedTask], release: Path | None) -> list[Benchmark]:
    """Return the benchmarks of the tasks that have a release."""
    benches = []
    for record in recorded:
        try:
            bench = open_benchmark(record.task.name, release)
        except MissingData:
            continue
        made_from = release_of(bench).facts.get("protocol")
        if made_from != record.protocol:
            raise ProtocolMismatch(
                f"{bench.release} was fitted to runs of protocol {made_from}, but the runs of {record.task.name} have "
                f"{record.protocol}; name releases of these runs with --release"
            )
        benches.append(bench)
    return benches


def _finding(names: Sequence[str], whole: Agreement, on_real: Sequence[Agreement]) -> str:
    ceiling = "" if math.isnan(whole.ceiling) else f"; the noise ceiling is {whole.ceiling:.2f}"
    last = zip(on_real[:: len(EPOCHS)], names, strict=False)  # none without the landscape
    parts = " and ".join(f"{interval_text(row.rho)} for {name}" for row, name in last)
    real = f" With {_REAL} after {EPOCHS[0]} epochs, it is {parts}." if parts else ""
    return (
        f"The validation accuracies of {whole.n:,} configs, trained on both tasks, have a Spearman correlation of "
        f"{interval_text(whole.rho)} at the last epoch{ceiling}.{real}"
    )


def _ranks(paired: PairedConfigs, on_both: Sequence[Agreement], on_real: Sequence[Agreement]) -> Iterator[str | Block]:
    n_groups = len(set(paired.groups))
    parts, groups = on_both[:-n_groups], on_both[-n_groups:]
    shown = [row for row in (*parts, *on_real[:: len(EPOCHS)], *groups) if row.n >= 2 * FEWEST]
    with_real = f", and of each task with {_REAL}" if on_real else ""
    yield "Ranks of configs"
    yield Figure(
        name="correlations",
        caption=f"Spearman correlation between the tasks{with_real}, with 95 % bootstrap intervals over configs. "
        f"Crosses are noise ceilings. Parts with fewer than {2 * FEWEST} configs are left out.",
        alt="; ".join(f"{row.title}: {row.rho.value:.2f}" for row in shown),
        drawing=_draw([_Row(row.title, [row.rho], row.ceiling) for row in shown], x_label="Spearman correlation"),
    )
    yield Text(
        "The noise ceiling is the correlation that two perfect copies of a task would have: the geometric mean of the "
        "correlations between two seeds on each task, over configs with three seeds "
        f"(– for fewer than {FEWEST} of them). Accuracies are those of the first seed. The ceiling of a best tenth "
        "comes from the other seeds, because the first seed selects the configs. Within groups, the mean of its "
        "fidelity group is subtracted from each accuracy."
    )
    yield _agreements_table("Between the tasks", parts)
    yield _agreements_table("Between the tasks, in each fidelity group", groups, is_folded=True)


def _real_blocks(on_real: Sequence[Agreement]) -> Iterator[str | Block]:
    if on_real:
        yield "Both against the real landscape"
        yield Text(
            f"The real landscape is an imported surrogate of {_REAL}, which answers for the same configs. Its "
            "predictions are clipped to 0 and 100 % and have no noise. It is used for ranks and means, never for its "
            "optimum."
        )
        yield _agreements_table("With the real landscape", on_real)


def _agreements_table(caption: str, agreed: Sequence[Agreement], *, is_folded: bool = False) -> Table:
    head = ("part", "Spearman correlation (95 % interval)", "noise ceiling", "configs", "with three seeds")
    rows = [(row.title, row.rho, number_text(row.ceiling), f"{row.n:,}", f"{row.n_repeated:,}") for row in agreed]
    return table(caption, head, rows, is_folded=is_folded)


def _effects(paired: PairedConfigs, real: Mapping[int, Floats], titles: Sequence[str]) -> Iterator[str | Block]:
    names = [*titles, *([_REAL] if real else [])]
    accuracies = [*paired.first, *([real[EPOCHS[0]]] if real else [])]
    keys = [effects_of_keys(paired.columns, values) for values in accuracies]
    shares = [{key: float(np.nan_to_num(share.value)) for key, share in by_key.items()} for by_key in keys]
    levels = [effects_of_values(paired.columns, values) for values in accuracies]
    order = sorted(keys[0], key=lambda key: -max(by_key[key] for by_key in shares))
    yield "Main effects"
    yield Figure(
        name="effects",
        caption="Share of the variance of ranks that each key explains alone, and the interaction of both rates, with "
        "95 % intervals (1.96 bootstrap standard errors over configs).",
        alt="; ".join(f"{key}: {', '.join(number_text(by_key[key].value) for by_key in keys)}" for key in order),
        drawing=_draw(
            [_Row(key, [by_key[key] for by_key in keys]) for key in order],
            x_label="share of the variance of ranks",
            names=names,
        ),
    )
    rows = []
    for i, j in combinations(range(len(names)), 2):
        rhos = (spearman([*part[i].values()], [*part[j].values()]) for part in (shares, levels))
        rows.append((f"{names[i]} and {names[j]}", *map(number_text, rhos)))
    yield table(
        "Rank correlation of main effects: of the shares of the keys (which keys matter), and of the mean ranks of "
        "their values (which values are good), with continuous keys in quarters",
        ("tasks", "keys", "values"),
        rows,
    )
    by_keys = [(key, *(by_key[key] for by_key in keys)) for key in order]
    yield table("Shares of the variance of ranks", ("key", *names), by_keys, is_folded=True)


def _warm(paired: PairedConfigs, names: Sequence[str]) -> Iterator[str | Block]:
    yield "Warm starts"
    yield Text(
        "The best configs of one task are trained on the other. The gain is the best accuracy among them, minus the "
        "mean best accuracy of as many random configs. The last column is the number of random configs that do as well "
        "on average. All values are recorded trainings."
    )
    head = ("from", "to", "configs", "best (%)", "gain (points, 95 % interval)", "random configs")
    rows = [
        (names[of.source], names[of.target], of.k, f"{of.best:.2f}", of.gain, number_text(of.n_random, 0))
        for of in warm_starts(paired)
    ]
    yield table("Validation accuracy at the last epoch", head, rows, n_labels=2)


def _release_blocks(
    recorded: Sequence[RecordedTask], benches: Sequence[Benchmark], release: Path | None, *, n_seeds: int
) -> Iterator[str | Block]:
    """Yield the comparison of both releases, or name the tasks without one."""
    yield "Fronts and optimisers"
    released, names = {bench.task.name for bench in benches}, [record.task.title for record in recorded]
    if missing := [record.task.title for record in recorded if record.task.name not in released]:
        yield Text(f"Not yet: {' and '.join(missing)} {'has' if len(missing) == 1 else 'have'} no release.")
        return
    yield _fronts(names, benches)
    orders = order_transfer([open_terms(_STUDY, record.task.name, release) for record in recorded], n_seeds=n_seeds)
    means = orders.errors.mean(axis=2)
    over = f", with a bootstrap interval over {n_seeds} seeds" if np.isfinite(orders.tau.low) else ""
    yield Text(
        f"Under the terms of the study `baselines`, Kendall's tau between the rankings of the optimisers is "
        f"{interval_text(orders.tau)}{over}. Between two halves of the seeds, it is {number_text(orders.split_half)} "
        "(geometric mean of both tasks)."
    )
    best_first = sorted(zip(OPTIMIZERS, means.T.tolist(), strict=True), key=lambda row: row[1][0])
    rows = [(ENTRIES[name].title, *(f"{value:.3f}" for value in errors)) for name, errors in best_first]
    caption = f"Mean validation error (%) of the last incumbent, mean over {n_seeds} seeds"
    yield table(caption, ("optimiser", *names), rows)


def _fronts(names: Sequence[str], benches: Sequence[Benchmark]) -> Block:
    rows = [
        (names[source], names[target], " and ".join(metrics), n_configs, f"{share:.3f}", f"{random:.3f}")
        for source, target, metrics, n_configs, share, random in front_transfers(benches)
    ]
    if not rows:
        return Text("The releases have no front of the same metrics.")
    return table(
        "Hypervolume of one task's front, evaluated on the other task, as a share of the other task's front; and the "
        "same for equally many random configs",
        ("from", "to", "metrics", "configs", "front (share)", "random (share)"),
        rows,
        n_labels=3,
    )


def _draw(rows: Sequence[_Row], *, x_label: str, names: Sequence[str] = ()) -> Drawing:
    """Draw values with intervals below one another, one colour and shape for each task, and ceilings as crosses."""
    n_values = max(len(row.values) for row in rows)
    drawing, axes = new_drawing(1.0 + _HEIGHT_OF_ROW * len(rows) * (1 + n_values) / 2 + 0.24 * len(names))
    for place, row in enumerate(rows):
        for i, interval in enumerate(row.values):
            y = place + 0.24 * (i - (n_values - 1) / 2)
            axes.plot([interval.low, interval.high], [y, y], color=series(i), linewidth=2.0, solid_capstyle="butt")
            label = names[i] if names and not place else None
            axes.plot([interval.value], [y], color=series(i), marker=marker(i), markersize=5, linestyle="", label=label)
        axes.plot([row.ceiling], [place], color=LIGHT["muted"], marker="x", markersize=6, linestyle="")
    axes.axvline(0, color=LIGHT["muted"], linewidth=1.0, linestyle=(0, (2, 2)))
    set_rows(axes, [row.title for row in rows])
    axes.set_xlabel(x_label)
    if names:
        drawing.legend(loc="outside lower center", ncols=1)
    return drawing


def _csv(paired: PairedConfigs, real: Mapping[int, Floats]) -> str:
    """Return a row for each config: its number, id, source and sizes, and all its accuracies."""
    accuracies = {
        f"{task.name} seed {i}": values
        for task, by_seed in zip(paired.tasks, paired.accuracies, strict=True)
        for i, values in enumerate(by_seed.T)
    }
    accuracies |= {f"cifar10 epoch {epoch}": values for epoch, values in real.items()}
    columns = {"number": paired.configs["config_index"].tolist()}
    columns |= {key: paired.configs[key].tolist() for key in ("config_id", "source", *LARGEST)}
    columns |= {k: ["" if np.isnan(x) else f"{x:.6g}" for x in values.tolist()] for k, values in accuracies.items()}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *zip(*columns.values(), strict=True)])
    return text.getvalue()


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
    add_release(parser)
    parser.add_argument("--seeds", type=int, default=20, help="seeds of each optimiser (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page: new, empty, or of an older page")
    given = vars(parser.parse_args(argv))
    return run_command("experiments.tasks", lambda: {"page": str(compare_tasks(**given))})


if __name__ == "__main__":
    sys.exit(main())
