"""One reader of JSON: what the standard does not allow is refused, and the line is named."""

import json

import pytest

from jahs.files.strict_json import json_lines, parse_json


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' twice in the object that ends: line 1 column 16"),
        ('{"b": {"a": "}"},\n "c": {"a": 1,\n "a": 1}}', "the key 'a' twice in the object that ends: line 3 column 8"),
        ('["NaN",\n NaN]', "NaN is not a finite number: line 2 column 2"),
        ("[-Infinity]", "-Infinity is not a finite number: line 1 column 2"),
        ("[1,\n1e999]", "1e999 is not a finite number: line 2 column 1"),
        ('["NaNx", NaNx]', "NaN is not a finite number: line 1 column 10"),
        ("[1e999-5]", "1e999 is not a finite number: line 1 column 2"),
        ("[" * 100_000, "it nests too deep: line 1"),
        ("1" * 5000, "Exceeds the limit"),
        (b'"a\n\xff"', "bytes that are not UTF-8: line 2 column 1"),
        ("[1]".encode("utf-16"), "bytes that are not UTF-8: line 1 column 1"),
        (b"\xef\xbb\xbf{}", "line 1"),
        ("", "Expecting value: line 1"),
        ('"a" 1', "Extra data: line 1"),
    ],
    ids=str,
)
def test_what_is_no_json_is_refused_with_its_line(content, fault):
    with pytest.raises(json.JSONDecodeError, match=fault.replace("[", r"\[")):
        parse_json(content)


def test_what_is_json_comes_back():
    content = {"a": [1, -2.5, None, True, {"a": "\u2028"}], "b": {"a": 1e300}}
    assert parse_json(json.dumps(content, ensure_ascii=False)) == content
    assert parse_json(json.dumps(content).encode()) == content


def test_a_line_feed_alone_ends_a_line():
    assert list(json_lines('"\u2028\x0c\x85"\r\n\n 1')) == [(1, '"\u2028\x0c\x85"\r'), (3, " 1")]
