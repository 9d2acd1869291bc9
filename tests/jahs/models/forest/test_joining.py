"""A joint forest answers what its parts answer, bit for bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.models.forest import join_forests, open_engine, take_forests
from tests.jahs.models.forest.examples import random_forest, random_rows


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_numpy_answers_are_those_of_the_parts(seed):
    rng = np.random.default_rng(seed)
    forests = [random_forest(rng, n_features=4), random_forest(rng, n_features=2, trees=(0, 5), n_values=3)]
    places = [rng.permutation(6)[: forest.n_features].tolist() for forest in forests]  # columns may be shared
    X = random_rows(rng, 50, n_features=6)
    joint = join_forests(forests, places, n_features=6)
    parts = [
        open_engine(forest, "numpy").predict(np.ascontiguousarray(X[:, place]))
        for forest, place in zip(forests, places, strict=True)
    ]
    assert open_engine(joint, "numpy").predict(X).tobytes() == np.column_stack(parts).tobytes()


def test_a_split_that_two_forests_share_stands_once():
    forest = random_forest(np.random.default_rng(0))
    joint = join_forests([forest, forest], [range(4), range(4)], n_features=4)
    assert joint.n_splits == forest.n_splits
    assert joint.n_trees == 2 * forest.n_trees


def test_many_splits_take_wider_nodes():
    forests = [random_forest(np.random.default_rng(i), n_features=30, n_values=1200, trees=(3,)) for i in range(2)]
    joint = join_forests(forests, [range(30), range(30, 60)], n_features=60)
    assert joint.node_split.dtype == np.uint32
    X = random_rows(np.random.default_rng(2), 9, n_features=60, n_values=1200)
    expected = [open_engine(f, "numpy").predict(X[:, 30 * i : 30 * i + 30].copy()) for i, f in enumerate(forests)]
    assert np.array_equal(open_engine(joint, "numpy").predict(X), np.column_stack(expected))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_taken_forests_answer_as_they_did(seed, data):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_features=4, trees=(3, 0, 8, 2))
    chosen = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    X = random_rows(rng, 50, n_features=4)
    taken = take_forests(forest, chosen)
    expected = open_engine(forest, "numpy").predict(X)[:, chosen]
    assert open_engine(taken, "numpy").predict(X).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert taken.n_splits == len(np.unique(taken.node_split[taken.node_split < taken.n_splits]))
