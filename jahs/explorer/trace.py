"""The formulas of features as JavaScript: each is called once with terms that record the operations on them (tracing).

So no formula is written twice. A term has a name; an operation on terms adds a line such as `const t3 = t1 * x.N;` and
returns the term that it defines. Double arithmetic is the same in both languages, so both give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from jahs.models.features import Column, FeatureSet, TimeCoefficients, joint_columns
from jahs.models.features.builder import FACTS, OF_CLASS
from jahs.models.features.cells import SIGNAL_FEATURES
from jahs.models.features.formulas import FORMULAS, parameters_of
from jahs.models.features.timing import WORK, time_terms

_EXACT, _TIMES = WORK[:2], WORK[2:]
_SIGNS: Final = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/", np.equal: "==="}


class _Term(NDArrayOperatorsMixin):
    def __init__(self, text: str, trace: Trace) -> None:
        self.text, self._trace = text, trace

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: object, **options: object) -> object:
        """Record an operation, which the mixin passes as a ufunc of numpy and its two operands."""
        if ufunc not in _SIGNS or method != "__call__" or options:
            return NotImplemented
        left, right = (side.text if isinstance(side, _Term) else repr(float(side)) for side in operands)  # type: ignore[arg-type]  # a number
        term = self._trace.define(f"{left} {_SIGNS[ufunc]} {right}")
        return self._trace.define(f"{term.text} ? 1 : 0") if ufunc is np.equal else term


class Trace:
    """The inputs of formulas, and the lines that compute them.

    Attributes:
        facts: names of values that are looked up by cell; with `OF_CLASS`, by the cell that represents its class.
        lines: JavaScript, one definition a line.
    """

    def __init__(self, times: TimeCoefficients) -> None:
        self._times = times
        self.facts: dict[str, None] = {}
        self.lines: dict[str, str] = {}  # names by expression, so that nothing is computed twice

    def define(self, text: str) -> _Term:
        """Return the term of an expression."""
        return _Term(self.lines.setdefault(text, f"t{len(self.lines)}"), self)

    def column(self, column: Column) -> str:
        """Return the expression of a feature."""
        term = self._value(column.name, is_canonical=column.is_canonical)
        return term.text if isinstance(term, _Term) else repr(float(term))

    def _value(self, name: str, *, is_canonical: bool) -> Any:  # Any: a term or a number
        if name in FORMULAS:
            formula = FORMULAS[name]
            return formula(*(self._value(part, is_canonical=is_canonical) for part in parameters_of(formula)))[name]
        if name in _TIMES:
            parts = {part: self._value(part, is_canonical=is_canonical) for part in parameters_of(time_terms)}
            return self._times.times(time_terms(**parts))[_TIMES.index(name)]
        is_fact = name in FACTS
        full = name + OF_CLASS if is_canonical and (is_fact or name in _EXACT) else name
        for fact in (full,) if is_fact else _cost_facts(full) if name in _EXACT else ():
            self.facts[fact] = None
        return _Term(f"x.{full}", self)


def feature_script(sets: Sequence[FeatureSet]) -> tuple[str, Mapping[str, bool]]:
    """Return a JavaScript array with a function for each feature set, and the facts that they read of the cell.

    The facts are mapped to whether they also depend on N.

    A function fills a row: `features[0](x, row)`, where `x` has the config's codes, the epoch, its schedule, exact
    costs and facts, by name.
    """
    facts = dict.fromkeys(_cost_facts(_EXACT[0]))
    functions = []
    for feature_set in sets:
        trace = Trace(feature_set.times)
        (columns, _) = joint_columns([feature_set])
        rows = [f"    row[{i}] = {trace.column(column)};" for i, column in enumerate(columns)]
        lines = [f"    const {name} = {text};" for text, name in trace.lines.items()]
        functions.append("\n".join(["  (x, row) => {", *lines, *rows, "  },"]))
        facts |= trace.facts
    return "const features = [\n" + "\n".join(functions) + "\n];\n", {
        name: name.removesuffix(OF_CLASS) in SIGNAL_FEATURES for name in facts
    }


def _cost_facts(name: str) -> tuple[str, str]:
    """Return the facts that index the exact costs."""
    suffix = OF_CLASS if name.endswith(OF_CLASS) else ""
    return f"n_conv3x3{suffix}", f"n_conv1x1{suffix}"
