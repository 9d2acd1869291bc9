"""Encodings of the cell: each reaches the cells it can describe, and a search on a hill climbs it."""

import numpy as np
import pytest

from experiments.science.encodings import ENCODINGS, SEARCHES
from jahs.spaces.cell import N_CELLS, all_ops

HILL = -(all_ops() != np.array([2, 2, 2, 3, 2, 2])).sum(axis=1).astype(float)


def test_strings_and_operations_name_every_cell_once():
    for name in ("adjacency", "string"):
        of = ENCODINGS[name]
        sizes = list(of.choices.values())
        points = np.stack(np.unravel_index(np.arange(N_CELLS), sizes), axis=1).tolist()
        numbers = [of.decode(dict(zip(of.choices, point, strict=True))) for point in points[::7]]
        assert np.prod(sizes) == N_CELLS
        assert len(set(numbers)) == len(numbers)


def test_heaviest_edges_are_kept():
    point = {f"weight{edge}": edge / 6 for edge in range(6)} | {f"op{edge}": 1 for edge in range(6)} | {"n_edges": 2}
    number = ENCODINGS["continuous"].decode(point)
    assert all_ops()[number].tolist() == [1, 1, 1, 1, 2, 2]


def test_dead_paths_give_a_dead_cell():
    number = ENCODINGS["path"].decode({f"path{i}": 0 for i in range(4)})
    ops = all_ops()[number]
    assert ops[2] == 1  # the edge from input to output
    assert 1 in (ops[0], ops[4])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_local_search_climbs_and_repeats(encoding):
    one, two = (SEARCHES["local search"](HILL, ENCODINGS[encoding], 300, 0) for _ in range(2))
    assert one == two
    assert len(one) == 300
    assert HILL[one].max() >= -1
    assert HILL[one[:5]].max() < HILL[one].max()


@pytest.mark.parametrize("encoding", ["adjacency", "continuous"])
@pytest.mark.parametrize(("search", "needs"), [("TPE", "optuna"), ("SMAC", "smac")])
def test_a_search_that_fits_models_climbs_and_repeats(encoding, search, needs):
    pytest.importorskip(needs)
    one, two = (SEARCHES[search](HILL, ENCODINGS[encoding], 30, 0) for _ in range(2))
    assert one == two
    assert len(one) == 30
    assert HILL[one[10:]].mean() > HILL[one[:10]].mean()  # the first ten are random
