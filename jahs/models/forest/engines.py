"""The interface of an engine, and the choice of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from jahs.errors import MissingDependency
from jahs.models.forest.compiled_engine import CompiledEngine
from jahs.models.forest.flat import Float32s, Forest
from jahs.models.forest.numpy_engine import NumpyEngine

EngineKind = Literal["auto", "numpy", "compiled"]


class Engine(Protocol):
    """Answers rows from a `Forest`: the same bits from every engine, for a row alone or in any batch, in any thread."""

    name: str  # "numpy" or "compiled"
    forest: Forest  # the forest that it evaluates

    def predict(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Return the answers to each row, (n_rows, n_forests).

        Args:
            X: float32 (n_rows, n_features); InvalidArgument if any is NaN.
            forests: numbers of the forests to evaluate, in this order; None for all.
        """
        ...

    def answer_row(self, row: bytes, *, forests: Sequence[int] | None = None) -> list[float]:
        """Answer one row of packed float32, in the machine's byte order: `predict` without arrays."""
        ...

    def predict_walk(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Predict as `predict`, for rows along which each column is monotone.

        A trajectory has such rows: the epoch rises, quantities derived from it (a learning rate, say) fall, and the
        config is constant. An engine may use that to answer many times faster; other rows are answered as by `predict`.
        """
        ...


def open_engine(forest: Forest, kind: EngineKind = "auto") -> Engine:
    """Return the compiled engine if it is available, else numpy's; `.name` says which, and `kind` can require one.

    MissingDependency if "compiled" is required and Numba fails here, or the forest is too large for that engine.
    """
    if kind == "numpy":
        return NumpyEngine(forest)
    try:
        return CompiledEngine(forest)
    except MissingDependency:
        if kind == "compiled":
            raise
        return NumpyEngine(forest)
