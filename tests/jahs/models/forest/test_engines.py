import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, MissingDependency
from jahs.models.forest import compiled_engine, kernels, open_engine, save_forest
from tests.jahs.models.forest.examples import random_forest, random_rows, spelled_out

KINDS = ["numpy", "compiled", "compiled, linked"]


def opened(forest, kind):
    """An engine of each kind; the compiled one in either of its layouts."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "compiled, linked":
            patch.setattr(compiled_engine, "MAX_HEAP_NODES", 0)
        return open_engine(forest, kind.partition(",")[0])


def trajectory(rng, n_rows):
    """A config with a rising, a falling and two constant columns."""
    X = np.repeat(random_rows(rng, 1), n_rows, axis=0)
    X[:, 1] = np.sort(rng.integers(-1, 7, n_rows))
    X[:, 3] = -np.sort(-rng.normal(3, 2, n_rows))
    return X


def engine_and_rows(kind, n_rows, *, seed, trees):
    rng = np.random.default_rng(seed)
    return opened(random_forest(rng, trees=trees), kind), random_rows(rng, n_rows)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), n_rows=st.integers(0, 40), max_depth=st.integers(0, 6))
def test_answers_are_those_of_the_definition(kind, seed, n_rows, max_depth):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, trees=tuple(rng.integers(0, 20, 3)), max_depth=max_depth)
    X = random_rows(rng, n_rows)
    answers = opened(forest, kind).predict(X)
    assert answers.dtype == np.float32
    np.testing.assert_array_equal(answers, spelled_out(forest, X), strict=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), n_rows=st.integers(0, 60))
def test_a_walk_answers_as_row_by_row(kind, seed, n_rows):
    rng = np.random.default_rng(seed)
    engine = opened(random_forest(rng, max_depth=7, p_inner=0.9), kind)
    X = trajectory(rng, n_rows)
    np.testing.assert_array_equal(engine.predict_walk(X), engine.predict(X), strict=True)
    X = random_rows(rng, n_rows)  # columns that neither rise nor fall
    np.testing.assert_array_equal(
        engine.predict_walk(X, forests=[2, 0]), engine.predict(X, forests=[2, 0]), strict=True
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_in_a_batch_and_in_another_order_has_the_same_answer(kind):
    engine, X = engine_and_rows(kind, 300, seed=1, trees=(40, 17))
    batch = engine.predict(X)
    order = np.random.default_rng(2).permutation(300)
    np.testing.assert_array_equal(batch[order], engine.predict(X[order]))
    np.testing.assert_array_equal(batch, np.concatenate([engine.predict(X[i : i + 1]) for i in range(300)]))
    np.testing.assert_array_equal(batch, engine.predict(np.asfortranarray(X)))
    np.testing.assert_array_equal(batch[::2], engine.predict(X[::2]))


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_not_changed_by_the_next(kind):
    rng = np.random.default_rng(2)
    engine = opened(random_forest(rng), kind)
    X = random_rows(rng, 2)
    first = engine.predict(X[:1])
    before = first.copy()
    engine.predict(X[1:])
    np.testing.assert_array_equal(first, before)


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_forests_answer_in_the_order_asked_for(kind):
    rng = np.random.default_rng(3)
    engine = opened(random_forest(rng, trees=(9, 20, 8)), kind)
    X = random_rows(rng, 7)
    everything = engine.predict(X)
    for forests in ([0], [2, 1], [1, 1], []):
        np.testing.assert_array_equal(engine.predict(X, forests=forests), everything[:, forests], strict=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["predict", "predict_walk"])
def test_rows_with_nan_are_refused(kind, method):
    rng = np.random.default_rng(4)
    answer = getattr(opened(random_forest(rng), kind), method)
    X = random_rows(rng, 3)
    X[1, 2] = np.nan
    for rows in (X, X[1:2]):
        with pytest.raises(InvalidArgument, match=r"X\[[01], 2\] is NaN"):
            answer(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_row_has_the_bits_of_a_row(kind):
    rng = np.random.default_rng(5)
    engine = opened(random_forest(rng, trees=(4, 9, 0)), kind)
    for chosen in (None, (2, 0), [1], ()):
        for row in random_rows(rng, 5):
            expected = engine.predict(np.repeat(row[None], 2, axis=0), forests=chosen)[0]
            assert engine.answer_row(row.tobytes(), forests=chosen) == expected.tolist()
            assert engine.predict(row[None], forests=chosen).tobytes() == expected.tobytes()
    with pytest.raises(InvalidArgument, match="NaN"):
        engine.answer_row(np.full(4, np.nan, np.float32).tobytes())


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_an_engine(kind):
    engine, X = engine_and_rows(kind, 200, seed=5, trees=(30, 30))
    expected = engine.predict(X)
    wrong = []

    def ask(seed):
        order = np.random.default_rng(seed).permutation(200)
        wrong.extend(i for i in order if not np.array_equal(engine.predict(X[i : i + 1])[0], expected[i]))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


SCRIPT = """
import os, sys
from pathlib import Path
import numpy as np
from jahs.models.forest import open_engine, parse_forest
path = Path(sys.argv[1])
engine = open_engine(parse_forest(path, path.read_bytes()), sys.argv[2])
X = np.load(sys.argv[3])
engine.predict(X[:1])
if (child := os.fork()) == 0:
    np.save(sys.argv[4], np.concatenate([engine.predict(X), engine.predict_walk(X), engine.predict(X[:1])]))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
engine.predict(X)
assert not {"xgboost", "pandas", "sklearn", "torch"} & set(sys.modules)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_another_process_and_its_fork_give_the_same_answers(kind, tmp_path):
    rng = np.random.default_rng(6)
    forest = random_forest(rng, trees=(30, 9))
    X = random_rows(rng, 50)
    save_forest(forest, tmp_path / "forest.npz")
    np.save(tmp_path / "X.npy", X)
    arguments = [tmp_path / "forest.npz", kind, tmp_path / "X.npy", tmp_path / "answers.npy"]
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, *arguments], check=True)
    answers = open_engine(forest, kind).predict(X)
    np.testing.assert_array_equal(np.load(tmp_path / "answers.npy"), np.concatenate([answers, answers, answers[:1]]))


@pytest.mark.parametrize("kind", ["compiled", "compiled, linked"])
def test_the_kernels_say_the_same_as_plain_python(kind):
    rng = np.random.default_rng(7)
    forest = random_forest(rng, trees=(9, 2), max_depth=4)
    engine = opened(forest, kind)
    X = trajectory(rng, 20)
    arrays = (engine._feature_first, forest.split_threshold, forest.forest_start, engine._root, engine._steps)
    arrays += (int(engine._linked), engine._nodes.ravel(), engine._values, forest.base_score)
    head = (X.ravel(), *X.shape, np.array([0, 1]), 2, *arrays)
    rows, columns = np.empty(40, np.float32), np.empty(40, np.float32)
    n_marks = forest.n_splits + 1
    assert kernels.answer_rows(*head, np.empty(kernels.BLOCK * n_marks, np.uint8), rows) == 0
    scratch = (
        np.empty(n_marks, np.int64),
        np.empty(n_marks, np.int64),
        np.empty(8 * (kernels.LANES * 20 + 1), np.int64),
    )
    assert kernels.answer_walk(*head, *scratch, columns) == 0
    np.testing.assert_array_equal(engine.predict(X), rows.reshape(20, 2))
    np.testing.assert_array_equal(engine.predict_walk(X), columns.reshape(2, 20).T)


def test_a_long_batch_is_answered_in_parts(monkeypatch):
    rng = np.random.default_rng(8)
    engine = open_engine(random_forest(rng), "numpy")
    X = random_rows(rng, 100)
    whole = engine.predict(X)
    monkeypatch.setattr("jahs.models.forest.numpy_engine.CHUNK", 50)
    np.testing.assert_array_equal(engine.predict(X), whole)


def test_a_forest_with_too_many_splits_is_left_to_numpy():
    rng = np.random.default_rng(9)
    forest = random_forest(rng, n_features=2, n_values=2**15)
    with pytest.raises(MissingDependency, match="65536 distinct splits"):
        open_engine(forest, "compiled")
    engine = open_engine(forest)
    assert engine.name == "numpy"
    X = random_rows(rng, 5, n_features=2, n_values=2**15)
    np.testing.assert_array_equal(engine.predict(X), spelled_out(forest, X))
