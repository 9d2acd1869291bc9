"""Parameters of tools and configs: what is shown, what is read, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.adapters import pymoo
from jahs.adapters.neps import split_budget
from jahs.adapters.values import from_config, shown_parameters, to_config
from jahs.errors import InvalidArgument, InvalidConfig
from jahs.spaces.parameters import PARAMETERS
from tests.fake_bench import FakeBench
from tests.hostile import KEYS, VALUES

SPACE = jahs.space()
SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.sets(st.sampled_from(sorted(PARAMETERS))))
def test_a_config_comes_back_from_its_parameters(seed: int, keys: set[str]) -> None:
    config = SPACE.sample(seed=seed)
    space = SPACE.fix({key: config[key] for key in keys})
    params = from_config(config, space)
    assert set(params) == set(shown_parameters(space)) == set(PARAMETERS) - keys - {"Optimizer"}
    assert to_config(params, space) == config


@given(SEEDS)
def test_text_numpy_scalars_and_whole_floats_are_what_they_mean(seed: int) -> None:
    config = SPACE.sample(seed=seed)
    text = {key: str(value) for key, value in config.items()}
    floats = {key: value if isinstance(value, str) else np.float64(value) for key, value in config.items()}
    scalars = {key: np.array([value])[0] for key, value in config.items()}
    for params in (text, floats, scalars):
        assert to_config(params, SPACE) == config


def test_a_float_beyond_its_range_by_a_rounding_error_is_the_end() -> None:
    config = SPACE.default()
    found = to_config({**config, "LearningRate": 1.0000000000000002, "WeightDecay": 0.010000000000000004}, SPACE)
    assert (found["LearningRate"], found["WeightDecay"]) == (1.0, 1e-2)


@pytest.mark.parametrize(
    ("params", "faults"),
    [
        ({"LearningRate": 1.00001}, ["LearningRate"]),
        ({"LearningRate": True}, ["LearningRate"]),
        ({"LearningRate": "fast"}, ["LearningRate"]),
        ({"N": 2.5, "W": "16.5"}, ["N", "W"]),
        ({"TrivialAugment": "true"}, ["TrivialAugment"]),
        ({"Activation": "relu", "epoch": 3}, ["Activation", "epoch"]),
        ({"Op1": 5, "Optimizer": "Adam"}, ["Op1", "Optimizer"]),
    ],
    ids=["beyond", "a-bool", "a-word", "between", "case", "epoch", "no-choice"],
)
def test_what_means_nothing_is_refused_with_every_fault(params: dict[str, object], faults: list[str]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        to_config({**SPACE.default(), **params}, SPACE)
    assert sorted(line.split("=")[0].split()[0] for line in caught.value.faults) == faults


@pytest.mark.parametrize("key", sorted(PARAMETERS))
def test_no_hostile_value_is_read(key: str) -> None:
    for value in VALUES:
        with pytest.raises(InvalidConfig, match=key):
            to_config({**SPACE.default(), key: value}, SPACE)


def test_hostile_keys_and_what_is_no_mapping_are_refused() -> None:
    for key in KEYS:
        with pytest.raises(InvalidConfig):
            to_config({**SPACE.default(), key: 1}, SPACE)
    with pytest.raises(InvalidConfig, match="is list, not a mapping"):
        to_config([("N", 1)], SPACE)


def test_what_is_fixed_may_be_left_out_or_repeated_but_not_contradicted() -> None:
    space = SPACE.only("architecture", at={"N": 5, "W": 16})
    cell = {f"Op{i}": 2 for i in range(1, 7)}
    assert to_config(cell, space) == to_config({**cell, "N": "5", "Optimizer": "SGD"}, space)
    with pytest.raises(InvalidConfig, match="N=3 is fixed at 5"):
        to_config({**cell, "N": 3}, space)


def test_the_callers_parameters_are_left_alone() -> None:
    params = {key: str(value) for key, value in SPACE.default().items()}
    before = dict(params)
    to_config(params, SPACE)
    assert params == before


def test_a_missing_key_is_named() -> None:
    params = from_config(SPACE.default(), SPACE)
    del params["N"]
    with pytest.raises(InvalidConfig, match="N is missing"):
        to_config(params, SPACE)


def test_what_is_no_space_is_refused_with_what_to_give() -> None:
    bench = FakeBench()
    for ask in (
        lambda: shown_parameters(bench),
        lambda: to_config(SPACE.default(), bench),
        lambda: from_config(SPACE.default(), bench),
    ):
        with pytest.raises(InvalidArgument, match=r"space=.* is a FakeBench, not a Space; give bench\.space"):
            ask()


@pytest.mark.parametrize("position", [-1, 3, 10**30, True, 1.0, "1", None, [1]])
@pytest.mark.parametrize("key", ["N", "LearningRate"])
def test_a_position_of_neps_among_choices_that_does_not_exist_is_refused(key: str, position: object) -> None:
    params = {f"SAMPLING__Resolvable.{key}::categorical__3": position}
    with pytest.raises(InvalidConfig, match=f"{key}=.* is not a position among"):
        split_budget(params, SPACE)


def test_a_number_that_no_float_holds_is_no_value_of_pymoo() -> None:
    params = pymoo.from_config(SPACE.default(), SPACE)
    for key in ("N", "LearningRate"):
        with pytest.raises(InvalidConfig, match=f"{key}=.* is not"):
            pymoo.to_config({**params, key: 10**400}, SPACE)
