"""A conversation over JSON lines, or as a server of the Model Context Protocol (needs the package `mcp`, version 2)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, Final  # Any also at run time: a tool's schema is made from its annotations

from jahs.adapters.importing import import_tool
from jahs.errors import JahsError
from jahs.files.strict_json import parse_json
from jahs.serve.conversation import Conversation, Reply

_MOST_BYTES: Final = 1_000_000
"""The longest line that is read; a request has some hundreds of bytes."""


def serve_lines(conversation: Conversation, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more; JahsError, after a last reply that says why, if the run cannot go on."""
    while line := requests.readline(_MOST_BYTES):
        if len(line) == _MOST_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = requests.readline(_MOST_BYTES)
            fault = f"the line is too long; a request has fewer than {_MOST_BYTES:,} bytes"
            _write(replies, conversation.refuse(fault))
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


# Blind clients see these instructions, so they must not reveal the task or the search space.
_INSTRUCTIONS: Final = """Search for the config with the best objective within a budget of simulated seconds.
Ask `space` first, then `submit` a config and `wait` for its result, again and again. A low fidelity costs less, and a
config that was evaluated before pays only for the difference. Only results at the full fidelity count."""

_ABOUT: Final = {
    "space": "Return the keys of a config with their legal values, the fidelities, and the metrics and directions.",
    "wait": "Let simulated time pass until a trial ends or reports, and return it.",
    "trials": "Return all trials that have ended.",
    "status": "Return the clock, the budget and the running trials.",
    "end": "Wait for the running trials, then end the run before its budget is spent.",
}


def serve_tools(conversation: Conversation) -> None:
    """Offer the requests as tools over stdin and stdout until the client leaves. MissingDependency without `mcp`.

    If the run cannot go on, that reply and all later ones say why, and JahsError is raised when the client has left: a
    server of this protocol waits for its client to end it.
    """
    _make_server(conversation).run()
    if conversation.failure is not None:
        raise conversation.failure


def _make_server(conversation: Conversation) -> Any:  # Any: mcp is not installed where jahs is checked
    server = import_tool("mcp.server.mcpserver", needs="'mcp>=2'").MCPServer(
        conversation.name, instructions=_INSTRUCTIONS
    )

    result = import_tool("mcp_types", needs="'mcp>=2'").CallToolResult

    def answer(request: Reply) -> Reply:
        try:
            reply = conversation.answer(request)
        except JahsError as err:
            reply = conversation.refuse(str(err))
        if "error" in reply:
            content = [{"type": "text", "text": json.dumps(reply)}]
            reply = result(content=content, structured_content=reply, is_error=True)
        return reply

    def verb(name: str) -> Callable[[], Awaitable[Reply]]:
        async def tool() -> Reply:
            return answer({"do": name})

        return tool

    async def submit(config: dict[str, Any], at: Any = None, reports: list[int] | None = None) -> Reply:
        """Start evaluating a config, and return the number of the trial.

        `at` is a value of the first fidelity, or an object of fidelities; without it the fidelity is full. `reports`
        are lower values of the first fidelity at which `wait` returns, so that the trial can be stopped.
        """
        return answer({"do": "submit", "config": config, "at": at, "reports": reports or []})

    async def stop(trial: int) -> Reply:
        """Stop a running trial now; `wait` returns it."""
        return answer({"do": "stop", "trial": trial})

    for name, about in _ABOUT.items():
        server.add_tool(verb(name), name=name, description=about)
    server.add_tool(submit)
    server.add_tool(stop)
    return server
