"""Predictions of `bench.predict`: the answer, the error of the model, and the noise between trainings.

Uncertainty has two sources. Another sample of configs would have given other models: refits show by how much (model).
Another training of the same config would have given another accuracy: the noise model says by how much (noise). Both
are modelled on the unbounded scale of `jahs.models.noise.spread`; they are independent, so their variances add (total).
The spread between refits is multiplied by a factor that was chosen on validation configs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, UnknownName
from jahs.models.noise import NoiseModel
from jahs.models.noise.chance import quantile
from jahs.models.noise.spread import from_line, to_line, with_tail
from jahs.queries.answers import Rows, row_columns, to_frame
from jahs.spaces.parameters import is_number, refuse_masked, show

Of: TypeAlias = Literal["model", "noise", "total"]
"""The source of uncertainty: the model, the noise of one training around the model's answer, or both."""

_Floats = NDArray[np.float64]
_Values: TypeAlias = dict[str, Any]  # Any: a float for one answer, an array for many


@dataclass(eq=False, kw_only=True)  # not frozen: that costs more than the properties
class Uncertain:
    """Answers and their uncertainty: arrays with a row per metric and a column per answer."""

    metrics: tuple[str, ...]
    mean: _Floats  # (n_metrics, n) answers of a query without a seed
    refits: _Floats  # (n_metrics, n, n_refits) answers of the refits
    scale: _Floats  # (n_metrics, 1) factors that multiply the spread between refits
    noise: NoiseModel
    X: NDArray[np.float32]  # (n, 15) encoded configs and epochs

    @cached_property
    def model_sd(self) -> _Floats:
        """The scaled standard deviation between refits."""
        return self.scale * _deviation(self.refits)

    @cached_property
    def noise_sd(self) -> _Floats:
        """The standard deviation between trainings."""
        return self.noise.deviations(self.metrics, self.mean, self.X)

    @property
    def total_sd(self) -> _Floats:
        """The standard deviation of both."""
        return np.hypot(self.model_sd, self.noise_sd)

    def quantile(self, q: float, of: Of) -> _Floats:
        """Return a quantile of one training's outcome, or of the model's error alone."""
        g = quantile(q)
        if of == "model":
            return from_line(to_line(self.mean) + self._model_line * g)
        centre, sigma, tail = self._noise_line
        spread = sigma if of == "noise" else np.hypot(sigma, self._model_line)
        return from_line(centre + spread * with_tail(np.array(g), tail))

    @cached_property
    def _noise_line(self) -> tuple[_Floats, _Floats, _Floats]:
        return self.noise.on_line(self.metrics, self.mean, self.X)

    @cached_property
    def _model_line(self) -> _Floats:
        return self.scale * _deviation(to_line(self.refits))


class Prediction:
    """Answers with their uncertainty: floats for one config at one fidelity, else arrays as `query_many` gives them.

    Attributes:
        metrics: names of the metrics.
        shape: shape of the arrays; () for one answer.
        found: the same as plain arrays.

    Example:
        >>> bench.predict(config, at=12, metrics=["valid_acc"])  # doctest: +SKIP
        <Prediction of 1 answer: valid_acc 84.1 ± 1.3 (model 1.1, noise 0.7)>
    """

    def __init__(self, found: Uncertain, *, shape: tuple[int, ...], rows: Rows) -> None:
        self.found, self.metrics, self.shape, self._rows = found, found.metrics, shape, rows

    def __repr__(self) -> str:
        n = int(np.prod(self.shape))
        columns = [self.found.mean, self.found.total_sd, self.found.model_sd, self.found.noise_sd]
        means = np.stack(columns, axis=1).mean(axis=2).tolist() if n else []  # (n_metrics, 4)
        summaries = [
            f"{name} {mean:.1f} ± {total:.1f} (model {model:.1f}, noise {noise:.1f})"
            for name, (mean, total, model, noise) in zip(self.metrics, means, strict=bool(n))
        ]
        return f"<Prediction of {n} answer{'' if n == 1 else 's'}{', on average' * (n > 1)}: {'; '.join(summaries)}>"

    @property
    def mean(self) -> _Values:
        """The answer of a query without a seed, by metric."""
        return self._by_metric(self.found.mean)

    @property
    def model_sd(self) -> _Values:
        """The standard deviation between refits, scaled on validation configs: the model's error."""
        return self._by_metric(self.found.model_sd)

    @property
    def noise_sd(self) -> _Values:
        """The standard deviation between trainings of the config, and so of draws with a seed."""
        return self._by_metric(self.found.noise_sd)

    @property
    def total_sd(self) -> _Values:
        """The standard deviation of one training around the answer: model and noise."""
        return self._by_metric(self.found.total_sd)

    @property
    def refits(self) -> _Values:
        """The answer of each refit: arrays with one more axis, the number of the refit."""
        return self._by_metric(self.found.refits)

    def quantile(self, q: float | Sequence[float], *, of: Of = "total") -> _Values:
        """Return quantiles by metric; several of them are one more axis.

        Args:
            q: above 0 and below 1, or a list of such numbers.
            of: "total": quantiles of the outcome of one training; "noise": the same if the answer were exact; "model":
                quantiles of the mean over many trainings.

        Raises:
            InvalidArgument: `q` is out of range.
            UnknownName: `of` is something else.

        Example:
            >>> low, high = bench.predict(config).quantile([0.05, 0.95])["valid_acc"]  # doctest: +SKIP
        """
        if not isinstance(of, str) or of not in get_args(Of):
            raise UnknownName.of("of", str(of), get_args(Of))
        refuse_masked("q", q)
        levels = np.asarray(q, dtype=object)
        if faults := [show(level) for level in levels.ravel() if not is_number(level) or not 0 < level < 1]:
            raise InvalidArgument(f"q={', '.join(faults)} must be a number above 0 and below 1; the median is 0.5")
        if levels.ndim == 0:
            return self._by_metric(self.found.quantile(float(levels.item()), of))
        quantiles = [self.found.quantile(float(level), of) for level in levels.ravel()]
        return self._by_metric(np.stack(quantiles, axis=-1) if quantiles else np.empty((*self.found.mean.shape, 0)))

    def to_pandas(self) -> Any:  # Any: pandas is not a dependency
        """Return a DataFrame with one row per answer: config and fidelity, then each metric's mean and sds.

        Raises:
            MissingDependency: pandas is not installed.
        """
        columns, uncertain = row_columns(self._rows), self.found
        for i, name in enumerate(self.metrics):
            columns |= {
                name: uncertain.mean[i],
                f"{name}_model_sd": uncertain.model_sd[i],
                f"{name}_noise_sd": uncertain.noise_sd[i],
                f"{name}_total_sd": uncertain.total_sd[i],
            }
        return to_frame(columns)

    def _by_metric(self, values: _Floats) -> _Values:
        if not self.shape and values.ndim == 2:
            return dict(zip(self.metrics, values[:, 0].tolist(), strict=True))
        arrays = values.reshape((len(self.metrics), *self.shape, *values.shape[2:]))
        return dict(zip(self.metrics, arrays, strict=True))


def _deviation(values: _Floats) -> _Floats:
    """Return the unbiased standard deviation of each row; for one row, it takes a third of numpy's time."""
    n = values.shape[-1]
    centred = values - np.add.reduce(values, axis=-1, keepdims=True) / n
    return np.asarray(np.sqrt(np.add.reduce(centred * centred, axis=-1) / (n - 1)))
