"""Digests that are the same on every platform and in every process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


def digest_bytes(data: bytes) -> str:
    """Return a digest of `data`, 16 hex digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def digest_facts(facts: Mapping[str, object]) -> str:
    """Return a digest of JSON-able `facts`, 16 hex digits; the order of keys does not matter."""
    return digest_bytes(json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file as hex digits."""
    with path.open("rb") as file:
        return sha256_stream(file)


def sha256_stream(file: BinaryIO) -> str:
    """Return the sha256 of an open file's rest as hex digits, reading it in pieces."""
    sha = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        sha.update(chunk)
    return sha.hexdigest()
