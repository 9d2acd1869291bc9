"""The processor and the device of measurements."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@functools.cache
def processor_model() -> str:
    """Return the processor's model, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine() or "unknown")


def device_name(device: torch.device) -> str:
    """Return "cpu", or the accelerator's model."""
    if device.type != "cuda":
        return device.type
    import torch

    return torch.cuda.get_device_name(device)
