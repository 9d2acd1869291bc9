"""The cell as a value: six operations, its other names, and its drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jahs.errors import InvalidArgument, InvalidConfig, refuse
from jahs.schema import OPS
from jahs.spaces.cell.drawing import draw_svg, draw_text
from jahs.spaces.cell.index import index_of_number, nb201_indices, ops_at, ops_from_string, string_from_ops
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, OPERATIONS, operation_faults
from jahs.spaces.cell.paths import Path, effective_depth, paths
from jahs.spaces.configs import mapping_of


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A NAS-Bench-201 cell: the integer codes of Op1 .. Op6, in JAHS-Bench-201's order of edges.

    Example:
        >>> cell = Cell((4, 1, 2, 0, 2, 1))
        >>> cell.nb201_string
        '|avg_pool_3x3~0|+|none~0|skip_connect~1|+|nor_conv_3x3~0|nor_conv_3x3~1|none~2|'
        >>> Cell.from_nb201_index(cell.nb201_index) == cell
        True

    Raises:
        InvalidArgument: with a line for each code that is not an integer from 0 to 4.
    """

    ops: tuple[int, ...]

    def __post_init__(self) -> None:
        """Accept any sequence of six integers, including numpy's, and keep a tuple of built-in ones."""
        given: object = self.ops
        is_row = isinstance(given, np.ndarray) and given.ndim == 1
        if not (is_row or isinstance(given, (tuple, list))) or len(self.ops) != len(OPS):
            raise InvalidArgument(f"ops={given!r} must be {len(OPS)} integers, one for each of {', '.join(OPS)}")
        codes, faults = operation_faults(self.ops)
        refuse(*faults)
        object.__setattr__(self, "ops", tuple(codes))

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Cell:
        """Read the cell of a config; keys other than Op1 .. Op6 are ignored.

        Raises:
            InvalidConfig: with a line for each operation that is missing or wrong.
        """
        config = mapping_of(config)
        missing = [f"{key}: missing" for key in OPS if key not in config]
        codes, faults = operation_faults([config.get(key, 0) for key in OPS])
        if missing or faults:
            raise InvalidConfig(sorted(missing + faults))
        return cls(tuple(codes))

    @classmethod
    def from_nb201_string(cls, text: str) -> Cell:
        """Read the cell of an architecture string.

        Raises:
            InvalidArgument: with a line for each group, operation or source that is wrong.
        """
        return cls(ops_from_string(text))

    @classmethod
    def from_nb201_index(cls, index: int) -> Cell:
        """Return the cell with this number in NAS-Bench-201's published list.

        Raises:
            InvalidArgument: not an integer from 0 to 15624.
        """
        return cls(tuple(ops_at([index_of_number(index)])[0].tolist()))

    def to_config(self) -> dict[str, int]:
        """Return the operations by key, Op1 .. Op6."""
        return dict(zip(OPS, self.ops, strict=True))

    @property
    def nb201_string(self) -> str:
        """The architecture string of NAS-Bench-201."""
        return string_from_ops(self.ops)

    @property
    def nb201_index(self) -> int:
        """The number in NAS-Bench-201's published list."""
        return int(nb201_indices([self.ops])[0])

    @property
    def operations(self) -> dict[tuple[int, int], str]:
        """NAS-Bench-201's name of the operation on each edge, by (source, target)."""
        return {edge: OPERATIONS[op] for edge, op in zip(EDGES, self.ops, strict=True)}

    @property
    def paths(self) -> tuple[Path, ...]:
        """The four paths from input to output: 1-2-3-4, 1-2-4, 1-3-4, 1-4."""
        return paths(self.ops)

    @property
    def effective_depth(self) -> int:
        """The largest number of convolutions on a path from input to output without zeros."""
        return int(effective_depth([self.ops])[0])

    @property
    def n_parameter_free(self) -> int:
        """The number of operations without parameters: identities, zeros and poolings."""
        return sum(op not in (CONV3X3, CONV1X1) for op in self.ops)

    def draw(self) -> str:
        """Draw in characters, for a terminal."""
        return draw_text(self.ops)

    def svg(self) -> str:
        """Draw as a self-contained SVG document, readable on light and dark pages."""
        return draw_svg(self.ops)
