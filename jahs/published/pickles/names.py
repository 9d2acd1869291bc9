"""The names that a pickle may use, and how each is built. Nothing is ever imported or called.

The `Use` of a name is "record" (it becomes a `Record`, which holds the class's name and state and does nothing), "word"
(it may only be passed on, as the class of a dtype is), or a function of this package that builds plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from jahs.published.pickles.arrays import NewArray, new_dtype, new_scalar

Use: TypeAlias = "Literal['record', 'word'] | Callable[[tuple[object, ...]], object]"

_NEW_MODULES: Final = {
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "numpy._core.multiarray": "numpy.core.multiarray",
}
_TEXTS: Final = frozenset({str, bytes})
_SCALARS: Final = _TEXTS | {int, float, bool, type(None)}
_BITS: Final = 64  # maximum size of an integer as a key; see `scalars`


class Name:
    """A name that a pickle mentions, and its allowed use."""

    __slots__ = ("name", "use")

    def __init__(self, name: str, use: Use) -> None:
        self.name = name
        self.use = use

    def __repr__(self) -> str:
        return f"<the name {self.name}>"


class Record:
    """A pickled object: class or function (`name`, in full), arguments of the constructor, state. It is inert."""

    __slots__ = ("arguments", "items", "name", "state")

    def __init__(self, name: str, arguments: tuple[object, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.state: object = None
        self.items: dict[object, object] = {}

    def __repr__(self) -> str:
        return f"<a record of {self.name}>"  # without its parts, which may be shared a thousandfold

    def get(self, key: str) -> object:
        """Return the value of `key` in the state, if that is a dict; else None."""
        return self.state.get(key) if isinstance(self.state, dict) else None


def plain_name(module: str, name: str) -> str:
    """Return the current dotted name for a name of an old protocol or of any numpy version."""
    return f"{_NEW_MODULES.get(module, module)}.{name}"


def scalars(values: Sequence[object]) -> Sequence[object]:
    """Return `values` if all of them are single values, whose hash is cheap and whose collisions cannot be chosen.

    Hashing deeply nested tuples can take longer than a lifetime. Python salts only the hashes of texts and bytes:
    numbers beyond 64 bits, and tuples of numbers, can be chosen so that a dict of n keys takes n * n steps.
    """
    for value in values:
        if type(value) not in _SCALARS:
            raise TypeError(f"{type(value).__name__} where a single value belongs")
        if type(value) is int and value.bit_length() > _BITS:
            raise ValueError(f"an integer of more than {_BITS} bits as a key")
    return values


def check_keys(keys: Sequence[object]) -> Sequence[object]:
    """Return `keys` if all of them are single values, or tuples of texts; raises as `scalars`."""
    for key in keys:
        if type(key) is tuple:
            for item in key:
                if type(item) not in _TEXTS:
                    raise TypeError(
                        f"a tuple with a {type(item).__name__} where a single value or a tuple of texts belongs"
                    )
        else:
            scalars((key,))
    return keys


def _build(name: str, arguments: tuple[object, ...]) -> object:
    """Return the result of an allowed call: a function or class of Python or numpy with arguments of plain data."""
    match name, arguments:
        case "_codecs.encode", (str(text), "latin1" | "latin-1"):  # how old protocols write bytes
            return text.encode("latin-1")
        case "builtins.bytes" | "builtins.bytearray", ():
            return b""
        case "builtins.bytes" | "builtins.bytearray", (bytes(content),):
            return content
        case "builtins.set", ():
            return frozenset()
        case "builtins.set", (list(items),):
            return frozenset(scalars(items))
        case "builtins.slice", (int() | None as start, int() | None as stop, int() | None as step):
            return slice(start, stop, step)
        case "collections.OrderedDict", ():
            return {}
        case "collections.OrderedDict", (list(pairs),):
            return dict(zip(check_keys([key for key, _ in pairs]), [value for _, value in pairs], strict=True))
        case "copyreg._reconstructor", (Name(use="record") as class_, Name(name="builtins.object"), None):
            return Record(class_.name)  # how old protocols make an object of a class
        case "numpy.core.multiarray._reconstruct", (Name(name="numpy.ndarray"), _, _):
            return NewArray()
    raise TypeError(f"a call of {name} with arguments that no data needs")


def _built(*names: str) -> dict[str, Use]:
    return {name: partial(_build, name) for name in names}


PLAIN_NAMES: Final[Mapping[str, Use]] = MappingProxyType(
    {
        "builtins.object": "word",
        **_built("_codecs.encode", "builtins.bytearray", "builtins.bytes", "builtins.set", "builtins.slice"),
        **_built("collections.OrderedDict", "copyreg._reconstructor", "numpy.core.multiarray._reconstruct"),
        "joblib.numpy_pickle.NumpyArrayWrapper": "record",
        "numpy.core.multiarray.scalar": new_scalar,
        "numpy.dtype": new_dtype,
        "numpy.float64": "word",
        "numpy.ndarray": "word",
    }
)
"""Names of Python, of numpy's arrays and numbers, and of joblib's way to write arrays, which plain data needs."""
