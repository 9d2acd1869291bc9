"""Critical differences, what holds on refits, and agreement of orders."""

import numpy as np
import pytest

from experiments.analysis.critical_differences import (
    compare_groups,
    crossed_variances,
    mean_with_refits,
    rank_agreement,
)
from jahs.comparison.ranks import holm


def compare(values):
    (found,) = compare_groups([(values, None)])
    return found


def arms(n_blocks=20):
    rng = np.random.default_rng(1)
    base = rng.normal(0, 1, n_blocks)
    return np.stack([base + shift + rng.normal(0, 0.1, n_blocks) for shift in (0.0, 0.02, 1.0, 2.0)])


def test_arms_that_cannot_be_told_apart_form_a_clique():
    found = compare(arms())
    assert found.cliques == ((0, 1),) or found.cliques == ((1, 0),)
    assert found.mean_ranks[2:].tolist() == [3, 4]
    assert found.mean_ranks.sum() == pytest.approx(10)
    p = {(pair.one, pair.other): pair for pair in found.pairs}
    assert p[0, 1].p_holm > 0.05 > p[0, 2].p_holm


def test_holm_is_over_the_pairs_of_all_groups():
    alone, family = compare(arms()), compare_groups([(arms(), None), (arms(30)[:3], None)])
    assert (alone.n_family, family[0].n_family, family[1].n_family) == (6, 9, 9)
    p_values = np.array([pair.p for each in family for pair in each.pairs])
    assert [pair.p_holm for each in family for pair in each.pairs] == holm(p_values).tolist()
    for one, other in zip(alone.pairs, family[0].pairs, strict=True):
        assert one.p == other.p
        assert one.p_holm <= other.p_holm


def test_what_does_not_hold_on_nearly_all_refits_does_not_differ():
    values = arms()
    on_refits = np.repeat(values[:, None, :4], 20, axis=1)
    on_refits[2, 0] -= 1.0  # on one refit of twenty, the third arm is as good as the first
    on_refits[3, ::2] -= 3.0  # on every other refit, the fourth arm is better
    pairs = {(pair.one, pair.other): pair for pair in compare_groups([(values, on_refits)])[0].pairs}
    assert pairs[0, 2].is_significant
    assert pairs[0, 2].differs
    assert pairs[0, 3].is_significant
    assert pairs[0, 3].holds < 0.9
    assert not pairs[0, 3].differs
    assert all(pair.holds is None for pair in compare(values).pairs)


@pytest.mark.parametrize("n_few", [2, 6])
def test_what_is_significant_holds_if_every_refit_is_the_released_model(n_few):
    rng = np.random.default_rng(0)
    n_significant = n_held = 0
    for _ in range(50):
        values = np.array([[0.0], [0.5], [1.0]]) + rng.normal(0, 1, (3, 30))
        on_refits = np.repeat(values[:, None, :n_few], 8, axis=1)  # whatever luck these few seeds have
        significant = [pair for pair in compare_groups([(values, on_refits)])[0].pairs if pair.is_significant]
        n_significant += len(significant)
        n_held += sum(pair.differs for pair in significant)
    assert n_significant > 50
    assert n_held == n_significant


def test_one_seed_on_refits_says_nothing_about_them():
    values = arms()
    for pair in compare_groups([(values, values[:, None, :1].repeat(8, axis=1))])[0].pairs:
        assert (pair.holds, pair.mean) == (None, None)
        assert pair.differs == pair.is_significant


def test_a_difference_that_seeds_alone_hide_on_some_refits_holds():
    rng = np.random.default_rng(3)
    on_refits = np.zeros((4, 8, 10))
    on_refits[2] = 0.3 + rng.normal(0, 1, (8, 10))  # every refit is the same model, and its ten seeds are noise
    on_refits[3] = 0.3 + rng.normal(0, 1, (8, 1)) + rng.normal(0, 0.1, (8, 10))  # refits are different models
    assert ((on_refits.mean(axis=2)[2:] > 0).mean(axis=1) < 0.95).all()
    pairs = {(pair.one, pair.other): pair for pair in compare_groups([(arms(), on_refits)])[0].pairs}
    assert pairs[0, 2].is_significant
    assert pairs[0, 2].differs
    assert pairs[0, 3].is_significant
    assert not pairs[0, 3].differs
    assert pairs[0, 3].holds < 0.9


def test_variances_of_crossed_refits_and_seeds_are_those_that_made_the_values():
    rng = np.random.default_rng(0)

    def values():
        return 2 * rng.normal(size=(8, 1)) + 3 * rng.normal(size=(1, 10)) + rng.normal(size=(8, 10))

    found = np.mean([crossed_variances(values()) for _ in range(400)], axis=0)
    assert found == pytest.approx([4, 9, 1], rel=0.1)
    assert crossed_variances(np.arange(8.0)[:, None] + np.zeros((8, 3))) == pytest.approx((6, 0, 0))
    assert np.isnan(crossed_variances(np.ones((1, 3)))).all()


def test_cliques_may_overlap_and_a_smaller_one_inside_is_not_named():
    # 0 and 2 differ clearly; 1 lies between and differs from neither.
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, 60)
    values = np.stack([np.zeros(60) + 0.01 * rng.normal(size=60), noise + 0.3, np.full(60, 0.6)])
    found = compare(values)
    differ = {(pair.one, pair.other) for pair in found.pairs if pair.p_holm < 0.05}
    assert (0, 2) in differ
    for clique in found.cliques:
        assert not any((min(i, j), max(i, j)) in differ for i in clique for j in clique if i != j)
    assert len(set(found.cliques)) == len(found.cliques)


def test_alike_arms_are_one_clique_and_nothing_is_significant():
    found = compare(np.ones((3, 5)))
    assert found.cliques == ((0, 1, 2),)
    assert all(pair.p_holm == 1 for pair in found.pairs)


def test_an_arm_without_results_is_last():
    values = np.array([[1.0, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2.5], [np.nan] * 6])
    found = compare(values)
    assert found.mean_ranks.tolist() == [1, 2, 3]


def test_agreement_of_one_order_is_1_and_of_the_reverse_is_minus_1():
    world = np.arange(4.0)[:, None] + np.zeros((4, 6))
    assert rank_agreement(world, world * 3 + 1, has_same_seeds=False, n_resamples=50).value == 1
    assert rank_agreement(world, -world, has_same_seeds=False, n_resamples=50).value == -1
    noisy = np.random.default_rng(0).normal(0, 1, (4, 6))
    found = rank_agreement(world, noisy, has_same_seeds=False, n_resamples=200)
    assert found.low < found.high


def test_an_interval_of_tau_contains_the_estimate_and_few_seeds_have_none():
    # Arms are close, so their order is the same in both worlds and in hardly any resample.
    world = 0.01 * np.arange(8.0)[:, None] + np.random.default_rng(2).normal(0, 1, (8, 30))
    world += 0.01 * np.arange(8.0)[:, None] - world.mean(axis=1, keepdims=True)
    other = world[:, ::-1]
    found = rank_agreement(world, other, has_same_seeds=False, n_resamples=200)
    assert (found.value, found.high) == (1, 1)
    assert found.low < 0.6
    few = rank_agreement(world[:, :5], other[:, :5], has_same_seeds=True)
    assert np.isfinite(few.value)
    assert np.isnan([few.low, few.high]).all()


def test_worlds_that_are_the_same_agree_in_every_resample_of_the_same_seeds():
    world = np.random.default_rng(1).normal(0, 1, (4, 10))
    found = rank_agreement(world, world.copy(), has_same_seeds=True, n_resamples=100)
    assert (found.low, found.value, found.high) == (1, 1, 1)
    assert rank_agreement(world, world.copy(), has_same_seeds=False, n_resamples=100).low < 1


def test_a_direction_is_that_of_the_rank_test_even_if_the_mean_has_the_other_sign():
    one = np.linspace(0.1, 0.2, 100)
    one[:12] -= 3  # worse in 88 of 100 blocks, much better in 12
    values = np.stack([one, np.zeros(100)])
    on_refits = np.repeat(np.repeat(np.array([[1.0], [0.0]]), 8, axis=1)[:, :, None], 3, axis=2)  # worse on all refits
    (pair,) = compare_groups([(values, on_refits)])[0].pairs
    assert one.mean() < 0 < pair.rank_sum
    assert pair.rank_sum == sum(range(1, 89)) - sum(range(89, 101))
    assert pair.is_significant
    assert (pair.holds, pair.differs) == (1.0, True)
    (reverse,) = compare_groups([(values[::-1], on_refits[::-1])])[0].pairs
    assert (reverse.rank_sum, reverse.holds) == (-pair.rank_sum, 1.0)


def test_friedman_finds_an_arm_that_is_always_best_and_nothing_among_equals():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 30))
    assert compare(values).p_friedman > 0.01
    values[0] -= 10
    assert compare(values).p_friedman < 1e-6
    assert compare(np.ones((3, 5))).p_friedman == 1.0
    assert np.isnan(compare(values[:2]).p_friedman)


def test_an_interval_with_refits_holds_the_mean_of_all_models_and_one_over_seeds_does_not():
    rng = np.random.default_rng(3)
    held = held_by_seeds = 0
    for _ in range(300):
        of_models = rng.normal(0, 1, (9, 1)) + rng.normal(0, 0.5, (1, 30)) + rng.normal(0, 0.5, (9, 30))
        found = mean_with_refits(of_models[0], of_models[1:, :5])
        held += found.low < 0 < found.high
        held_by_seeds += abs(of_models[0].mean()) < 2 * of_models[0].std(ddof=1) / 30**0.5
    assert 0.88 < held / 300 < 0.98
    assert held_by_seeds / 300 < 0.4
    one_seed = mean_with_refits(np.array([3.0]), np.ones((2, 1)))
    assert one_seed.value == 3.0
    assert np.isnan(one_seed.low)


def test_a_pair_has_its_mean_difference_and_refits_that_agree_add_nothing_to_its_interval():
    rng = np.random.default_rng(0)
    values, seeds = rng.normal(size=(2, 20)), rng.normal(size=(2, 1, 5))
    (pair,) = compare_groups([(values, np.repeat(seeds, 4, axis=1))])[0].pairs
    apart = values[0] - values[1]
    assert pair.mean is not None
    assert pair.mean.value == pytest.approx(apart.mean())
    assert pair.mean.high - pair.mean.low == pytest.approx(2 * 2.0930 * apart.std(ddof=1) / 20**0.5, rel=1e-4)
    assert compare(values).pairs[0].mean is None
