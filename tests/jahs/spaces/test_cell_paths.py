import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.spaces.cell import Cell, effective_depth, live_paths
from jahs.spaces.cell.paths import PATH_EDGES, dead_edges

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


@given(cells)
def test_many_cells_have_what_the_paths_of_each_hold(cell):
    convolutions = {"nor_conv_3x3", "nor_conv_1x1"}
    depths = [sum(op in convolutions for op in path.operations) for path in cell.paths if path.is_alive]
    assert live_paths([(0,) * 6, cell.ops])[1].tolist() == [path.is_alive for path in cell.paths]
    on_live = {edge for edges, path in zip(PATH_EDGES, cell.paths, strict=True) if path.is_alive for edge in edges}
    assert {*range(6)} - dead_edges(cell.ops) == on_live
    assert cell.effective_depth == max(depths, default=0) == effective_depth([(2,) * 6, cell.ops])[1]
    assert cell.n_parameter_free == sum(op not in convolutions for op in cell.operations.values())


@pytest.mark.parametrize(
    ("ops", "depth"), [((2,) * 6, 3), ((1,) * 6, 0), ((0,) * 6, 0), ((1, 2, 0, 2, 2, 3), 2), ((2, 1, 1, 2, 1, 1), 0)]
)
def test_the_effective_depth_is_the_longest_live_chain_of_convolutions(ops, depth):
    assert Cell(ops).effective_depth == depth
