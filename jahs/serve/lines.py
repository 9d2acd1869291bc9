"""A conversation over JSON lines: each line that is not blank is answered with one line."""

from __future__ import annotations

import json
from typing import BinaryIO, Final

from jahs.errors import JahsError
from jahs.files.strict_json import parse_json
from jahs.serve.conversation import Conversation, Reply

__all__ = ["serve_lines"]

_MOST_BYTES: Final = 1_000_000
"""The longest line that is read; a request has some hundreds of bytes."""


def serve_lines(conversation: Conversation, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more; JahsError, after a last reply that says why, if the run cannot go on."""
    while line := requests.readline(_MOST_BYTES):
        is_long = len(line) == _MOST_BYTES and not line.endswith(b"\n")
        rest = line
        while is_long and rest and not rest.endswith(b"\n"):
            rest = requests.readline(_MOST_BYTES)
        if is_long:
            _write(
                replies, conversation.refuse(f"the line is too long; a request has fewer than {_MOST_BYTES:,} bytes")
            )
        elif line.strip():
            try:
                _write(replies, _answer(conversation, line))
            except JahsError as err:
                _write(replies, conversation.refuse(str(err)))
                raise


def _answer(conversation: Conversation, line: bytes) -> Reply:
    try:
        request = parse_json(line.rstrip(b"\r\n"))
    except json.JSONDecodeError as err:
        return conversation.refuse(f"the line is not JSON: {err.msg} at column {err.colno}; write one object per line")
    return conversation.answer(request)


def _write(replies: BinaryIO, reply: Reply) -> None:
    replies.write(json.dumps(reply, separators=(",", ":"), allow_nan=False).encode() + b"\n")
    replies.flush()
