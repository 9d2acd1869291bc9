"""A disk that takes no file of more than so many bytes, and of a line that is too long what still fits."""

from __future__ import annotations

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(n_bytes):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
