"""The float32 matrix, its way back, and configs as columns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jahs
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity
from jahs.schema import COLUMNS, CONFIG_KEYS, OPS
from jahs.spaces.columns import COLUMN_DTYPES, rows
from jahs.spaces.encoding import MAX_EPOCH
from jahs.spaces.parameters import PARAMETERS
from tests import hostile

SPACE = jahs.space()
DEFAULT = SPACE.default()
FLOATS = ("LearningRate", "WeightDecay")
seeds = st.integers(0, 2**64 - 1)
epochs = st.integers(1, MAX_EPOCH)


def rounded(config):
    return {**config, **{key: float(np.float32(config[key])) for key in FLOATS}}


def cells(name):
    if name == "epoch":
        return epochs.map(float)
    p = PARAMETERS[name]
    return (
        st.floats(float(np.float32(p.lower)), float(np.float32(p.upper)), width=32)
        if p.kind == "float"
        else st.sampled_from(p.codes)
    )


matrices = st.lists(st.tuples(*map(cells, COLUMNS)), max_size=8).map(
    lambda rows: np.array(rows, dtype=np.float32).reshape(len(rows), len(COLUMNS))
)


def test_the_codes_are_the_published_ones():
    config = {
        "Activation": "Mish",
        "LearningRate": 0.5,
        "N": 5,
        **dict(zip(OPS, (4, 1, 2, 0, 2, 1), strict=True)),
        "Optimizer": "SGD",
        "Resolution": 0.25,
        "TrivialAugment": True,
        "W": 16,
        "WeightDecay": 0.0078125,
    }
    X = jahs.encode([config], 13)
    assert X.dtype == np.float32
    assert X.tolist() == [[2, 0.5, 5, 4, 1, 2, 0, 2, 1, 0, 0.25, 1, 16, 0.0078125, 13]]
    assert COLUMNS[-1] == "epoch"
    codes = {name: dict(zip(p.choices, p.codes, strict=True)) for name, p in PARAMETERS.items()}
    assert codes["Activation"] == {"ReLU": 0, "Hardswish": 1, "Mish": 2}
    assert codes["TrivialAugment"] == {False: 0, True: 1}
    assert codes["Optimizer"] == {"SGD": 0}
    assert all(codes[name] == {choice: choice for choice in codes[name]} for name in (*OPS, "N", "W", "Resolution"))


@given(matrices)
def test_a_matrix_comes_back_bit_for_bit(X):
    configs, epochs = jahs.decode(X)
    again = jahs.encode(configs, epochs)
    assert again.tobytes() == X.tobytes()
    assert again.shape == X.shape
    columns, epochs = jahs.decode_columns(X)
    assert jahs.encode(columns, epochs).tobytes() == X.tobytes()
    assert jahs.validate_many(configs) == configs


@given(seeds, st.lists(epochs, max_size=5))
def test_configs_come_back_but_for_float32(seed, epochs):
    configs = SPACE.sample(len(epochs), seed=seed)
    back, epochs_back = jahs.decode(jahs.encode(configs, epochs))
    assert back == [rounded(config) for config in configs]
    assert epochs_back.tolist() == epochs
    assert [[type(value) for value in one.values()] for one in back] == [
        [type(p.default) for p in PARAMETERS.values()] for _ in back
    ]


@pytest.mark.parametrize("key", FLOATS)
def test_the_ends_of_a_range_come_back(key):
    p = PARAMETERS[key]
    configs = [
        {**DEFAULT, key: value} for value in (p.lower, np.nextafter(p.lower, 1), np.nextafter(p.upper, 0), p.upper)
    ]
    back, _ = jahs.decode(jahs.encode(configs, 1))
    assert back == [rounded(config) for config in configs]
    for value in (np.nextafter(np.float32(p.lower), np.float32(0)), np.nextafter(np.float32(p.upper), np.float32(9))):
        X = jahs.encode([DEFAULT], 1)
        X[0, CONFIG_KEYS.index(key)] = value
        with pytest.raises(InvalidConfig, match=f"{key}=.* is not in"):
            jahs.decode(X)


@given(seeds, epochs)
def test_one_many_and_columns_agree(seed, epoch):
    columns = SPACE.sample_columns(5, seed=seed)
    configs = rows(columns)
    X = jahs.encode(configs, epoch)
    assert X.tobytes() == jahs.encode(columns, np.full(5, epoch)).tobytes()
    assert X.tobytes() == b"".join(jahs.encode([config], np.int64(epoch)).tobytes() for config in configs)
    assert jahs.encode(iter(configs), epoch).tobytes() == X.tobytes()


def test_nothing_is_mutated():
    columns = SPACE.sample_columns(5, seed=0)
    before = {key: column.copy() for key, column in columns.items()}
    X = jahs.encode(columns, 3)
    kept = X.copy()
    jahs.decode(X)
    jahs.validate_columns(columns)
    jahs.config_ids(columns)
    assert all((columns[key] == before[key]).all() for key in CONFIG_KEYS)
    assert (kept == X).all()


def test_an_empty_batch_has_no_rows():
    assert jahs.encode([], 1).shape == (0, 15)
    assert jahs.encode([], []).shape == (0, 15)
    assert jahs.encode(SPACE.sample_columns(0, seed=0), 1).shape == (0, 15)
    configs, epochs = jahs.decode(np.empty((0, 15), np.float32))
    assert configs == []
    assert epochs.shape == (0,)


@pytest.mark.parametrize("epoch", [0, -1, MAX_EPOCH + 1, 1.0, 1.5, math.nan, "5", True, None, np.float32(3), 10**400])
def test_an_epoch_is_a_count(epoch):
    with pytest.raises(InvalidFidelity, match=r"epoch=.* is not an integer in 1\.\.16777216"):
        jahs.encode([DEFAULT], epoch)
    with pytest.raises(InvalidFidelity, match=r"epoch=.* is not an integer in 1\.\.16777216"):
        jahs.encode([DEFAULT, DEFAULT], [1, epoch])


@pytest.mark.parametrize(
    "epoch", [np.array([1, 0]), np.array([1.0, 2.0]), np.array([True, True]), [1], np.arange(1, 4), ["1", 2], "12"]
)
def test_epochs_are_one_count_for_each_config(epoch):
    with pytest.raises(InvalidFidelity, match="epoch"):
        jahs.encode([DEFAULT, DEFAULT], epoch)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("Activation", 3, r"Activation=3.0 is not a code: 0 is ReLU, 1 is Hardswish, 2 is Mish \(row 1\)"),
        ("Op4", 0.5, r"Op4=0.5 is not a code"),
        ("Op4", -0.0, r"Op4=-0.0 is not a code"),
        ("Resolution", math.nan, "Resolution=nan is not a code"),
        ("LearningRate", 2, r"LearningRate=2.0 is not in \[0.001, 1.0\] \(row 1\)"),
        ("WeightDecay", math.nan, r"WeightDecay=nan is not in"),
        ("epoch", 0, "epoch=0.0 is not an integer in"),
        ("epoch", 1.5, "epoch=1.5 is not an integer in"),
        ("epoch", math.inf, "epoch=inf is not an integer in"),
        ("epoch", math.nan, "epoch=nan is not an integer in"),
    ],
)
def test_a_cell_that_means_nothing_is_refused(column, value, message):
    X = jahs.encode(SPACE.sample(3, seed=0), 1)
    X[1, COLUMNS.index(column)] = value
    with pytest.raises(InvalidConfig, match=f"^{message}"):
        jahs.decode(X)


def test_all_bad_cells_are_counted():
    with pytest.raises(InvalidConfig, match=r"\.\.\. 1500 faults in 100 rows; the first 20 are listed"):
        jahs.decode(np.full((100, 15), -1, np.float32))


@given(hnp.arrays(np.float32, (1, 15), elements=st.floats(width=32)))
def test_random_cells_are_refused_or_come_back(X):
    try:
        decoded = jahs.decode(X)
    except InvalidConfig:
        return
    assert jahs.encode(*decoded).tobytes() == X.tobytes()


@pytest.mark.parametrize(
    "X", [None, [[1.0] * 15], np.zeros((2, 15)), np.zeros((2, 14), np.float32), np.zeros(15, np.float32)]
)
def test_only_a_float32_matrix_of_15_columns_is_decoded(X):
    with pytest.raises(InvalidArgument, match="float32 matrix of 15 columns"):
        jahs.decode(X)


# Columns


def test_columns_of_any_width_and_of_objects_are_read():
    columns = SPACE.sample_columns(6, seed=4)
    wide = {
        **columns,
        **{op: columns[op].astype(np.uint64) for op in OPS},
        "Resolution": columns["Resolution"].astype("f8"),
    }
    objects = {key: column.astype(object) for key, column in columns.items()}
    lists = {key: column.tolist() for key, column in columns.items()}
    for given_columns in (wide, objects, lists, dict(reversed(columns.items()))):
        clean = jahs.validate_columns(given_columns)
        assert tuple(clean) == CONFIG_KEYS
        assert all(clean[key].dtype == COLUMN_DTYPES[key] for key in CONFIG_KEYS)
        assert all((clean[key] == columns[key]).all() for key in CONFIG_KEYS)


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long doubles are doubles here")
def test_a_long_double_is_read_only_if_nothing_is_lost():
    columns = SPACE.sample_columns(2, seed=4)
    exact = {**columns, "LearningRate": columns["LearningRate"].astype(np.longdouble)}
    assert (jahs.encode(exact, 1) == jahs.encode(columns, 1)).all()
    with pytest.raises(InvalidConfig, match=r"LearningRate=.*0\.3333.* is a longdouble, not a float.* \(row 0\)"):
        jahs.encode({**columns, "LearningRate": np.full(2, np.longdouble(1) / 3)}, 1)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 1 has no strings of variable width")
def test_strings_of_variable_width_are_read():
    columns = SPACE.sample_columns(6, seed=4)
    given_columns = {**columns, "Activation": columns["Activation"].astype(np.dtypes.StringDType())}
    assert (jahs.encode(given_columns, 1) == jahs.encode(columns, 1)).all()


@pytest.mark.parametrize(
    ("key", "column", "message"),
    [
        ("N", np.array([1.0, 3.0]), "N holds float64, not int: one of 1, 3, 5"),
        ("N", np.array([True, False]), "N holds bool, not int"),
        ("TrivialAugment", np.array([0, 1]), "TrivialAugment holds int64, not bool"),
        ("Activation", np.array([0, 1]), "Activation holds int64, not str"),
        ("LearningRate", np.array(["0.1", "0.1"]), "LearningRate holds <U3, not float"),
        ("LearningRate", np.array([0.1, 0.1], dtype=complex), "LearningRate holds complex128, not float"),
        ("N", np.array([1]), "N has 1 rows, but Activation has 2"),
        ("N", np.array([[1], [3]]), "N has 2 dimensions; a column has one"),
        ("N", 1, "N has 0 dimensions; a column has one"),
        ("N", np.array([1, 4]), r"N=4 is not one of 1, 3, 5 \(nearest: 3\) \(row 1\)"),
        ("N", [1, True], r"N=True is a bool, not an int: one of 1, 3, 5 \(row 1\)"),
        ("Op1", np.array([0, 5], dtype=np.uint8), r"Op1=5 is not one of 0, 1, 2, 3, 4 \(row 1\)"),
        ("LearningRate", np.array([0.1, math.nan]), r"LearningRate=nan is not a number in \[0.001, 1.0\] \(row 1\)"),
        ("LearningRate", np.array([0.1, 1e-5], np.float32), r"LearningRate=.* is outside \[0.001, 1.0\]"),
        ("Activation", np.array(["ReLU", "relu"]), "Activation='relu' is not one of"),
        ("Activation", np.array(["ReLU", None], dtype=object), "Activation=None is a NoneType"),
    ],
)
def test_a_faulty_column_is_named_with_its_row(key, column, message):
    columns = SPACE.sample_columns(2, seed=0)
    for function in (jahs.validate_columns, jahs.config_ids, lambda configs: jahs.encode(configs, 1)):
        with pytest.raises(InvalidConfig, match=f"^{message}"):
            function({**columns, key: column})


@pytest.mark.parametrize("function", [jahs.validate_columns, jahs.config_ids])
def test_what_lies_under_a_mask_is_not_answered(function):
    columns = SPACE.sample_columns(3, seed=0)
    nothing_masked = {**columns, "N": np.ma.array(columns["N"]), "W": np.ma.array(columns["W"], mask=[0, 0, 0])}
    assert str(function(nothing_masked)) == str(function(columns))
    masked = {"N": np.ma.array(columns["N"], mask=[0, 1, 0]), "Activation": np.ma.array(columns["Activation"], mask=1)}
    with pytest.raises(InvalidConfig) as caught:
        function({**columns, **masked})
    assert [fault.partition(";")[0] for fault in caught.value.faults] == [
        "Activation is masked in 3 of 3 values, the first is in row 0",
        "N is masked in 1 of 3 values, the first is in row 1",
    ]


def test_a_data_frame_is_columns():
    pandas = pytest.importorskip("pandas")
    columns = SPACE.sample_columns(2, seed=0)
    frame = pandas.DataFrame(columns)
    assert (jahs.config_ids(frame) == jahs.config_ids(columns)).all()
    assert (jahs.config_ids(frame.convert_dtypes()[reversed(CONFIG_KEYS)]) == jahs.config_ids(columns)).all()
    assert (jahs.encode(frame, 3) == jahs.encode(columns, 3)).all()
    assert (jahs.config_ids(pandas.Series(rows(columns))) == jahs.config_ids(columns)).all()


def test_missing_and_extra_columns_of_a_data_frame_are_named_together():
    frame = pytest.importorskip("pandas").DataFrame(SPACE.sample_columns(2, seed=0))
    wrong = frame.drop(columns=["Op1", "W"]).assign(lr=0.1, valid_acc=90.0)
    wrong["N"] = [1.0, float("nan")]
    with pytest.raises(InvalidConfig) as caught:
        jahs.config_ids(wrong)
    assert [fault.split()[0] for fault in caught.value.faults] == ["Op1", "W", "lr", "valid_acc", "N"]
    twice = frame.join(frame[["N"]], rsuffix="_").rename(columns={"N_": "N"})
    with pytest.raises(InvalidConfig, match="the DataFrame has more than one column N"):
        jahs.config_ids(twice)
    with pytest.raises(
        InvalidArgument, match=r"configs is one config, not columns; give a list of configs: \[config\]"
    ):
        jahs.config_ids(frame.iloc[0])


def test_a_missing_integer_of_a_data_frame_is_named_with_its_row():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SPACE.sample_columns(3, seed=0))
    frame["N"] = pandas.array([1, 3, pandas.NA], dtype="Int64")
    with pytest.raises(InvalidConfig, match="N has no value in row 2: one of 1, 3, 5"):
        jahs.config_ids(frame)


def test_missing_and_unknown_columns_are_named_together():
    columns = SPACE.sample_columns(2, seed=0)
    del columns["Op1"]
    with pytest.raises(InvalidConfig) as caught:
        jahs.encode({**columns, "epoch": np.array([1, 2])}, 1)
    assert [fault.split()[0] for fault in caught.value.faults] == ["Op1", "epoch"]
    with pytest.raises(InvalidConfig, match="Activation is missing"):
        jahs.encode({}, 1)


def test_faulty_rows_are_counted_and_the_first_are_named_in_order():
    columns = SPACE.sample_columns(1000, seed=0)
    columns["W"][500:] = 5
    columns["N"][510:] = 2
    with pytest.raises(InvalidConfig) as caught:
        jahs.encode(columns, 1)
    lines = caught.value.faults
    assert len(lines) == 21
    assert lines[0] == "W=5 is not one of 4, 8, 16 (nearest: 4) (row 500)"
    assert lines[-1] == "... 990 faults in 1000 rows; the first 20 are listed"
    assert [int(line.split("row ")[1][:-1]) for line in lines[:-1]] == sorted([*range(500, 515), *range(510, 515)])


def test_faulty_configs_are_named_with_their_positions():
    with pytest.raises(InvalidConfig) as caught:
        jahs.encode([DEFAULT, {**DEFAULT, "N": 2}, {**DEFAULT, "W": 2}], 1)
    assert [fault[-10:] for fault in caught.value.faults] == ["(config 1)", "(config 2)"]


@pytest.mark.parametrize("configs", [None, 3, len])
def test_what_is_no_batch_is_refused(configs):
    with pytest.raises(InvalidArgument, match="configs="):
        jahs.encode(configs, 1)


def test_one_config_is_not_a_batch():
    with pytest.raises(InvalidArgument, match="is one config, not columns"):
        jahs.encode(DEFAULT, 1)


@pytest.mark.parametrize("key", CONFIG_KEYS)
def test_no_column_takes_a_hostile_value(key):
    columns = {name: column.tolist() for name, column in SPACE.sample_columns(1, seed=0).items()}
    for value in hostile.VALUES:
        with pytest.raises(InvalidConfig, match=f"^{key}="):
            jahs.encode({**columns, key: [value]}, 1)
