"""Compile `engine.c` for this processor, once, into the user's cache, if it can train the task."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from jahs.errors import MissingDependency
from jahs.files.ownership import shared_fault
from workshop.machine import NATIVE

_log = logging.getLogger(__name__)

_SOURCE: Final = Path(__file__).with_name("engine.c")
_FLAGS: Final = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
_LEAST_BATCH: Final = 64


def native_faults(n_images: int, batch: int) -> list[str]:
    """Return why the engine cannot train with this batch size and number of images in an epoch, if it cannot."""
    faults = []
    if batch % _LEAST_BATCH:
        faults.append(f"batch_size={batch} is not a multiple of {_LEAST_BATCH}")
    if n_images % batch:
        faults.append(f"{n_images} images an epoch are not whole batches of {batch}")
    return [f"device native cannot train this task: {'; '.join(faults)}; use device cpu"] if faults else []


@functools.cache
def engine_version(batch: int) -> str:
    """Return a digest of everything that determines the engine's bits: source, flags, compiler and its target.

    The target is included because virtual machines often hide the processor: different ones may report one model name.

    Raises:
        MissingDependency: there is no C compiler.
    """
    version = _run([_compiler(), "--version"]).stdout.splitlines()[0]
    facts = (_SOURCE.read_text(), *_FLAGS, str(batch), version, _target())
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:12]


def software(device: str, batch: int) -> str:
    """Return the versions that, with the processor, determine the bits of a training: torch's, and the engine's."""
    import torch

    return f"{torch.__version__}, engine {engine_version(batch)}" if device == NATIVE else torch.__version__


@functools.cache
def load_library(batch: int) -> Any:  # Any: ctypes has no types of a library
    """Return the engine for this batch size; compile it if the cache does not hold it.

    Where the cache cannot be written, or others may write there, each process compiles for itself.

    Raises:
        MissingDependency: there is no C compiler, or it does not compile the engine.
    """
    name = f"engine-{engine_version(batch)}.so"
    cache = _cache_folder()
    if cache is not None and (cache / name).exists():
        return _load(cache / name)
    # A folder of its own for each compilation: process numbers repeat on other machines that share the cache.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".engine-") as folder:
        built = Path(folder) / name
        _run([_compiler(), *_FLAGS, f"-DBATCH={batch}", str(_SOURCE), "-o", str(built), "-lm"])
        return _load(built if cache is None else built.replace(cache / name))


def _load(path: Path) -> Any:  # Any: as above
    try:
        library = ctypes.CDLL(str(path))
    except OSError as err:
        raise MissingDependency(f"{path} cannot be loaded ({err}); delete it, or use device cpu") from err
    for name in ("train_step", "evaluate"):
        getattr(library, name).restype = ctypes.c_double
    return library


def _cache_folder() -> Path | None:
    """Return the folder of compiled engines; None if we cannot write there, or others can."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jahs"
        folder.mkdir(parents=True, exist_ok=True)
        fault = shared_fault(folder) or (None if os.access(folder, os.W_OK) else f"{folder} cannot be written")
    except (OSError, RuntimeError) as err:  # RuntimeError: the user has no home
        fault = str(err)
    if fault is None:
        return folder
    _log.info("the compiled engine is not cached (%s); each process compiles for itself", fault)
    return None


def _target() -> str:
    """Return what -march=native means here, as the macros that the compiler defines."""
    return _run([_compiler(), *_FLAGS, "-E", "-dM", "-x", "c", os.devnull]).stdout


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
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        reason = next((line for line in lines if "error" in line), lines[0])  # warnings may come first
        raise MissingDependency(f"{' '.join(command)} failed: {reason}; name another GCC in CC, or use device cpu")
    return done
