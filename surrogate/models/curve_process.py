"""A Gaussian process that predicts the learning curves of configs.

A curve is the mean of the measured ones, plus its deviation at the last epoch times the regression of all epochs on it,
plus principal components of what remains. Each of these coefficients has a process of its own, with a Matérn 5/2
kernel and one length scale for each input (Rasmussen and Williams, 2006, chapter 5). The inputs are the features twice:
standardised, and as ranks, because rates and sizes span orders of magnitude.

Trainings that nearly fail differ more between seeds than those that succeed. Therefore a process with equal noise is
fitted first, and its leave-one-out errors among configs of similar predictions are the variances of the final noise.

Where hardly any config was measured, a process can predict more than any measured config reached, and a search ends
there. Capped predictions therefore assume that nothing is better than the best of the fitted configs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Matrix = NDArray[Any]  # Any: single or double precision

N_COMPONENTS: Final = 3
MOST_TO_TUNE: Final = 1000  # configs that length scales are fitted to
_FARTHEST: Final = 5.0  # most standard deviations between an input and the mean of the configs
_JITTER: Final = 1e-6
_N_STEPS: Final = 30
_NOISE: Final = 0.3  # where the fit starts, a share of the variance; from 0.05, some end at a far lower likelihood
_SCALES: Final = (math.log(0.1), math.log(1e3))
_N_NEAREST: Final = 151  # configs whose errors are averaged for the variance of the noise
_VARIANCES: Final = (0.2, 20.0)  # smallest and largest variance of the noise, relative to the median
_NEGLIGIBLE: Final = 1e-9
_NOISES: Final = (math.log(1e-4), 0.0)
_DECIMALS: Final = 2  # decimals of fitted logarithms, so that they do not depend on the last bit of a sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveProcess:
    """Fitted processes: `predict` returns the curves of configs."""

    # Scikit-learn's transformer of the features.
    inputs: Any  # scikit-learn has no types
    mean: _Floats  # mean of the curves, (n_epochs,)
    components: _Floats  # (n_components, n_epochs); at the last epoch, only the first is not 0
    processes: tuple[_Process, ...]  # one for each coefficient

    def predict(self, F: NDArray[np.float32], *, is_capped: bool = False) -> _Floats:
        """Return the curve of each config, (n, n_epochs), from its features at the last epoch.

        Args:
            is_capped: whether no last value can exceed the best of the fitted configs. The posterior of the last value
                is truncated there; its mean changes where it is both high and uncertain.
        """
        return self.mean + self._coefficients(F, self.processes, is_capped=is_capped) @ self.components

    def predict_last(self, F: NDArray[np.float32]) -> _Floats:
        """Return the last value of each curve, (n,)."""
        last: _Floats = self.mean[-1] + self._coefficients(F, self.processes[:1])[:, 0]
        return last

    def _coefficients(
        self, F: NDArray[np.float32], processes: Sequence[_Process], *, is_capped: bool = False
    ) -> _Floats:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

        first = processes[0]
        with threadpool_limits(1):
            Z = _inputs_of(self.inputs, F)
            found = np.column_stack([process.predict(Z) for process in processes])
            if is_capped:
                is_good = found[:, 0] > first.best - first.sd  # the others are too far below the best to change
                found[is_good, 0] = first.capped(Z[is_good], found[is_good, 0])
        return found


def fit_curves(F: NDArray[np.float32], curves: _Floats, n_trainings: _Floats) -> CurveProcess:
    """Fit curves, (n, n_epochs), to the features at the last epoch, (n, n_features).

    Args:
        n_trainings: number of trainings that each curve averages, (n,); more of them mean less noise.
    """
    from sklearn.feature_selection import VarianceThreshold  # type: ignore[import-untyped]  # ships no types
    from sklearn.pipeline import make_pipeline, make_union  # type: ignore[import-untyped]  # ships no types
    from sklearn.preprocessing import QuantileTransformer, StandardScaler  # type: ignore[import-untyped]  # ships no types
    from threadpoolctl import threadpool_limits

    ranks = make_pipeline(QuantileTransformer(n_quantiles=min(len(F), 200)), StandardScaler())
    inputs = make_pipeline(VarianceThreshold(), make_union(StandardScaler(), ranks))
    with threadpool_limits(1):
        inputs.fit(np.asarray(F, dtype=np.float64))
        Z = _inputs_of(inputs, F)
        mean = np.average(curves, axis=0, weights=n_trainings)
        coefficients, components = _basis(curves - mean)
        first = _fit(Z, coefficients[:, 0], 1 / n_trainings)
        errors = _leave_one_out_errors(first)
        variances = _local_variances(coefficients[:, 0] - errors, errors**2 * n_trainings) / n_trainings
        processes = tuple(_fit(Z, values, variances) for values in coefficients.T)
    return CurveProcess(inputs=inputs, mean=mean, components=components, processes=processes)


def _basis(deviations: _Floats) -> tuple[_Floats, _Floats]:
    """Return coefficients, (n, k), and components, (k, n_epochs), of deviations from the mean curve, (n, n_epochs)."""
    last = deviations[:, -1]
    slopes = last @ deviations / (last @ last)
    U, size, others = np.linalg.svd(deviations - np.outer(last, slopes), full_matrices=False)
    n_others = min(N_COMPONENTS - 1, int((size > _NEGLIGIBLE * np.linalg.norm(last)).sum()))
    coefficients = np.column_stack([last, U[:, :n_others] * size[:n_others]])
    return coefficients, np.vstack([slopes, others[:n_others]])


def _local_variances(predicted: _Floats, squares: _Floats) -> _Floats:
    """Return the mean of the squared errors of the configs with the nearest predictions, relative to their median."""
    from scipy.ndimage import uniform_filter1d

    order = np.argsort(predicted, kind="stable")
    means = np.empty(len(order))
    means[order] = uniform_filter1d(squares[order], min(_N_NEAREST, len(order)), mode="nearest")
    variances: _Floats = np.clip(means / np.median(means), *_VARIANCES)
    return variances


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Process:
    """One coefficient: scaled inputs of the configs, (n, d), and their weights in a prediction, (n,)."""

    scales: _Floats
    A: _Floats
    weights: _Floats
    mean: float
    sd: float  # of the values
    noise: float  # a share of their variance, for a relative variance of 1
    factor: _Floats  # lower Cholesky factor of the covariance of the values, relative to their variance
    best: float  # highest mean of the posterior at a fitted config

    def predict(self, Z: _Floats) -> _Floats:
        """Return the coefficient, (n,), in single precision, which is far more exact than the process is."""
        B, A, weights = (numbers.astype(np.float32) for numbers in (Z / self.scales, self.A, self.weights))
        parts = np.array_split(B, max(len(B) // 150, 1))  # so that the kernel stays in the cache
        deviations = [_matern(_squares(part, A))[0] @ weights for part in parts]
        return self.mean + np.concatenate(deviations, dtype=np.float64)

    def capped(self, Z: _Floats, predicted: _Floats) -> _Floats:
        """Return the means of the posteriors with these means, (n,), truncated at the best of the fitted configs."""
        from scipy.linalg import solve_triangular
        from scipy.special import log_ndtr

        parts = np.array_split(Z / self.scales, max(len(Z) // 1000, 1))
        known = [
            (solve_triangular(self.factor, _matern(_squares(self.A, part))[0], lower=True) ** 2).sum(axis=0)
            for part in parts
        ]
        sd = self.sd * np.sqrt(np.maximum(1 - np.concatenate(known), _JITTER))
        bound = (self.best - predicted) / sd
        capped: _Floats = predicted - sd * np.exp(-(bound**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(bound))
        return capped


def _inputs_of(inputs: Any, F: NDArray[np.float32]) -> _Floats:  # Any: scikit-learn's
    Z: _Floats = np.clip(inputs.transform(np.asarray(F, dtype=np.float64)), -_FARTHEST, _FARTHEST)
    return Z


def _fit(Z: _Floats, y: _Floats, variance: _Floats) -> _Process:
    """Fit a process to values whose noise has the given variances, relative to one another."""
    from scipy.linalg import cho_solve, cholesky
    from scipy.optimize import minimize

    mean, sd = float(y.mean()), float(y.std())
    y = (y - mean) / sd
    subset = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_TO_TUNE)).round().astype(np.int64))
    start = np.append(np.full(Z.shape[1], np.log(Z.shape[1]) / 2), np.log(_NOISE))
    theta: _Floats = minimize(  # type: ignore[call-overload]  # its types lack jac=True
        lambda point: _minus_log_likelihood(point, Z[subset], y[subset], variance[subset]),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[_SCALES] * Z.shape[1] + [_NOISES],
        options={"maxiter": _N_STEPS},
    ).x.round(_DECIMALS)
    scales = np.exp(theta[:-1])
    A = Z / scales
    noise = float(np.exp(theta[-1]))
    factor = cholesky(_noisy_kernel(A, noise * variance), lower=True)
    alpha = cho_solve((factor, True), y)
    best = mean + sd * float((y - (noise * variance + _JITTER) * alpha).max())
    return _Process(scales=scales, A=A, weights=sd * alpha, mean=mean, sd=sd, noise=noise, factor=factor, best=best)


def _leave_one_out_errors(process: _Process) -> _Floats:
    """Return each value minus its prediction by the others, (n,), with the length scales of all."""
    errors: _Floats = process.weights / np.diag(_inverse(process.factor))
    return errors


def _noisy_kernel(A: _Floats, noise: _Floats) -> _Floats:
    """Return the covariance of values at scaled inputs, relative to the variance of the values."""
    return _matern(_squares(A, A))[0] + np.diag(noise + _JITTER)


def _inverse(factor: _Floats) -> _Floats:
    """Return the inverse of a matrix from its lower Cholesky factor."""
    from scipy.linalg.lapack import dpotri

    lower = np.tril(dpotri(factor, lower=1)[0])
    inverse: _Floats = lower + np.tril(lower, -1).T
    return inverse


def _minus_log_likelihood(theta: _Floats, Z: _Floats, y: _Floats, variance: _Floats) -> tuple[float, _Floats]:
    """Return the negative log marginal likelihood, and its gradient for the logs of length scales and noise."""
    from scipy.linalg import cho_solve, cholesky

    A, noise = Z / np.exp(theta[:-1]), np.exp(theta[-1])
    kernel, slope = _matern(_squares(A, A))
    factor = cholesky(kernel + np.diag(noise * variance + _JITTER), lower=True)
    alpha = cho_solve((factor, True), y)
    value = float(y @ alpha / 2 + np.log(np.diag(factor)).sum())
    by_kernel = (_inverse(factor) - np.outer(alpha, alpha)) / 2
    Q = by_kernel * slope
    by_scales = -4 * (Q.sum(axis=1) @ A**2 - (A * (Q @ A)).sum(axis=0))
    return value, np.append(by_scales, noise * (np.diag(by_kernel) @ variance))


def _squares(A: _Matrix, B: _Matrix) -> _Matrix:
    """Return the squared distances of rows, (n, m)."""
    squares: _Matrix = np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0.0)
    return squares


def _matern(squares: _Matrix) -> tuple[_Matrix, _Matrix]:
    """Return the Matérn 5/2 kernel of squared distances, and its derivative with respect to them."""
    r = np.sqrt(5 * squares)
    decay = np.exp(-r)
    return (1 + r + r**2 / 3) * decay, -5 / 6 * (1 + r) * decay
