"""Archives and JSON with a few bytes changed are read, or refused by name, and cost little."""

from __future__ import annotations

import functools
import gzip
import io
import json
import lzma
import random
import tarfile
from pathlib import Path

import pytest

from jahs.errors import CorruptFile, UnsafeFile
from jahs.files.archives import checked_members, open_archive
from jahs.files.strict_json import parse_json
from tests.pace import processor_time


def broken(content: bytes, rng: random.Random) -> bytes:
    """Return the content with some bytes changed, cut out or repeated."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 8))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                del changed[at : at + rng.choice((1, 10, 512))]
            case 2:
                changed[at:at] = changed[at : at + rng.choice((1, 10, 512))]
            case 3:
                changed[at : at + 4] = rng.choice((b"\xff", b"\x80", b"9", b"\0", b"7")) * 4
    return bytes(changed)


def archive(rng: random.Random) -> bytes:
    """Return an archive of a few members, some with headers that lie."""
    buffer = io.BytesIO()
    tar_format = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as tar:
        for k in range(rng.randrange(1, 5)):
            member = tarfile.TarInfo(rng.choice((f"a{k}", "a", "../a", "/a", "x" * 90 + "/" + "y" * 90, "a/../../b")))
            member.size = rng.choice((0, 10, 1000))
            member.type = rng.choice((tarfile.REGTYPE,) * 4 + (tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE))
            if tar_format == tarfile.PAX_FORMAT and rng.random() < 0.3:
                member.pax_headers = {"size": rng.choice(("99999999999999", "-5", "x", "9" * 400, str(2**63)))}
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return buffer.getvalue()


def list_members(path: Path) -> None:
    try:
        with open_archive(path) as tar:
            checked_members(tar, str(path))
    except (CorruptFile, UnsafeFile) as err:
        if str(path) not in str(err):
            raise


def test_a_broken_archive_is_read_or_refused_by_name(attacks, tmp_path):
    path = tmp_path / "some.tar"
    for seed, rng in attacks(150):
        content = archive(rng)
        content = rng.choice((bytes, gzip.compress, functools.partial(lzma.compress, preset=0)))(
            broken(content, rng) if seed % 4 else content
        )
        path.write_bytes(broken(content, rng) if seed % 3 == 0 else content)
        assert processor_time(lambda: list_members(path)) < 1, f"seed {seed}"


def test_broken_json_is_refused_with_its_line_or_comes_back_the_same(attacks):
    whole = json.dumps({"a": [1, 2.5, None, "text\n", {"b": True}], "c": {"d": {}}}, indent=1).encode()
    for seed, rng in attacks(500):
        content = broken(whole, rng)
        try:
            parsed = parse_json(content)
        except json.JSONDecodeError as err:
            assert err.lineno >= 1  # noqa: PT017  # most are refused
            continue
        except Exception as err:  # noqa: BLE001  # no other one may come
            pytest.fail(f"seed {seed}: {err!r}")
        assert parse_json(json.dumps(parsed, allow_nan=False)) == parsed, f"seed {seed}"
