"""Features: the same bits alone and in a batch, right values, and equal for cells that compute the same."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jahs
from jahs.errors import InvalidArgument, UnknownName
from jahs.models.cost import n_macs, n_params
from jahs.models.features import (
    FEATURE_SETS,
    FEATURES_VERSION,
    GROUPS,
    FeatureBuilder,
    FeatureSet,
    RowBuilder,
    feature_set,
    joint_columns,
)
from jahs.models.features.cells import CELL_FEATURES, NO_PATH, cell_features
from jahs.models.features.formulas import FORMULAS
from jahs.models.features.sets import VARYING
from jahs.spaces.cell import canonical_keys
from jahs.tasks.definitions import TASKS

TASK = replace(TASKS["fashion_mnist_mini"], max_epoch=30)
BUILDERS = {name: FeatureBuilder(features, TASK) for name, features in FEATURE_SETS.items()}
OPS = slice(3, 9)
GOLDEN = {
    "published": "0c35d4961abeaa0b",
    "accuracy": "518e7d32cf2890f1",
    "latency": "33dfd8f856fce1b4",
    "epoch_time": "14f6259e63adb406",
}

every_set = pytest.mark.parametrize("name", FEATURE_SETS)


def encoded(n: int, *, seed: int = 0) -> np.ndarray:
    epochs = np.random.default_rng(seed).integers(1, TASK.max_epoch + 1, n)
    return jahs.encode(jahs.space().sample_columns(n, seed=seed), epochs)


def column(name: str, X: np.ndarray, *, of: str = "accuracy") -> np.ndarray:
    return BUILDERS[of].build(X)[:, FEATURE_SETS[of].columns.index(name)]


@every_set
def test_a_row_has_the_same_bits_alone_and_in_a_batch(name: str) -> None:
    X = encoded(300)
    F = BUILDERS[name].build(X)
    assert F.dtype == np.float32
    assert F.shape == (300, len(FEATURE_SETS[name].columns))
    assert np.isfinite(F).all()
    assert F.tobytes() == b"".join(BUILDERS[name].build(row[None]).tobytes() for row in X)
    assert F[7:9].tobytes() == BUILDERS[name].build(X[7:9]).tobytes()


@every_set
def test_the_values_are_those_of_this_version(name: str) -> None:
    """A release holds thresholds for these very bits: whoever changes a column's raises FEATURES_VERSION."""
    columns = jahs.space().sample_columns(2000, seed=5)
    F = BUILDERS[name].build(jahs.encode(columns, np.arange(2000) % TASK.max_epoch + 1))
    assert FEATURES_VERSION == 3
    assert sha256(F.astype("<f4").tobytes()).hexdigest()[:16] == GOLDEN[name]


def test_the_published_set_is_the_one_hot_encoding_in_its_order() -> None:
    columns = FEATURE_SETS["published"].columns
    assert len(columns) == 41
    assert columns[:4] == ("Activation_Hardswish", "Activation_Mish", "Activation_ReLU", "Op1_0")
    assert columns[32:] == (
        "Op6_4", "Optimizer_SGD", "TrivialAugment_True", "LearningRate", "N", "Resolution", "W", "WeightDecay", "epoch"
    )  # fmt: skip
    config = {**jahs.space().default(), "Activation": "Mish", "Op1": 3, "TrivialAugment": True, "LearningRate": 0.5}
    row = dict(zip(columns, BUILDERS["published"].build(jahs.encode([config], 7))[0].tolist(), strict=True))
    ones = {key for key, value in row.items() if value == 1 and re.match("Activation|Op|Trivial", key)}
    assert ones == {
        "Activation_Mish", "Op1_3", "Op2_0", "Op3_0", "Op4_0", "Op5_0", "Op6_0", "Optimizer_SGD", "TrivialAugment_True"
    }  # fmt: skip
    assert (row["LearningRate"], row["epoch"], row["W"]) == (0.5, 7, 4)


def test_costs_are_those_of_the_cost_module() -> None:
    X = encoded(500)
    for of in ("latency", "epoch_time"):
        assert (column("n_params", X, of=of) == n_params(X, TASK).astype(np.float32)).all()
        assert (column("n_macs", X, of=of) == n_macs(X, TASK).astype(np.float32)).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_cells_that_compute_the_same_have_equal_features(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ops = rng.integers(0, 5, (400, 6))
    ops[rng.random((400, 6)) < 0.4] = 1
    X = np.repeat(encoded(1, seed=seed), 400, axis=0)
    X[:, OPS] = ops
    F, keys = BUILDERS["accuracy"].build(X), canonical_keys(ops)
    order = np.argsort(keys, kind="stable")
    is_same = np.diff(keys[order]) == 0
    assert is_same.any()
    assert (F[order][1:][is_same] == F[order][:-1][is_same]).all()


def test_the_cell_as_it_is_tells_cells_of_one_class_apart() -> None:
    X = np.repeat(encoded(1), 2, axis=0)
    X[:, OPS] = [[2, 1, 1, 1, 1, 2], [0, 1, 1, 1, 1, 2]]
    assert (BUILDERS["accuracy"].build(X)[0] == BUILDERS["accuracy"].build(X)[1]).all()
    for name in ("latency", "epoch_time", "published"):
        assert (BUILDERS[name].build(X)[0] != BUILDERS[name].build(X)[1]).any()


def test_several_sets_built_side_by_side_have_the_columns_of_each() -> None:
    sets = [FEATURE_SETS[name] for name in ("accuracy", "latency", "epoch_time")]
    sets.append(replace(sets[0], name="accuracy as it is", is_canonical=False))
    columns, places = joint_columns(sets)
    assert len(columns) == len(set(columns)) < sum(len(one.columns) for one in sets)
    rows, X = RowBuilder(columns, TASK), encoded(200, seed=8)
    F = rows.build(X)
    for one, place in zip(sets, places, strict=True):
        assert F[:, place].tobytes() == FeatureBuilder(one, TASK).build(X).tobytes()
    codes = X[7, :-1].astype(float).tolist()
    there = rows.place(codes)
    assert rows.pack(codes, int(X[7, -1]), there) == F[7].tobytes()
    assert (rows.costs_many(X) == np.column_stack([n_params(X, TASK), n_macs(X, TASK)])).all()
    assert rows.costs(there) == (n_params(X, TASK)[7], n_macs(X, TASK)[7])
    epochs = np.array([1, 2, 9, 30])
    walk = [np.frombuffer(rows.pack(codes, epoch, there), np.float32) for epoch in epochs.tolist()]
    assert rows.build_walk(codes, epochs, there).tobytes() == np.array(walk).tobytes()


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n_columns=st.integers(1, len(FEATURE_SETS["accuracy"].columns)))
def test_columns_may_stand_in_any_order(seed: int, n_columns: int) -> None:
    features = FEATURE_SETS["accuracy"]
    order = np.random.default_rng(seed).permutation(len(features.columns))[:n_columns]
    mixed = FeatureSet(name="mixed", columns=tuple(features.columns[i] for i in order), is_canonical=True)
    builder, X = FeatureBuilder(mixed, TASK), encoded(20, seed=seed)
    F = builder.build(X)
    assert F.tobytes() == np.ascontiguousarray(BUILDERS["accuracy"].build(X)[:, order]).tobytes()
    assert F.tobytes() == b"".join(builder.build(row[None]).tobytes() for row in X)


@every_set
def test_only_the_varying_columns_change_with_the_epoch_and_in_one_direction(name: str) -> None:
    features = FEATURE_SETS[name]
    X = np.repeat(encoded(1, seed=3), TASK.max_epoch, axis=0)
    X[:, -1] = np.arange(1, TASK.max_epoch + 1)
    F = BUILDERS[name].build(X)
    varying = [i for i, name in enumerate(features.columns) if name in VARYING]
    assert varying == [i for i in range(F.shape[1]) if np.ptp(F[:, i]) > 0]
    steps = np.diff(F[:, varying], axis=0)
    assert ((steps > 0).all(axis=0) | (steps < 0).all(axis=0)).all()


def test_what_costs_time_does_not_see_the_epoch_or_the_rates() -> None:
    assert not {*FEATURE_SETS["latency"].columns, *FEATURE_SETS["epoch_time"].columns} & VARYING
    for name in ("latency", "epoch_time"):
        assert not {"LearningRate", "WeightDecay", "epoch"} & set(FEATURE_SETS[name].columns)


def test_the_schedule_is_that_of_the_training() -> None:
    X = np.repeat(encoded(1, seed=5), 3, axis=0)
    X[:, -1] = [1, 16, 30]
    rate = X[0, 1]
    assert column("rate_now", X)[:2] == pytest.approx([rate, rate / 2])  # epoch e trains with cos(pi (e - 1) / 30)
    spent = column("rate_spent", X)
    assert spent[2] == rate
    assert column("rate_left", X) == pytest.approx(rate - spent)
    assert column("decay_spent", X) == pytest.approx(spent * X[0, 13])


def test_cells_have_the_features_that_their_drawing_shows() -> None:
    ops = [2, 4, 0, 1, 3, 0]  # 1-2 conv3x3, 1-3 pool, 1-4 identity, 2-3 zero, 2-4 conv1x1, 3-4 identity
    number = int("".join(map(str, ops)), 5)
    row = {name: values[number] for name, values in cell_features(canonical=False).items()}
    expected = {
        "n_live_paths": 3, "n_live_conv3x3": 1, "widest_view": 1, "effective_depth": 2, "n_conv_free_paths": 2,
        "n_identity_paths": 1, "fewest_pools": 0, "Op1_strength": 4, "Op4_strength": 0,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    dead = {name: values[int("111111", 5)] for name, values in cell_features(canonical=False).items()}
    assert (dead["n_live_paths"], dead["fewest_pools"]) == (0, NO_PATH)


def test_every_column_of_the_table_of_cells_is_in_a_group_and_every_group_is_known() -> None:
    listed = [name for names in CELL_FEATURES.values() for name in names]
    assert set(cell_features(canonical=True)) == set(listed)
    assert sum(len(names) for names in GROUPS.values()) == len({name for names in GROUPS.values() for name in names})


def test_every_formula_gives_columns_of_groups_alone() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert set(FORMULAS) <= set(grouped)
    assert not set(FORMULAS) & {name for names in CELL_FEATURES.values() for name in names}


def test_unknown_names_list_those_that_exist() -> None:
    with pytest.raises(UnknownName, match="did you mean 'accuracy'"):
        feature_set("acuracy")
    with pytest.raises(UnknownName, match="feature='lr' does not exist"):
        FeatureSet(name="mine", columns=("N", "lr"), is_canonical=False)
    with pytest.raises(InvalidArgument, match="each once"):
        FeatureSet(name="mine", columns=("N", "N"), is_canonical=False)
