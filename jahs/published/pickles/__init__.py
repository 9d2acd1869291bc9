"""Pickles and joblib files read as data: an interpreter of an allow-listed part of the format that executes nothing.

A pickle is a program. This package follows the few opcodes that plain data needs, imports nothing and calls nothing:
names that the caller allows become inert `Record`s, numpy's arrays are built from their bytes, and everything else is
refused by name. A pickle of n bytes takes at most 64 MB + 12 n of memory and a second + a second for each 10 MB.

    >>> import io, pickle
    >>> read_pickle(io.BytesIO(pickle.dumps({"a": [1, 2.5, None]})), where="example")
    {'a': [1, 2.5, None]}
"""

from jahs.published.pickles.arrays import CodedArray
from jahs.published.pickles.names import NUMPY_NAMES, PYTHON_NAMES, Record, Use
from jahs.published.pickles.reading import making_sense, read_pickle
from jahs.published.pickles.source import Limits

__all__ = ["NUMPY_NAMES", "PYTHON_NAMES", "CodedArray", "Limits", "Record", "Use", "making_sense", "read_pickle"]
