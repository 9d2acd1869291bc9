"""The NAS-Bench-201 cell: the class, its names, equality of cells, its paths, and its drawings."""

from jahs.spaces.cell.index import nb201_indices, ops_at
from jahs.spaces.cell.keys import canonical, canonical_keys, nb201_key, representatives
from jahs.spaces.cell.operations import EDGES, N_CELLS, OPERATIONS, all_ops
from jahs.spaces.cell.paths import PATHS, effective_depth, live_paths
from jahs.spaces.cell.value import Cell

__all__ = [
    "EDGES",
    "N_CELLS",
    "OPERATIONS",
    "PATHS",
    "Cell",
    "all_ops",
    "canonical",
    "canonical_keys",
    "effective_depth",
    "live_paths",
    "nb201_indices",
    "nb201_key",
    "ops_at",
    "representatives",
]
