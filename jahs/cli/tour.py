"""The command `jahs demo`: a tour of half a minute, ending with a search."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import mean, stdev
from typing import Final

from jahs.cli.arguments import Commands, add_task, to_json
from jahs.cli.ask import format_config
from jahs.cli.demo import Demo, demo, time_unit, write_picture
from jahs.cli.stdout import format_table, paint
from jahs.errors import InvalidArgument
from jahs.queries.benchmark import Benchmark
from jahs.queries.drop_in import read_task
from jahs.release import read_release, releases
from jahs.release.find import default_task
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import METRICS

_NEXT: Final = """\
Try next:
  jahs query --config-seed 1{task}          # ask about another config
  jahs trajectory --config-seed 1{task}     # the same, epoch by epoch
  jahs quality{task}                        # see how far to trust the answers"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add("demo", _demo, "jahs demo --seed 1")
    parser.add_argument("--seed", type=int, default=25, help="seed of the configs (default: 25)")
    add_task(parser)
    parser.add_argument("--out", metavar="FOLDER", help="folder for the picture (default: a new temporary folder)")


def _demo(arguments: argparse.Namespace) -> str:
    """Show a random config with its cell and cost, then run a short search."""
    arguments.task = read_task(arguments.task or default_task(arguments.release))
    bench = _find_bench(arguments)
    if arguments.out is not None and not Path(arguments.out).is_dir():
        raise InvalidArgument(f"--out {arguments.out} is not a folder")
    shown = demo(seed=arguments.seed, task_name=arguments.task, bench=bench, table=_find_table(arguments, bench))
    if bench is None:
        missing = f"No release is embedded for {arguments.task}, so accuracy and time cannot be predicted."
        return to_json(shown.to_dict()) if arguments.json else f"{_format_config(shown)}\n\n{missing}"
    folder = Path(tempfile.mkdtemp(prefix="jahs-demo-")) if arguments.out is None else Path(arguments.out)
    picture = write_picture(shown, bench, folder)
    if arguments.json:
        return to_json({**shown.to_dict(), "picture": str(picture)})
    return "\n\n".join(
        [
            _format_config(shown),
            _format_curve(shown),
            _format_search(shown),
            f"A picture of it: {picture}",
            _NEXT.format(task=_option(arguments)),
        ]
    )


def _option(arguments: argparse.Namespace) -> str:
    """Return the options that name the task and the release of the tour, where they are not the defaults."""
    task_option = "" if arguments.task == default_task(arguments.release) else f" --task {arguments.task}"
    return task_option + ("" if arguments.release is None else f" --release {arguments.release}")


def _find_bench(arguments: argparse.Namespace) -> Benchmark | None:
    """Return the benchmark, or None if no release was named and none exists."""
    if arguments.release is None and arguments.task in TASKS and arguments.task not in releases():
        return None
    return Benchmark(arguments.task, "surrogate", release=arguments.release, engine="numpy")


def _find_table(arguments: argparse.Namespace, bench: Benchmark | None) -> Benchmark | None:
    """Return the recorded runs of the same release, or None if it has none."""
    if bench is None or bench.release is None or not read_release(bench.release).has("table.npz"):
        return None
    return Benchmark(arguments.task, "table", release=arguments.release)


def _format_config(shown: Demo) -> str:
    side = shown.task.image_side(shown.config["Resolution"])
    return "\n\n".join(
        [
            paint(f"A config of the joint space (seed {shown.seed}):", "bold"),
            format_config(shown.config),
            paint("Its cell, from input (1) to output (4):", "bold"),
            "\n".join(f"  {line}".rstrip() for line in shown.cell.draw().splitlines()),
            paint(f"Its network for {shown.task.title}, seen at {side} x {side} pixels, costs exactly", "bold"),
            f"  {shown.n_params:>12,} trainable parameters\n  {shown.n_macs:>12,} multiply-adds per image",
        ]
    )


def _format_curve(shown: Demo) -> str:
    curve = shown.curve
    assert curve is not None, "a release answered"
    n_epochs = len(curve["epoch"])
    rows: list[list[object]] = [
        [curve["epoch"][i], curve["valid_acc"][i], _format_time(curve["runtime"][i])]
        for i in sorted({0, n_epochs // 4, n_epochs // 2, n_epochs - 1})
    ]
    table = format_table(["epoch", f"valid_acc ({METRICS['valid_acc'].unit})", "training time"], rows)
    parts = [paint("Predicted, for a training on one core", "bold"), table]
    if shown.trained is not None:
        parts.append(_format_trained(shown.trained, curve["valid_acc"][-1], shown.interval))
    return "\n\n".join(parts)


def _format_trained(trained: float, predicted: float, interval: tuple[float, float] | None) -> str:
    text = f"It was trained: {trained:.1f} % at the last epoch; the prediction is {predicted:.1f} %"
    if interval is None:
        return f"{text}."
    return (
        f"{text}, 90 % interval {interval[0]:.1f} to {interval[1]:.1f} %.\n"
        "The interval covers one more training of the config: its noise and the error of the model."
    )


def _format_search(shown: Demo) -> str:
    halving = shown.halving
    assert halving is not None, "a release answered"
    rungs = [
        [rung.epoch, len(rung.configs), rung.valid_acc[0], rung.valid_acc[-1], _format_time(rung.spent_s)]
        for rung in halving.rungs
    ]
    table = format_table(
        ["to epoch", "configs", "best (%)", "worst (%)", "simulated time"], rungs, good=[len(rungs) - 1]
    )
    last = halving.rungs[-1]
    text = (
        f"It finds {last.valid_acc[0]:.2f} % in {_format_time(last.spent_s)} of simulated training; "
        f"the answers took {shown.elapsed_s:.2g} s here."
    )
    if shown.in_full:
        text += (
            f"\nTrained in full, one after another, {len(shown.in_full)} of them fit into the same time: "
            f"{shown.in_full[-1][1]:.2f} %."
        )
    if len(shown.gains) > 1:
        text += (
            f"\nOver {len(shown.gains)} random sets of configs, halving ends {mean(shown.gains):.1f} points higher "
            f"on average (standard deviation {stdev(shown.gains):.1f}), and is better in "
            f"{sum(gain > 0 for gain in shown.gains)}."
        )
    title = f"Successive halving among {len(halving.configs)} configs: the best third continues"
    best = format_config(halving.configs[last.configs[0]])
    return "\n\n".join([paint(title, "bold"), table, text, paint("The best config:", "bold"), best])


def _format_time(seconds: float) -> str:
    size, word = time_unit(seconds)
    return f"{seconds / size:.1f} {word}"
