"""Model families beside the one that ships: their search spaces and their fits.

The search spaces are from NAS-Bench-301 (table 5; NGBoost: the authors' code); its defaults are the priors. Differences
are marked. Every family sees the same rows, the same features and the same target: accuracies through the bounded
transform of the release's models, standardised. The graph network reads the encoded config itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.tasks.definitions import Task
from surrogate.data.rows import Rows, features_of
from surrogate.models.lightgbm import ONE_THREAD
from surrogate.models.model import default_features, fit_transform
from surrogate.models.search import Choice, Point, Range, Searched

METRIC: Final = "valid_acc"

_MOST_TREES: Final = 1000
_PATIENCE: Final = 100  # rounds without a better held-out error
_MOST_STEPS: Final = 100_000  # iterations of a support vector machine; polynomials of a high degree do not converge

_Floats = NDArray[np.float64]
_Sample: TypeAlias = tuple[NDArray[np.float32], _Floats]  # inputs, (n, n_columns), and standardised targets, (n,)
_Model: TypeAlias = Any  # a function of inputs that returns (n,) predictions, of a library that may ship no types

Predict: TypeAlias = Callable[[NDArray[np.float32]], _Floats]
"""Returns accuracies for encoded configs and epochs, (n,); NaN where the model gives no number."""


class Family(NamedTuple):
    """A family of models: its title, its search space, and its fit to training rows, held-out rows and a seed."""

    title: str
    space: Searched
    fit: Callable[[Point, _Sample, _Sample, int], _Model]
    reads_features: bool = True  # else the encoded configs


def fit_family(name: str, point: Point, rows: Rows, held: Rows, of_task: Task, *, seed: int = 0) -> Predict:
    """Fit a model of a family to rows of `METRIC`, and return its prediction function.

    Boosting stops early by the held-out rows `held`; other families ignore them.
    """
    family = FAMILIES[name]
    build = partial(features_of, features=default_features(METRIC), of_task=of_task)
    inputs = build if family.reads_features else np.asarray
    transform = fit_transform(METRIC, rows.y)
    z = transform.forward(rows.y)
    centre, scale = float(z.mean()), float(z.std()) or 1.0
    fitted, stopping = ((inputs(r.X), (transform.forward(r.y) - centre) / scale) for r in (rows, held))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence, and about old names in the libraries
        model = family.fit(point, fitted, stopping, seed)

    def predict(X: NDArray[np.float32]) -> _Floats:
        z = np.asarray(model(inputs(X)), np.float64)
        is_number = np.isfinite(z)
        return np.where(is_number, transform.inverse(centre + scale * np.where(is_number, z, 0.0)), np.nan)

    return predict


def _xgboost(point: Point, fitted: _Sample, held: _Sample, seed: int) -> _Model:
    from xgboost import XGBRegressor

    fixed = {"n_estimators": _MOST_TREES, "early_stopping_rounds": _PATIENCE, "tree_method": "hist", "n_jobs": 1}
    model = XGBRegressor(**fixed, **point, random_state=seed).fit(*fitted, eval_set=[held], verbose=False)
    return model.get_booster()[: model.best_iteration + 1].inplace_predict  # faster than the model's predict


def _lightgbm(point: Point, fitted: _Sample, held: _Sample, seed: int) -> _Model:
    from lightgbm import LGBMRegressor, early_stopping

    settings: Point = {**ONE_THREAD, **point, "n_estimators": _MOST_TREES, "seed": seed}
    model = LGBMRegressor(**settings)
    model.fit(*fitted, eval_set=[held], callbacks=[early_stopping(_PATIENCE, verbose=False)])
    return partial(model.booster_.predict, num_threads=1)


def _forest(point: Point, fitted: _Sample, _: _Sample, seed: int) -> _Model:
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]  # ships no types

    return RandomForestRegressor(**point, random_state=seed, n_jobs=1).fit(*fitted).predict


def _ngboost(point: Point, fitted: _Sample, held: _Sample, seed: int) -> _Model:
    from ngboost import NGBRegressor  # type: ignore[import-untyped]  # ships no types
    from sklearn.tree import DecisionTreeRegressor  # type: ignore[import-untyped]  # ships no types

    of_boosting = {name: point[name] for name in ("n_estimators", "minibatch_frac", "learning_rate")}
    of_trees = {name: value for name, value in point.items() if name not in of_boosting}
    tree = DecisionTreeRegressor(random_state=seed, **of_trees)
    model = NGBRegressor(Base=tree, **of_boosting, random_state=seed, verbose=False)
    model.fit(*fitted, *held, early_stopping_rounds=_PATIENCE)
    return partial(model.predict, max_iter=model.best_val_loss_itr)


def _vectors(kind: str, point: Point, fitted: _Sample, _: _Sample, __: int) -> _Model:
    from sklearn import svm  # type: ignore[import-untyped]  # ships no types
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]  # ships no types
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]  # ships no types

    model = make_pipeline(StandardScaler(), getattr(svm, kind)(**point, max_iter=_MOST_STEPS))
    try:
        return model.fit(*fitted).predict
    except ValueError:  # a polynomial of degree 128 overflows
        return lambda F: np.full(len(F), np.nan)


def _graph(point: Point, fitted: _Sample, _: _Sample, seed: int) -> _Model:
    from surrogate.models.gin import fit_gin  # torch takes seconds to import

    return fit_gin(point, *fitted, seed=seed)


_SVM: Final[Searched] = {
    "C": Range(1.0, 20.0, 5.0, is_log=True),
    "coef0": Range(-0.5, 0.5, 0.0),
    "degree": Range(1, 128, 3, is_log=True, is_integer=True),
    "gamma": Choice(("scale", "auto")),
    "kernel": Choice(("rbf", "linear", "poly", "sigmoid")),
    "shrinking": Choice((True, False)),
    "tol": Range(0.0001, 0.01, 0.002),
}

_SPACES: Final[Mapping[str, Searched]] = {
    "xgboost": {
        "max_depth": Range(1, 15, 13, is_integer=True),
        "min_child_weight": Range(1, 100, 39, is_log=True, is_integer=True),
        "colsample_bylevel": Range(0.001, 1.0, 0.6909),
        "colsample_bytree": Range(0.001, 1.0, 0.2545),
        "lambda": Range(0.001, 1000, 31.3933, is_log=True),
        "alpha": Range(0.001, 1000, 0.2417, is_log=True),
        "learning_rate": Range(0.001, 0.1, 0.0824, is_log=True),  # the default: 0.00824 needs ten times the trees
    },
    "lightgbm": {
        "max_depth": Range(1, 25, 18, is_integer=True),
        "num_leaves": Range(10, 100, 40, is_integer=True),
        "max_bin": Range(100, 400, 336, is_integer=True),
        "feature_fraction": Range(0.1, 1.0, 0.1532),
        "min_child_weight": Range(0.001, 10, 0.5822, is_log=True),
        "lambda_l1": Range(0.001, 1000, 0.0115, is_log=True),
        "lambda_l2": Range(0.001, 1000, 134.5075, is_log=True),
        "learning_rate": Range(0.001, 0.1, 0.0218, is_log=True),
    },
    "random_forest": {
        "n_estimators": Range(16, 128, 116, is_log=True, is_integer=True),
        "min_samples_split": Range(2, 20, 2, is_integer=True),
        "min_samples_leaf": Range(1, 20, 2, is_integer=True),
        "max_features": Range(0.1, 1.0, 0.1706),
        "bootstrap": Choice((False, True)),
    },
    "ngboost": {
        "min_samples_split": Range(2, 20, 20, is_integer=True),
        "min_samples_leaf": Range(1, 20, 15, is_integer=True),
        "max_features": Range(0.1, 1.0, 0.792),
        "max_depth": Range(1, 25, 6, is_integer=True),
        "n_estimators": Range(128, 512, 505, is_log=True, is_integer=True),
        "minibatch_frac": Range(0.1, 1.0, 0.508),
        "learning_rate": Range(0.001, 0.1, 0.0813, is_log=True),
    },
    "gin": {
        "hidden": Range(16, 64, 24, is_log=True, is_integer=True),  # the paper's are 16 to 256, and 2 to 10 layers
        "n_layers": Range(2, 6, 4, is_integer=True),
        "dropout": Range(0.0, 0.5, 0.035),  # the paper's end at 1, where nothing is learned
        "learning_rate": Range(0.001, 0.01, 0.005, is_log=True),
        "undirected": Choice((False, True)),
        "self_loops": Choice((False, True)),
        "hinge_weight": Range(0.1, 10.0, 1.0, is_log=True),  # the paper uses one of the losses alone
    },
}

FAMILIES: Final[Mapping[str, Family]] = {
    "xgboost": Family("XGBoost", _SPACES["xgboost"], _xgboost),
    "lightgbm": Family("LightGBM", _SPACES["lightgbm"], _lightgbm),
    "random_forest": Family("random forest", _SPACES["random_forest"], _forest),
    "svr": Family("epsilon-SVR", {**_SVM, "epsilon": Range(0.01, 0.99, 0.0251, is_log=True)}, partial(_vectors, "SVR")),
    "nu_svr": Family("nu-SVR", {**_SVM, "nu": Range(0.01, 1.0, 0.1839)}, partial(_vectors, "NuSVR")),
    "ngboost": Family("NGBoost", _SPACES["ngboost"], _ngboost),
    "gin": Family("GIN", _SPACES["gin"], _graph, reads_features=False),
}
"""Families in the order of the pages. nu-SVR is the paper's mu-SVR."""
