"""Pickles of a few bytes, or of some megabytes, that cost a careless reader gigabytes or minutes.

Most of them store one large object in the memo and consume it again and again; the others repeat an opcode that costs
much for its one or two bytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

_STATE = b"(K\x03X\x01\x00\x00\x00|NNN" + b"J\xff\xff\xff\xff" * 2 + b"K?tb"
_OBJECTS = b"cnumpy\ndtype\nX\x02\x00\x00\x00O8K\x00K\x01\x87R" + _STATE
_TEXTS = b"cnumpy\ndtype\nX\x03\x00\x00\x00U16K\x00K\x01\x87R"
_NEW = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"


def _integer(n: int) -> bytes:
    return b"J" + struct.pack("<i", n)


def _many(rng: random.Random, most: int) -> int:
    """Return a number of any order of magnitude up to `most`."""
    return max(1, int(most ** rng.uniform(0, 1)))


def _text(n: int) -> bytes:
    return b"X" + struct.pack("<I", n) + b"x" * n


def one_list_in_many_arrays(rng: random.Random) -> bytes:
    n_items, n_times = _many(rng, 400_000), _many(rng, 3000)
    state = b"(K\x01" + _integer(n_items) + b"\x85" + _OBJECTS + b"\x89](" + b"N" * n_items + b"etq\x00"
    if rng.random() < 0.5:  # a plain list in the state, as protocol 0 has it
        items = b"](" + b"N" * n_items + b"eq\x01"
        state = items + b"(K\x01" + _integer(n_items) + b"\x85" + _OBJECTS + b"\x89h\x01tq\x00"
    return b"\x80\x02(" + _NEW + state + b"b" + (_NEW + b"h\x00b") * n_times + b"t."


def one_text_in_many_arrays(rng: random.Random) -> bytes:
    n_items = _many(rng, 100_000)
    state = b"(K\x01" + _integer(n_items) + b"\x85" + _TEXTS + b"\x89B" + struct.pack("<I", 64 * n_items)
    state += b"x\x00\x00\x00" * 16 * n_items + b"tq\x00"
    return b"\x80\x02(" + _NEW + state + b"b" + (_NEW + b"h\x00b") * _many(rng, 50_000) + b"t."


def one_text_encoded_often(rng: random.Random) -> bytes:
    n_times = _many(rng, 2000)
    prefix = _text(_many(rng, 30_000_000)) + b"X\x06\x00\x00\x00latin1\x86q\x00c_codecs\nencode\nq\x01"
    return b"\x80\x02" + prefix + b"(" + b"h\x01h\x00R" * n_times + b"t\x87."


def one_list_in_many_sets(rng: random.Random) -> bytes:
    n_items, n_times = _many(rng, 100_000), _many(rng, 3000)
    items = b"](" + b"".join(_integer(i) for i in range(n_items)) + b"e"
    return b"\x80\x02" + items + b"\x85q\x00c__builtin__\nset\nq\x01(" + b"h\x01h\x00R" * n_times + b"t\x87."


def one_list_in_many_dicts(rng: random.Random) -> bytes:
    n_items, n_times = _many(rng, 60_000), _many(rng, 3000)
    pairs = b"](" + b"".join(_integer(i) + b"N\x86" for i in range(n_items)) + b"e"
    prefix = b"\x80\x02" + pairs + b"\x85q\x00ccollections\nOrderedDict\nq\x01("
    return prefix + b"h\x01h\x00R" * n_times + b"t\x87."


def one_run_remembered(rng: random.Random) -> bytes:
    """A run of bools in a column, stored in the memo as if it were one item."""
    n_bools, n_times = _many(rng, 60_000), _many(rng, 100_000)
    column = b"](" + b"\x88\x89" * (n_bools // 2 + 40) + b"q\x07" + b"h\x07" * n_times + b"e"
    return b"\x80\x02" + _NEW + b"(K\x01" + _integer(n_bools) + b"\x85" + _OBJECTS + b"\x89" + column + b"tb."


def long_runs(rng: random.Random) -> bytes:
    """An honest column of bools, or of a few texts: it must be read, at little cost."""
    n_items = _many(rng, 4_000_000)
    items = rng.choice((b"\x88\x89", b"\x88", b"h\x05h\x06", b"j\x05\x00\x00\x00j\x06\x00\x00\x00"))
    per_repeat = max(1, items.count(b"h"), items.count(b"j"), len(items) if items[0] >= 0x88 else 0)
    n_items -= n_items % per_repeat
    column = b"](" + items * (n_items // per_repeat) + b"e"
    names = b"X\x01\x00\x00\x00aq\x05X\x01\x00\x00\x00bq\x06"
    array = _NEW + b"(K\x01" + _integer(n_items) + b"\x85" + _OBJECTS + b"\x89" + column + b"tb"
    return b"\x80\x02" + names + array + b"\x87."


def no_run_at_all(rng: random.Random) -> bytes:
    """A column in which a run seems to begin again and again."""
    n_items = _many(rng, 200_000)
    column = b"](" + rng.choice((b"\x88N", b"h\x05N")) * n_items + b"e"
    array = _NEW + b"(K\x01" + _integer(2 * n_items) + b"\x85" + _OBJECTS + b"\x89" + column + b"tb"
    return b"\x80\x02X\x01\x00\x00\x00aq\x05" + array + b"\x86."


def one_opcode_often(rng: random.Random) -> bytes:
    """The opcodes that cost most for a byte or two."""
    prefix, piece = rng.choice(
        (
            (b"", b"N"),
            (b"", b"N\x94"),
            (b"", b"]"),
            (b"", b"}"),
            (b"", b"\x8f"),
            (b"", b"\x8f\x94"),
            (b")", b"\x85"),
            (b")", b"\x85\x94"),
            (b"", b"M\x00\x10"),
            (b"", b"G" + bytes(8)),
            (b"", b"U\x01\xff"),
            (b"", b"\x8c\x02\xc3\xa9"),
            (b"cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\x00)q\x01", b"h\x00h\x01\x81"),
            (b"cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\x00)q\x01", b"h\x00h\x01\x81\x94"),
            (_NEW[:-1] + b"q\x01" + b"cnumpy.core.multiarray\n_reconstruct\nq\x00", b"h\x00h\x01R\x94"),
            (
                _TEXTS + b"C\x40" + b"x\x00\x00\x00" * 16 + b"\x86q\x01cnumpy.core.multiarray\nscalar\nq\x00",
                b"h\x00h\x01R",
            ),
        )
    )
    return b"\x80\x04(" + prefix + piece * _many(rng, 1_500_000) + rng.choice((b"t.", b"l.", b"", b"."))


def distinct_keys(rng: random.Random) -> bytes:
    n_items = _many(rng, 200_000)
    return b"\x80\x04}(" + b"".join(_integer(i) + b"N" for i in range(n_items)) + rng.choice((b"u.", b"u\x940"))


def colliding_keys(rng: random.Random) -> bytes:
    """Different keys of one hash: multiples of the prime by which Python takes the hash of a number."""
    n_items, item = _many(rng, 60_000), b"\x8a\x10%b"
    numbers = [((k << rng.randrange(40)) * (2**61 - 1)).to_bytes(16, "little") for k in range(1, n_items + 1)]
    keys = [item % number for number in numbers]
    if rng.random() < 0.5:
        return b"\x80\x04\x8f(" + b"".join(keys) + b"\x90."
    return b"\x80\x04}(" + b"".join(key + b"N" for key in keys) + b"u."


def colliding_tuples(rng: random.Random) -> bytes:
    """Keys that are pairs of numbers, chosen so that all pairs share a hash."""
    p1, p2, p5, bits = 11400714785074694791, 14029467366897019727, 2870177450012600261, 2**64
    p2_inverse, p1_inverse, keys = pow(p2, -1, bits), pow(p1, -1, bits), []
    start = p5
    for first in range(1, 8 * _many(rng, 30_000)):
        mixed = (start + first * p2) % bits
        mixed = (mixed << 31 | mixed >> 33) % bits * p1 % bits
        target = 12345 * p1_inverse % bits
        second = ((target >> 31 | target << 33) % bits - mixed) * p2_inverse % bits
        if second < 2**61 - 1:
            keys.append((first, second))
    assert len({hash(key) for key in keys}) <= 1
    pairs = [b"\x8a\x08%b\x8a\x08%b\x86N" % tuple(n.to_bytes(8, "little") for n in key) for key in keys]
    return b"\x80\x04}(" + b"".join(pairs) + b"u."


def wide_text(rng: random.Random) -> bytes:
    """A text whose one rare character makes all others wide."""
    content = b"x" * _many(rng, 8_000_000) + "\U0001f600".encode()
    if rng.random() < 0.5:
        return b"V" + content[:-4] + b"\\U0001f600\n."
    return b"X" + struct.pack("<I", len(content)) + content + b"."


BOMBS: tuple[Callable[[random.Random], bytes], ...] = (
    one_list_in_many_arrays,
    one_text_in_many_arrays,
    one_text_encoded_often,
    one_list_in_many_sets,
    one_list_in_many_dicts,
    one_run_remembered,
    long_runs,
    no_run_at_all,
    one_opcode_often,
    distinct_keys,
    colliding_keys,
    colliding_tuples,
    wide_text,
)


def bomb(rng: random.Random) -> bytes:
    """Return one bomb of any kind and size."""
    return rng.choice(BOMBS)(rng)
