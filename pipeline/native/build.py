"""Compile `engine.c` for this processor, once, into the user's cache."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import torch

from jahs.errors import MissingDependency
from jahs.files.atomic import write_beside
from workshop.machine import NATIVE, processor_model

_SOURCE: Final = Path(__file__).with_name("engine.c")
_FLAGS: Final = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")


@functools.cache
def engine_version(batch: int) -> str:
    """Return the digest of what decides on the engine's bits besides the processor: source, flags and compiler.

    Raises:
        MissingDependency: there is no C compiler.
    """
    version = _run([_compiler(), "--version"]).stdout.splitlines()[0]
    facts = (_SOURCE.read_text(), *_FLAGS, str(batch), version)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:12]


def software(device: str, batch: int) -> str:
    """Return the build that decides, with the processor, on the bits of a training: torch's, and the engine's."""
    return f"{torch.__version__}, engine {engine_version(batch)}" if device == NATIVE else torch.__version__


@functools.cache
def load_library(batch: int) -> Any:  # Any: what ctypes finds in a library
    """Return the engine for batches of so many images, compiled if it was not yet.

    Raises:
        MissingDependency: there is no C compiler, or it does not compile the engine.
    """
    place = hashlib.sha256(processor_model().encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jahs"
    built = cache / f"engine-{engine_version(batch)}-{place}.so"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with write_beside(built) as beside:
            _run([_compiler(), *_FLAGS, f"-DBATCH={batch}", str(_SOURCE), "-o", str(beside), "-lm"])
    library = ctypes.CDLL(str(built))
    for name in ("train_step", "evaluate"):
        getattr(library, name).restype = ctypes.c_double
    return library


def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CC") or "gcc")
    if compiler is None:
        raise MissingDependency(
            "device native needs a C compiler: install gcc (Debian: apt-get install gcc libc6-dev), name one in CC, or "
            "use device cpu"
        )
    return compiler


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  # the user's compiler
    if done.returncode:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
        raise MissingDependency(f"{' '.join(command)} failed: {reason}; name another compiler in CC, or use device cpu")
    return done
