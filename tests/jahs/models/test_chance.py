"""Numbers by their place: the reference's words, the same for integers and arrays, and normal as they should be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jahs.models.noise.chance import (
    PIECES,
    normal_list,
    normal_table,
    normals,
    quantile,
    run_key,
    run_keys,
    word,
    words,
)

WORDS = st.integers(0, 2**64 - 1)


def test_words_are_those_of_the_published_generator() -> None:
    # The first outputs of SplitMix64 with the state 1234567, as its authors' code prints them.
    assert [word(1234567, i) for i in range(1, 4)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(key=WORDS, counter=WORDS, salt=WORDS, seed=st.integers(-(2**63), 2**63 - 1))
def test_integers_and_arrays_give_the_same_words(key: int, counter: int, salt: int, seed: int) -> None:
    keys, counters = np.array([key], dtype=np.uint64), np.array([counter], dtype=np.uint64)
    assert words(keys, counters).tolist() == words(keys, counter).tolist() == [word(key, counter)]
    seeds = np.array([seed]).view(np.uint64)
    assert run_keys(salt, keys, seeds).tolist() == [run_key(salt, key, seed)]


def test_the_table_is_normal() -> None:
    table = normal_table()
    assert np.array_equal(table, -table[::-1])
    assert (np.diff(table) > 0).all()
    assert abs(table.var() - 1) < 1e-3
    assert abs((table**4).mean() - 3) < 0.02
    assert abs(table[int(0.95 * 2**16)] - quantile(0.95)) < 1e-4
    assert normal_list() == table.tolist()
    assert not table.flags.writeable


def test_the_pieces_of_words_are_normal_and_independent() -> None:
    of_words = words(np.arange(40_000, dtype=np.uint64), 1)
    g = np.stack([normals(of_words, piece) for piece in range(PIECES)])
    assert np.abs(g.mean(axis=1)).max() < 0.02
    assert np.abs(g.std(axis=1) - 1).max() < 0.015
    assert np.abs(np.corrcoef(g) - np.eye(PIECES)).max() < 0.02
    assert np.abs([np.corrcoef(row[1:], row[:-1])[0, 1] for row in g]).max() < 0.02
