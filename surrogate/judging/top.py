"""Quality of the models where optimisers search (full size, best configs), and of fits without one source.

Errors are in units of the standard deviation between seeds of these configs. The 90 % bootstrap intervals resample
configs; the ceiling and the unit are held fixed. A figure that lacks data has no value, only the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.schema import SOURCES
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Facts, Rows, group_numbers, is_full_size, join_rows
from surrogate.judging.agreement import agreement, ceiling, first_seed, last_and_first
from surrogate.models.model import Surrogate, fit_surrogate
from surrogate.models.teacher import has_enough
from workshop.measured import rows_of
from workshop.ranks import kendall_tau, spearman
from workshop.resampling import bootstrap_estimates, within_configs

_Floats = NDArray[np.float64]

FEWEST: Final = 6  # configs that a mean, a correlation or a standard deviation needs
_Z: Final = 1.645
_SURE: Final = 0.95
_N_PAIRS: Final = 2000
_BEST: Final = 0.01  # share of a sample
_METRIC: Final = "valid_acc"
_FEWEST_OF_SOURCE: Final = 8  # test configs
_SCORES: Final = ("r2", "tau")


def figure(value: float | None, *, interval: tuple[float, float] | None = None, n: int = 0, missing: str = "") -> Facts:
    """Return a figure of n configs, or of n fits; without a value, `missing` says which data are missing."""
    return {"value": value, "interval": interval, "n": n, "missing": missing}


def not_measured(missing: str) -> Facts:
    """Return a figure without a value."""
    return figure(None, missing=missing)


def full_rows(rows: Rows, *, epoch: int) -> Rows:
    """Return the rows at full size and at one epoch."""
    return rows.take(is_full_size(rows.X) & (rows.epoch == epoch))


def seed_sd(rows: Rows) -> tuple[float | None, int]:
    """Return the pooled standard deviation between seeds of a config at one epoch, and the number of such configs."""
    _, _, freedom, squares = within_configs(rows.config_id, rows.y)
    if not freedom.any():
        return None, 0
    return math.sqrt(float(squares.sum()) / int(freedom.sum())), int((freedom > 0).sum())


def best_tenth(rows: Rows, predicted: _Floats, repeats: Rows, repeats_predicted: _Floats) -> dict[str, Facts]:
    """Return MAE and bias (predicted minus measured) of the predicted best tenth, in standard deviations between seeds.

    Args:
        rows: measurements at full size and the last epoch; the first seed of a config counts.
        predicted: the prediction for each row.
        repeats: repeated measurements; the standard deviation is over configs predicted as good as the best tenth.
        repeats_predicted: the prediction for each of these.
    """
    names = ("mae", "bias")
    is_first = first_seed(rows)
    y, p = rows.y[is_first], predicted[is_first]
    n_best = len(y) // 10
    if n_best < FEWEST:
        return dict.fromkeys(names, not_measured(f"{len(y)} of {10 * FEWEST} configs needed at full size"))
    least = np.sort(p)[-n_best]
    sd, n_repeated = seed_sd(repeats.take(repeats_predicted >= least))
    if n_repeated < FEWEST or not sd:
        missing = f"{n_repeated} repeated configs among the predicted best; {FEWEST} are needed"
        return dict.fromkeys(names, not_measured(missing))
    unit = sd

    def errors(at: NDArray[np.intp]) -> _Floats:
        best = at[np.argsort(-p[at], kind="stable")[:n_best]]
        error = p[best] - y[best]
        return np.array([np.abs(error).mean(), error.mean()]) / unit

    return dict(zip(names, bootstrapped(errors, len(y), n_best), strict=True))


def top_quarter(rows: Rows, predicted: _Floats, repeats: Rows) -> Facts:
    """Return Kendall's tau in the measured top quarter as a share of its ceiling.

    The ceiling is tau between two seeds of the `repeats` whose earlier training is in that quarter.
    """
    is_first = first_seed(rows)
    y, p = rows.y[is_first], predicted[is_first]
    if len(y) // 4 < FEWEST:
        return not_measured(f"{len(y)} of {4 * FEWEST} configs needed at full size")
    least = float(np.quantile(y, 0.75))
    is_top = y >= least
    y, p = y[is_top], p[is_top]
    bound = ceiling(_METRIC, repeats, repeats.y >= least)
    n_repeated = bound["n"] or 0
    if n_repeated < FEWEST:
        return not_measured(f"{n_repeated} repeated configs in the measured top quarter; {FEWEST} are needed")
    top = bound["tau"] or 0.0
    if top <= 0:
        return not_measured("two seeds agree by chance alone in the measured top quarter; more repeats are needed")
    return bootstrapped(lambda at: kendall_tau(y[at], p[at]) / top, len(y), len(y))[0]


def search_gap(trained: Sequence[_Floats], predicted: _Floats) -> Facts:
    """Return the mean of measured minus predicted over the final configs of a search, in sd between seeds.

    Args:
        trained: the accuracies of each config's seeds.
        predicted: predictions made before they were trained.
    """
    means = np.array([values.mean() for values in trained])
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in trained)
    freedom = sum(len(values) - 1 for values in trained)
    if len(trained) < FEWEST or not freedom or not squares:
        return not_measured(f"{len(trained)} final configs of a search are trained with two seeds; {FEWEST} are needed")
    gaps = (means - predicted) / math.sqrt(squares / freedom)
    return bootstrapped(lambda at: gaps[at].mean(), len(gaps), len(gaps))[0]


def overlap(predicted: Sequence[_Floats]) -> dict[str, Facts]:
    """Return the agreement of refits on the best configs of a sample, averaged over pairs of refits.

    `overlap` is the share of one refit's best that are among the other's. `tau` is Kendall's tau over the configs that
    are among the best of either. The intervals come from leaving out one refit at a time. Equal predictions of a refit
    are in random order: in one order for all, constant refits would agree.

    Args:
        predicted: the predictions of every refit for the same configs; the best 1 % of them count.
    """
    n_best = max(1, round(_BEST * len(predicted[0])))
    tied = (np.random.default_rng(k).permutation(len(values)) for k, values in enumerate(predicted))
    tops = [set(np.lexsort((tie, -values))[:n_best].tolist()) for tie, values in zip(tied, predicted, strict=True)]
    pairs = list(combinations(range(len(predicted)), 2))
    shared = np.array([len(tops[a] & tops[b]) / n_best for a, b in pairs])
    taus = []
    for a, b in pairs:
        at = sorted(tops[a] | tops[b])
        taus.append(kendall_tau(predicted[a][at], predicted[b][at]))
    return {
        "overlap": _jackknifed(shared, pairs, len(predicted)),
        "tau": _jackknifed(np.array(taus), pairs, len(predicted)),
    }


def least_difference(predicted: _Floats, truths: _Floats, *, n_runs: int = 1) -> Facts:
    """Return the least difference between two predictions that has the right sign for 95 % of the truths.

    The error of a difference is taken not to depend on the difference. Predictions and truths are means over `n_runs`
    configs each, drawn with replacement. The interval resamples the configs, or several truths.

    Args:
        predicted: predictions for the best configs.
        truths: what decides which of two configs is better, such as trainings or refits, (n_truths, n_configs).
    """
    if len(predicted) < FEWEST:
        return not_measured(f"{len(predicted)} of {FEWEST} configs needed among the predicted best")
    if np.ptp(predicted) == 0:
        return not_measured("the same is predicted for all of the best configs")
    configs = np.arange(len(predicted))

    def difference(truth: _Floats, at: NDArray[np.intp]) -> float:
        drawn = np.random.default_rng(0).choice(at, (2, _N_PAIRS, n_runs))
        one, other = predicted[drawn].mean(axis=-1)
        true_means = truth[:, drawn].mean(axis=-1)
        gap, true_gap = one - other, true_means[:, 0] - true_means[:, 1]
        too_small = (gap - true_gap) * np.sign(gap)
        return max(float(np.quantile(too_small[:, gap != 0], _SURE)), 0.0)

    if len(truths) > 1:
        return bootstrapped(lambda at: difference(truths[at], configs), len(truths), len(truths))[0]
    return bootstrapped(lambda at: difference(truths, at), len(configs), len(configs))[0]


def size_correlations(bases: NDArray[np.int64], rows: Rows, predicted: _Floats) -> dict[str, Facts]:
    """Return the mean rank correlation between two sizes, measured and predicted, and their difference.

    Each pair of fidelity groups that share at least `FEWEST` configs counts once.

    Args:
        bases: equal numbers for configs that differ in N, W and Resolution alone, (n_rows,).
        rows: one row of each config, at the last epoch.
        predicted: predictions of models that were fitted to no config of the same base.
    """
    groups = group_numbers(rows.X)
    at = {(int(base), int(group)): i for i, (base, group) in enumerate(zip(bases, groups, strict=True))}
    names = ("measured", "predicted", "difference")
    pairs = [
        [(at[base, a], at[base, b]) for base in np.unique(bases).tolist() if {(base, a), (base, b)} <= at.keys()]
        for a, b in combinations(np.unique(groups).tolist(), 2)
    ]
    paired = [np.array(members) for members in pairs if len(members) >= FEWEST]  # (n_shared, 2) row numbers
    if not paired:
        return dict.fromkeys(names, not_measured(f"no two sizes share {FEWEST} configs; propose and train `paired`"))
    shared_bases = np.unique(bases[np.concatenate(paired)])

    def correlate(drawn: NDArray[np.intp]) -> _Floats:
        n_drawn = np.bincount(drawn, minlength=len(shared_bases))
        means = []
        for members in paired:
            a, b = np.repeat(members, n_drawn[np.searchsorted(shared_bases, bases[members[:, 0]])], axis=0).T
            if len(a) > 2:
                means.append([spearman(values[a], values[b]) for values in (rows.y, predicted)])
        both = np.nanmean(np.array(means), axis=0)
        return np.array([*both, both[1] - both[0]])

    return dict(zip(names, bootstrapped(correlate, len(shared_bases), len(shared_bases)), strict=True))


def bootstrapped(score: Callable[[NDArray[np.int64]], ArrayLike], n_rows: int, n: int) -> list[Facts]:
    """Return scores of rows with their intervals, as figures of n configs."""
    estimates = bootstrap_estimates(score, n_rows, level=0.9, n_resamples=500)
    return [figure(estimate.value, interval=(estimate.low, estimate.high), n=n) for estimate in estimates]


def _jackknifed(values: _Floats, pairs: Sequence[tuple[int, int]], n: int) -> Facts:
    if np.isnan(values).any():
        return not_measured("some refits predict the same for all of their best configs")
    mean = float(np.mean(values))
    means = [np.mean([v for v, pair in zip(values, pairs, strict=True) if out not in pair]) for out in range(n)]
    reach = _Z * math.sqrt((n - 1) * float(np.var(means))) if n > 2 else math.nan
    ends = np.clip([mean - reach, mean + reach], -1.0, 1.0).tolist()
    return figure(mean, interval=None if math.isnan(reach) else (ends[0], ends[1]), n=n)


def leave_sources_out(measured: Measurements, parts: Mapping[str, Rows], fitted: Surrogate) -> list[Facts]:
    """Return, for each source, R2 and tau on its test configs of `fitted`, a model of train, and of one without it.

    The difference shows how much a source helps to predict its own configs (NAS-Bench-301, tables 6 and 7).
    Scores are for the last epoch and first seeds; None if the source has fewer than eight test configs, or if no
    training config is left without it. `ceiling` is the noise ceiling of tau, from all repeated configs of the source.
    With one source, there is nothing to leave out.
    """
    if len(np.unique(measured.configs["source"])) < 2:
        return []
    train, test, every = parts["train"], parts["test"], join_rows(list(parts.values()))
    every = every.take(every.epoch == measured.task.max_epoch)
    of_every = rows_of(measured.configs, every.config_id)["source"]
    test = test.take(last_and_first(test))
    trained, tested = (rows_of(measured.configs, rows.config_id)["source"] for rows in (train, test))
    results = []
    for source in SOURCES:
        is_in, is_test = trained == source, tested == source
        counts = {"n_train": train.take(is_in).n_configs, "n_test": int(is_test.sum())}
        if not any(counts.values()):
            continue
        source_test, other_train = test.take(is_test), train.take(~is_in)
        bound = ceiling(fitted.metric, every.take(of_every == source))["tau"]
        facts: Facts = {"source": source, **counts, "with": None, "without": None, "ceiling": bound}
        if counts["n_test"] >= _FEWEST_OF_SOURCE and has_enough(other_train, fitted.settings):
            ablated = fit_surrogate(fitted.metric, other_train, measured.task, settings=fitted.settings)
            for name, model in (("with", fitted), ("without", ablated)):
                scores = agreement(fitted.metric, source_test.y, model.predict(source_test.X))
                facts[name] = {score: scores[score] for score in _SCORES}
        results.append(facts)
    return results
