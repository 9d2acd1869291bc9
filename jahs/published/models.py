"""A published model, read from the pickled pipeline of one metric, or of several in the older layout.

The pipeline encodes categories as columns, leaves the other features as they are, sums the leaves of 500 trees, and
maps the sum back through a sigmoid and a min-max scaling. The older layout has no such map.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat, UnknownName, UnsafeFile
from jahs.models.bounds import BoundedTransform
from jahs.published.booster import parse_booster
from jahs.published.frames import PANDAS_NAMES, index_names
from jahs.published.pickles import Limits, Record, Use, making_sense, read_pickle
from jahs.published.pickles.names import Name
from jahs.schema import COLUMNS
from jahs.spaces.parameters import is_number
from jahs.tasks.metrics import metric

_SMALL: Final = Limits(n_bytes=16 << 20, n_payload=4 << 20)
_LARGE: Final = Limits(n_bytes=2 << 30, n_payload=768 << 20)

_MOST_NAMES: Final = 100
_LONGEST_NAME: Final = 50
_LONGEST_VALUE: Final = 500

_TARGET: Final = "sklearn.compose._target.TransformedTargetRegressor"


def _getattr(arguments: tuple[object, ...]) -> Record:
    """Return the record of one of the transform's two functions; any other getattr is refused as an attack."""
    match arguments:
        case (Name(name="jahs_bench.surrogate.utils.CustomTransformFunctions"), "sigmoid" | "inverse_sigmoid" as name):
            return Record(name)
    raise UnsafeFile("it calls builtins.getattr on something other than the transform's functions")


_MODELS: Final = (
    "ConfigSpace.configuration_space.ConfigurationSpace",
    *(
        f"ConfigSpace.hyperparameters.{prefix}{kind}Hyperparameter"
        for kind in ("Categorical", "Constant", "Ordinal", "UniformFloat", "UniformInteger")
        for prefix in ("", "__pyx_unpickle_")
    ),
    "jahs_bench.surrogate.utils.CustomTransformFunctions",
    "numpy.random._pickle.__randomstate_ctor",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._target.TransformedTargetRegressor",
    "sklearn.multioutput.MultiOutputRegressor",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBRegressor",
)

MODEL_NAMES: Final[Mapping[str, Use]] = {
    **dict.fromkeys((*PANDAS_NAMES, *_MODELS), "record"),
    "builtins.getattr": _getattr,
}
"""The names in a pickled model and its parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedModel:
    """The model of one metric."""

    columns: tuple[str, ...]  # inputs of the trees, in order, named as in `FEATURE_SETS["published"]`
    booster: dict[str, Any]  # as `forest_from_xgboost` takes it; Any: JSON, whose trees are arrays
    transform: BoundedTransform | None  # from the trees' sum to the metric; None: the sum is the metric
    where: str  # its file, for messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """The content of `params.pkl.gz`."""

    metrics: tuple[str, ...]  # names as published, in the order of the outputs
    features: tuple[str, ...]  # names of the input's columns, in order
    hyperparams: dict[str, Any]  # XGBoost's hyperparameters; Any: numbers and texts


def read_headers(file: BinaryIO, where: str) -> Headers:
    """Read `params.pkl.gz`: the hyperparameters, metrics and features of a model."""
    params = read_pickle(file, where=where, names=MODEL_NAMES, limits=_SMALL)
    with making_sense(where):
        return _headers(params, where)


def _headers(params: object, where: str) -> Headers:
    match params:
        case {"label_headers": Record() as labels, "feature_headers": Record() as features, "hyperparams": dict(hyper)}:
            pass
        case _:
            raise UnknownFormat(f"{where} does not hold the parameters of a model of JAHS-Bench-201")
    headers = Headers(
        metrics=tuple(index_names(labels, where)),
        features=tuple(index_names(features, where)),
        hyperparams=dict(islice((item for item in hyper.items() if all(map(_is_plain, item))), _MOST_NAMES)),
    )
    if sorted(headers.features) != sorted(COLUMNS):
        raise UnknownFormat(f"{where}: features {', '.join(headers.features)}; {', '.join(COLUMNS)} are read")
    try:
        names = {metric(name).name for name in headers.metrics}
    except UnknownName as err:
        raise UnknownFormat(f"{where}: {err}") from err
    if len(names) != len(headers.metrics):
        raise CorruptFile(f"{where}: one metric several times: {', '.join(headers.metrics)}")
    return headers


def read_model(file: BinaryIO, where: str) -> list[PublishedModel]:
    """Read `model.pkl.gz`: the model of each output, in order; XGBoost and scikit-learn are not needed."""
    pipeline = read_pickle(file, where=where, names=MODEL_NAMES, limits=_LARGE)
    with making_sense(where):
        return _models(pipeline, where)


def _models(pipeline: object, where: str) -> list[PublishedModel]:
    match pipeline:
        case Record(
            name="sklearn.pipeline.Pipeline",
            state={"steps": [(str(), Record() as encoder), (str(), Record() as regressor)]},
        ):
            pass
        case _:
            raise UnknownFormat(f"{where} is not a pipeline of an encoder and a regressor")
    columns = _encoded_columns(encoder, where)
    match regressor:
        case Record(name="sklearn.compose._target.TransformedTargetRegressor"):
            return [PublishedModel(columns, *_bounded(regressor, where), where)]
        case Record(name="sklearn.multioutput.MultiOutputRegressor", state={"estimators_": [*outputs]}):
            # Before the first release: one pipeline for several metrics, no transform of the target.
            return [PublishedModel(columns, _booster(output, where), None, where) for output in outputs]
    raise UnknownFormat(f"{where}: a pipeline that ends in {regressor.name}")


def _encoded_columns(encoder: Record, where: str) -> tuple[str, ...]:
    """Return the names of the columns that the ColumnTransformer makes."""
    if encoder.name != "sklearn.compose._column_transformer.ColumnTransformer":
        raise UnknownFormat(f"{where}: a pipeline that begins with {encoder.name}")
    match encoder.state:
        case {
            "transformers_": [
                (str(), Record(name="sklearn.preprocessing._encoders.OneHotEncoder") as one_hot, list(encoded)),
                ("remainder", "passthrough", list(passed)),
            ],
            "feature_names_in_": np.ndarray() as names,
            "sparse_output_": bool() | np.bool_() as sparse,
        } if not sparse:  # in a sparse matrix, XGBoost would take each 0 for a missing value
            features = _short_texts(names.ravel()[: _MOST_NAMES + 1].tolist(), where)
        case _:
            raise UnknownFormat(f"{where}: the encoder is not a dense one-hot encoder beside features left as they are")
    columns = _one_hot_columns(one_hot, encoded, where)
    for place in passed:
        if type(place) is not int or not 0 <= place < len(features):
            raise CorruptFile(f"{where}: the encoder passes on a feature outside of its {len(features)}")
        columns.append(features[place])
    return tuple(columns)


def _one_hot_columns(one_hot: Record, encoded: list[object], where: str) -> list[str]:
    drops = one_hot.get("drop_idx_")
    dropped: list[object] = [None] * len(encoded) if drops is None else []
    if isinstance(drops, np.ndarray) and drops.shape == (len(encoded),):
        dropped = drops.tolist()
    all_categories = one_hot.get("categories_")
    if not isinstance(all_categories, list) or not len(all_categories) == len(encoded) == len(dropped):
        raise CorruptFile(f"{where}: the one-hot encoder does not have categories for each of its features")
    columns = []
    features = _short_texts(encoded, where)
    for feature, categories, drop in zip(features, all_categories, dropped, strict=True):
        if not isinstance(categories, np.ndarray) or categories.ndim != 1 or categories.size > _MOST_NAMES:
            raise CorruptFile(f"{where}: the categories of {feature} are not a short list")
        names = categories.tolist()
        if not all(isinstance(name, str | int) for name in names):  # the text of any other object may be endless
            raise CorruptFile(f"{where}: the categories of {feature} are not texts, integers or bools")
        columns += [f"{feature}_{name}"[:_LONGEST_NAME] for i, name in enumerate(names) if i != drop]
    return columns


def _bounded(outer: Record, where: str) -> tuple[dict[str, Any], BoundedTransform]:
    """Return the trees and the inverse transform of their sum: the inner sigmoid, then the outer scaling."""
    scaler, inner = outer.get("transformer_"), outer.get("regressor_")
    if (
        not isinstance(scaler, Record)
        or scaler.name != "sklearn.preprocessing._data.MinMaxScaler"
        or not isinstance(inner, Record)
        or inner.name != _TARGET
    ):
        raise UnknownFormat(f"{where}: the target is not scaled to its minimum and maximum before everything else")
    match inner.get("transformer_"):
        case Record(
            name="sklearn.preprocessing._function_transformer.FunctionTransformer",
            state={"inverse_func": Record(name="sigmoid"), "inv_kw_args": {"k": float() | int() as slope}},
        ):
            pass
        case _:
            raise UnknownFormat(f"{where}: the scaled target is not transformed with an inverse sigmoid")
    match scaler.state:
        case {
            "feature_range": (float(margin), float(end)),
            "data_min_": np.ndarray() as lower,
            "data_max_": np.ndarray() as upper,
        } if lower.shape == upper.shape == (1,) and math.isclose(margin, 1 - end, rel_tol=1e-6):
            pass
        case _:
            raise CorruptFile(f"{where}: the scaling of the target does not make sense")
    try:
        transform = BoundedTransform(
            lower=float(lower[0]), upper=float(upper[0]), slope=slope, margin=margin, published=True
        )
    except InvalidArgument as err:
        raise CorruptFile(f"{where}: the transform of the target does not make sense: {err}") from err
    return _booster(inner.get("regressor_"), where), transform


def _booster(regressor: object, where: str) -> dict[str, Any]:
    match regressor:
        case Record(
            name="xgboost.sklearn.XGBRegressor",
            state={"_Booster": Record(name="xgboost.core.Booster", state={"handle": bytes(handle)})},
        ):
            return parse_booster(handle, where)
    raise UnknownFormat(f"{where}: the regressor is not a fitted xgboost.sklearn.XGBRegressor")


def _is_plain(value: object) -> bool:
    """Return whether a key or value of the hyperparameters is a number or a text that a manifest can hold."""
    if isinstance(value, str):
        return len(value) <= _LONGEST_VALUE and value.isprintable()
    return type(value) is bool or (type(value) in (int, float) and is_number(value))


def _short_texts(texts: list[object], where: str) -> tuple[str, ...]:
    """Return the texts if all are short. Other objects are never printed or compared: shared parts may never end."""
    short = tuple(text for text in texts if isinstance(text, str) and len(text) <= _LONGEST_NAME)
    if len(texts) > _MOST_NAMES or len(short) != len(texts):
        raise CorruptFile(f"{where}: names that are not up to {_MOST_NAMES} short texts")
    return short
