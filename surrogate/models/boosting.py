"""XGBoost's forests: their settings, and the fit of one on features and transformed targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSettings:
    """Hyperparameters of a forest. The defaults are those that JAHS-Bench-201's search starts from."""

    # n_trees, max_depth: size of the forest.
    n_trees: int = 500
    max_depth: int = 6
    # min_child_weight, colsample_bytree, colsample_bylevel, learning_rate: as XGBoost names them.
    min_child_weight: int = 1
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    learning_rate: float = 0.3
    slope: float = 1.0  # slope of the target's inverse sigmoid (`sigmoid_k` in JAHS-Bench-201)
    seed: int = 0  # seed of the column sampling, used if a colsample is below 1
    # Drawn configs that the forest learns from a teacher, besides the measurements; 0: none. See
    # `surrogate.models.teacher`.
    n_distilled: int = 0

    def __post_init__(self) -> None:
        """Refuse values that XGBoost refuses later or misreads, every fault at once."""
        faults = []
        for name, least, most in (
            ("n_trees", 1, 10_000),
            ("max_depth", 1, 15),
            ("min_child_weight", 1, 1_000_000),
            ("seed", 0, 2**31 - 1),
            ("n_distilled", 0, 1_000_000),
        ):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                faults.append(f"{name}={value!r} must be an integer in {least}..{most}")
        for name in ("colsample_bytree", "colsample_bylevel", "learning_rate", "slope"):
            limit = 100.0 if name == "slope" else 1.0
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= limit:
                faults.append(f"{name}={value!r} must be a number in (0, {limit:g}]")
        refuse(*faults)

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> ForestSettings:
        """Return the settings of a mapping, the defaults where it has none.

        Raises:
            InvalidArgument: a name does not exist or a value is out of range.
        """
        names = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise InvalidArgument(
                f"{', '.join(map(repr, unknown))} is not a setting; the settings are {', '.join(names)}"
            )
        return cls(**given)  # type: ignore[arg-type]  # __post_init__ checks them


UNTUNED: Final = ForestSettings(n_trees=300, learning_rate=0.1)
"""Settings of models that are fitted in large numbers, and without a search."""


def train_forest(
    F: NDArray[np.float32],
    y: NDArray[np.float64],
    settings: ForestSettings,
    *,
    weights: NDArray[np.float64] | None = None,
    n_bins: int = 256,
) -> Any:  # Any: XGBoost's types are partial
    """Return XGBoost's `Booster` for rows of features, with one thread: the same rows and settings give the same bytes.

    Args:
        weights: weights of the rows, (n_rows,); None: 1. The candidate thresholds do not depend on them.
        n_bins: approximate number of candidate thresholds per column.
    """
    import xgboost

    data = xgboost.QuantileDMatrix(F, y, nthread=1, max_bin=n_bins)
    if weights is not None:
        used = weights > 0
        data = xgboost.QuantileDMatrix(F[used], y[used], weight=weights[used], nthread=1, max_bin=n_bins, ref=data)
    parameters: dict[str, object] = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "base_score": 0.0,  # the middle of the bounds; a mean would be one more float to carry
        "nthread": 1,
        "seed": settings.seed,
        "max_depth": settings.max_depth,
        "min_child_weight": settings.min_child_weight,
        "colsample_bytree": settings.colsample_bytree,
        "colsample_bylevel": settings.colsample_bylevel,
        "learning_rate": settings.learning_rate,
        "max_bin": n_bins,
    }
    return xgboost.train(parameters, data, settings.n_trees)
