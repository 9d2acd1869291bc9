"""The stack machine of a pickle, for the opcodes of plain data: lists, dicts, numbers, texts, arrays and records.

Over 300 lines: it is one table of opcodes; whoever reviews its safety reads every opcode in one place.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from pickletools import opcodes
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, UnsafeFile
from jahs.published.pickles.arrays import CodedArray, DType, NewArray, ObjectItems, array_from, build_array, read_shape
from jahs.published.pickles.names import Name, Record, Use, check_keys, plain_name, scalars
from jahs.published.pickles.source import Source

_WRAPPER: Final = "joblib.numpy_pickle.NumpyArrayWrapper"
_NEWEST_PROTOCOL: Final = 5
_LONGEST_INTEGER: Final = 128  # bits
_CONTAINER: Final = 4  # steps counted for an empty container
_ITEM: Final = 64  # bytes that an item of a list takes in a dict or a set
_NO_RUN: Final = 32  # items until the next search for a run
# Runs of one opcode in a long column of objects, each followed by the next one's opcode (h, j) or by nothing.
_RUN_OF_GETS: Final = re.compile(rb"(?:[\x00-\xff]h){64,}")
_RUN_OF_LONG_GETS: Final = re.compile(rb"(?:[\x00-\xff]{4}j){64,}")
_RUN_OF_BOOLS: Final = re.compile(rb"[\x88\x89]{64,}")


def follow(source: Source, names: Mapping[str, Use]) -> object:
    """Follow a pickle's opcodes to its end; return its one object. Raises as `read_pickle`, and Python's own errors."""
    return _Machine(source, names).run()


def _weight(parts: object) -> int:
    """Return about how many bytes an opcode copies of its arguments or of a state; the copy is shallow."""
    n_bytes = _ITEM
    for part in parts if isinstance(parts, tuple) else ():
        match part:
            case str() | bytes():
                n_bytes += len(part)
            case np.ndarray():
                n_bytes += part.nbytes
            case ObjectItems():
                n_bytes += part.n_bytes
            case list():
                n_bytes += _ITEM * len(part)
            case _:
                n_bytes += _ITEM
    return n_bytes


class _Machine:
    """Stack, marks and memo."""

    def __init__(self, source: Source, names: Mapping[str, Use], *, is_inner: bool = False) -> None:
        self.source = source
        self.names = names
        self.is_inner = is_inner
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}
        self.memo_keys: dict[int, list[int]] = {}  # memo keys of objects that are replaced once they are built, by id
        self.n_until_run = 0  # items of a column before a run is looked for again

    def run(self) -> object:
        """Follow the opcodes to the end, and return the one object that is left."""
        source = self.source
        while (code := source.opcode()) != _STOP:
            if code in _VALUES:
                self.push(_ARGUMENTS[code](source))
            elif code in _STEPS:
                _STEPS[code](self)
            elif code in _OPCODES:
                raise UnsafeFile(f"it uses the opcode {_OPCODES[code].name}, which no data needs")
            else:
                raise CorruptFile(f"{code:#04x} is not an opcode; is it a pickle?")
        if self.marks or len(self.stack) != 1 or type(self.stack[0]) is NewArray:
            raise CorruptFile("it ends before it is complete")
        return self.stack[0]

    def protocol(self) -> None:
        if (version := self.source.number(_U1)) > _NEWEST_PROTOCOL:
            raise UnsafeFile(f"it is of pickle protocol {version}; {_NEWEST_PROTOCOL} is the newest that is read")

    def mark(self) -> None:
        self.marks.append(len(self.stack))
        if len(self.marks) > (depth := self.source.limits.depth):
            raise UnsafeFile(f"it nests more than {depth} levels deep")

    def start_of(self, n_items: int) -> int:
        """Return where the last items begin on the stack; never before a mark."""
        start = len(self.stack) - n_items
        if start < (self.marks[-1] if self.marks else 0):
            raise CorruptFile("it takes more from the stack than there is")
        return start

    def pop(self, n_items: int) -> list[object]:
        """Take the last items off the stack."""
        start = self.start_of(n_items)
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def pop_to_mark(self) -> list[object]:
        items = self.pop(len(self.stack) - self.marks[-1])
        self.marks.pop()
        return items

    def top(self) -> object:
        return self.stack[self.start_of(1)]

    # Numbers, texts and bytes

    def push(self, value: object) -> None:
        if type(value) is int and value.bit_length() > _LONGEST_INTEGER:
            raise UnsafeFile(f"it has an integer of {value.bit_length()} bits; {_LONGEST_INTEGER} are allowed")
        self.stack.append(value)

    def content(self, length: struct.Struct) -> None:
        n_bytes = self.source.number(length)
        self.stack.append((self.source.array_bytes if self.is_array_state() else self.source.read)(n_bytes))

    def is_array_state(self) -> bool:
        """Return whether the next bytes are the content of an array, whose state so far is 1, shape, dtype, order."""
        if not self.marks or len(self.stack) != self.marks[-1] + 4:
            return False
        match self.stack[-5:]:
            case [NewArray(), 1, tuple(), DType(), bool()]:
                return True
        return False

    # Containers

    def empty_list(self) -> None:
        self.source.spend(_CONTAINER)
        item_type = self.stack[-2] if self.is_array_state() else None
        is_column = isinstance(item_type, DType) and item_type.is_object
        self.stack.append(ObjectItems() if is_column else [])

    def empty(self, kind: type[dict[object, object]] | type[set[object]]) -> None:
        self.source.spend(_CONTAINER)
        self.stack.append(kind())

    def append(self, items: list[object]) -> None:
        target = self.top()
        if not isinstance(target, list | ObjectItems):
            raise TypeError(f"items are appended to a {type(target).__name__}")
        target.extend(items)

    def set_items(self, items: list[object]) -> None:
        target = self.top()
        if isinstance(target, Record):
            target = target.items
        if not isinstance(target, dict):
            raise TypeError(f"items are set in a {type(target).__name__}")
        target.update(zip(check_keys(items[::2]), items[1::2], strict=True))

    def add_items(self, items: list[object]) -> None:
        target = self.top()
        if not isinstance(target, set):
            raise TypeError(f"items are added to a {type(target).__name__}")
        target.update(scalars(items))

    def dict_to_mark(self) -> None:
        items = self.pop_to_mark()
        self.stack.append(dict(zip(check_keys(items[::2]), items[1::2], strict=True)))

    # The memo, and runs of memoised items in long columns

    def put(self, key: int) -> None:
        item = self.top()
        if key in self.memo and self.memo[key] is not item:
            raise CorruptFile(f"memo key {key} is assigned twice")
        self.memo[key] = item
        if type(item) is NewArray or (type(item) is Record and item.name == _WRAPPER):
            self.memo_keys.setdefault(id(item), []).append(key)

    def get(self, key: int) -> None:
        self.stack.append(self.recall(key))

    def get_short(self) -> None:
        if run := self.run_of(_RUN_OF_GETS):
            self.add_run(np.frombuffer(run, np.uint8)[::2], self.recall)
        self.get(self.source.number(_U1))

    def get_long(self) -> None:
        if run := self.run_of(_RUN_OF_LONG_GETS):
            keys = np.frombuffer(run, np.dtype([("key", "<u4"), ("opcode", "u1")]))["key"]
            self.add_run(keys, self.recall)
        self.get(self.source.number(_U4))

    def boolean(self, *, value: bool) -> None:
        self.stack.append(value)
        if run := self.run_of(_RUN_OF_BOOLS):
            self.add_run(np.frombuffer(run, np.uint8), lambda code: code == _TRUE)

    def recall(self, key: int) -> object:
        if key not in self.memo:
            raise CorruptFile(f"it asks for number {key}, which it has not remembered")
        return self.memo[key]

    def run_of(self, pattern: re.Pattern[bytes]) -> bytes | None:
        """Return the next bytes if they are a run of items of a long column."""
        self.n_until_run -= 1
        if self.n_until_run > 0 or not self.marks or type(self.stack[self.marks[-1] - 1]) is not ObjectItems:
            return None
        match = pattern.match(self.source.peek())
        if match is None:
            self.n_until_run = _NO_RUN
            return None
        self.source.skip(match.end())
        return match.group()

    def add_run(self, keys: NDArray[np.unsignedinteger], meaning: Callable[[int], object]) -> None:
        """Append the items on the stack, then the items of a run, to the column below the mark."""
        column = self.stack[self.marks[-1] - 1]
        assert isinstance(column, ObjectItems)
        column.extend(self.pop(len(self.stack) - self.marks[-1]))
        distinct, codes = np.unique(keys, return_inverse=True)
        column.extend_run(codes, [meaning(int(key)) for key in distinct])

    # Names, and the objects built from them

    def name(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise TypeError("a name that is not text")
        full = plain_name(module, name)
        use = self.names.get(full)
        if use is None:
            raise UnsafeFile(f"it asks for {full[:100]!r}, which is not a name that such data needs")
        self.stack.append(Name(full, use))

    def global_(self) -> None:
        self.name(str(self.source.readline()[:-1], "utf-8"), str(self.source.readline()[:-1], "utf-8"))

    def reduce(self) -> None:
        what, arguments = self.pop(2)
        if not isinstance(arguments, tuple):
            raise TypeError(f"a call with a {type(arguments).__name__} as arguments")
        match what:
            case Name(use="record", name=name):
                self.stack.append(Record(name, arguments))
            case Name(use="word", name=name):
                raise UnsafeFile(f"it calls {name}, which data may only mention")
            case Name(use=use) if callable(use):
                self.source.copy(_weight(arguments))
                self.stack.append(use(arguments))
            case Record(name="functools.partial", state=(Name(use="record", name=name), tuple(), dict(words), _)):
                record = Record(name, arguments)
                record.state = words
                self.stack.append(record)
            case _:
                raise TypeError(f"a call of a {type(what).__name__}")

    def new_object(self) -> None:
        what, arguments = self.pop(2)
        if not isinstance(what, Name) or what.use != "record" or not isinstance(arguments, tuple):
            raise UnsafeFile("it makes an object of something other than an allowed class")
        self.stack.append(Record(what.name, arguments))

    def build(self) -> None:
        target, state = self.pop(2)
        match target:
            case NewArray():
                self.source.copy(_weight(state))
                self.replace(target, build_array(state))
            case Record(name="joblib.numpy_pickle.NumpyArrayWrapper", state=None):
                self.replace(target, self.joblib_array(state))
            case Record(state=None):
                target.state = state
                self.stack.append(target)
            case DType():
                target.build(state)
                self.stack.append(target)
            case _:
                raise TypeError(f"a state for a {type(target).__name__}, or a second one")

    def replace(self, old: object, new: object) -> None:
        """Push the object that replaces `old`, and remember it in its place."""
        for key in self.memo_keys.pop(id(old), ()):
            self.memo[key] = new
        self.stack.append(new)

    def joblib_array(self, state: object) -> object:
        """Read the array that follows joblib's wrapper; an array of objects is a nested pickle."""
        match state:
            case {"shape": shape, "order": "C" | "F" as order, "dtype": DType() as item_type, **others}:
                shape = read_shape(shape)
            case _:
                raise TypeError("an array of joblib's without shape, order and dtype")
        if item_type.is_object:
            if self.is_inner:
                raise UnsafeFile("it nests pickles more than one level deep")
            inner = _Machine(self.source, self.names, is_inner=True).run()
            if not isinstance(inner, np.ndarray | CodedArray):
                raise TypeError("an invalid array of objects")
            return inner
        if others.get("numpy_array_alignment_bytes") is not None:
            self.source.read(self.source.number(_U1))
        content = self.source.array_bytes(math.prod(shape) * item_type.dtype.itemsize)
        return array_from(content, item_type, shape, is_fortran=order == "F")


_U1, _U4, _U8 = (struct.Struct(form) for form in ("<B", "<I", "<Q"))
_STOP: Final = ord(".")
_TRUE: Final = 0x88
_OPCODES: Final = {ord(opcode.code): opcode for opcode in opcodes}
_ARGUMENTS: Final[dict[int, Callable[[Any], Any]]] = {  # Any: a file, and a value of any type
    code: opcode.arg.reader for code, opcode in _OPCODES.items() if opcode.arg is not None
}
"""The standard library's readers of what follows each opcode."""

_VALUES: Final = frozenset(b"ILFJKMGXC\x8a\x8c\x8d")
"""Opcodes that push what follows: integers, floats, texts and short bytes."""

_STEPS: Final[dict[int, Callable[[_Machine], object]]] = {
    opcode: step
    for text, step in {
        b"\x80": _Machine.protocol,
        b"\x95": lambda m: m.source.check_frame(m.source.number(_U8)),
        b"(": _Machine.mark,
        b"N": lambda m: m.stack.append(None),
        b"\x88": lambda m: m.boolean(value=True),
        b"\x89": lambda m: m.boolean(value=False),
        b"V": lambda m: m.stack.append(str(m.source.text(), "raw-unicode-escape")),
        b"B": lambda m: m.content(_U4),
        b"\x8e": lambda m: m.content(_U8),
        b"\x96": lambda m: m.content(_U8),
        b")": lambda m: m.stack.append(()),
        b"]": _Machine.empty_list,
        b"}": lambda m: m.empty(dict),
        b"\x8f": lambda m: m.empty(set),
        b"t": lambda m: m.stack.append(tuple(m.pop_to_mark())),
        b"\x85": lambda m: m.stack.append(tuple(m.pop(1))),
        b"\x86": lambda m: m.stack.append(tuple(m.pop(2))),
        b"\x87": lambda m: m.stack.append(tuple(m.pop(3))),
        b"l": lambda m: m.stack.append(m.pop_to_mark()),
        b"d": _Machine.dict_to_mark,
        b"a": lambda m: m.append(m.pop(1)),
        b"e": lambda m: m.append(m.pop_to_mark()),
        b"s": lambda m: m.set_items(m.pop(2)),
        b"u": lambda m: m.set_items(m.pop_to_mark()),
        b"\x90": lambda m: m.add_items(m.pop_to_mark()),
        b"p": lambda m: m.put(_ARGUMENTS[ord("p")](m.source)),
        b"q": lambda m: m.put(m.source.number(_U1)),
        b"r": lambda m: m.put(m.source.number(_U4)),
        b"\x94": lambda m: m.put(len(m.memo)),
        b"g": lambda m: m.get(_ARGUMENTS[ord("g")](m.source)),
        b"h": _Machine.get_short,
        b"j": _Machine.get_long,
        b"c": _Machine.global_,
        b"\x93": lambda m: m.name(*m.pop(2)),
        b"R": _Machine.reduce,
        b"\x81": _Machine.new_object,
        b"b": _Machine.build,
    }.items()
    for opcode in text
}
