"""The commands that write a picture: plot, with matplotlib, which is loaded only here, and explore."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations, cycle
from pathlib import Path
from typing import Any, Final

from jahs.adapters.importing import import_tool
from jahs.cli.arguments import Commands, add_query, add_task, open_bench, read_configs, to_json
from jahs.comparison.summaries import value_text
from jahs.errors import InvalidArgument
from jahs.files.atomic import write_beside
from jahs.queries.benchmark import Benchmark
from jahs.queries.drop_in import read_task
from jahs.release.find import default_task
from jahs.tasks.objectives import objective_matrix, read_objectives
from jahs.tasks.pareto import is_non_dominated

_FORMATS: Final = (".png", ".svg")
_MOST_NAMED: Final = 10
_MOST_KEYS: Final = 3  # keys in the name of a config
_DASHES: Final = ("-", "--", ":", "-.")
_BLUE, _GREY, _ORANGE = "#0a58ca", "#8c959f", "#bc4c00"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add("plot", _plot, "jahs plot front --metrics valid_acc,n_params -n 500 --out front.png")
    parser.add_argument("what", choices=["curves", "front"], help="curves over the epochs, or two metrics at the end")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the picture, .png or .svg")
    parser.add_argument("-n", type=int, help="number of random configs (default: 8 curves, 500 points)")
    add_query(parser, "metrics to draw (default: valid_acc; for a front also n_params)")
    parser = commands.add("explore", _explore, "jahs explore --out explorer.html")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page, .html")
    add_task(parser)


def _explore(arguments: argparse.Namespace) -> str:
    """Write one HTML file to explore a release in a browser, offline."""
    out = _checked(arguments.out, ".html")
    from jahs.explorer import read_subject, write_page

    subject = read_subject(read_task(arguments.task or default_task(arguments.release)), arguments.release)
    n_bytes = write_page(subject, out)
    if arguments.json:
        facts = {"bytes": n_bytes, "page": str(out), "task": subject.task.name}
        return to_json({**facts, "without_models": subject.without_models})
    note = f"\n{subject.without_models} The page shows the recorded runs." if subject.without_models else ""
    return f"{out} ({n_bytes / 1e6:.1f} MB){note}"


def _checked(out: Path, *endings: str) -> Path:
    """Return the path of a file to write; InvalidArgument if its name or folder is invalid."""
    if out.suffix.lower() not in endings:
        raise InvalidArgument(f"--out {out}: write a name that ends in {' or '.join(endings)}")
    if out.is_dir():
        raise InvalidArgument(f"--out {out} must be a file, got a folder; choose another name")
    if not out.parent.is_dir():
        raise InvalidArgument(f"--out {out}: there is no folder {out.parent}")
    return out


def _plot(arguments: argparse.Namespace) -> str:
    """Draw learning curves, or a trade-off with its reference front (needs matplotlib)."""
    out = _checked(arguments.out, *_FORMATS)
    if arguments.n is not None and arguments.n < 1:
        raise InvalidArgument(f"-n {arguments.n} must be at least 1")
    if arguments.n is not None and arguments.configs is not None:
        raise InvalidArgument("-n and --configs both name configs; give one of them")
    # Figures that are made directly need no display and no global state.
    figure = import_tool("matplotlib.figure", needs="matplotlib").Figure(figsize=(7, 4.5), layout="constrained")
    bench = open_bench(arguments)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    (_draw_front if arguments.what == "front" else _draw_curves)(arguments, bench, axes)
    with write_beside(out) as beside:
        figure.savefig(beside, format=out.suffix[1:].lower(), dpi=150, metadata={"Title": axes.get_title()})
    return to_json({"picture": str(out)}) if arguments.json else str(out)


def _draw_curves(arguments: argparse.Namespace, bench: Benchmark, axes: Any) -> None:
    objectives = read_objectives(arguments.metrics or ["valid_acc"], known=bench.metrics)
    if len(objectives) != 1:
        raise InvalidArgument(f"--metrics {','.join(arguments.metrics)}: curves show exactly one metric")
    metric = objectives[0].metric
    configs = read_configs(arguments, bench, n=8 if arguments.n is None else arguments.n)
    epochs = list(range(1, bench.max_epoch + 1))
    answers = bench.query_many(configs, at=epochs, seed=arguments.seed, metrics=[metric.name])
    lines = axes.plot(epochs, answers[metric.name].T, linewidth=1.5)
    for line, dash in zip(lines, cycle(_DASHES), strict=False):
        line.set_linestyle(dash)
    if len(lines) <= _MOST_NAMED:
        axes.legend(lines, differences(configs), frameon=False, fontsize="small")
    axes.set(
        xlabel="epoch", ylabel=f"{metric.name} ({metric.unit})", title=f"{bench.task.title}: {len(configs)} configs"
    )
    axes.xaxis.get_major_locator().set_params(integer=True)


def differences(configs: Sequence[Mapping[str, object]]) -> list[str]:
    """Return a name for each config: the fewest keys, up to three, that tell all of them apart.

    Example:
        >>> differences([{"N": 1, "W": 4}, {"N": 3, "W": 4}])
        ['N=1', 'N=3']
    """
    varied = [key for key in configs[0] if len({str(config[key]) for config in configs}) > 1]
    for n_keys in range(1, _MOST_KEYS + 1):
        for keys in combinations(varied, n_keys):
            labels = [", ".join(f"{key}={value_text(config[key], 3)}" for key in keys) for config in configs]
            if len(set(labels)) == len(configs):
                return labels
    return [f"config {i}" for i in range(len(configs))]


def _draw_front(arguments: argparse.Namespace, bench: Benchmark, axes: Any) -> None:
    objectives = read_objectives(arguments.metrics or ["valid_acc", "n_params"], known=bench.metrics)
    if len(objectives) != 2:
        raise InvalidArgument(f"--metrics {','.join(arguments.metrics)}: a front needs exactly two metrics")
    metrics = [objective.metric.name for objective in objectives]
    configs = read_configs(arguments, bench, n=500 if arguments.n is None else arguments.n)
    F = objective_matrix(bench.query_many(configs, seed=arguments.seed, metrics=metrics), objectives)
    is_best = is_non_dominated(F)
    axes.scatter(*F[~is_best][:, ::-1].T, s=8, color=_GREY, label=f"{len(F)} configs")
    axes.scatter(*F[is_best][:, ::-1].T, s=18, marker="s", color=_BLUE, label="not dominated")
    reference = bench.front(metrics)
    axes.step(*reference.F[:, ::-1].T, where="pre", color=_ORANGE, linewidth=1.5, label="reference front")
    axes.set(xlabel=objectives[1].label, ylabel=objectives[0].label, title=f"{bench.task.title}: trained in full")
    axes.set_xscale("log")
    axes.legend(frameon=False)
