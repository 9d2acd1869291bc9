"""A Gaussian process that predicts the learning curves of configs.

The mean of the measured curves and their principal components are a basis for all curves; each coefficient has a
process of its own, with a Matérn 5/2 kernel and one length scale for each input (Rasmussen and Williams, 2006, chapter
5). The inputs are the features twice: standardised, and as ranks, because rates and sizes span orders of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

N_COMPONENTS: Final = 3
MOST_TO_TUNE: Final = 600  # configs that length scales are fitted to; more take time and hardly change them
_FARTHEST: Final = 5.0  # most standard deviations between an input and the mean of the configs
_JITTER: Final = 1e-6
_N_STEPS: Final = 30
_NOISE: Final = 0.05  # where the fit starts; a share of the variance
_SCALES: Final = (math.log(0.1), math.log(1e3))
_NOISES: Final = (math.log(1e-4), 0.0)
_DECIMALS: Final = 2  # decimals of fitted logarithms, so that they do not depend on the last bit of a sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveProcess:
    """Fitted processes: `predict` returns the curves of configs."""

    # Scikit-learn's transformer of the features.
    inputs: Any  # scikit-learn has no types
    mean: _Floats  # mean of the curves, (n_epochs,)
    components: _Floats  # (n_components, n_epochs)
    processes: tuple[_Process, ...]  # one for each coefficient

    def predict(self, F: NDArray[np.float32]) -> _Floats:
        """Return the curve of each config, (n, n_epochs), from its features at the last epoch."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

        with threadpool_limits(1):
            Z = _inputs_of(self.inputs, F)
            return self.mean + np.column_stack([process.predict(Z) for process in self.processes]) @ self.components


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
        U, size, components = np.linalg.svd(curves - mean, full_matrices=False)
        size = size[:N_COMPONENTS][size[:N_COMPONENTS] > 0]
        processes = tuple(_fit(Z, U[:, k] * size[k], 1 / n_trainings) for k in range(len(size)))
    return CurveProcess(inputs=inputs, mean=mean, components=components[: len(size)], processes=processes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Process:
    """One coefficient: scaled inputs of the configs, (n, d), and their weights in a prediction, (n,)."""

    scales: _Floats
    A: _Floats
    weights: _Floats
    mean: float

    def predict(self, Z: _Floats) -> _Floats:
        parts = np.array_split(Z, max(len(Z) // 4000, 1))  # so that the kernel stays small
        deviations = [_matern(_squares(part / self.scales, self.A))[0] @ self.weights for part in parts]
        return self.mean + np.concatenate(deviations)


def _inputs_of(inputs: Any, F: NDArray[np.float32]) -> _Floats:  # Any: scikit-learn's
    Z: _Floats = np.clip(inputs.transform(np.asarray(F, dtype=np.float64)), -_FARTHEST, _FARTHEST)
    return Z


def _fit(Z: _Floats, y: _Floats, variance: _Floats) -> _Process:
    """Fit a process to values whose noise has the given variances, relative to one another."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize

    mean, sd = float(y.mean()), float(y.std())
    y = (y - mean) / sd
    subset = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_TO_TUNE)).round().astype(np.int64))
    start = np.append(np.full(Z.shape[1], np.log(Z.shape[1]) / 2), np.log(_NOISE))
    best: _Floats = minimize(  # type: ignore[call-overload]  # its types lack jac=True
        lambda theta: _minus_log_likelihood(theta, Z[subset], y[subset], variance[subset]),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[_SCALES] * Z.shape[1] + [_NOISES],
        options={"maxiter": _N_STEPS},
    ).x.round(_DECIMALS)
    scales = np.exp(best[:-1])
    A = Z / scales
    K = _matern(_squares(A, A))[0] + np.diag(np.exp(best[-1]) * variance + _JITTER)
    return _Process(scales=scales, A=A, weights=sd * cho_solve(cho_factor(K, lower=True), y), mean=mean)


def _minus_log_likelihood(theta: _Floats, Z: _Floats, y: _Floats, variance: _Floats) -> tuple[float, _Floats]:
    """Return the negative log marginal likelihood, and its gradient for the logs of length scales and noise."""
    from scipy.linalg import cho_factor, cho_solve

    A, noise = Z / np.exp(theta[:-1]), np.exp(theta[-1])
    kernel, slope = _matern(_squares(A, A))
    factor = cho_factor(kernel + np.diag(noise * variance + _JITTER), lower=True)
    alpha = cho_solve(factor, y)
    value = float(y @ alpha / 2 + np.log(np.diag(factor[0])).sum())
    by_kernel = (cho_solve(factor, np.eye(len(y))) - np.outer(alpha, alpha)) / 2
    Q = by_kernel * slope
    by_scales = -4 * (Q.sum(axis=1) @ A**2 - (A * (Q @ A)).sum(axis=0))
    return value, np.append(by_scales, noise * (np.diag(by_kernel) @ variance))


def _squares(A: _Floats, B: _Floats) -> _Floats:
    """Return the squared distances of rows, (n, m)."""
    squares: _Floats = np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0.0)
    return squares


def _matern(squares: _Floats) -> tuple[_Floats, _Floats]:
    """Return the Matérn 5/2 kernel of squared distances, and its derivative with respect to them."""
    r = np.sqrt(5 * squares)
    decay = np.exp(-r)
    return (1 + r + r**2 / 3) * decay, -5 / 6 * (1 + r) * decay
