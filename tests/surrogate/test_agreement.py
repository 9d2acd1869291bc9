"""Scores: known values, and ceilings that are what a second training reaches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surrogate.data.rows import Rows, assemble, by_part, group_numbers, join_rows
from surrogate.judging.agreement import (
    agreement,
    best_tenth,
    calibration,
    ceiling,
    epoch_bands,
    first_seed,
    last_and_first,
    score_rows,
    tau_by_epoch,
    tau_interval,
    within_groups,
)
from tests.surrogate.landscape import EPOCHS, measurements, split_of
from workshop.ranks import kendall_tau

MEASURED = measurements(8, noise=4.0)
PARTS = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
TRAIN = PARTS["train"]


def test_a_perfect_prediction_scores_one_and_errs_by_nothing() -> None:
    y = np.array([10.0, 50.0, 90.0, 20.0])
    assert agreement("valid_acc", y, y) == {
        "n": 4, "r2": 1.0, "tau": 1.0, "sparse_tau": 1.0, "rmse": 0.0, "mae": 0.0, "bias": 0.0,
        "calibration_slope": pytest.approx(1.0),
    }  # fmt: skip


def test_scores_of_a_worked_example() -> None:
    scores = agreement("valid_acc", np.array([10.0, 20.0, 30.0]), np.array([12.0, 30.0, 24.0]))
    assert scores["tau"] == pytest.approx(1 / 3)
    assert scores["r2"] == pytest.approx(1 - 140 / 200)
    assert scores["rmse"] == pytest.approx((140 / 3) ** 0.5)
    assert (scores["mae"], scores["bias"]) == (6.0, 2.0)


def test_what_is_not_defined_is_none() -> None:
    scores = agreement("valid_acc", np.array([5.0, 5.0]), np.array([5.0, 6.0]))
    assert (scores["tau"], scores["r2"]) == (None, None)
    assert agreement("latency", np.empty(0), np.empty(0))["rmse"] is None


def test_differences_under_a_tenth_of_a_point_are_ties_to_the_sparse_tau() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    wrong = np.array([10.02, 10.01, 20.0, 30.0])
    assert kendall_tau(y, wrong) == pytest.approx(4 / 6)
    assert agreement("valid_acc", y, wrong)["sparse_tau"] == pytest.approx(5 / 30**0.5)


def test_the_ceiling_is_the_agreement_of_two_seeds() -> None:
    runs = {s: TRAIN.take((TRAIN.seed == s) & (TRAIN.epoch == EPOCHS[-1])) for s in (0, 1, 2)}
    both = np.isin(runs[0].config_id, runs[1].config_id)
    taus = [
        kendall_tau(runs[0].y[both], runs[1].y),
        kendall_tau(runs[0].y[both], runs[2].y),
        kendall_tau(runs[1].y, runs[2].y),
    ]
    scores = ceiling("valid_acc", TRAIN.take(TRAIN.epoch == EPOCHS[-1]))
    assert scores["tau"] == pytest.approx(np.mean(taus))
    assert scores["n"] == both.sum()
    assert ceiling("valid_acc", TRAIN.take(TRAIN.seed == 0))["tau"] is None


def test_less_noise_raises_the_ceiling() -> None:
    quiet = measurements(8, noise=0.5)
    rows = by_part(assemble("valid_acc", quiet), split_of(quiet))["train"]
    loud, calm = ceiling("valid_acc", TRAIN)["tau"], ceiling("valid_acc", rows)["tau"]
    assert loud is not None
    assert calm is not None
    assert loud < calm - 0.05


def repeated(n: int, *, n_third: int, noise: float, seed: int = 0) -> tuple[Rows, np.ndarray]:
    """Two trainings of each config and three of the first ones, and yet another training of each row's config."""
    chance = np.random.default_rng(seed)
    config, of_seed = np.append(np.tile(np.arange(n), 2), np.arange(n_third)), np.repeat([0, 1, 2], [n, n, n_third])
    mean = chance.normal(70, 8, n)[config]
    X = np.repeat(TRAIN.X[TRAIN.epoch == EPOCHS[-1]][:1], len(config), axis=0)
    rows = Rows(X=X, y=mean + chance.normal(0, noise, len(config)), config_id=config.astype(np.uint64), seed=of_seed)
    return rows, mean + chance.normal(0, noise, len(config))


def test_a_ceiling_is_what_another_training_reaches_in_every_cut() -> None:
    rows, another = repeated(4000, n_third=0, noise=3.0)
    scored = score_rows("valid_acc", rows, another, rows)
    for cut in ("all", "last epoch", "best tenth"):
        model, top = scored[cut]["model"], scored[cut]["ceiling"]
        assert (model["tau"], model["r2"]) == (pytest.approx(top["tau"], abs=0.06), pytest.approx(top["r2"], abs=0.3))
        assert model["rmse"] == pytest.approx(top["rmse"], rel=0.08)
    assert scored["best tenth"]["model"]["rmse"] > scored["all"]["model"]["rmse"]  # the best were lucky, too


def test_a_config_whose_first_training_diverged_is_scored_by_the_next_one() -> None:
    rows, _ = repeated(3, n_third=3, noise=1.0)
    early = rows.take((rows.config_id == 1) & (rows.seed == 0))
    early.X[:, -1] = EPOCHS[0]
    both = join_rows([early, rows.take((rows.config_id != 1) | (rows.seed > 0))])
    chosen = both.take(last_and_first(both))
    assert sorted(zip(chosen.config_id.tolist(), chosen.seed.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 0)]


def test_a_pair_of_seeds_weighs_as_many_configs_as_it_has() -> None:
    taus = [ceiling("valid_acc", repeated(100, n_third=3, noise=3.0, seed=seed)[0]) for seed in range(40)]
    alone = [ceiling("valid_acc", repeated(100, n_third=0, noise=3.0, seed=seed)[0]) for seed in range(40)]
    assert {scores["n"] for scores in taus} == {100}
    spread, own = (float(np.std([s["tau"] or 0.0 for s in each])) for each in (taus, alone))
    assert spread < 1.5 * own


def test_every_row_of_a_first_seed_is_in_one_band_and_one_run_of_a_config_counts() -> None:
    scored = score_rows("valid_acc", TRAIN, TRAIN.y, TRAIN)
    n_first = int(first_seed(TRAIN).sum())
    assert scored["all"]["model"]["n"] == n_first
    assert sum(int(cut["model"]["n"] or 0) for name, cut in scored.items() if name.startswith("epochs")) == n_first
    assert scored["last epoch"]["model"]["n"] == len(np.unique(TRAIN.config_id))
    groups = [cut["model"]["n"] for name, cut in scored.items() if name.startswith("N=")]
    assert len(groups) == 27
    assert sum(int(n or 0) for n in groups) == len(np.unique(TRAIN.config_id))
    assert scored["best tenth"]["model"]["n"] < n_first / 20


def test_seconds_are_best_when_they_are_few() -> None:
    rows = Rows(
        X=TRAIN.X[:20], y=np.arange(1.0, 21.0), config_id=TRAIN.config_id[:20], seed=np.zeros(20, dtype=np.int64)
    )
    assert np.flatnonzero(best_tenth("latency", rows)).tolist() == [0, 1]
    assert np.flatnonzero(best_tenth("valid_acc", rows)).tolist() == [18, 19]


@given(st.integers(1, 300))
def test_bands_cover_every_epoch_once(max_epoch: int) -> None:
    covered = [e for first, last in epoch_bands(max_epoch) for e in range(first, last + 1)]
    assert covered == list(range(1, max_epoch + 1))


def test_ranking_groups_alone_is_worth_nothing_within_them() -> None:
    last = TRAIN.take((TRAIN.epoch == EPOCHS[-1]) & first_seed(TRAIN))
    assert within_groups(last, last.y) == 1.0
    assert within_groups(last, np.zeros(len(last))) is None
    assert abs(within_groups(last, np.random.default_rng(0).random(len(last))) or 0) < 0.3
    few = last.take(np.unique(group_numbers(last.X), return_index=True)[1])
    assert within_groups(few, few.y) is None


def test_the_interval_holds_tau_and_the_same_seed_gives_it_again() -> None:
    last = TRAIN.take((TRAIN.epoch == EPOCHS[-1]) & first_seed(TRAIN))
    predicted = last.y + np.random.default_rng(1).normal(0, 8, len(last))
    low, high = tau_interval(last, predicted, seed=0)
    assert low < kendall_tau(last.y, predicted) < high
    assert (low, high) == tau_interval(last, predicted, seed=0)


def test_the_interval_of_constant_answers_is_not_defined() -> None:
    assert tau_interval(TRAIN, np.zeros(len(TRAIN)), seed=0) is None


def test_a_calibrated_prediction_has_equal_means_in_every_decile() -> None:
    chance = np.random.default_rng(0)
    first = TRAIN.take(first_seed(TRAIN))
    predicted = first.y + chance.normal(0, 0.5, len(first))
    bins = calibration(first, predicted)
    assert len(bins) == 10
    assert sum(int(row["n"] or 0) for row in bins) == len(first)
    for row in bins:
        assert abs((row["predicted"] or 0) - (row["measured"] or 0)) < 5 * (row["spread"] or 0)
    off = calibration(first, first.y + 7)
    assert all((row["predicted"] or 0) - (row["measured"] or 0) == pytest.approx(7) for row in off)


def test_a_config_with_two_epochs_counts_once_in_the_error_of_a_bin() -> None:
    def spread(config_ids: list[int], error: list[float]) -> float | None:
        n = len(config_ids)
        rows = Rows(
            X=TRAIN.X[:n], y=np.zeros(n), config_id=np.array(config_ids, np.uint64), seed=np.zeros(n, dtype=np.int64)
        )
        return calibration(rows, np.array(error))[0]["spread"]

    assert spread([1, 2, 3], [0.0, 1.0, 5.0]) == pytest.approx(np.std([0, 1, 5], ddof=1) / np.sqrt(3))
    assert spread([1, 1, 2, 2], [0.0, 0.0, 5.0, 5.0]) == pytest.approx(spread([1, 2], [0.0, 5.0]))
    assert spread([7, 7, 7], [0.0, 1.0, 5.0]) is None


def test_few_rows_have_fewer_bins() -> None:
    assert [row["n"] for row in calibration(TRAIN.take(np.arange(7)), TRAIN.y[:7])] == [4, 3]


def test_each_epoch_has_its_own_tau_and_ceiling() -> None:
    taus = tau_by_epoch("valid_acc", TRAIN, TRAIN.y, TRAIN)
    assert [row["epoch"] for row in taus] == list(EPOCHS)
    assert all(row["tau"] == 1 for row in taus)
    at_end = ceiling("valid_acc", TRAIN.take(TRAIN.epoch == EPOCHS[-1]))["tau"]
    assert taus[-1]["ceiling"] == at_end
