"""Writes pickles opcode by opcode, in plain Python, as the libraries of JAHS-Bench-201 wrote theirs.

Python's own pickler could not: it would need those libraries, in versions of 2021, to have objects to write. Here an
object is an `Obj` (class and state), a `Call` (function and arguments), a `Name` or an array, and nothing is imported.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Name:
    module: str
    name: str


@dataclass(frozen=True, eq=False)
class Obj:
    """An object of a class, made without a call and given a state."""

    module: str
    name: str
    state: Any


@dataclass(frozen=True, eq=False)
class Call:
    """The result of a function, and the state that it is given afterwards."""

    what: Any
    arguments: tuple
    state: Any = None


@dataclass(frozen=True, eq=False)
class Joblib:
    """An array as joblib writes it: a wrapper, then the bytes, or a pickle within the pickle for objects."""

    array: np.ndarray
    alignment: int | None = None


def call(module: str, name: str, *arguments: Any, state: Any = None) -> Call:
    return Call(Name(module, name), arguments, state)


def dumps(thing: Any, protocol: int) -> bytes:
    """Return the pickle of a thing in protocol 0, 2 or 4."""
    writer = _Writer(protocol)
    if protocol:
        writer.out += b"\x80" + bytes([protocol])
    writer.write(thing)
    return bytes(writer.out) + b"."


class _Writer:
    def __init__(self, protocol: int) -> None:
        self.protocol = protocol
        self.out = bytearray()
        self.n_memo = 0
        self.memo: dict[object, int] = {}

    def write(self, thing: Any) -> None:
        match thing:
            case None:
                self.out += b"N"
            case bool():
                self.out += (b"I01\n" if thing else b"I00\n") if not self.protocol else b"\x88" if thing else b"\x89"
            case int():
                self._int(thing)
            case float():
                self.out += b"F%s\n" % repr(thing).encode() if not self.protocol else b"G" + struct.pack(">d", thing)
            case str():
                self._text(thing)
            case bytes():
                self._bytes(thing)
            case tuple():
                self._tuple(thing)
            case list():
                self._list(thing)
            case dict():
                self._dict(thing)
            case set():
                self.write(call("__builtin__", "set", sorted(thing)))
            case slice():
                self.write(call("__builtin__", "slice", thing.start, thing.stop, thing.step))
            case Name():
                self._name(thing)
            case Call():
                self.write(thing.what)
                self.write(thing.arguments)
                self.out += b"R"
                self._state(thing.state)
            case Obj():
                self._object(thing)
            case Joblib():
                self._joblib(thing)
            case np.ndarray():
                self._array(thing)
            case np.generic():
                content = thing.tobytes()
                self.write(call("numpy.core.multiarray", "scalar", _dtype(thing.dtype), content))
            case _:
                raise TypeError(type(thing))

    def _memoize(self, key: object = None) -> None:
        number = self.n_memo
        self.n_memo += 1
        if key is not None:
            self.memo[key] = number
        if self.protocol == 4:
            self.out += b"\x94"
        elif self.protocol:
            self.out += b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)
        else:
            self.out += b"p%d\n" % number

    def _recall(self, key: object) -> bool:
        number = self.memo.get(key)
        if number is None:
            return False
        if not self.protocol:
            self.out += b"g%d\n" % number
        else:
            self.out += b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        return True

    def _int(self, number: int) -> None:
        if not self.protocol:
            self.out += b"I%d\n" % number
        elif 0 <= number < 256:
            self.out += b"K" + bytes([number])
        elif 0 <= number < 65536:
            self.out += b"M" + struct.pack("<H", number)
        elif -(2**31) <= number < 2**31:
            self.out += b"J" + struct.pack("<i", number)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", number)

    def _text(self, text: str) -> None:
        if self._recall(("text", text)):
            return
        if not self.protocol:
            escaped = text.replace("\\", "\\u005c").replace("\0", "\\u0000").replace("\n", "\\u000a")
            self.out += b"V" + escaped.replace("\r", "\\u000d").encode("raw-unicode-escape") + b"\n"
        else:
            content = text.encode()
            if self.protocol == 4 and len(content) < 256:
                self.out += b"\x8c" + bytes([len(content)]) + content
            else:
                self.out += b"X" + struct.pack("<I", len(content)) + content
        self._memoize(("text", text))

    def _bytes(self, content: bytes) -> None:
        if self.protocol == 4:
            self.out += b"C" + bytes([len(content)]) if len(content) < 256 else b"B" + struct.pack("<I", len(content))
            self.out += content
            self._memoize()
        else:
            self.write(call("_codecs", "encode", content.decode("latin1"), "latin1"))

    def _tuple(self, items: tuple) -> None:
        if not items and self.protocol:
            self.out += b")"
            return
        is_short = self.protocol and len(items) <= 3
        self.out += b"" if is_short else b"("
        for item in items:
            self.write(item)
        self.out += b"\x84\x85\x86\x87"[len(items) : len(items) + 1] if is_short else b"t"
        self._memoize()

    def _list(self, items: list) -> None:
        self.out += b"]" if self.protocol else b"(l"
        self._memoize()
        for first in range(0, len(items), 1000):
            self.out += b"(" if self.protocol else b""
            for item in items[first : first + 1000]:
                self.write(item)
                self.out += b"" if self.protocol else b"a"
            self.out += b"e" if self.protocol else b""

    def _dict(self, items: dict) -> None:
        self.out += b"}" if self.protocol else b"(d"
        self._memoize()
        self.out += b"(" if self.protocol and items else b""
        for key, value in items.items():
            self.write(key)
            self.write(value)
            self.out += b"" if self.protocol else b"s"
        self.out += b"u" if self.protocol and items else b""

    def _name(self, name: Name) -> None:
        if self._recall((name.module, name.name)):
            return
        if self.protocol == 4:
            modules = {"__builtin__": "builtins", "copy_reg": "copyreg"}
            self._text(modules.get(name.module, name.module))
            self._text(name.name)
            self.out += b"\x93"
        else:
            self.out += f"c{name.module}\n{name.name}\n".encode()
        self._memoize((name.module, name.name))

    def _state(self, state: Any) -> None:
        self._memoize()
        if state is not None:
            self.write(state)
            self.out += b"b"

    def _object(self, thing: Obj) -> None:
        if self.protocol:
            self.write(Name(thing.module, thing.name))
            self.out += b")\x81"
            self._state(thing.state)
        else:
            arguments = (Name(thing.module, thing.name), Name("__builtin__", "object"), None)
            self.write(Call(Name("copy_reg", "_reconstructor"), arguments, thing.state))

    def _array(self, array: np.ndarray) -> None:
        if array.dtype == object:
            content: Any = array.ravel().tolist()  # in C order, whatever the layout
        else:
            content = array.tobytes(order="A")
        is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        state = (1, array.shape, _dtype(array.dtype), is_fortran, content)
        arguments = (Name("numpy", "ndarray"), (0,), b"b")
        self.write(Call(Name("numpy.core.multiarray", "_reconstruct"), arguments, state))

    def _joblib(self, thing: Joblib) -> None:
        array = thing.array
        state: dict[str, Any] = {
            "subclass": Name("numpy", "ndarray"),
            "shape": array.shape,
            "order": "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C",
            "dtype": _dtype(array.dtype),
            "allow_mmap": array.dtype != object,
        }
        if thing.alignment is not None:
            state["numpy_array_alignment_bytes"] = thing.alignment
        self.write(Obj("joblib.numpy_pickle", "NumpyArrayWrapper", state))
        if array.dtype == object:
            self.out += dumps(array, 2)
            return
        if thing.alignment is not None:
            n_fill = thing.alignment - (len(self.out) + 1) % thing.alignment
            self.out += bytes([n_fill]) + b"\xff" * n_fill
        self.out += array.tobytes(order="A")


def _dtype(dtype: np.dtype) -> Call:
    if dtype.kind == "O":
        return call("numpy", "dtype", "O8", False, True, state=(3, "|", None, None, None, -1, -1, 63))
    order = "|" if dtype.itemsize == 1 else "<"
    return call("numpy", "dtype", dtype.str[1:], False, True, state=(3, order, None, None, None, -1, -1, 0))
