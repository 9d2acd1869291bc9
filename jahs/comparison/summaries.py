"""Mean, standard error, median and quartiles over seeds, and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from jahs.comparison.logs import Floats

FEWEST_SEEDS: Final = 6  # for an interval, or a two-sided signed-rank test at 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """Statistics over the first axis, the seeds; NaN wherever any seed has no value yet."""

    mean: Floats
    se: Floats  # standard error of the mean, with n - 1 degrees of freedom; NaN for a single seed
    median: Floats
    q25: Floats
    q75: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its interval."""

    value: float
    low: float
    high: float

    def within(self, least: float, most: float = math.inf) -> Interval:
        """Return the interval without values that the statistic cannot have."""
        return Interval(value=self.value, low=max(self.low, least), high=min(self.high, most))


def summarize(values: Floats) -> Summary:
    """Summarise (n_seeds, ...) over the seeds."""
    n = len(values)
    assert n, "values has no seeds to summarise"
    with np.errstate(invalid="ignore"):
        q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        se = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
    return Summary(mean=values.mean(axis=0), se=se, median=median, q25=q25, q75=q75)


def mean_interval(values: Floats) -> Interval:
    """Return the mean over seeds with Student's 95 % interval, NaN for fewer than `FEWEST_SEEDS`."""
    n, mean = len(values), float(values.mean())
    reach = t_quantile(n - 1) * float(values.std(ddof=1)) / math.sqrt(n) if n >= FEWEST_SEEDS else math.nan
    return Interval(value=mean, low=mean - reach, high=mean + reach)


def t_quantile(dof: float) -> float:
    """Return the 97.5 % quantile of Student's t distribution (Abramowitz and Stegun, 26.7.5).

    It is exact to 0.02 % from 5 degrees of freedom on, and 0.8 % too small at 2.
    """
    z = 1.959963984540054  # the quantile of the standard normal distribution
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / dof**i for i, term in enumerate(terms))


def digits_for(error: float, *, usual: int = 2) -> int:
    """Return the number of decimals for a value with this error: two digits of the error up to 35, otherwise one.

    Return `usual` if the error is unknown, or zero up to rounding.
    """
    if not math.isfinite(error) or error < 1e-9:
        return usual
    first = math.floor(math.log10(error))
    return max(0, (1 if error / 10**first < 3.55 else 0) - first)


def estimate_text(value: float, error: float) -> str:
    """Return an estimate ± its standard error with the decimals that the error allows; dashes for NaN.

    Example:
        >>> estimate_text(13.4159, 0.0271), estimate_text(13.4159, 0.72)
        ('13.416 ± 0.027', '13.4 ± 0.7')
    """
    digits = digits_for(error)
    return " ± ".join("–" if math.isnan(number) else f"{number:.{digits}f}" for number in (value, error))


def number_text(value: float | None, digits: int = 2, *, sign: str = "") -> str:
    """Return a number, or a dash for None, NaN and infinities; the sign "+" shows plus signs."""
    return "–" if value is None or not math.isfinite(value) else f"{value:{sign}.{digits}f}"


def value_text(value: object, digits: int = 4) -> str:
    """Return the value of a setting; a float has `digits` significant digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def p_text(value: float) -> str:
    """Return a p-value for a table."""
    return "< 0.001" if value < 0.001 else number_text(value, 3)
