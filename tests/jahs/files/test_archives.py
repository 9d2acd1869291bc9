"""Archives are whole or refused, wherever they were cut off; those of every writer and compression are read."""

import bz2
import gzip
import io
import lzma
import re
import tarfile

import pytest

from jahs.errors import CorruptFile, UnsafeFile
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
    with open_archive(path) as tar:
        return [member.name for member in checked_members(tar, path.name)]


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


def header(size, kind):
    member = tarfile.TarInfo("a")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def pax(**facts):
    """A pax header of these facts, as they are, and a file behind it."""
    body = b""
    for name, value in facts.items():
        line = f" {name.replace('_', '.')}={value}\n".encode()
        n_bytes = next(n for n in range(len(line), 1000) if n == len(line) + len(str(n)))
        body += str(n_bytes).encode() + line
    return header(len(body), b"x") + body.ljust(BLOCK, b"\0") + header(0, b"0")


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g", b"X"], ids=bytes.decode)
@pytest.mark.parametrize("size", [5 << 20, 1 << 40, 1 << 62, 1 << 70, -BLOCK])
def test_a_header_that_claims_more_than_any_has_is_refused_before_it_is_read(path, kind, size):
    for before in (b"", header(0, b"0")):
        path.write_bytes(gzip.compress(before + header(size, kind) + bytes(2 * BLOCK)))
        with pytest.raises(UnsafeFile, match=r"some\.tar: headers claim \d+ bytes; 4194304 are allowed"):
            names(path)


def test_headers_that_are_many_are_refused_as_a_long_one_is(path):
    one = header(100_000, b"L") + bytes(196 * BLOCK) + header(0, b"0")
    path.write_bytes(gzip.compress(100 * one))
    with pytest.raises(UnsafeFile, match=r"some\.tar: headers claim 4200000 bytes"):
        names(path)
    path.write_bytes(100_000 * header(0, b"L"))
    with pytest.raises(CorruptFile, match=r"some\.tar is not a readable archive: .*recursion"):
        names(path)


@pytest.mark.parametrize(
    "content",
    [
        header(1 << 63, b"0"),
        header(1 << 70, b"0"),
        pax(GNU_sparse_map="a,b"),
        pax(GNU_sparse_size="x"),
        pax(GNU_sparse_realsize="x"),
        pax(size=str(1 << 70)),
        pax(size="99999999999999"),
    ],
    ids=["2^63 bytes", "2^70 bytes", "map", "sparse size", "real size", "pax's size", "beyond every disk"],
)
def test_numbers_that_make_no_sense_are_said_of_the_archive(path, content):
    path.write_bytes(content + bytes(2 * BLOCK))
    with pytest.raises(
        (CorruptFile, UnsafeFile), match=r"some\.tar(: member '.*' claims| is not a readable archive: )"
    ):
        names(path)


@pytest.mark.parametrize(
    "content", [header(0, b"S"), pax(GNU_sparse_major=1, GNU_sparse_minor=0)], ids=["as gnu", "as pax"]
)
def test_a_sparse_file_is_refused_before_its_pieces_are_read(path, content):
    path.write_bytes(content + b"9" * 100 * BLOCK)
    with pytest.raises(UnsafeFile, match=r"some\.tar: a member is neither .*, but a sparse file"):
        names(path)


@pytest.mark.parametrize(
    ("name", "kind", "fault"),
    [
        ("../evil", tarfile.REGTYPE, "would land outside of its folder"),
        ("/etc/evil", tarfile.REGTYPE, "would land outside of its folder"),
        ("a/../../b", tarfile.REGTYPE, "would land outside of its folder"),
        ("C:\\x", tarfile.REGTYPE, "would land outside of its folder"),
        ("a/link", tarfile.SYMTYPE, "is a link to '/etc/passwd'"),
        ("a/hard", tarfile.LNKTYPE, "is a link to '/etc/passwd'"),
        ("a/device", tarfile.CHRTYPE, "is neither a plain file nor a folder"),
        ("a/pipe", tarfile.FIFOTYPE, "is neither a plain file nor a folder"),
    ],
    ids=["parent", "absolute", "hidden parent", "drive", "link", "hard link", "device", "pipe"],
)
def test_a_hostile_member_is_refused_by_name(path, name, kind, fault):
    with tarfile.open(path, "w") as made:
        made.addfile(tarfile.TarInfo("a/b.pkl.gz"))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        made.addfile(member)
    with pytest.raises(UnsafeFile, match=re.escape(f"some.tar: member {name!r} {fault}")):
        names(path)


@pytest.mark.parametrize("other", ["a0", "./a0", "a0/"])
def test_a_member_that_is_there_twice_is_refused(path, other):
    with tarfile.open(path, "w") as made:
        for name in ("a0", other):
            made.addfile(tarfile.TarInfo(name))
    with pytest.raises(UnsafeFile, match="occurs twice"):
        names(path)


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
def test_a_small_file_that_decompresses_to_a_large_one_is_refused_before_it_does(path, kind):
    member = tarfile.TarInfo("zeros")
    member.size = 1 << 30
    packers = {"xz": lzma.compress, "gz": gzip.compress, "bz2": bz2.compress}
    path.write_bytes(packers[kind](member.tobuf() + bytes(1 << 20)))  # the rest need not even be there
    with pytest.raises(UnsafeFile, match="no data is that repetitive"):
        names(path)
