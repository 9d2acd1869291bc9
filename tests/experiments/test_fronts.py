"""Hypervolume, IGD+ and attainment, against answers on paper and against moocore."""

import moocore
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.report.multiobjective import attainment_surface, igd_plus
from jahs.comparison.steps import hypervolume_over_time
from jahs.errors import InvalidArgument


def test_hypervolume_grows_when_a_point_is_known_and_only_then():
    times = np.array([1.0, 2.0, 3.0, 3.0, 4.0])
    F = np.array([[2.0, 2.0], [3.0, 3.0], [1.0, 3.0], [3.0, 1.0], [0.0, 9.0]])
    volume = hypervolume_over_time(times, F, reference=np.array([4.0, 4.0]))
    assert volume.times.tolist() == [1, 3]
    assert volume.values.tolist() == [4, 6]


def test_a_point_on_the_reference_adds_nothing():
    volume = hypervolume_over_time(np.array([1.0]), np.array([[4.0, 0.0]]), reference=np.array([4.0, 4.0]))
    assert len(volume.times) == 0
    with pytest.raises(InvalidArgument, match="must not decrease"):
        hypervolume_over_time(np.array([2.0, 1.0]), np.ones((2, 2)), reference=np.array([4.0, 4.0]))


points = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=10)


@given(points)
def test_the_last_hypervolume_is_that_of_all_points(rows):
    F, reference = np.array(rows, dtype=float), np.full(3, 5.0)
    volume = hypervolume_over_time(np.arange(float(len(F))), F, reference=reference)
    expected = moocore.hypervolume(F, ref=reference)
    assert (volume.values[-1] if len(volume.values) else 0) == pytest.approx(expected)
    assert (np.diff(volume.values) > 0).all()


def test_igd_plus_on_paper():
    front, ideal, nadir = np.array([[0.0, 10.0], [1.0, 0.0]]), np.array([0.0, 0.0]), np.array([1.0, 10.0])
    assert igd_plus(front, front=front, ideal=ideal, nadir=nadir) == 0
    # From (0, 1) to (0.5, 1): 0.5. From (1, 0) to (0.5, 1): only the second objective is worse, by 1.
    assert igd_plus(np.array([[0.5, 10.0]]), front=front, ideal=ideal, nadir=nadir) == pytest.approx(0.75)
    assert igd_plus(np.empty((0, 2)), front=front, ideal=ideal, nadir=nadir) == np.inf


def test_attainment_on_paper():
    sets = [np.array([[1.0, 3.0], [2.0, 1.0]]), np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]])]
    assert attainment_surface(sets, share=1 / 3).tolist() == [[1, 2], [2, 1], [3, 0]]
    assert attainment_surface(sets, share=2 / 3).tolist() == [[1, 3], [2, 2], [3, 1]]
    assert attainment_surface(sets, share=1.0).tolist() == [[3, 2]]
