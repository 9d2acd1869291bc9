"""The command `python -m pipeline.train`: train one config and print its trajectory."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jahs.errors import InvalidArgument, refuse
from jahs.files.strict_json import parse_json
from jahs.spaces.configs import Config, config_id, validate
from jahs.spaces.space import space
from pipeline.command import add_device, device_faults
from pipeline.data import load_images
from pipeline.protocol import EPOCH_FIELDS, trained_task
from pipeline.train import TrainedRun, train
from workshop.command import add_data_dir, new_parser, run_command
from workshop.progress import Progress


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    given = _parser().parse_args(argv)
    hint = f"the same command resumes from {given.checkpoint}" if given.checkpoint else "nothing was kept"
    return run_command("pipeline.train", lambda: _train(given), stopped=hint)


def _parser() -> argparse.ArgumentParser:
    about = "Train one config as the task's protocol says, and print its trajectory."
    parser = new_parser("pipeline.train", about, example="--task digits --sample 0 --epochs 3")
    parser.add_argument("--task", required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", metavar="JSON", help="all 14 keys of a config as JSON")
    which.add_argument("--sample", metavar="SEED", type=int, help="draw a config with this seed")
    parser.add_argument("--epochs", type=int, help="stop after this epoch of the task's schedule (default: the last)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the training (default: %(default)s)")
    add_device(parser)
    add_data_dir(parser)
    parser.add_argument("--checkpoint", metavar="FILE", type=Path, help="resume from it; saved after every epoch")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _train(given: argparse.Namespace) -> str:
    """Train; return what to print."""
    task = trained_task(given.task)
    config = _config(given)
    refuse(*device_faults(given.device))
    if given.checkpoint is not None and not given.checkpoint.absolute().parent.is_dir():
        raise InvalidArgument(f"checkpoint={given.checkpoint}: its folder does not exist; make it first")
    resolution = config["Resolution"]
    images = load_images(task, data_dir=given.data_dir, resolutions=(resolution,))[resolution]

    def show(epoch: int, measured: Mapping[str, float]) -> None:
        runtime = measured["runtime"]
        spent_s = runtime if math.isfinite(runtime) else None  # CPU time is not measured on an accelerator
        note = f"valid_acc={measured['valid_acc']:.1f}" + ("" if spent_s is None else f" {spent_s:.1f}s")
        progress.update(epoch, note, spent_s=spent_s)

    with closing(Progress(given.epochs or task.max_epoch, task.name)) as progress:
        run = train(
            config,
            task,
            images,
            seed=given.seed,
            epochs=given.epochs,
            device=given.device,
            checkpoint=given.checkpoint,
            on_epoch=show,
        )
    return _as_json(given, config, run) if given.json else _as_table(run)


def _config(given: argparse.Namespace) -> Config:
    """Return the config that was named or drawn."""
    if given.sample is not None:
        return space().sample(seed=given.sample)
    try:
        content = parse_json(given.config)
    except ValueError as err:
        raise InvalidArgument(f"config is not JSON ({err}); try --sample 0 --json to see one") from err
    return validate(content)


def _as_table(run: TrainedRun) -> str:
    header = "epoch  " + "  ".join(f"{name:>10}" for name in EPOCH_FIELDS)
    lines = [
        f"{epoch:>5}  " + "  ".join(f"{value:>10.4f}" for value in row)
        for epoch, row in enumerate(run.epochs.tolist(), start=1)
    ]
    ending = [] if run.status == "finished" else [f"diverged in epoch {len(run.epochs)}"]
    return "\n".join([header, *lines, *ending])


def _as_json(given: argparse.Namespace, config: Config, run: TrainedRun) -> str:
    epochs: list[dict[str, Any]] = [  # Any: an integer, numbers, or None for what was not measured
        {"epoch": epoch, **{name: _finite(value) for name, value in zip(EPOCH_FIELDS, row, strict=True)}}
        for epoch, row in enumerate(run.epochs.tolist(), start=1)
    ]
    facts = {
        "task": given.task,
        "config": config,
        "config_id": config_id(config),
        "seed": given.seed,
        "status": run.status,
        "epochs": epochs,
    }
    return json.dumps(facts, indent=2, sort_keys=True, allow_nan=False)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    sys.exit(main())
