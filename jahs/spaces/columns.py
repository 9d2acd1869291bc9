"""Many configs as columns: one array per key, read and checked without a loop over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS
from jahs.spaces.configs import (
    MOST_LISTED,
    Config,
    as_mapping,
    check_many,
    config_codes,
    digest,
    is_frame,
    key_faults,
    many_faults,
    validate_many,
)
from jahs.spaces.parameters import PARAMETERS, Parameter, Value, masked_fault, show

Columns: TypeAlias = dict[str, npt.NDArray[np.generic]]
"""Many configs: one array per key, all of the same length."""


class Frame(Protocol):
    """A DataFrame."""

    @property
    def columns(self) -> Any:  # Any: pandas is not a dependency, here and below
        """The names of the columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""


Configs: TypeAlias = Iterable[Mapping[str, object]] | Mapping[str, npt.NDArray[np.generic]] | Frame
"""Many configs as an argument: mappings one by one, or columns, also as a DataFrame (much faster)."""

COLUMN_DTYPES: Final = {
    name: np.dtype(f"U{max(len(str(choice)) for choice in PARAMETERS[name].choices)}" if text == "string" else text)
    for name, text in CONFIG_COLUMNS.items()
    if name in PARAMETERS
}
"""The dtype of each column; text has the width of its longest choice."""

_KINDS: Final = {
    name: {str: "U", bool: "b", int: "iu", float: "fiu"}[type(parameter.default)]
    for name, parameter in PARAMETERS.items()
}


def validate_columns(columns: Mapping[str, npt.ArrayLike]) -> Columns:
    """Return `columns` as new arrays of `COLUMN_DTYPES`, in canonical key order.

    A column has one dimension and the key's kind: integers of any width, bools, text, floats or integers for
    LearningRate, WeightDecay and Resolution; or it is a list or an array of objects, which are read one by one.

    Raises:
        InvalidConfig: the faults of the first invalid rows, each beginning with its key, and the number of all.
        InvalidArgument: `columns` is not a mapping.
    """
    given = as_columns(cast("Configs", columns))
    if not isinstance(given, Mapping):
        raise InvalidArgument(
            f"columns={show(columns)} is not a mapping of keys to arrays; jahs.validate_many reads a list of configs"
        )
    return columns_of_codes(codes_of_columns(given))


def columns_of_codes(found: npt.NDArray[np.float64]) -> Columns:
    """Return the columns of configs with these `codes`."""
    columns: Columns = {}
    for values, (name, parameter) in zip(found.T, PARAMETERS.items(), strict=True):
        columns[name] = values.copy() if parameter.kind == "float" else np.empty(len(values), COLUMN_DTYPES[name])
        for choice, code in parameter.code_of.items():  # a float has none
            columns[name][values == code] = choice
    return columns


def rows(columns: Mapping[str, npt.NDArray[np.generic]]) -> list[Config]:
    """Return clean columns as one dict of builtins per row."""
    lists = (columns[name].tolist() for name in CONFIG_KEYS)
    return [cast("Config", dict(zip(CONFIG_KEYS, values, strict=True))) for values in zip(*lists, strict=True)]


def config_ids(configs: Configs) -> npt.NDArray[np.uint64]:
    """Return the `config_id` of every config, given one by one or as columns.

    Raises:
        InvalidConfig: as `codes`.

    Example:
        >>> config = jahs.space().default()
        >>> config_ids([config]).tolist() == [jahs.config_id(config)]
        True
    """
    return ids_of_codes(codes(configs))


def ids_of_codes(found: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return the `config_id` of every row of `codes`."""
    packed = memoryview(found.astype("<f8", copy=False).tobytes())
    width = 8 * len(CONFIG_KEYS)
    return np.array([digest(packed[at : at + width]) for at in range(0, len(packed), width)], dtype=np.uint64)


def as_columns(configs: Configs) -> Iterable[Mapping[str, object]] | Mapping[str, npt.NDArray[np.generic]]:
    """Return a DataFrame as a mapping of columns, a row of one as a mapping, and anything else unchanged."""
    if not is_frame(configs):
        row = as_mapping(configs)
        is_row = isinstance(row, Mapping) and not PARAMETERS.keys().isdisjoint(row)  # a Series may hold configs, too
        return row if is_row else configs  # type: ignore[return-value]  # no DataFrame
    frame = cast("Frame", configs)
    names = list(frame.columns)
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise InvalidConfig([f"the DataFrame has more than one column {name}" for name in twice])
    return {name: frame[name].to_numpy() for name in names}


def codes(configs: Configs) -> npt.NDArray[np.float64]:
    """Return the `config_codes` of every config, given one by one or as columns, (n_configs, 14).

    InvalidConfig has the faults of the first invalid configs, with their positions, and the number of all.
    """
    configs = as_columns(configs)
    if isinstance(configs, Mapping):
        return codes_of_columns(configs)
    check_many(configs)
    configs = list(configs)
    try:
        numbers = [config_codes(config) for config in configs]
    except InvalidConfig:
        validate_many(configs)  # names every invalid config, not only the first
        raise
    return np.array(numbers, dtype=np.float64).reshape(len(numbers), len(CONFIG_KEYS))


class RowFaults:
    """Faults of a table: the first ones of each column in words, and the number of all."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.n_faults = 0
        self.lines: list[tuple[int, str]] = []

    def note(self, is_bad: npt.NDArray[np.bool_], describe: Callable[[int], str]) -> None:
        """Note the rows where `is_bad`; `describe` returns the fault of a row."""
        bad = np.flatnonzero(is_bad).tolist()
        self.n_faults += len(bad)
        self.lines += [(i, f"{describe(i)} (row {i})") for i in bad[:MOST_LISTED]]

    def raise_if_any(self) -> None:
        """Raise InvalidConfig if anything was noted, the first rows first."""
        if self.lines:
            lines = [line for _, line in sorted(self.lines, key=lambda pair: pair[0])]
            raise many_faults(lines, self.n_faults, f"in {self.n_rows} rows")


def codes_of_columns(
    columns: Mapping[str, npt.ArrayLike], *, fixed: Mapping[str, Value] = MappingProxyType({})
) -> npt.NDArray[np.float64]:
    """Return the `codes` of columns; InvalidConfig also names the rows that differ from `fixed` values."""
    arrays = {name: _as_array(columns[name]) for name in PARAMETERS if name in columns}
    if arrays and all(array.ndim == 0 for array in arrays.values()):
        raise InvalidArgument("configs is one config, not columns; give a list of configs: [config]")
    masked = [masked_fault(name, columns[name]) for name in arrays]
    faults = [*key_faults(columns), *_shape_faults(arrays), *(fault for fault in masked if fault)]
    if faults:
        raise InvalidConfig(faults)
    n_rows = len(arrays["N"])
    matrix = np.empty((n_rows, len(CONFIG_KEYS)))
    row_faults = RowFaults(n_rows)
    for j, (name, array) in enumerate(arrays.items()):
        is_bad = _read_column(PARAMETERS[name], array, matrix[:, j])
        row_faults.note(is_bad, partial(_fault, PARAMETERS[name], array))
        if name in fixed:
            is_other = ~is_bad & (matrix[:, j] != PARAMETERS[name].code_of.get(fixed[name], fixed[name]))
            row_faults.note(is_other, partial(_contradiction, PARAMETERS[name], array, fixed[name]))
    row_faults.raise_if_any()
    return matrix


def _as_array(values: object) -> npt.NDArray[np.generic]:
    """Return an array unchanged, and a list as objects: numpy would silently turn [1, True] into integers."""
    if isinstance(values, list | tuple):
        return np.fromiter(values, np.object_, len(values))
    return np.asarray(values)


def _shape_faults(arrays: Mapping[str, npt.NDArray[np.generic]]) -> list[str]:
    faults = []
    lengths = {name: len(array) for name, array in arrays.items() if array.ndim == 1}
    first = next(iter(lengths), "")
    for name, array in arrays.items():
        if array.ndim != 1:
            faults.append(f"{name} has {array.ndim} dimensions; a column has one")
        elif len(array) != lengths[first]:
            faults.append(f"{name} has {len(array)} rows, but {first} has {lengths[first]}")
        elif array.dtype.kind not in _KINDS[name] + "OT":  # T: numpy's strings of variable width
            parameter = PARAMETERS[name]
            fault = f"holds {array.dtype}, not {type(parameter.default).__name__}"
            is_missing = np.asarray(array != array)  # noqa: PLR0124  # NaN, as pandas writes a missing integer
            if is_missing.any():
                fault = f"has no value in row {is_missing.argmax()}"
            faults.append(f"{name} {fault}: {parameter.allowed}")
    return faults


def _read_column(
    parameter: Parameter, array: npt.NDArray[np.generic], out: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Write a column's codes to `out` and return where the column is not legal."""
    if array.dtype.kind in "OT" or array.dtype == np.longdouble:
        return _read_objects(parameter, array, out)
    if parameter.kind == "float":
        out[:] = array
        return ~((out >= parameter.least) & (out <= parameter.most))
    is_bad = np.ones(len(array), dtype=np.bool_)
    for choice, code in zip(parameter.choices, parameter.codes, strict=True):
        is_choice = array == choice
        out[is_choice] = code
        is_bad &= ~is_choice
    return is_bad


def _read_objects(
    parameter: Parameter, array: npt.NDArray[np.generic], out: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    is_bad = np.zeros(len(array), dtype=np.bool_)
    code_of = parameter.code_of
    for i, value in enumerate(array):
        try:
            builtin = parameter.read(value)
        except InvalidConfig:  # noqa: PERF203  # costs nothing where nothing is raised
            is_bad[i] = True
        else:
            out[i] = builtin if parameter.kind == "float" else code_of[builtin]
    return is_bad


def _contradiction(parameter: Parameter, array: npt.NDArray[np.generic], value: Value, i: int) -> str:
    return f"{parameter.name}={parameter.read(array[i])!r} is fixed at {value!r} in this space"


def _fault(parameter: Parameter, array: npt.NDArray[np.generic], i: int) -> str:
    try:
        parameter.read(array[i])
    except InvalidConfig as fault:
        return fault.faults[0]
    raise AssertionError(f"{parameter.name}: column and value disagree on {array[i]!r}")
