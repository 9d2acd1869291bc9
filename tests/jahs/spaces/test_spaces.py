"""The space: sub-spaces, sampling and neighbours."""

import hashlib
import json
import math
import pickle
import subprocess
import sys
from decimal import Decimal, getcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.errors import InvalidArgument, InvalidConfig, UnknownName
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.columns import rows
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import TASKS
from tests import hostile

SPACE = jahs.space()
GOLDEN = Path(__file__).parents[1] / "golden" / "samples.json"
seeds = st.integers(0, 2**64 - 1)


def test_samples_have_not_changed():
    assert SPACE.sample(5, seed=0) == json.loads(GOLDEN.read_text())


def test_a_large_sample_has_not_changed_by_a_bit():
    columns = SPACE.sample_columns(20_000, seed=2**64 - 1)
    digest = hashlib.sha256()
    for name in CONFIG_KEYS:
        digest.update("\n".join(map(repr, columns[name].tolist())).encode())
    assert digest.hexdigest()[:16] == "80f9917150528e57"


def test_another_process_draws_the_same():
    code = "import jahs; print(jahs.space().sample(3, seed=5))"
    root = Path(__file__).parents[3]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(SPACE.sample(3, seed=5))


@given(seeds, st.integers(0, 20), st.integers(0, 20))
def test_the_first_rows_do_not_depend_on_how_many_are_drawn(seed, k, more):
    assert SPACE.sample(k + more, seed=seed)[:k] == SPACE.sample(k, seed=seed)


@given(seeds)
def test_one_sample_is_the_first_of_many(seed):
    assert SPACE.sample(seed=seed) == SPACE.sample(3, seed=seed)[0]


@given(seeds)
def test_fixing_keys_changes_no_other_key(seed):
    fixed = {"N": 5, "Activation": "Mish", "LearningRate": 0.5}
    for inside, outside in zip(jahs.space(fixed).sample(5, seed=seed), SPACE.sample(5, seed=seed), strict=True):
        assert inside == {**outside, **fixed}


@given(seeds)
def test_every_sample_is_valid_and_made_of_builtins(seed):
    for config in SPACE.sample(10, seed=seed):
        assert jahs.validate(config) == config
        assert [type(value) for value in config.values()] == [type(p.default) for p in PARAMETERS.values()]
        assert SPACE.validate(config) == config


def test_rows_and_columns_of_a_sample_agree():
    assert rows(SPACE.sample_columns(50, seed=3)) == SPACE.sample(50, seed=3)


def test_seeds_and_rows_do_not_share_configs():
    configs = np.concatenate([jahs.config_ids(SPACE.sample_columns(5_000, seed=seed)) for seed in range(4)])
    assert len(set(configs.tolist())) == 20_000


def test_marginals_are_uniform():
    n = 60_000
    columns = SPACE.sample_columns(n, seed=11)
    for name, parameter in PARAMETERS.items():
        if parameter.kind == "float":
            u = np.log(columns[name] / parameter.lower) / math.log(parameter.upper / parameter.lower)
            counts = np.histogram(u, bins=20, range=(0, 1))[0]
        else:
            counts = np.array([(columns[name] == choice).sum() for choice in parameter.choices])
        assert counts.sum() == n
        expected = n / len(counts)
        chi_square = ((counts - expected) ** 2 / expected).sum()
        degrees = len(counts) - 1
        assert chi_square <= degrees + 5 * math.sqrt(2 * degrees), name


def test_no_two_keys_are_correlated():
    X = jahs.encode(SPACE.sample_columns(60_000, seed=12), 1)[:, :-1].astype(np.float64)
    searched = [j for j, name in enumerate(CONFIG_KEYS) if name != "Optimizer"]
    correlation = np.corrcoef(X[:, searched], rowvar=False) - np.eye(len(searched))
    assert np.abs(correlation).max() < 5 / math.sqrt(60_000)


def test_the_log_scale_is_right_to_the_last_digits():
    getcontext().prec = 40
    words = np.random.Philox(key=9).random_raw(14 * 300).reshape(300, 14)
    words[0] = 0
    words[1] = 2**64 - 1
    columns = SPACE.columns_from_words(words)
    for name in ("LearningRate", "WeightDecay"):
        j, p = CONFIG_KEYS.index(name), PARAMETERS[name]
        for word, value in zip(words[:, j].tolist(), columns[name].tolist(), strict=True):
            exact = Decimal(p.lower) * Decimal(1000) ** (Decimal(word >> 11) / 2**53)
            assert abs(Decimal(value) / exact - 1) < Decimal("1e-15")
            assert p.lower <= value <= p.upper
    assert columns["LearningRate"][0] == 1e-3


def test_a_word_decides_its_own_key_alone():
    words = np.random.Philox(key=1).random_raw(14).reshape(1, 14)
    before = rows(SPACE.columns_from_words(words))[0]
    for j, name in enumerate(CONFIG_KEYS):
        changed = words.copy()
        changed[0, j] ^= np.uint64(1 << 63)
        after = rows(SPACE.columns_from_words(changed))[0]
        assert {key for key in CONFIG_KEYS if before[key] != after[key]} == {name} - {"Optimizer"}


@pytest.mark.parametrize("words", [None, [[1] * 14], np.zeros((2, 14)), np.zeros((2, 13), np.uint64), np.uint64(1)])
def test_words_of_another_shape_or_type_are_refused(words):
    with pytest.raises(InvalidArgument, match="uint64 matrix of 14 columns"):
        SPACE.columns_from_words(words)


def test_no_seed_means_another_sample_each_time():
    assert SPACE.sample(seed=None) != SPACE.sample(seed=None)


def test_an_empty_sample_is_empty():
    assert SPACE.sample(0, seed=0) == []
    assert {len(column) for column in SPACE.sample_columns(0, seed=0).values()} == {0}


@pytest.mark.parametrize("seed", hostile.SEEDS)
def test_a_seed_is_an_integer_of_64_bits(seed):
    with pytest.raises(InvalidArgument, match=r"seed=.* is not an integer in 0\.\.2\*\*64-1"):
        SPACE.sample(1, seed=seed)
    assert SPACE.sample(seed=np.int64(3)) == SPACE.sample(seed=3)


@pytest.mark.parametrize("n", [-1, 1.0, True, "3", [1], 10_000_001, 2**40])
def test_a_number_of_samples_is_a_count_that_fits_into_memory(n):
    with pytest.raises(InvalidArgument, match=r"n=.* is not an integer in 0\.\.10000000$"):
        SPACE.sample(n, seed=0)


def test_sub_spaces_search_what_they_say():
    assert SPACE.searched == CONFIG_KEYS
    assert SPACE.fixed == {}
    large = {"N": 5, "W": 16}
    nas = SPACE.only("architecture", at=large)
    assert nas.searched == OPS
    assert nas.fixed == {k: v for k, v in {**SPACE.default(), **large}.items() if k not in OPS}
    hpo = SPACE.fix(large).only("hyperparameters")
    assert hpo.searched == ("Activation", "LearningRate", "Optimizer", "TrivialAugment", "WeightDecay")
    assert hpo.fixed["N"] == 5
    assert SPACE.only(["W", "N"]).searched == ("N", "W")
    assert SPACE.only("N").searched == ("N",)
    assert SPACE.only(()).searched == ()
    assert {*jahs.spaces.space.GROUPS["architecture"], *jahs.spaces.space.GROUPS["hyperparameters"]} | {
        "N",
        "W",
        "Resolution",
    } == {*CONFIG_KEYS}


def test_a_sub_space_is_a_value():
    small = jahs.space({"W": np.int64(8), "N": 1})
    assert small == SPACE.fix({"N": 1}).fix({"W": 8})
    assert hash(small) == hash(SPACE.fix({"N": 1, "W": 8}))
    assert pickle.loads(pickle.dumps(small)) == small
    assert small != SPACE
    assert small.fix({"W": 4}).fixed == {"N": 1, "W": 4}
    assert small.default()["W"] == 8
    small.fixed["N"] = 3
    assert small.fixed["N"] == 1
    with pytest.raises(AttributeError):
        small.fixed_items = ()


def test_a_fixed_value_is_checked_like_a_config():
    with pytest.raises(InvalidConfig) as caught:
        jahs.space({"N": 4, "lr": 0.1, "W": True})
    assert [fault.replace("=", " ").split()[0] for fault in caught.value.faults] == ["N", "W", "lr"]
    assert "did you mean LearningRate?" in caught.value.faults[-1]
    for value in ("N", [("N", 5)], 3, ["N"]):
        with pytest.raises(InvalidArgument, match="not a mapping"):
            jahs.space(value)


def test_what_to_search_is_checked():
    with pytest.raises(UnknownName, match="did you mean 'architecture'"):
        SPACE.only("architectur")
    with pytest.raises(UnknownName, match="LearningRate"):
        SPACE.only(["LearningRat"])
    with pytest.raises(UnknownName):
        SPACE.only([["N"]])
    with pytest.raises(InvalidArgument, match="not a name or an iterable"):
        SPACE.only(3)
    with pytest.raises(InvalidArgument, match="both searched and fixed"):
        SPACE.only("N", at={"N": 3})
    with pytest.raises(InvalidArgument, match="this space fixes"):
        SPACE.fix({"N": 3}).only("N")
    with pytest.raises(InvalidArgument, match="not a mapping"):
        SPACE.only("N", at=[("W", 4)])
    with pytest.raises(InvalidConfig, match="W=5 is not one of"):
        SPACE.only("N", at={"W": 5})


def test_what_a_space_fixes_is_not_moved_by_what_is_searched():
    large = SPACE.fix({"N": 5, "W": 16})
    with pytest.raises(InvalidArgument, match="at: N=3, W=4 must not be set: this space already fixes other values"):
        large.only("architecture", at={"N": 3, "W": 4, "Resolution": 0.5})
    assert large.only("architecture", at={"N": np.int64(5)}).fixed["N"] == 5
    assert large.only("architecture", at={"Resolution": 0.5}) == large.fix({"Resolution": 0.5}).only("architecture")


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["large", "small"])
def test_a_number_of_too_many_digits_is_refused_as_any_other(number):
    for ask in (
        lambda: SPACE.sample(number, seed=0),
        lambda: SPACE.sample(1, seed=number),
        lambda: SPACE.neighbors(SPACE.default(), factor=number),
        lambda: SPACE.only(number),
        lambda: SPACE.only("N", at=number),
        lambda: SPACE.fix(number),
    ):
        with pytest.raises(InvalidArgument, match="=<a number of too many digits> is not"):
            ask()


def test_a_sub_space_refuses_configs_of_another():
    small = jahs.space({"N": 5, "W": 16})
    with pytest.raises(InvalidConfig) as caught:
        small.validate(SPACE.default())
    assert caught.value.faults == ("N=1 is fixed at 5 in this space", "W=4 is fixed at 16 in this space")
    with pytest.raises(InvalidConfig) as caught:
        jahs.space({"N": 5}).validate({**SPACE.default(), "N": 1, "W": 7})
    assert [fault.split("=")[0] for fault in caught.value.faults] == ["W", "N"]
    with pytest.raises(InvalidConfig, match="not a mapping of 14 keys"):
        SPACE.validate(5)


@pytest.mark.parametrize("factor", [np.int64(2), np.float32(2), 2])
def test_a_factor_is_any_number(factor):
    config = SPACE.default()
    assert SPACE.neighbors(config, factor=factor) == SPACE.neighbors(config, factor=2.0)


def test_what_is_no_mapping_is_refused_in_the_words_of_validate():
    for ask in (jahs.Cell.from_config, lambda config: jahs.cost(config, TASKS["digits"])):
        with pytest.raises(InvalidConfig, match="config=5 is an int, not a mapping of 14 keys"):
            ask(5)
    for columns in (None, [SPACE.default()]):
        with pytest.raises(InvalidArgument, match="is not a mapping of keys to arrays"):
            jahs.validate_columns(columns)


def test_the_repr_is_a_table_of_all_parameters():
    lines = repr(jahs.space({"N": 5})).splitlines()
    assert lines[0] == "Space: 13 of 14 parameters are searched"
    assert [line.split()[0] for line in lines[2:]] == list(CONFIG_KEYS)
    assert "5 (fixed)" in lines[4]
    assert "[0.001, 1.0]" in lines[3]


def neighbour_count(config):
    ends = sum(
        config[name] not in (p.choices[0], p.choices[-1]) for name, p in PARAMETERS.items() if p.kind == "ordinal"
    )
    inner = sum(
        (config[name] / jahs.spaces.space.STEP >= p.lower) + (config[name] * jahs.spaces.space.STEP <= p.upper)
        for name, p in PARAMETERS.items()
        if p.kind == "float"
    )
    return 2 + 6 * 4 + 1 + 3 + ends + inner


@given(seeds)
def test_neighbours_are_valid_one_move_away_and_all_different(seed):
    config = SPACE.sample(seed=seed)
    before = dict(config)
    near = SPACE.neighbors(config)
    assert config == before
    assert len(near) == len({jahs.config_id(one) for one in near}) == neighbour_count(config)
    for one in near:
        assert jahs.validate(one) == one
        assert sum(one[key] != config[key] for key in CONFIG_KEYS) == 1
        (key,) = (key for key in CONFIG_KEYS if one[key] != config[key])
        if PARAMETERS[key].kind == "ordinal":
            choices = PARAMETERS[key].choices
            assert abs(choices.index(one[key]) - choices.index(config[key])) == 1


@given(seeds)
def test_choices_are_neighbours_both_ways(seed):
    config = SPACE.sample(seed=seed)
    for one in SPACE.neighbors(config):
        if one["LearningRate"] == config["LearningRate"] and one["WeightDecay"] == config["WeightDecay"]:
            assert config in SPACE.neighbors(one)


def test_neighbours_stay_in_a_sub_space_and_in_order():
    nas = SPACE.only("architecture")
    near = nas.neighbors(nas.default())
    assert len(near) == 24
    assert all(nas.validate(one) for one in near)
    assert [one["Op1"] for one in near[:5]] == [1, 2, 3, 4, 0]
    assert nas.neighbors(nas.default()) == near
    with pytest.raises(InvalidConfig, match="N=5 is fixed at 1"):
        nas.neighbors({**nas.default(), "N": 5})
    assert SPACE.only(()).neighbors(SPACE.default()) == []


def test_a_float_moves_by_the_factor_and_never_past_an_end():
    lr = SPACE.only("LearningRate")

    def moves(value, **kwargs):
        return [one["LearningRate"] for one in lr.neighbors({**lr.default(), "LearningRate": value}, **kwargs)]

    assert moves(0.1) == [0.1 / jahs.spaces.space.STEP, 0.1 * jahs.spaces.space.STEP]
    assert moves(0.1, factor=2) == [0.05, 0.2]
    assert moves(1.0, factor=2) == [0.5]
    assert moves(0.5, factor=2) == [0.25, 1.0]
    assert moves(1e-3, factor=2000.0) == []
    assert pytest.approx(10**0.25, abs=1e-15) == jahs.spaces.space.STEP


@pytest.mark.parametrize("factor", [1, 1.0, 0.5, -2, math.nan, math.inf, "2", True, None])
def test_a_factor_that_moves_nothing_is_refused(factor):
    with pytest.raises(InvalidArgument, match="factor="):
        SPACE.neighbors(SPACE.default(), factor=factor)
