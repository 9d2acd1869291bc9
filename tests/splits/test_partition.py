"""The split of recorded configs: balance, stability, chance, and what is refused."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, InvalidTable, Leakage, ProtocolMismatch
from jahs.schema import CONFIG_KEYS
from splits.check import balance, broken_promises
from splits.kinship import find_leaks
from splits.partition import partition
from splits.recorded import RecordedConfigs
from splits.split import Split
from tests.building import make_configs, with_ids
from tests.hostile import SEEDS


def record(configs, *, n_seeds=None, protocol="0" * 16):
    order = np.argsort(configs["config_id"])
    n_rows = len(order)
    n_seeds = np.where(np.arange(n_rows) % 10 == 0, 3, 1) if n_seeds is None else np.asarray(n_seeds)
    return RecordedConfigs(
        configs={name: values[order] for name, values in configs.items()},
        n_seeds=n_seeds[order],
        is_diverged=np.zeros(n_rows, dtype=bool),
        task="digits",
        protocol=protocol,
    )


def head(configs, n_rows):
    return {name: values[:n_rows] for name, values in configs.items()}


def with_cell(configs, rows, ops):
    for j, op in enumerate(ops):
        configs[f"Op{j + 1}"][rows] = op
    return configs


def grid(n_rows):
    """Configs of all groups that differ in the cell alone, many of which compute the same."""
    configs = make_configs(n_rows)
    for key in ("LearningRate", "WeightDecay", "Activation", "TrivialAugment"):
        configs[key][:] = configs[key][0]
    return with_ids(configs)


def test_the_split_of_a_seed_never_changes():
    split = partition(record(make_configs(400)), seed=1)
    assert split.counts == {"train": 280, "valid": 60, "test": 60}
    assert split.digest == "08df037090b12713"


@given(n_rows=st.integers(189, 420), every=st.integers(1, 12), seed=st.integers(0, 2**64 - 1))
@example(n_rows=189, every=11, seed=792_101_791_307_104_128)  # strata in their first order do not keep the promise
@settings(max_examples=15)
def test_what_is_promised_holds(n_rows, every, seed):
    n_seeds = np.where(np.arange(n_rows) % every == 0, 3, 1)
    recorded = record(make_configs(n_rows, seed=seed % 5), n_seeds=n_seeds)
    assert broken_promises(balance(recorded, partition(recorded, seed=seed).parts)) == []


@given(n_rows=st.integers(1, 188), more=st.sampled_from([0, 5, 27, 300]))
@settings(max_examples=15)
def test_with_few_configs_groups_and_total_are_as_even_as_whole_configs_can_be(n_rows, more):
    configs = make_configs(n_rows + more)
    old = partition(record(head(configs, n_rows)), seed=3, fewest=1)
    assert all(
        abs(old.counts[part] - share * n_rows) <= 1 for part, share in zip(old.counts, (0.7, 0.15, 0.15), strict=True)
    )
    recorded = record(configs)
    new = partition(recorded, seed=3, old=old, fewest=1)
    assert (new.parts_of(old.config_ids) == old.parts).all()
    off = broken_promises(balance(recorded, new.parts))
    assert all(marginal.name.startswith("repeated, ") for marginal in off)  # never a group


@given(
    first=st.integers(189, 300),
    more=st.sampled_from([0, 1, 20, 90, 270, 400]),
    seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
@settings(max_examples=15)
def test_an_extended_split_moves_nobody_and_keeps_its_promises(first, more, seeds):
    configs = make_configs(first + more)
    old = partition(record(head(configs, first)), seed=seeds[0])
    recorded = record(configs)
    new = partition(recorded, seed=seeds[1], old=old)
    assert (new.parts_of(old.config_ids) == old.parts).all()
    assert new.extends == old.digest
    off = broken_promises(balance(recorded, new.parts))
    assert all(marginal.name.startswith("repeated, ") and marginal.off < 2.5 for marginal in off)  # never a group
    assert off == [] or 0 < more < 270  # a few new configs cannot always serve a group and three thirds at once


def test_extending_by_nothing_changes_nothing():
    recorded = record(make_configs(200))
    old = partition(recorded, seed=1)
    assert partition(recorded, seed=2, old=old).digest == old.digest


def test_a_config_that_became_repeated_stays():
    configs = make_configs(300)
    old = partition(record(configs), seed=1)
    again = record(configs, n_seeds=np.full(300, 3))
    assert partition(again, seed=1, old=old).digest == old.digest


def test_seeds_decide_who_and_not_how_many():
    recorded = record(make_configs(400))
    splits_ = [partition(recorded, seed=seed) for seed in (1, 2)]
    assert splits_[0].counts == splits_[1].counts
    assert 0.4 < np.mean(splits_[0].parts == splits_[1].parts) < 0.7  # by chance 0.7**2 + 2 * 0.15**2 = 0.535


def test_the_measurements_of_a_config_do_not_decide_its_side():
    recorded = record(make_configs(300))
    other = RecordedConfigs(
        configs=recorded.configs, n_seeds=recorded.n_seeds, is_diverged=~recorded.is_diverged, task="x", protocol="1"
    )
    assert partition(recorded, seed=1).digest == partition(other, seed=1).digest


@given(seed=st.integers(0, 2**64 - 1))
@settings(max_examples=10)
def test_kin_stay_together_even_where_there_are_many(seed):
    recorded = record(grid(400))
    split = partition(recorded, seed=seed)
    assert find_leaks(recorded.configs, split.parts) == []
    assert broken_promises(balance(recorded, split.parts)) == []


def test_new_kin_of_an_old_config_go_where_it_is():
    configs = grid(600)
    old = partition(record(head(configs, 300)), seed=1)
    recorded = record(configs)
    new = partition(recorded, seed=2, old=old)
    assert (new.parts_of(old.config_ids) == old.parts).all()
    assert find_leaks(recorded.configs, new.parts) == []


def test_families_are_on_every_side():
    parts = set()
    for seed in range(20):
        configs = make_configs(27 * 40)
        with_cell(configs, [0, 27], [2] * 6)
        for key in ("LearningRate", "WeightDecay", "Activation", "TrivialAugment"):
            configs[key][27] = configs[key][0]
        configs["config_id"][27] = configs["config_id"][0] + np.uint64(1)
        split = partition(record(configs), seed=seed)
        both = split.parts_of(configs["config_id"][[0, 27]]).tolist()
        assert both[0] == both[1]
        parts.add(both[0])
    assert parts == {0, 1, 2}


@pytest.mark.parametrize("n_kin", [2, 3])
def test_a_family_is_in_each_part_as_often_as_its_share_says(n_kin):
    configs = {name: values[::27].copy() for name, values in make_configs(27 * 40).items()}
    for key in CONFIG_KEYS:
        configs[key][:n_kin] = configs[key][0]
    recorded = record(configs)
    splits_ = [partition(recorded, seed=seed) for seed in range(1000)]
    parts = np.array([split.parts_of(configs["config_id"][:n_kin]) for split in splits_])
    assert (parts == parts[:, :1]).all()
    assert np.bincount(parts[:, 0]) / len(parts) == pytest.approx([0.70, 0.15, 0.15], abs=0.04)


def test_a_folder_of_one_group_can_be_split():
    configs = head({name: values[::27] for name, values in make_configs(27 * 40).items()}, 40)
    assert partition(record(configs), seed=0).counts == {"train": 28, "valid": 6, "test": 6}


def test_too_few_configs_in_a_group_are_refused_with_what_is_needed():
    with pytest.raises(
        InvalidTable, match=r"^2 of 27 fidelity groups .* needs 7: N=5 W=16 Resolution=0.5 has 6, 1 too few; N=5"
    ):
        partition(record(make_configs(187)), seed=0)


def test_an_old_split_of_another_protocol_is_refused():
    configs = make_configs(200)
    old = partition(record(configs), seed=0)
    with pytest.raises(ProtocolMismatch, match="1111111111111111"):
        partition(record(configs, protocol="1" * 16), seed=0, old=old)


def test_an_old_split_of_configs_that_are_gone_is_refused():
    configs = make_configs(220)
    old = partition(record(configs), seed=0)
    with pytest.raises(InvalidTable, match=r"^20 of 220 configs of the old split have no run: .* and 17 more"):
        partition(record(head(configs, 200)), seed=0, old=old)


def test_an_old_split_that_leaks_is_refused():
    recorded = record(grid(400))
    ids = recorded.config_ids
    torn = Split(
        config_ids=ids, parts=(np.arange(400) % 3).astype(np.int8), seed=0, task="digits", protocol=recorded.protocol
    )
    with pytest.raises(Leakage, match=r"families of equal configs in several parts"):
        partition(recorded, seed=0, old=torn)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda value: type(value).__name__)
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InvalidArgument, match=r"^seed="):
        partition(record(make_configs(189)), seed=seed)


def with_sources(n_uniform=270, n_best=31, n_full=40):
    """Uniform configs of all groups, and others at full size from two sources."""
    configs = make_configs(n_uniform + n_best + n_full)
    n_rows = len(configs["N"])
    for key, value in (("N", 5), ("W", 16), ("Resolution", 1.0)):
        configs[key][n_uniform:] = value
    configs = with_ids(configs)
    sources = np.repeat(["uniform", "best", "full"], [n_uniform, n_best, n_full])
    return {**configs, "source": sources, "round": np.zeros(n_rows, np.int64), "release": np.full(n_rows, "")}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_source_in_a_group_is_divided_to_within_one_config(seed):
    recorded = record(with_sources())
    marginals = balance(recorded, partition(recorded, seed=seed).parts)
    assert broken_promises(marginals) == []
    named = {marginal.name: marginal for marginal in marginals}
    assert sum(named["N=5 W=16 Resolution=1 best"].counts) == 31
    assert sum(named["source=full"].counts) == 40
    assert named["N=5 W=16 Resolution=1 best"].is_promised


def test_sources_of_later_rounds_move_no_config():
    old = partition(record(with_sources(n_best=10)), seed=4)
    recorded = record(with_sources(n_best=10))
    assert partition(recorded, seed=4, old=old).digest == old.digest
    more = record(with_sources(n_best=10, n_full=90))
    new = partition(more, seed=4, old=partition(recorded, seed=4))
    assert all(new.assignments[one] == part for one, part in old.assignments.items())
    assert broken_promises(balance(more, new.parts)) == []


def test_one_source_alone_splits_as_if_there_were_no_sources():
    configs = make_configs(400)
    sources = {"source": np.full(400, "uniform"), "round": np.zeros(400, np.int64), "release": np.full(400, "")}
    assert partition(record({**configs, **sources}), seed=1).digest == "08df037090b12713"
