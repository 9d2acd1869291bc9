"""What a pickle of data holds is read as it was written, whatever wrote it."""

import gzip
import io
import math
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import CorruptFile, UnsafeFile
from jahs.published.pickles import CodedArray, Limits, Record, read_pickle
from tests.pickle_writer import Joblib, Name, Obj, call, dumps

_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
_TEXTS = st.text() | st.binary()
_KEYS = st.none() | st.booleans() | _NUMBERS | _TEXTS
_PLAIN = st.recursive(
    _KEYS,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS | st.tuples(_TEXTS, _TEXTS), inner)
    ),
    max_leaves=20,
)


def read(content, **arguments):
    return read_pickle(io.BytesIO(content), where="file", **arguments)


@pytest.mark.parametrize("protocol", range(6))
@given(thing=_PLAIN)
def test_plain_data_of_every_protocol_comes_back(protocol, thing):
    found = read(pickle.dumps(thing, protocol))
    assert found == thing
    assert type(found) is type(thing)


@pytest.mark.parametrize("protocol", [0, 2, 4])
@given(thing=_PLAIN)
def test_our_writer_of_tests_writes_what_python_reads(protocol, thing):
    content = dumps(thing, protocol)
    assert pickle.loads(content) == thing
    assert read(content) == thing


@pytest.mark.parametrize("protocol", range(5))
def test_sets_slices_and_ordered_dicts_come_back_as_plain_ones(protocol):
    thing = [{1, "a", None}, slice(1, None, 2), OrderedDict([("a", 1), ("b", 2)]), OrderedDict(), bytearray(b"x"), b""]
    found = read(pickle.dumps(thing, protocol))
    assert [{1, "a", None}, slice(1, None, 2), {"a": 1, "b": 2}, {}, b"x", b""] == found


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", ">f8", "S3", "U2", "O"])
def test_arrays_of_numpy_come_back(protocol, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    for written in (array, np.asfortranarray(array), array[:0]):
        found = read(pickle.dumps(written, protocol))
        assert isinstance(found, np.ndarray)
        assert found.dtype == written.dtype
        assert found.flags.f_contiguous == written.flags.f_contiguous
        assert np.array_equal(found, written)


@pytest.mark.parametrize("number", [np.float64(1.5), np.int32(-3), np.bool_(True), np.float32(math.pi)], ids=str)
def test_numbers_of_numpy_come_back(number):
    found = read(pickle.dumps(number, 2))
    assert found == number
    assert found.dtype == number.dtype


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("alignment", [None, 16])
def test_arrays_within_a_joblib_stream_come_back(protocol, alignment):
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.empty((0, 2), "f4")]
    texts = np.array(["a", None, "b", 3], dtype=object)
    thing = {"first": [Joblib(array, alignment) for array in arrays], "texts": Joblib(texts), "after": "the end"}
    found = read(dumps(thing, protocol))
    assert found["after"] == "the end"
    assert found["texts"].tolist() == ["a", None, "b", 3]
    for array, written in zip(found["first"], arrays, strict=True):
        assert array.dtype == written.dtype
        assert array.flags.f_contiguous == written.flags.f_contiguous
        assert np.array_equal(array, written)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("n_before", [0, 300], ids=["short memo numbers", "long memo numbers"])
def test_a_long_column_of_texts_or_bools_is_coded(protocol, n_before):
    texts = np.array([["Mish", "ReLU", "Mish", "SGD"][i % 4] for i in range(5003)] + ["Hardswish"], dtype=object)
    bools = np.array([i % 3 == 0 for i in range(3000)], dtype=object).reshape(3, 1000)
    before = [f"text {i}" for i in range(n_before)]
    _, found, others = read(dumps([before, texts, bools], protocol), limits=Limits(n_steps=4000))
    assert isinstance(found, CodedArray)
    assert isinstance(others, CodedArray)
    assert [found.values[code] for code in found.codes] == texts.tolist()
    assert np.array_equal(np.array(others.values)[others.codes], bools.astype(bool))


def test_a_column_of_millions_is_no_repetition():
    texts = np.empty(3_000_000, dtype=object)
    texts[:] = "Mish"
    texts[::2] = "ReLU"
    found = read(pickle.dumps(texts, 2))  # two bytes an item
    assert isinstance(found, CodedArray)
    assert (len(found.codes), set(found.values)) == (3_000_000, {"Mish", "ReLU"})


def test_a_column_that_is_no_whole_number_of_runs_keeps_every_item():
    for n in (1, 63, 64, 65, 66, 127, 999, 1000, 1001, 1065):
        texts = np.array(["a", "b"] * n, dtype=object)
        found = read(dumps(texts, 4))
        words = found.tolist() if isinstance(found, np.ndarray) else [found.values[code] for code in found.codes]
        assert words == texts.tolist()


def test_what_was_remembered_before_it_was_built_is_the_built_array():
    shared = np.arange(3.0)
    once, again = read(pickle.dumps([shared, shared], 4))
    assert once is again
    assert once.tolist() == [0.0, 1.0, 2.0]


def test_an_allowed_class_becomes_an_inert_record():
    thing = Obj("some.module", "Thing", {"size": 3})
    for protocol in (0, 2, 4):
        found = read(dumps(thing, protocol), names={"some.module.Thing": "record"})
        assert isinstance(found, Record)
        assert (found.name, found.get("size"), found.get("colour")) == ("some.module.Thing", 3, None)
        assert repr(found) == "<a record of some.module.Thing>"


def test_an_allowed_function_becomes_a_record_of_its_call():
    found = read(dumps(call("some.module", "make", 1, "x"), 4), names={"some.module.make": "record"})
    assert isinstance(found, Record)
    assert found.arguments == (1, "x")


def test_a_compressed_file_is_read_and_its_checksum_compared():
    content = gzip.compress(pickle.dumps(list(range(100))))
    assert read(content) == list(range(100))
    damaged = content[:-8] + bytes(4) + content[-4:]
    with pytest.raises(CorruptFile, match="file: it cannot be decompressed: CRC"):
        read(damaged)


def test_what_follows_the_end_is_refused():
    with pytest.raises(CorruptFile, match="file: more bytes follow the end of the pickle"):
        read(b"N.N.")


@pytest.mark.parametrize("is_gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("protocol", [0, 4])
def test_a_file_that_is_cut_off_anywhere_is_corrupt(protocol, is_gzip):
    thing = {"a": [1.5, "text", None, True], "array": np.arange(4.0), "joblib": Joblib(np.arange(3))}
    content = dumps(thing, protocol)
    content = gzip.compress(content) if is_gzip else content
    for n in range(len(content)):
        with pytest.raises((CorruptFile, UnsafeFile), match=r"^file"):
            read(content[:n])


def test_long_arrays_can_be_put_in_scratch_files(tmp_path):
    array = np.arange(100_000.0)
    limits = Limits(n_payload=1000, scratch=tmp_path)
    for content in (dumps(array, 4), dumps(Joblib(array), 4)):
        found = read(content, limits=limits)
        assert isinstance(found.base if found.base is not None else found, np.ndarray)
        assert np.array_equal(found, array)
    with pytest.raises(UnsafeFile, match="claims 800000 bytes in one piece; 1000 are allowed"):
        read(dumps(array, 4), limits=Limits(n_payload=1000))
    assert list(tmp_path.iterdir()) == []


def test_a_word_may_be_mentioned_and_not_called():
    assert repr(read(dumps(Name("numpy", "float64"), 2))) == "<the name numpy.float64>"
    with pytest.raises(UnsafeFile, match=r"it calls numpy\.float64, which data may only mention"):
        read(dumps(call("numpy", "float64", 1), 2))
