"""The names that JAHS-Bench-201's pickles mention, and what each may be built into; none is imported or called."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jahs.errors import UnsafeFile
from jahs.published.pickles import Record, Use
from jahs.published.pickles.names import Name

__all__ = ["FRAME_NAMES", "MODEL_NAMES", "SIGMOID"]

_FUNCTIONS: Final = "jahs_bench.surrogate.utils.CustomTransformFunctions"
SIGMOID: Final = f"{_FUNCTIONS}.sigmoid"


def _getattr(arguments: tuple[object, ...]) -> Record:
    """Return the record of one of the transform's two functions; getattr of anything else is an attack."""
    match arguments:
        case (Name(name="jahs_bench.surrogate.utils.CustomTransformFunctions"), "sigmoid" | "inverse_sigmoid" as name):
            return Record(f"{_FUNCTIONS}.{name}")
    raise UnsafeFile("it calls builtins.getattr on something else than the transform's functions")


_PANDAS: Final = (
    "pandas.core.frame.DataFrame",
    "pandas.core.indexes.base.Index",
    "pandas.core.indexes.base._new_Index",
    "pandas.core.indexes.multi.MultiIndex",
    "pandas.core.indexes.numeric.Float64Index",
    "pandas.core.indexes.numeric.Int64Index",
    "pandas.core.indexes.range.RangeIndex",
    "pandas.core.internals.blocks.new_block",
    "pandas.core.internals.managers.BlockManager",
    "pandas.core.internals.managers.SingleBlockManager",
    "pandas.core.series.Series",
)
_MODELS: Final = (
    "ConfigSpace.configuration_space.ConfigurationSpace",
    *(
        f"ConfigSpace.hyperparameters.{prefix}{kind}Hyperparameter"
        for kind in ("Categorical", "Constant", "Ordinal", "UniformFloat", "UniformInteger")
        for prefix in ("", "__pyx_unpickle_")
    ),
    _FUNCTIONS,
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

FRAME_NAMES: Final[Mapping[str, Use]] = MappingProxyType(
    {**dict.fromkeys(_PANDAS, "record"), "functools.partial": "record"}
)
"""The names in a pickled DataFrame."""

MODEL_NAMES: Final[Mapping[str, Use]] = MappingProxyType(
    {**dict.fromkeys((*_PANDAS, *_MODELS), "record"), "builtins.getattr": _getattr}
)
"""The names in a pickled model and its parameters."""
