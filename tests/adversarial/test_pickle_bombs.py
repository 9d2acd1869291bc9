"""A pickle of n bytes costs at most 64 MB + 12 n of memory and a second + a second for each 10 MB, whatever it says.

Seconds are measured as in `tests.pace`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import time
from collections.abc import Callable

import pytest

from jahs.errors import CorruptFile, JahsError, UnsafeFile
from jahs.published.frames import read_frame
from jahs.published.pickles import read_pickle
from tests.adversarial.attacks import peak_memory
from tests.adversarial.pickle_bombs import BOMBS, bomb
from tests.pace import processor_time, slowness

N_BYTES = 7_900_000 if os.environ.get("JAHS_ATTACK_MINUTES") else 2_000_000  # of a table: the law is linear in them


def read(content: bytes) -> None:
    """Read a pickle and drop the result."""
    with contextlib.suppress(UnsafeFile, CorruptFile):
        read_pickle(io.BytesIO(content), where="bomb.pkl")


def read_table(content: bytes) -> None:
    with contextlib.suppress(JahsError):
        read_frame(io.BytesIO(content), "bomb.pkl")


def obey(content: bytes, case: str, read: Callable[[bytes], None] = read) -> None:
    """Assert the law for one pickle; one that is slow while its memory is traced is timed alone before it counts."""
    most_seconds, start = 1 + len(content) / 10e6, time.process_time()
    memory = peak_memory(lambda: read(content))
    is_quick = time.process_time() - start <= most_seconds
    is_quick = is_quick or any(processor_time(lambda: read(content)) <= most_seconds * slowness() for _ in range(3))
    assert is_quick, f"{case}: {len(content)} bytes take more than {most_seconds:.1f} s"
    assert memory <= (64 << 20) + 12 * len(content), f"{case}: {len(content)} bytes take {memory} of memory"


class _Largest(random.Random):
    """Draws the largest size of each bomb."""

    def uniform(self, a: float, b: float) -> float:
        return b


@pytest.mark.parametrize("make", BOMBS, ids=lambda make: make.__name__)
def test_the_largest_bomb_of_each_kind_costs_what_the_law_allows(make):
    obey(make(_Largest(0)), make.__name__)


@pytest.mark.parametrize("piece", [b"]", b"N\x94", b"M\x00\x10", b")\x85\x94"])
def test_a_table_of_millions_of_opcodes_costs_what_the_law_allows(piece):
    """Tables may have more steps than other pickles: as many objects as they allow, each of a byte or a few."""
    obey(b"\x80\x04(" + piece * (N_BYTES // len(piece)) + b"t.", repr(piece), read_table)


def test_no_bomb_of_any_size_costs_more_than_the_law_allows(attacks):
    for seed, rng in attacks(12):
        obey(bomb(rng), f"seed {seed}")


def test_a_bomb_of_a_few_hundred_bytes_once_compressed_costs_what_the_law_allows(attacks):
    for seed, rng in attacks(4):
        content = bomb(rng)
        packed = gzip.compress(content, 1)
        assert processor_time(lambda packed=packed: read(packed)) <= 2 + len(content) / 5e6, f"seed {seed}"


def test_memory_that_runs_out_is_a_refusal_that_names_the_file(monkeypatch):
    def run_out(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("jahs.published.pickles.follow", run_out)
    with pytest.raises(UnsafeFile, match=r"^bomb\.pkl: it takes more memory than there is"):
        read_pickle(io.BytesIO(b"N."), where="bomb.pkl")
