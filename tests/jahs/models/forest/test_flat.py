from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.errors import CorruptFile
from jahs.models.forest import Forest, join_forests, open_engine, take_forests
from jahs.models.forest.flat import MAX_DEPTH, left_steps, tree_depths
from tests.jahs.models.forest.examples import random_forest, random_rows


def stump_and_leaf(**changes) -> Forest:
    """One forest of two trees: `x1 < 0.5 ? 1 : (x0 < 3 ? 2 : 4)`, and a single leaf of 8; base score 16."""
    arrays = {
        "n_features": 2,
        "split_feature": np.array([0, 1], np.uint16),
        "split_threshold": np.array([3, 0.5], np.float32),
        "node_split": np.array([1, 2, 0, 2, 2, 2], np.uint16),
        "node_value": np.array([0, 1, 0, 2, 4, 8], np.float32),
        "tree_start": np.array([0, 5, 6]),
        "forest_start": np.array([0, 2]),
        "base_score": np.array([16], np.float32),
    }
    return Forest(**{**arrays, **changes})


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_a_forest_answers_as_written_by_hand(kind):
    X = np.array([[9, 0], [2, 0.5], [3, 0.5], [np.inf, np.inf], [-np.inf, -np.inf]], np.float32)
    assert open_engine(stump_and_leaf(), kind).predict(X).tolist() == [[25], [26], [28], [28], [25]]


def test_the_shape_of_a_tree_follows_from_its_leaves():
    forest = stump_and_leaf()
    assert tree_depths(forest).tolist() == [2, 0]
    assert left_steps(forest).tolist() == [1, 0, 1, 0, 0, 0]
    assert (forest.n_forests, forest.n_trees, forest.n_nodes, forest.n_splits) == (1, 2, 6, 2)


def test_a_forest_survives_pickling():
    forest = pickle.loads(pickle.dumps(stump_and_leaf()))
    assert open_engine(forest, "numpy").predict(np.array([[9, 0]], np.float32)).tolist() == [[25]]


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split_feature": np.array([0, 2], np.uint16)}, "split_feature: 2 with 2 features"),
        ({"split_feature": np.array([1, 0], np.uint16)}, "ascending"),
        ({"split_feature": np.array([1, 1], np.uint16)}, "ascending"),
        ({"split_feature": np.array([0], np.uint16)}, "not equal"),
        ({"split_threshold": np.array([3, np.nan], np.float32)}, "split_threshold: not finite"),
        ({"split_threshold": np.array([3, 0.5])}, "float64"),
        ({"node_split": np.array([1, 2, 0, 2, 3, 2], np.uint16)}, "node_split: 3 with 2 splits"),
        ({"node_split": np.array([1, 2, 0, 2, 0, 2], np.uint16)}, "tree 0"),
        ({"node_split": np.array([2, 1, 0, 2, 2, 2], np.uint16)}, "tree 0"),
        ({"node_split": np.array([1, 2, 0, 2, 2, 0], np.uint16)}, "tree 1"),
        ({"node_split": np.array([1, 2, 2, 0, 2, 2], np.uint16)}, "tree 0"),
        ({"node_value": np.array([0, 1, 0, np.inf, 4, 8], np.float32)}, "node_value: not finite"),
        ({"tree_start": np.array([0, 7, 6])}, "tree_start"),
        ({"tree_start": np.array([0, 0, 6])}, "tree_start"),
        ({"tree_start": np.array([0, HUGE, -HUGE + 5, 6])}, "tree_start"),
        ({"tree_start": np.empty(0, np.int64)}, "tree_start"),
        ({"forest_start": np.array([0, 3])}, "forest_start"),
        ({"forest_start": np.array([0, 1, 2])}, "forest_start: 3 items for 1 base scores"),
        ({"base_score": np.array([np.nan], np.float32)}, "base_score: not finite"),
        ({"base_score": np.array([[16]], np.float32)}, "shape"),
        ({"n_features": 0}, "n_features=0"),
    ],
)
def test_arrays_that_are_no_forest_are_refused(changes, message):
    with pytest.raises(CorruptFile, match=message):
        stump_and_leaf(**changes)


def test_every_fault_is_named_at_once():
    with pytest.raises(CorruptFile) as caught:
        stump_and_leaf(base_score=np.array([np.inf], np.float32), forest_start=np.array([0, 1]))
    assert "base_score" in str(caught.value)
    assert "forest_start" in str(caught.value)


def test_a_tree_that_would_descend_for_ever_is_refused_quickly():
    depth = 100_000
    chain = np.full(2 * depth + 1, 2, np.uint16)
    chain[0] = 0
    chain[1:-2:2] = 0
    changes = {"node_split": chain, "node_value": np.zeros(chain.size, np.float32)}
    changes |= {"tree_start": np.array([0, chain.size]), "forest_start": np.array([0, 1])}
    with pytest.raises(CorruptFile, match=f"deeper than {MAX_DEPTH}"):
        stump_and_leaf(**changes)


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_damaged_arrays_are_refused_or_still_a_forest(seed, data):
    """Whatever passes the check is answered within bounds, alike by both engines."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, trees=(2, 9), max_depth=3)
    arrays = {field.name: getattr(forest, field.name) for field in dataclasses.fields(forest)}
    name = data.draw(st.sampled_from([name for name in arrays if name != "n_features"]))
    damaged = bytearray(arrays[name].tobytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    arrays[name] = np.frombuffer(bytes(damaged), arrays[name].dtype)
    try:
        forest = Forest(**arrays)
    except CorruptFile:
        return
    X = random_rows(rng, 5)
    np.testing.assert_array_equal(open_engine(forest, "numpy").predict(X), open_engine(forest, "compiled").predict(X))


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
