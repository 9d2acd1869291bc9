"""Validation: every fault at once, by key; nothing rounded, clipped or mutated."""

import copy
import enum
import math
import pickle
from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.parameters import PARAMETERS
from tests import hostile

DEFAULT = jahs.space().default()
EXAMPLE = {  # the example of JAHS-Bench-201's README
    "Activation": "Mish",
    "LearningRate": 0.1,
    "N": 5,
    **dict(zip(OPS, (4, 1, 2, 0, 2, 1), strict=True)),
    "Optimizer": "SGD",
    "Resolution": 1.0,
    "TrivialAugment": False,
    "W": 16,
    "WeightDecay": 5e-5,
}


def faults_of(config):
    with pytest.raises(InvalidConfig) as caught:
        jahs.validate(config)
    assert all(fault == fault.strip() and "\n" not in fault for fault in caught.value.faults)
    return caught.value.faults


def test_the_space_is_the_published_one():
    published = {name: p.choices or (p.lower, p.upper, p.is_log) for name, p in PARAMETERS.items()}
    assert tuple(PARAMETERS) == CONFIG_KEYS
    assert published == {
        "Activation": ("ReLU", "Hardswish", "Mish"),
        "LearningRate": (1e-3, 1.0, True),
        "N": (1, 3, 5),
        **dict.fromkeys(OPS, (0, 1, 2, 3, 4)),
        "Optimizer": ("SGD",),
        "Resolution": (0.25, 0.5, 1.0),
        "TrivialAugment": (True, False),
        "W": (4, 8, 16),
        "WeightDecay": (1e-5, 1e-2, True),
    }
    assert {p.name for p in PARAMETERS.values() if p.kind == "ordinal"} == {"N", "W", "Resolution"}
    assert {
        **dict.fromkeys(OPS, 0),
        "Activation": "ReLU",
        "LearningRate": 0.1,
        "N": 1,
        "Optimizer": "SGD",
        "Resolution": 1.0,
        "TrivialAugment": False,
        "W": 4,
        "WeightDecay": 5e-4,
    } == DEFAULT


def test_the_published_example_is_valid():
    assert jahs.validate(EXAMPLE) == EXAMPLE


def test_keys_come_back_in_canonical_order_and_the_input_is_untouched():
    config = dict(reversed(EXAMPLE.items()))
    before = copy.deepcopy(config)
    clean = jahs.validate(config)
    assert tuple(clean) == CONFIG_KEYS
    assert list(config.items()) == list(before.items())
    assert clean is not config


@pytest.mark.parametrize("kind", [hostile.ReadOnly, MappingProxyType, OrderedDict])
def test_any_mapping_is_taken(kind):
    clean = jahs.validate(kind(EXAMPLE))
    assert type(clean) is dict
    assert clean == EXAMPLE


def test_numpy_scalars_come_back_as_builtins():
    numpys = {
        **{key: np.int64(EXAMPLE[key]) for key in (*OPS, "W")},
        "N": np.array(5, dtype=np.uint8),
        "Activation": np.str_("Mish"),
        "Optimizer": np.str_("SGD"),
        "LearningRate": np.float64(0.1),
        "WeightDecay": np.longdouble(5e-5),
        "Resolution": np.float16(1),
        "TrivialAugment": np.False_,
    }
    clean = jahs.validate(numpys)
    assert clean == EXAMPLE
    assert [type(value) for value in clean.values()] == [type(PARAMETERS[key].default) for key in clean]
    assert jahs.config_id(numpys) == jahs.config_id(EXAMPLE)


def test_subclasses_of_builtins_come_back_as_builtins():
    class Depth(enum.IntEnum):
        DEEP = 5

    class Act(str, enum.Enum):  # StrEnum needs Python 3.11
        MISH = "Mish"

    clean = jahs.validate({**EXAMPLE, "N": Depth.DEEP, "Activation": Act.MISH})
    assert (type(clean["N"]), type(clean["Activation"])) == (int, str)
    assert clean == EXAMPLE


def test_an_integer_is_taken_for_a_float():
    clean = jahs.validate({**DEFAULT, "LearningRate": 1, "Resolution": np.int8(1)})
    assert (type(clean["LearningRate"]), type(clean["Resolution"])) == (float, float)
    assert jahs.config_id({**DEFAULT, "LearningRate": 1}) == jahs.config_id({**DEFAULT, "LearningRate": 1.0})


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("N", 4, "N=4 is not one of 1, 3, 5 (nearest: 3)"),
        ("N", 99, "N=99 is not one of 1, 3, 5 (nearest: 5)"),
        ("N", float("inf"), "N=inf is a float, not an int: one of 1, 3, 5 (nearest: 5)"),
        ("W", 1e300, "W=1e+300 is a float, not an int: one of 4, 8, 16 (nearest: 16)"),
        ("W", float("-inf"), "W=-inf is a float, not an int: one of 4, 8, 16 (nearest: 4)"),
        ("N", 5.0, "N=5.0 is a float, not an int: one of 1, 3, 5 (nearest: 5)"),
        ("N", "5", "N='5' is a str, not an int: one of 1, 3, 5 (nearest: 5)"),
        ("N", True, "N=True is a bool, not an int: one of 1, 3, 5"),
        ("N", np.True_, "N=True is a bool, not an int: one of 1, 3, 5"),
        ("N", None, "N=None is a NoneType, not an int: one of 1, 3, 5"),
        ("W", 15, "W=15 is not one of 4, 8, 16 (nearest: 16)"),
        ("Op3", 5, "Op3=5 is not one of 0, 1, 2, 3, 4"),
        ("Op3", -1, "Op3=-1 is not one of 0, 1, 2, 3, 4"),
        ("Op3", False, "Op3=False is a bool, not an int: one of 0, 1, 2, 3, 4"),
        ("Resolution", 0.3, "Resolution=0.3 is not one of 0.25, 0.5, 1.0 (nearest: 0.25)"),
        ("Resolution", True, "Resolution=True is a bool, not a float: one of 0.25, 0.5, 1.0"),
        ("Activation", "relu", "Activation='relu' is not one of 'ReLU', 'Hardswish', 'Mish' (nearest: 'ReLU')"),
        ("Activation", 0, "Activation=0 is an int, not a str: one of 'ReLU', 'Hardswish', 'Mish'"),
        ("Optimizer", "AdamW", "Optimizer='AdamW' is not one of 'SGD'"),
        ("TrivialAugment", 1, "TrivialAugment=1 is an int, not a bool: one of True, False (nearest: True)"),
        ("TrivialAugment", "False", "TrivialAugment='False' is a str, not a bool: one of True, False (nearest: False)"),
        ("LearningRate", 3.0, "LearningRate=3.0 is outside [0.001, 1.0] (nearest: 1.0)"),
        ("LearningRate", 0, "LearningRate=0 is outside [0.001, 1.0] (nearest: 0.001)"),
        ("LearningRate", "0.1", "LearningRate='0.1' is a str, not a float: in [0.001, 1.0] (nearest: 0.1)"),
        ("LearningRate", math.nan, "LearningRate=nan is not a number in [0.001, 1.0]"),
        ("LearningRate", True, "LearningRate=True is a bool, not a float: in [0.001, 1.0]"),
        ("WeightDecay", math.inf, "WeightDecay=inf is outside [1e-05, 0.01] (nearest: 0.01)"),
        ("WeightDecay", 10**400, None),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed_and_nearest(key, value, fault):
    (line,) = faults_of({**DEFAULT, key: value})
    assert line.startswith(f"{key}=")
    assert fault is None or line == fault


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("lr", "did you mean LearningRate?"),
        ("learning_rate", "did you mean LearningRate?"),
        ("weight_decay", "did you mean WeightDecay?"),
        ("Op_3", "did you mean Op3?"),
        ("OP1", "did you mean Op1?"),
        ("Op7", "did you mean Op6?"),
        ("n", "did you mean N?"),
        ("resolution", "did you mean Resolution?"),
        ("trivial_augment", "did you mean TrivialAugment?"),
        ("Activaton", "did you mean Activation?"),
        ("epoch", "give the epoch as at=, as in bench.query(config, at=5)"),
        ("nepochs", "give the epoch as at=, as in bench.query(config, at=5)"),
        ("seed", "give it as seed=, as in bench.query(config, seed=0)"),
        ("zzz", "the keys are Activation, LearningRate"),
    ],
)
def test_an_unknown_key_gets_its_near_miss(key, hint):
    (fault,) = faults_of({**DEFAULT, key: 1})
    assert fault.startswith(f"{key} is not a key of a config")
    assert hint in fault


def test_every_fault_is_reported_at_once_and_in_order():
    config = {**EXAMPLE, "N": 4, "W": 5.0, "LearningRate": math.nan, "lr": 0.1, "epoch": 3}
    del config["Op2"], config["Activation"]
    keys = [fault.replace("=", " ").split()[0] for fault in faults_of(config)]
    assert sorted(keys) == ["Activation", "LearningRate", "N", "Op2", "W", "epoch", "lr"]
    assert len(faults_of({})) == len(CONFIG_KEYS)


@pytest.mark.parametrize("key", CONFIG_KEYS)
def test_no_parameter_takes_a_hostile_value(key):
    for value in hostile.VALUES:
        (fault,) = faults_of({**DEFAULT, key: value})
        assert fault.startswith(f"{key}=")
        assert len(fault) < 400


def test_no_hostile_key_is_overlooked():
    for key in hostile.KEYS:
        (fault,) = faults_of({**DEFAULT, key: 1})
        assert "is not a key of a config" in fault
        assert len(fault) < 400
    many = faults_of({**DEFAULT, **{f"key{i}": i for i in range(10_000)}})
    assert many[-1] == "... and 9980 more unknown keys"


@pytest.mark.parametrize("value", [None, 3, "config", [], [DEFAULT], list(DEFAULT.items()), len])
def test_what_is_no_mapping_is_not_a_config(value):
    (fault,) = faults_of(value)
    assert fault.startswith("config=")


@pytest.mark.parametrize("key", ["LearningRate", "WeightDecay"])
def test_a_range_includes_its_ends_and_their_float32_neighbours_and_nothing_more(key):
    p = PARAMETERS[key]
    for end in (p.lower, p.upper):
        assert p.read(end) == end
        assert p.read(np.float32(end)) == float(np.float32(end))
    for outside in (
        np.nextafter(p.least, 0),
        np.nextafter(p.most, 9),
        np.nextafter(np.float32(p.least), np.float32(0)),
    ):
        with pytest.raises(InvalidConfig, match=f"{key}=.* is outside"):
            p.read(outside)


def test_only_the_lower_end_of_weight_decay_is_wider_than_published():
    widths = {p.name: (p.least - p.lower, p.most - p.upper) for p in PARAMETERS.values() if p.kind == "float"}
    assert widths == {"LearningRate": (0, 0), "WeightDecay": (float(np.float32(1e-5)) - 1e-5, 0)}


@given(st.floats(PARAMETERS["WeightDecay"].least, PARAMETERS["WeightDecay"].most))
def test_rounding_to_float32_keeps_a_config_valid(value):
    assert jahs.validate({**DEFAULT, "WeightDecay": np.float32(value)})["WeightDecay"] == np.float32(value)


@pytest.mark.parametrize(("sign", "nearest"), [(1, 5), (-1, 1)], ids=["large", "small"])
def test_the_value_nearest_to_a_number_far_away_is_the_one_at_that_end(sign, nearest):
    for number in (10**18, 10**400, 10**5000):
        with pytest.raises(InvalidConfig, match=rf"^N=.* is not one of 1, 3, 5 \(nearest: {nearest}\)$"):
            jahs.validate({**DEFAULT, "N": sign * number})


def test_many_faulty_configs_are_counted_and_the_first_are_named():
    configs = [DEFAULT, {**DEFAULT, "N": 4}] * 50
    with pytest.raises(InvalidConfig) as caught:
        jahs.validate_many(configs)
    lines = caught.value.faults
    assert len(lines) == 21
    assert lines[0] == "N=4 is not one of 1, 3, 5 (nearest: 3) (config 1)"
    assert lines[19].endswith("(config 39)")
    assert lines[-1] == "... 50 faults in 50 of 100 configs; the first 20 are listed"


def test_many_valid_configs_come_back_in_order_and_none_is_fine():
    configs = jahs.space().sample(20, seed=1)
    assert jahs.validate_many(iter(configs)) == configs
    assert jahs.validate_many([]) == []
    with pytest.raises(InvalidArgument, match="configs=5 is not an iterable of configs"):
        jahs.validate_many(5)
    with pytest.raises(InvalidArgument, match="one mapping"):
        jahs.validate_many(DEFAULT)


def test_a_data_frame_is_told_how_to_become_configs():
    pandas = pytest.importorskip("pandas")
    configs = jahs.space().sample(3, seed=1)
    frame = pandas.DataFrame(configs)
    with pytest.raises(InvalidArgument, match=r'configs is a DataFrame, not .*; give configs\.to_dict\("records"\)$'):
        jahs.validate_many(frame)
    assert jahs.validate_many(frame.to_dict("records")) == configs


def test_the_error_survives_the_way_back_from_another_process():
    with pytest.raises(InvalidConfig) as caught:
        jahs.validate({**DEFAULT, "N": 4, "W": 5})
    back = pickle.loads(pickle.dumps(caught.value))
    assert back.faults == caught.value.faults
    assert str(back) == "\n".join(back.faults)
    assert isinstance(back, ValueError)
