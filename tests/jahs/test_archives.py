"""Archives are whole or refused, wherever they were cut off; those of every writer and compression are read."""

import gzip
import io
import tarfile

import pytest

from jahs.errors import CorruptFile
from jahs.files.archives import checked_members, open_archive

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "x" * 90 + "/" + "y" * 90
BLOCK = 512


def archive(*contents, kind="w", form=tarfile.GNU_FORMAT, name="a"):
    """Files of these contents and, behind them, an empty folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=kind, format=form) as made:
        for number, content in enumerate(contents):
            member = tarfile.TarInfo(f"{name}{number}")
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        made.addfile(folder)
    return buffer.getvalue()


def names(path):
    with open_archive(path) as found:
        return [member.name for member in checked_members(found, path.name)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.tar"


@pytest.mark.parametrize("kind", ["w", "w:gz", "w:bz2", "w:xz", "w|", "w|gz"])
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_whole_archive_is_read_however_it_was_written(path, kind, form):
    contents = [bytes(n) for n in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 100_000)]
    path.write_bytes(archive(*contents, kind=kind, form=form, name=LONG))
    assert names(path) == [f"{LONG}{number}" for number in range(len(contents))]


def test_an_archive_without_members_is_whole(path):
    path.write_bytes(bytes(2 * BLOCK))
    assert names(path) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "compressed"])
def test_an_archive_is_refused_wherever_it_was_cut_off(path, pack):
    whole = archive(b"1" * 700, b"2" * BLOCK, b"3")
    n_bytes = 4 * BLOCK + (2 + 1 + 1) * BLOCK  # four headers, and what is behind three of them
    for n in range(0, n_bytes + BLOCK, 64):
        path.write_bytes(pack(whole[:n]))
        with pytest.raises(CorruptFile, match=r"some\.tar is (cut off|not a readable archive)"):
            names(path)
    path.write_bytes(pack(whole[: n_bytes + BLOCK]))
    assert names(path) == ["a0", "a1", "a2"]


@pytest.mark.parametrize("kind", ["w:gz", "w:bz2", "w:xz"])
def test_a_compressed_archive_that_was_cut_off_is_refused(path, kind):
    whole = archive(*[str(list(range(n, n + 1000))).encode() for n in range(20)], kind=kind)
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(CorruptFile, match=r"some\.tar is not a readable archive"):
            names(path)


def test_a_header_that_is_damaged_does_not_hide_what_comes_behind_it(path):
    whole = archive(b"1", b"2", b"3")
    second = 2 * BLOCK
    path.write_bytes(whole[:second] + b"?" * BLOCK + whole[second + BLOCK :])
    with pytest.raises(
        CorruptFile, match=r"some\.tar is cut off or damaged: its end is not at byte 1024; fetch it again"
    ):
        names(path)
