import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.spaces.cell import PATH_FEATURES, PATHS, Cell, all_ops, effective_depth, path_features

cells = st.lists(st.integers(0, 4), min_size=6, max_size=6).map(lambda ops: Cell(tuple(ops)))
CELL = Cell((4, 1, 2, 0, 2, 1))


def test_a_cell_has_four_paths():
    assert [(path.nodes, path.is_alive) for path in CELL.paths] == [
        ((1, 2, 3, 4), False),
        ((1, 2, 4), True),
        ((1, 3, 4), False),
        ((1, 4), True),
    ]
    assert CELL.paths[0].operations == ("avg_pool_3x3", "skip_connect", "none")
    assert CELL.paths[1].operations == ("avg_pool_3x3", "nor_conv_3x3")


def test_features_of_one_cell():
    features = dict(zip(PATH_FEATURES, path_features([CELL.ops])[0].tolist(), strict=True))
    present = {name: value for name, value in features.items() if value}
    assert present == {
        "path_124_is_alive": 1,
        "path_124_n_conv3x3": 1,
        "path_124_n_pool": 1,
        "path_14_is_alive": 1,
        "path_14_n_conv3x3": 1,
        "effective_depth": 1,
        "n_parameter_free": 4,
    }


@given(cells)
def test_features_count_what_the_paths_hold(cell):
    names = {
        "n_conv3x3": "nor_conv_3x3",
        "n_conv1x1": "nor_conv_1x1",
        "n_pool": "avg_pool_3x3",
        "n_identity": "skip_connect",
    }
    expected, depths = [], [0]
    for path in cell.paths:
        counts = [path.operations.count(name) * path.is_alive for name in names.values()]
        expected += [path.is_alive, *counts]
        depths.append(counts[0] + counts[1])
    n_convolutions = sum(op in (2, 3) for op in cell.ops)
    assert path_features([cell.ops])[0].tolist() == [*expected, max(depths), 6 - n_convolutions]
    assert cell.effective_depth == max(depths) == effective_depth([cell.ops])[0]
    assert cell.n_parameter_free == 6 - n_convolutions


@pytest.mark.parametrize(
    ("ops", "depth"), [((2,) * 6, 3), ((1,) * 6, 0), ((0,) * 6, 0), ((1, 2, 0, 2, 2, 3), 2), ((2, 1, 1, 2, 1, 1), 0)]
)
def test_the_effective_depth_is_the_longest_live_chain_of_convolutions(ops, depth):
    assert Cell(ops).effective_depth == depth


def test_features_have_a_name_each_and_differ_between_most_cells():
    features = path_features(all_ops())
    assert features.shape == (15625, len(PATH_FEATURES))
    assert len(PATH_FEATURES) == len(PATHS) * 5 + 2
    assert len(set(PATH_FEATURES)) == len(PATH_FEATURES)
    assert (features.max(axis=0) > features.min(axis=0)).all()


def test_features_of_many_cells_take_no_time():
    ops = np.random.default_rng(0).integers(0, 5, (100_000, 6), dtype=np.int8)
    path_features(ops[:1])
    start = time.process_time()
    path_features(ops)
    assert time.process_time() - start < 0.2
