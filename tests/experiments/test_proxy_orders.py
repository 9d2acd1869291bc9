"""Measures of proxies: known orders, missing scores, seeds, and what is left out where there is too little."""

import numpy as np
import pytest

from experiments.analysis.proxy_orders import (
    MEASURES,
    PAPER,
    last_where_missing,
    places,
    seeds_of,
    summary,
    with_references,
)
from jahs.schema import PROXIES

TRUTH = np.arange(200.0)


def test_the_same_order_agrees_wholly_and_the_reverse_not_at_all():
    found = summary({"same": TRUTH[None] ** 3, "reverse": -TRUTH[None]}, TRUTH, n_resamples=5).found
    for measure in MEASURES:
        if measure.endswith("top_0.01"):  # two configs of 200 are too few to rank
            assert found["same"][measure]["mean"] is None
            continue
        same = found["same"][measure]
        assert [same[key] for key in ("mean", "low", "high")] == pytest.approx([1, 1, 1])
        assert same["sd"] is None, "one seed"
    assert found["reverse"]["spearman"]["mean"] == pytest.approx(-1)
    assert found["reverse"]["kendall_top_0.1"]["mean"] == pytest.approx(-1)
    assert found["reverse"]["webber_0.01"]["mean"] < 0.01


def test_an_order_that_is_right_only_at_the_bottom_has_a_high_rho_and_no_overlap():
    scores = TRUTH.copy()
    scores[-20:] = scores[-20:][::-1] - 100
    found = summary({"bottom": scores[None]}, TRUTH, n_resamples=0).found["bottom"]
    assert found["spearman"]["mean"] > 0.7
    assert found["benchmark_0.01"]["mean"] < 0.05
    assert found["spearman_top_0.1"]["mean"] == pytest.approx(-1)
    assert found["spearman"]["low"] is None


def test_seeds_have_a_mean_and_a_deviation_and_missing_scores_rank_last():
    other = TRUTH.copy()
    other[:50] = np.nan
    both = summary({"two": np.stack([TRUTH, -TRUTH]), "missing": other[None]}, TRUTH, n_resamples=0).found
    assert both["two"]["spearman"]["mean"] == pytest.approx(0)
    assert both["two"]["spearman"]["sd"] == pytest.approx(np.sqrt(2))
    assert both["missing"]["spearman"]["mean"] > 0.9
    assert last_where_missing(np.array([np.nan, -5.0])).tolist() == [-np.inf, -5.0]


def test_too_few_configs_have_no_measure():
    found = summary({"few": TRUTH[None, :4]}, TRUTH[:4]).found["few"]
    assert all(of[key] is None for of in found.values() for key in ("mean", "low", "high"))


def test_a_random_order_has_the_expected_overlap_and_no_rho():
    found = summary(with_references({"ntk": TRUTH[None]}), TRUTH, n_resamples=0).found
    assert found["ntk, least first"]["spearman"]["mean"] == pytest.approx(-1)
    assert found["random order"]["spearman"]["mean"] is None
    drawn = np.random.default_rng(0).random((100, len(TRUTH)))
    expected = summary({"drawn": drawn}, TRUTH, n_resamples=0).found["drawn"]
    for measure in ("webber_0.1", "benchmark_0.1"):
        assert found["random order"][measure]["mean"] == pytest.approx(expected[measure]["mean"], rel=0.15)


def test_places_are_from_the_lowest_and_break_ties_at_random():
    rng = np.random.default_rng(0)
    assert places(np.array([3.0, 1.0, 2.0]), rng).tolist() == [2, 0, 1]
    assert len({tuple(places(np.zeros(3), rng).tolist()) for _ in range(50)}) == 6


def test_seeds_with_which_not_every_config_was_scored_are_left_out():
    scored = {
        "config_id": np.array([7, 7, 8, 9, 9], np.uint64),
        "seed": np.array([0, 2, 0, 0, 2]),
        "snip": np.array([1.0, 2.0, np.nan, 3.0, 4.0]),
    }
    np.testing.assert_array_equal(seeds_of(scored, "snip", np.array([7, 8, 9], np.uint64)), [[1, np.nan, 3]])
    np.testing.assert_array_equal(seeds_of(scored, "snip", np.array([7, 9], np.uint64)), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(seeds_of(scored, "snip", np.array([7, 10], np.uint64)), [[np.nan, np.nan]])


def test_the_papers_proxies_are_all_of_ours_but_one():
    assert (*PAPER, "naswot") == PROXIES


def planted(n, *, is_apart):
    """Proxies that order everything well but for the top, or for nothing else, and others halfway."""
    rng = np.random.default_rng(1)
    truth = np.arange(float(n))
    is_top = truth >= 0.9 * n
    scores = {}
    for i, name in enumerate(PAPER):
        noise = rng.normal(0, n, n) * (0.1 + i / 4)
        own = truth + noise
        if is_apart:  # the better over all, the worse at the top
            top = truth + rng.normal(0, n, n) * (3 - i / 4)
            own = np.where(is_top, n + top, own)
        scores[name] = own[None]
    return scores, truth


def test_orders_of_proxies_differ_beyond_noise_where_it_was_planted_and_not_elsewhere():
    for is_apart in (True, False):
        orders = summary(*planted(600, is_apart=is_apart), n_resamples=40).orders
        (of_top,) = [each for each in orders if (each["form"], each["share"]) == ("benchmark", 0.1)]
        assert -1 <= of_top["low"] <= of_top["high"] <= 1
        assert (of_top["apart"] >= 0.95) == is_apart


def test_without_resamples_orders_have_no_noise():
    (first, *_) = summary(*planted(60, is_apart=False), n_resamples=0).orders
    assert (first["low"], first["again"], first["apart"]) == (None, None, None)
    assert first["best_by_rho"] in PAPER
