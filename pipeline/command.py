"""Arguments that several commands share: a folder of runs, and the device of trainings."""

from __future__ import annotations

import argparse
from pathlib import Path

from workshop.command import add_data_dir, new_parser
from workshop.machine import NATIVE, ON_PROCESSOR


def runs_parser(name: str, about: str) -> argparse.ArgumentParser:
    """Return the parser of `python -m pipeline.<name>` with --task, --runs and --data-dir."""
    parser = new_parser(f"pipeline.{name}", about, example="--task digits --runs out/digits")
    parser.add_argument("--task", required=True, help="name of a task, or a task file (.json)")
    parser.add_argument("--runs", type=Path, required=True, metavar="FOLDER", help="folder of runs")
    add_data_dir(parser)
    return parser


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    about = "cpu, native (C code on a processor core) or cuda (default: %(default)s)"
    parser.add_argument("--device", default="cpu", help=about)


def device_faults(device: str, *, is_here: bool = True) -> list[str]:
    """Return the faults of a device as messages; none if it can be used.

    Args:
        is_here: whether this machine trains, so that the device must be available here.
    """
    if device in ON_PROCESSOR:
        return []
    if not device.startswith("cuda"):
        return [f"device={device!r} must be {', '.join(sorted(ON_PROCESSOR))} or cuda"]
    if not is_here:
        return []
    import torch

    if torch.cuda.is_available():
        return []
    return [f"device={device}: no CUDA device is available; use cpu or {NATIVE}"]
