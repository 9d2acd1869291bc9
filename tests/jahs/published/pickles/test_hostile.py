"""Pickles that would do harm: refused within a second, by name, with nothing executed and no trace left."""

import gc
import gzip
import io
import os
import pickle
import struct
import time

import numpy as np
import pytest

from jahs.errors import CorruptFile, UnsafeFile
from jahs.published.pickles import Limits, read_pickle
from tests.pace import is_quick
from tests.pickle_writer import Call, Joblib, Name, Obj, call, dumps


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace"


def refuse(content, fault, **arguments):
    """The reader refuses `content` within a second, saying `fault`."""
    gc.freeze()  # the garbage of other tests is not the reader's to look through
    try:
        start = time.process_time()
        with pytest.raises((UnsafeFile, CorruptFile), match=fault) as raised:
            read_pickle(io.BytesIO(content), where="file", **arguments)
        assert is_quick(start, 1)
    finally:
        gc.unfreeze()
    assert str(raised.value).startswith("file")
    assert len(str(raised.value)) < 500
    if isinstance(raised.value, UnsafeFile):
        assert "nothing of it was executed" in str(raised.value)


def attacks(trace):
    """Pickles that Python executes: each would make the file `trace`."""
    path, touch = str(trace), f"touch {trace}"
    source = f"open({path!r}, 'w').close()"
    system = Name("posix", "system")
    text = b"X" + struct.pack("<I", len(touch)) + touch.encode()
    module = call("builtins", "__import__", "os")
    return {
        "os.system": dumps(call("os", "system", touch), 4),
        "os.system, protocol 0": dumps(call("os", "system", touch), 0),
        "posix.system": dumps(Call(system, (touch,)), 2),
        "builtins.eval": dumps(call("builtins", "eval", source), 4),
        "Python 2's eval": dumps(call("__builtin__", "eval", source), 0),
        "builtins.exec": dumps(call("builtins", "exec", source), 4),
        "subprocess": dumps(call("subprocess", "call", ["touch", path]), 4),
        "getattr of a module": dumps(Call(call("builtins", "getattr", module, "system"), (touch,)), 4),
        "partial": dumps(Call(call("functools", "partial", system), (touch,)), 4),
        "within a list of a dict": dumps({"a": [1, {"b": call("os", "system", touch)}]}, 4),
        "nested calls": dumps(call("builtins", "list", call("builtins", "map", system, [touch])), 4),
        "the opcode INST": b"(S'" + touch.encode() + b"'\niposix\nsystem\n.",
        "the opcode OBJ": b"(cposix\nsystem\n" + text + b"o.",
        "within an array of objects": dumps(Joblib(np.array(["here"], dtype=object)), 2).replace(
            b"X\x04\x00\x00\x00here", b"cposix\nsystem\n" + text + b"\x85R"
        ),
        "after an array": dumps([np.arange(3), call("os", "system", touch)], 4),
    }


_NAMES = sorted(attacks("x"))


@pytest.mark.parametrize("name", _NAMES)
def test_an_attack_that_python_executes_leaves_no_trace_here(name, trace):
    content = attacks(trace)[name]
    if "array of objects" in name:
        joblib = pytest.importorskip("joblib")
        joblib.load(io.BytesIO(content))
    else:
        pickle.loads(content)
    assert trace.exists(), "the payload is not a real one"
    trace.unlink()
    refuse(content, "it asks for|it uses the opcode")
    refuse(gzip.compress(content), "it asks for|it uses the opcode")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"cos\nsystem\n.", r"asks for 'os\.system'"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"asks for 'os\.system'"),
        (b"\x80\x02cnumpy.core.multiarray\n__dict__\n.", "__dict__"),
        (b"\x80\x02cjoblib.numpy_pickle\nload\n.", "joblib.numpy_pickle.load"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.", r"numpy\.ndarray\.tofi"),
        (b"Pid\n.", "opcode PERSID"),
        (b"NQ.", "opcode BINPERSID"),
        (b"\x82\x01.", "opcode EXT1"),
        (b"\x80\x04)}\x92.", "opcode NEWOBJ_EX"),
        (b"\x80\x05\x97.", "opcode NEXT_BUFFER"),
        (b"N2.", "opcode DUP"),
        (b"(S'text'\n.", "opcode STRING"),
        (b"\x80\x06N.", "protocol 6"),
        (b"\xff.", "0xff is not an opcode"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value.replace("\\", ""),
)
def test_what_no_data_needs_is_refused_by_name(content, fault):
    refuse(content, fault)


def test_an_allowed_name_is_not_a_way_to_others(trace):
    names = {"a.Class": "record", "a.function": "record", "functools.partial": "record", "a.word": "word"}
    system = call("os", "system", f"touch {trace}")
    for thing in (
        Obj("a", "Class", {"x": system}),
        Call(Name("a", "Class"), (system,)),
        call("functools", "partial", Name("posix", "system")),
        Obj("a", "Class.__init__", None),
    ):
        refuse(dumps(thing, 4), "asks for", names=names)
    partial = Call(Name("functools", "partial"), (Name("a", "function"),), (Name("a", "word"), (), {}, None))
    refuse(dumps(Call(partial, (1,)), 4), "a call of a Record", names=names)
    refuse(b"\x80\x02K\x05)\x81.", "makes an object of something other than an allowed class")
    refuse(
        dumps(Call(Name("copy_reg", "_reconstructor"), (Name("a", "word"), Name("__builtin__", "object"), None)), 2),
        "_reconstructor with arguments that no data needs",
        names=names,
    )
    assert not trace.exists()


def test_a_record_takes_one_state_and_runs_nothing_with_it(trace):
    names = {"a.Class": "record"}
    state = {"__reduce__": "x", "__class__": "y", "__setstate__": 1}
    found = read_pickle(io.BytesIO(dumps(Obj("a", "Class", state), 4)), where="file", names=names)
    assert type(found).__name__ == "Record"
    assert found.state == state
    refuse(dumps(Obj("a", "Class", {"x": 1}), 4)[:-1] + b"}b.", "a second one", names=names)


def test_numpy_is_never_asked_to_unpickle(trace):
    objects = call("numpy", "dtype", "O8", False, True)
    inner = pickle.dumps(_Touch(trace))
    refuse(dumps(call("numpy.core.multiarray", "scalar", objects, inner), 2), "a number of numpy that is not one")
    array = call("numpy.core.multiarray", "_reconstruct", Name("numpy", "ndarray"), (0,), b"b")
    state = (1, (1,), objects, False, inner)
    refuse(dumps(Call(array.what, array.arguments, state), 2), "an array with something other than its content")
    other = call("numpy.core.multiarray", "_reconstruct", Name("numpy", "float64"), (0,), b"b")
    refuse(dumps(other, 2), "_reconstruct with arguments that no data needs")
    fields = call("numpy", "dtype", "V8", False, True)
    refuse(dumps(fields, 2), "a dtype 'V8'")
    assert not trace.exists()


class _Touch:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


def test_pickles_do_not_nest_without_end():
    def wrapper(inner):
        array = np.empty(1, dtype=object)
        outer = dumps(Joblib(array), 2)
        return outer[: outer.index(b"\x80\x02", 2)] + inner + b"."

    refuse(wrapper(wrapper(wrapper(b"N."))), "nests pickles")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04\x8e" + struct.pack("<Q", 10**10) + b"x",
        b"\x80\x04\x8d" + struct.pack("<Q", 10**10) + b"x",
        b"\x80\x05\x96" + struct.pack("<Q", 10**10) + b"x",
        b"\x80\x04\x95" + struct.pack("<Q", 10**10) + b"N.",
        dumps(Joblib(np.empty(0)), 4).replace(b"K\x00\x85", b"\x8a\x08" + struct.pack("<q", 10**10) + b"\x85"),
        dumps(Joblib(np.empty((0, 0))), 4).replace(
            b"K\x00K\x00\x86", 2 * (b"\x8a\x06" + struct.pack("<q", 2**40)[:6]) + b"\x86"
        ),
    ],
    ids=["bytes", "text", "bytearray", "frame", "array", "array of two dimensions"],
)
def test_a_claim_of_10_gigabytes_is_refused_before_memory_is_asked_for(content):
    refuse(content, "claims [0-9]+ bytes in one piece")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\x80\x02B" + struct.pack("<I", 200 << 20) + b"x" * 1000, "ends in the middle"),
        (b"\x80\x02X" + struct.pack("<I", 2**31), "claims"),
        (b"T" + struct.pack("<i", -1), "opcode BINSTRING"),
        (b"\x8a\xff" + b"\x01" * 255 + b".", "an integer of 2033 bits"),
        (b"\x8b" + struct.pack("<i", 10**9), "opcode LONG4"),
        (b"I" + b"9" * 3000 + b"\n.", "an integer of 9966 bits"),
        (b"L" + b"9" * 3000 + b"L\n.", "an integer of 9966 bits"),
        (b"F" + b"9" * 100_000 + b"\n.", "a line of more than 4096 bytes"),
        (b"c" + b"a" * 100_000 + b"\nb\n.", "a line of more than 4096 bytes"),
        (b"(" * 200, "nests more than 100 levels"),
        (b"]" * 200_000 + b".", "takes more than 500000 steps"),
        (b"\x8f" * 200_000 + b".", "takes more than 500000 steps"),
        (b"N" * 600_000 + b".", "takes more than 500000 steps"),
    ],
    ids=[
        "cut payload",
        "2 GB",
        "binstring",
        "long1",
        "long4",
        "int",
        "long",
        "float",
        "name",
        "marks",
        "lists",
        "sets",
        "nones",
    ],
)
def test_no_claim_costs_more_than_the_limits_allow(content, fault):
    refuse(content, fault)


def test_what_is_shared_ten_thousandfold_costs_nothing():
    # Each level is twice the one before: more items than there are atoms, if anyone walked through them.
    levels = b"\x80\x02)r" + struct.pack("<I", 0)
    for k in range(10_000):
        levels += b"j" + struct.pack("<I", k) + b"\x86r" + struct.pack("<I", k + 1)
    start = time.process_time()
    found = read_pickle(io.BytesIO(levels + b"."), where="file")
    assert isinstance(found, tuple)
    assert found[0] is found[1]
    del found
    refuse(levels, "ends in the middle")
    refuse(levels + b"Na.", "items are appended to a tuple")
    refuse(levels + b"R.", "takes more from the stack")
    assert is_quick(start, 1)


def test_what_is_nested_a_hundred_thousand_deep_costs_nothing():
    refuse(b"\x80\x02)" + b"\x85" * 100_000 + b"R.", "takes more from the stack")
    refuse(b"\x80\x02}N)" + b"\x85" * 100_000 + b"b.", "a state for a NoneType")


def test_keys_that_take_for_ever_to_hash_are_refused():
    doubling = b")" + b"".join(b"q%c" % k + b"h%c" % k + b"\x86" for k in range(100))
    refuse(b"\x80\x02}" + doubling + b"Ns.", "a tuple with a tuple where")
    refuse(b"\x80\x04\x8f(" + doubling + b"\x90.", "tuple where a single value belongs")
    refuse(b"\x80\x02c__builtin__\nset\n](" + doubling + b"e\x85R.", "tuple where a single value belongs")
    refuse(b"\x80\x02}]Ns.", "list where a single value belongs")


def test_a_small_file_that_decompresses_to_a_large_one_is_refused():
    bomb = gzip.compress(b"\x80\x02B" + struct.pack("<I", 200 << 20) + bytes(200 << 20) + b".", compresslevel=1)
    refuse(bomb, "no data is that repetitive")
    refuse(gzip.compress(b"N" * 5000 + b"."), "it holds more than 1000 bytes", limits=Limits(n_bytes=1000))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b".", "ends before it is complete"),
        (b"", "ends in the middle"),
        (b"(.", "ends before it is complete"),
        (b"t.", "index out of range"),
        (b"NN\x87.", "takes more from the stack than there is"),
        (b"N(a.", "takes more from the stack than there is"),
        (b"h\x05.", "asks for number 5, which it has not remembered"),
        (b"g7\n.", "asks for number 7"),
        (b"Nq\x00K\x01q\x00.", "memo key 0 is assigned twice"),
        (b"]NNs.", "items are set in a list"),
        (b"}Na.", "items are appended to a dict"),
        (b"N}b.", "a state for a NoneType"),
        (b"NNR.", "a call with a NoneType"),
        (b"N)R.", "a call of a NoneType"),
        (b"}(Nu.", "zip"),
        (b"Fx\n.", "could not convert"),
        (b"X\x01\x00\x00\x00\xff.", "utf-8"),
        (b"c\xff\nx\n.", "utf-8"),
        (dumps(np.arange(3), 2).replace(b"K\x03\x85", b"K\x04\x85"), r"an array of shape \(4,\)"),
        (
            dumps(np.array(["a", "b"], dtype=object), 2).replace(b"K\x02\x85", b"K\x03\x85"),
            r"shape \(3,\) with 2 items",
        ),
        (dumps(np.array([0x110000], "<u4").view("<U1"), 4), "a text with a character that does not exist"),
        (
            dumps(np.array(["a"]), 4).replace(b"a\0\0\0", b"\xff\xff\xff\xff"),
            "a text with a character that does not exist",
        ),
    ],
    ids=[str(number) for number in range(22)],
)
def test_nonsense_is_corrupt_and_says_why(content, fault):
    refuse(content, fault)
