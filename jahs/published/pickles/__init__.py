"""Pickles and joblib files read as data: an interpreter of an allow-listed part of the format that executes nothing.

A pickle is a program. This package follows the few opcodes that plain data needs, imports nothing and calls nothing:
names that the caller allows become inert `Record`s, numpy's arrays are built from their bytes, and everything else is
refused by name. A pickle of n bytes takes at most 64 MB + 12 n of memory and a second + a second for each 10 MB.

    >>> import io, pickle
    >>> read_pickle(io.BytesIO(pickle.dumps({"a": [1, 2.5, None]})), where="example")
    {'a': [1, 2.5, None]}
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Final

from jahs.errors import CorruptFile, JahsError, UnsafeFile, translating
from jahs.published.pickles.arrays import CodedArray
from jahs.published.pickles.machine import follow
from jahs.published.pickles.names import PLAIN_NAMES, Record, Use
from jahs.published.pickles.source import Limits, Source

__all__ = ["PLAIN_NAMES", "CodedArray", "Limits", "Record", "Use", "making_sense", "read_pickle"]

_LONGEST_REASON: Final = 200  # characters; Python's own messages may quote the whole content
_NONSENSE: Final = (ArithmeticError, AttributeError, LookupError, SystemError, TypeError, ValueError, struct.error)


def read_pickle(
    file: BinaryIO, *, where: str, names: Mapping[str, Use] | None = None, limits: Limits | None = None
) -> object:
    """Return the object in a pickle or joblib file as data; no code in it is executed.

    Args:
        file: open for reading bytes; plain, or compressed with gzip.
        where: name of the file in messages.
        names: names that are allowed besides `PLAIN_NAMES`.
        limits: limits on memory and steps.

    Returns:
        None, bools, numbers, texts, bytes, lists, tuples, dicts, sets, slices, numpy's numbers and arrays
        (`CodedArray` for long columns of texts), and a `Record` for any other allowed object. Parts may be shared, so
        traversing, comparing or printing the whole can take exponential time: access parts by their path, and check
        the type of each first.

    Raises:
        UnsafeFile: it asks for more than data, or for more than the limits allow.
        CorruptFile: it is cut off, or contradicts itself.
    """
    source: Source | None = None
    try:
        source = Source(file, limits or Limits())
        content = follow(source, {**PLAIN_NAMES, **(names or {})})
        source.finish()
    except UnsafeFile as err:
        raise UnsafeFile(f"{where}: {err}; nothing of it was executed") from err
    except CorruptFile as err:
        raise CorruptFile(f"{where}: {err}") from err
    except EOFError as err:
        raise CorruptFile(f"{where} ends in the middle") from err
    except MemoryError as err:
        raise UnsafeFile(f"{where}: it takes more memory than there is; nothing of it was executed") from err
    except _NONSENSE as err:
        end, reason = source.position if source else 0, str(err)[:_LONGEST_REASON]
        raise CorruptFile(f"{where} is not a pickle that makes sense, somewhere before byte {end}: {reason}") from err
    return content


def making_sense(where: str) -> AbstractContextManager[None]:
    """Turn Python's errors about contradictory contents into CorruptFile or UnsafeFile that name the file."""

    def nonsense(err: Exception) -> JahsError:
        if isinstance(err, MemoryError):
            return UnsafeFile(f"{where}: it takes more memory than there is")
        return CorruptFile(f"{where} does not make sense: {str(err)[:_LONGEST_REASON]}")

    return translating(MemoryError, *_NONSENSE, into=nonsense)
