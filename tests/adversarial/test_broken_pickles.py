"""Pickles with a few bytes changed, read as plain data and as published files, are read or refused, and cost little.

A fault is an exception that is not one of ours, a file that takes more than a second or 300 MB, or any event that a
reader has no business to cause (an import, a file that is opened, a process). A file that once broke a reader is kept
in `found/`, as text.
"""

from __future__ import annotations

import base64
import functools
import io
import pickle
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from pickletools import opcodes

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidTable, UnknownFormat, UnknownName, UnsafeFile
from jahs.published.frames import read_frame
from jahs.published.models import MODEL_NAMES, read_headers, read_model
from jahs.published.pickles import read_pickle
from tests.pickle_writer import dumps
from tests.published_files import make_frame, make_old_pipeline, make_params, make_pipeline, make_trees

resource = pytest.importorskip("resource")
FOUND = sorted((Path(__file__).parent / "found").glob("*.txt"))
ALLOWED = (UnsafeFile, CorruptFile, UnknownFormat, UnknownName, InvalidTable)
FORBIDDEN = ("import", "exec", "compile", "open", "os.", "subprocess.", "socket.", "ctypes.", "pickle.", "shutil.")
READERS: dict[str, Callable[[io.BytesIO], object]] = {
    "pickle": functools.partial(read_pickle, where="file", names=MODEL_NAMES),
    "model": functools.partial(read_model, where="file"),
    "headers": functools.partial(read_headers, where="file"),
    "frame": functools.partial(read_frame, where="file"),
}
_OPCODES = bytes(ord(opcode.code) for opcode in opcodes)


def check(reader: str, content: bytes) -> str | None:
    """Return what is wrong with how a reader takes these bytes, or None."""
    start = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        READERS[reader](io.BytesIO(content))
    except ALLOWED as err:
        if len(str(err)) > 2000:
            return f"a message of {len(str(err))} characters"
    except Exception as err:  # noqa: BLE001  # any other exception is what is looked for
        return f"{type(err).__name__}: {err}"
    if (took := time.process_time() - start) > 1:
        return f"{took:.1f} s"
    if (more := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) > 300_000:
        return f"{more} kB"
    return None


def seeds() -> list[tuple[str, bytes]]:
    """Files that are whole, for each reader."""
    frame = make_frame(
        {
            ("features", "Activation"): np.array(["Mish", "ReLU"] * 100, dtype=object),
            ("features", "N"): np.arange(200),
            ("labels", "x"): np.arange(200.0),
        }
    )
    trees = make_trees(2, seed=0, depth=2)
    found = [("model", dumps(make_pipeline("latency", trees, slope=0.5), protocol)) for protocol in (0, 2, 4)]
    found += [("model", dumps(make_old_pipeline([trees, trees]), 4))]
    found += [("headers", dumps(make_params(("latency",)), protocol)) for protocol in (0, 4)]
    found += [("frame", dumps(frame, protocol)) for protocol in (2, 4)]
    plain = {"a": [1, 2.5, None, True, "text", b"bytes"], ("b", "c"): {3: (4, 5)}, "set": {1, 2}, "array": np.arange(9)}
    found += [("pickle", pickle.dumps(plain, protocol)) for protocol in range(5)]
    return found


def mutate(content: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """Return the content with a few changes."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        at, kind = draw.randrange(len(changed) + 1), draw.randrange(8)
        if kind == 0:
            del changed[at : at + draw.choice((1, 2, 4, 30))]
        elif kind == 1:
            changed[at:at] = bytes([draw.choice(_OPCODES)])
        elif kind == 2 and at < len(changed):
            changed[at] = draw.choice(_OPCODES)
        elif kind == 3 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 4:
            other = draw.choice(others)
            start = draw.randrange(len(other))
            changed[at:at] = other[start : start + draw.choice((2, 10, 100))]
        elif kind == 5:
            size = draw.choice((1, 2, 4, 8))
            changed[at : at + size] = draw.choice((b"\x00", b"\xff", b"\x7f"))[:1] * size
        elif kind == 6:
            end = at + draw.choice((1, 5, 50))
            changed[at:at] = changed[at:end] * draw.choice((1, 2, 20))
        else:
            changed[at:at] = bytes(draw.choice(_OPCODES) for _ in range(draw.choice((2, 5, 20))))
        if not changed:
            break
    return bytes(changed)


@pytest.fixture(scope="module")
def events() -> list[str]:
    """Return the forbidden events while its first item is "reading"; a hook cannot be taken away again."""
    found = [""]

    def listen(event: str, _: tuple[object, ...]) -> None:
        if found[0] and event.startswith(FORBIDDEN):
            found.append(event)

    sys.addaudithook(listen)
    return found


def test_a_broken_pickle_is_read_or_refused_and_causes_nothing(attacks, events):
    whole = seeds()
    for reader, content in whole:
        READERS[reader](io.BytesIO(content))
    pool = [content for _, content in whole]
    for seed, rng in attacks(150):
        reader, content = rng.choice(whole)
        content = mutate(content, pool, rng)
        events[0] = "reading"
        fault = check(reader, content)
        events[0] = ""
        assert (fault, events[1:]) == (None, []), f"seed {seed}: {reader}"


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_file_that_once_broke_a_reader_is_taken_well(path):
    assert check(path.name.partition("-")[0], base64.decodebytes(path.read_bytes())) is None
