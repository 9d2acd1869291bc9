"""The processor and the device of measurements."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Final

NATIVE: Final = "native"
"""The device of trainings by our own C code on a processor core; "cpu" is torch on the same core."""

ON_PROCESSOR: Final = frozenset({"cpu", NATIVE})
"""Devices that train on a processor core: CPU seconds are measured, and a second training has the same bits."""


@functools.cache
def processor_model() -> str:
    """Return the processor's model, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine() or "unknown")


def device_name(device: str) -> str:
    """Return "cpu", "native", or the accelerator's model."""
    if device in ON_PROCESSOR:
        return device
    import torch

    place = torch.device(device)
    return torch.cuda.get_device_name(place) if place.type == "cuda" else place.type
