"""Files that once broke a reader, kept as text: each is refused, or read, as any other."""

import base64

import pytest

pytest.importorskip("resource")

from tests.jahs.published.pickles.fuzz import FOUND, READERS, check, seeds

_FILES = sorted(path.name for path in FOUND.glob("*.txt"))


@pytest.mark.parametrize("name", _FILES)
def test_a_file_that_once_broke_a_reader_is_taken_well(name):
    content = base64.decodebytes((FOUND / name).read_bytes())
    assert check(name.partition("-")[0], content) is None


@pytest.mark.parametrize("reader", READERS)
def test_what_broken_files_are_made_from_is_whole(reader):
    whole = [content for name, content in seeds() if name == reader]
    assert whole
    assert all(check(reader, content) is None for content in whole)
