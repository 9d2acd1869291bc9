"""Dominance and hypervolume: by definition, by the laws they obey, and against moocore."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jahs.errors import InvalidArgument
from jahs.tasks.pareto import hypervolume, is_non_dominated, pareto_front

N_OBJECTIVES = st.integers(2, 3)
CLOSE = 1e-12  # of the whole: sums are exact, products are rounded


@st.composite
def clouds(draw: st.DrawFn, n_objectives: st.SearchStrategy[int] = N_OBJECTIVES) -> np.ndarray:
    """A few points on a coarse grid, so that equal coordinates and equal points are common, or anywhere in [0, 1]."""
    shape = (draw(st.integers(0, 12)), draw(n_objectives))
    grid = st.integers(0, 8).map(lambda k: k / 8)
    return draw(arrays(np.float64, shape, elements=draw(st.sampled_from([grid, st.floats(0, 1)]))))


def dominates(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a <= b).all() and (a < b).any())


def counted_volume(F: np.ndarray, corner: np.ndarray) -> float:
    """The volume as a sum over the cells of the grid that the points' coordinates make."""
    edges = [np.unique(np.append(column[column < end], end)) for column, end in zip(F.T, corner, strict=True)]
    total = 0.0
    for cell in product(*(pairwise(axis) for axis in edges)):
        low = np.array([start for start, _ in cell])
        if (low >= F).all(axis=1).any():
            total += float(np.prod([end - start for start, end in cell]))
    return total


@given(clouds(st.integers(1, 5)))
def test_a_point_is_kept_if_and_only_if_none_dominates_it(F: np.ndarray) -> None:
    assert is_non_dominated(F).tolist() == [not any(dominates(a, b) for a in F) for b in F]


@given(clouds(st.integers(1, 5)))
def test_a_front_is_its_own_front_sorted_and_without_repetition(F: np.ndarray) -> None:
    front = pareto_front(F)
    assert is_non_dominated(front).all()
    assert np.array_equal(pareto_front(front), front)
    assert sorted(set(map(tuple, front.tolist()))) == list(map(tuple, front.tolist()))
    assert set(map(tuple, front.tolist())) == set(map(tuple, F[is_non_dominated(F)].tolist()))


@given(clouds())
def test_the_volume_is_that_of_the_boxes_counted_one_by_one(F: np.ndarray) -> None:
    corner = np.full(F.shape[1], 0.9)
    assert hypervolume(F, corner) == pytest.approx(counted_volume(F, corner), rel=CLOSE, abs=CLOSE)


@given(clouds(), st.randoms())
def test_the_order_of_the_points_does_not_matter(F: np.ndarray, random: object) -> None:
    shuffled = F[np.random.default_rng(random.randrange(2**32)).permutation(len(F))]
    corner = np.ones(F.shape[1])
    assert hypervolume(shuffled, corner) == hypervolume(F, corner)
    assert np.array_equal(pareto_front(shuffled), pareto_front(F))


@given(clouds(), st.data())
def test_the_volume_scales_with_each_objective_and_moves_with_the_points(F: np.ndarray, data: st.DataObject) -> None:
    scale = 2.0 ** np.array(data.draw(st.lists(st.integers(-9, 9), min_size=F.shape[1], max_size=F.shape[1])))
    corner = np.ones(F.shape[1])
    assert hypervolume(F * scale, corner * scale) == hypervolume(F, corner) * scale.prod()  # powers of two: exact
    assert hypervolume(F + 3, corner + 3) == pytest.approx(hypervolume(F, corner), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_objectives", [2, 3, 4])
def test_moocore_agrees_on_thousands_of_points(n_objectives: int) -> None:
    moocore = pytest.importorskip("moocore")
    rng = np.random.default_rng(n_objectives)
    cloud = rng.random((3000, n_objectives))
    sphere = 1 - cloud / np.linalg.norm(cloud, axis=1, keepdims=True)  # nobody dominates anybody
    for F in (cloud, sphere, np.round(cloud, 1)):
        assert np.array_equal(is_non_dominated(F), moocore.is_nondominated(F, keep_weakly=True))
        if n_objectives < 4:
            corner = np.full(n_objectives, 0.95)
            assert hypervolume(F, corner) == pytest.approx(moocore.hypervolume(F, ref=corner), rel=1e-11)


def test_a_point_on_the_edge_of_the_reference_box_or_outside_adds_nothing() -> None:
    assert hypervolume([[1, 1]], [2, 2]) == 1
    assert hypervolume([[1, 1], [2, 0], [-9, 3], [np.inf, 0]], [2, 2]) == 1
    assert hypervolume([[2, 0], [3, 3]], [2, 2]) == 0


def test_no_points_dominate_nothing() -> None:
    assert hypervolume([], [1, 1, 1]) == 0
    assert hypervolume(np.empty((0, 2)), [1, 1]) == 0
    assert is_non_dominated([]).tolist() == []
    assert pareto_front(np.empty((0, 3))).shape == (0, 3)
    assert pareto_front([]).shape == (0, 0)


def test_of_equal_points_all_are_kept_and_a_front_has_one() -> None:
    F = [[0, 1], [1, 0], [0, 1]]
    assert is_non_dominated(F).tolist() == [True, True, True]
    assert pareto_front(F).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("F", "said"),
    [
        ([[1, np.nan], [-np.inf, 0], [np.nan, 1]], r"(?s)NaN in 2 of 3 rows \(first: \[0, 2\]\).*-inf in 1 of 3 rows"),
        ([1, 2], r"F has shape \(2,\); it must be \(n_points, n_objectives\)"),
        ([[1, 2, 3]], "with 2 objectives"),
        ([["a", "b"]], "not numbers"),
        ([[True, False]], "holds bool, not numbers"),
        ([[1, 2], [3]], "F: "),
        (np.empty((3, 0)), r"shape \(3, 0\)"),
    ],
    ids=["nan", "flat", "three", "text", "bool", "ragged", "no-objectives"],
)
def test_what_is_no_matrix_of_points_is_refused(F: object, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        hypervolume(F, [1, 1])


@pytest.mark.parametrize("corner", [[1], [1, 1, 1, 1], [1, np.inf], [np.nan, 1], 3.0, [[1, 1]]], ids=repr)
def test_a_reference_point_is_two_or_three_finite_numbers(corner: object) -> None:
    with pytest.raises(InvalidArgument, match=r"reference_point=.* is not 2 or 3 finite numbers"):
        hypervolume([[0, 0]], corner)
