"""The figures of the top, on made-up rows whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from surrogate.data.rows import Rows, join_rows
from surrogate.judging.top import (
    best_tenth,
    full_rows,
    least_difference,
    overlap,
    search_gap,
    seed_sd,
    size_correlations,
    top_quarter,
)

FULL = {"N": 5, "W": 16, "Resolution": 1.0}


def rows_of(y: np.ndarray, *, seeds: np.ndarray | None = None, ids: np.ndarray | None = None, **sizes: float) -> Rows:
    n = len(y)
    X = encode(space({**FULL, **sizes}).sample_columns(n, seed=0), 9)
    ids = np.arange(n) if ids is None else ids
    seeds = np.zeros(n) if seeds is None else seeds
    return Rows(X=X, y=y.astype(float), config_id=ids.astype(np.uint64), seed=seeds.astype(np.int64))


def repeated(truth: np.ndarray, sd: float, *, seed: int = 0) -> Rows:
    """Every config with two seeds."""
    rng = np.random.default_rng(seed)
    n = len(truth)
    y = np.concatenate([truth + rng.normal(0, sd, n) for _ in range(2)])
    return rows_of(y, ids=np.tile(np.arange(n), 2), seeds=np.repeat([0, 1], n))


def test_rows_at_full_size_are_those_of_one_group_and_one_epoch() -> None:
    rows = rows_of(np.arange(5.0))
    assert len(full_rows(rows, epoch=9)) == 5
    assert len(full_rows(rows, epoch=8)) == 0
    assert len(full_rows(rows_of(np.arange(5.0), N=3), epoch=9)) == 0


def test_the_unit_is_the_pooled_spread_between_seeds() -> None:
    sd, n = seed_sd(repeated(np.linspace(80, 90, 4000), 0.5))
    assert sd == pytest.approx(0.5, abs=0.02)
    assert n == 4000
    assert seed_sd(rows_of(np.arange(9.0))) == (None, 0)


def test_the_best_tenth_is_judged_in_units_of_the_seeds() -> None:
    truth = np.linspace(50, 90, 4000)
    rows = repeated(truth, 0.5)
    predicted = np.tile(truth + 1.0, 2)
    figures = best_tenth(rows, predicted, rows, predicted)
    assert figures["bias"]["value"] == pytest.approx(2.0, abs=0.25)
    assert figures["mae"]["value"] == pytest.approx(2.1, abs=0.25)
    assert figures["mae"]["n"] == 400
    low, high = figures["bias"]["interval"] or (0, 0)
    assert low < 2 < high < 3


@pytest.mark.parametrize(("n", "missing"), [(59, "59 of 60 configs needed"), (60, "0 repeated configs among")])
def test_too_few_configs_or_repeats_give_no_number(n: int, missing: str) -> None:
    rows = rows_of(np.linspace(50, 90, n))
    figure = best_tenth(rows, rows.y, rows, rows.y)["mae"]
    assert figure["value"] is None
    assert missing in figure["missing"]
    assert top_quarter(rows, rows.y, rows)["value"] is None


def test_the_top_quarter_is_a_share_of_what_two_seeds_agree_by() -> None:
    truth = np.linspace(80, 90, 4000)
    rows = repeated(truth, 0.7)
    second = repeated(truth, 0.7, seed=1).y[:4000]  # another training of each predicts as well as the second seed
    figure = top_quarter(rows, np.tile(second, 2), rows)
    assert figure["value"] == pytest.approx(1.0, abs=0.1)
    assert figure["n"] == 1000
    assert top_quarter(rows, -rows.y, rows)["value"] < -1


def test_the_gap_of_a_search_is_trained_minus_predicted() -> None:
    trained = [np.array([86.0, 87.0])] * 10
    figure = search_gap(trained, np.full(10, 86.0))
    assert figure["value"] == pytest.approx(0.5 / np.sqrt(0.5))
    assert search_gap(trained[:5], np.full(5, 86.0))["value"] is None


def test_refits_that_agree_overlap_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=2000)
    same = overlap([one, one.copy(), one.copy()])
    assert same["overlap"]["value"] == same["tau"]["value"] == 1
    other = overlap([one, rng.normal(size=2000), rng.normal(size=2000)])
    assert other["overlap"]["value"] < 0.2
    assert abs(other["tau"]["value"] - -0.5) < 0.5


def test_refits_that_cannot_tell_their_best_configs_apart_do_not_agree() -> None:
    assert overlap([np.zeros(2000)] * 8)["overlap"]["value"] < 0.05
    assert least_difference(np.full(50, 70.0), np.random.default_rng(0).normal(70, 1, (8, 50)))["value"] is None


def test_correlations_between_sizes_are_measured_and_predicted_on_the_same_pairs() -> None:
    base = np.linspace(60, 90, 30)
    small, large = rows_of(base, ids=np.arange(30), N=1), rows_of(base[::-1].copy(), ids=np.arange(30, 60))
    rows = join_rows([small, large])
    bases = np.tile(np.arange(30), 2)
    figures = size_correlations(bases, rows, np.tile(base, 2))
    assert (figures["measured"]["value"], figures["predicted"]["value"]) == (pytest.approx(-1), pytest.approx(1))
    assert figures["difference"]["value"] == pytest.approx(2)
    assert figures["difference"]["n"] == 30
    assert size_correlations(np.arange(60), rows, rows.y)["measured"]["value"] is None


@pytest.mark.parametrize("n_truths", [1, 8])
def test_the_least_difference_follows_from_the_errors_and_shrinks_with_the_root_of_the_runs(n_truths: int) -> None:
    rng = np.random.default_rng(0)
    predicted = rng.normal(70, 1, 400)
    truths = predicted + rng.normal(3, 0.5, (n_truths, 400))  # all too low by 3 points, which decides nothing
    one, ten = (least_difference(predicted, truths, n_runs=n) for n in (1, 10))
    assert one["value"] == pytest.approx(1.645 * 0.5 * 2**0.5, rel=0.1)
    assert ten["value"] == pytest.approx(one["value"] / 10**0.5, rel=0.1)
    assert one["interval"][0] < one["value"] < one["interval"][1]
    assert one["n"] == (400 if n_truths == 1 else 8)


def test_equal_truths_bear_out_any_difference_and_few_configs_none() -> None:
    predicted = np.linspace(60, 70, 30)
    assert least_difference(predicted, predicted[None])["value"] == pytest.approx(0, abs=1e-9)
    assert least_difference(predicted[:5], predicted[None, :5])["missing"].startswith("5 of 6 configs needed")
