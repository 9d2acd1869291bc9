"""The server of the Model Context Protocol, with a stand-in for its package; integrations/mcp has the real one."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jahs.errors import OutOfSpace
from jahs.serve.conversation import Conversation
from jahs.serve.transport import serve_tools
from tests.jahs.serve.conftest import make_terms
from tests.jahs.simulate.full_disk import full_disk

CONFIGS = make_terms().view.sample(2, seed=0)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch):
    """Run a client, a function of the function that calls a tool, when the server is started."""

    def serve(conversation: Conversation, client) -> None:
        class Server:
            def __init__(self, name: str, instructions: str) -> None:
                self.tools = {}

            def add_tool(self, tool, name: str | None = None, description: str | None = None) -> None:
                self.tools[name or tool.__name__] = tool

            def run(self) -> None:
                client(lambda name, **arguments: asyncio.run(self.tools[name](**arguments)))

        monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", SimpleNamespace(MCPServer=Server))
        monkeypatch.setitem(sys.modules, "mcp_types", SimpleNamespace(CallToolResult=SimpleNamespace))
        serve_tools(conversation)

    return serve


def test_a_client_calls_requests_as_tools(client) -> None:
    def search(call) -> None:
        assert call("submit", config=CONFIGS[0], reports=[2])["trial"] == 0
        assert call("wait")["trials"][0]["status"] == "running"
        assert call("stop", trial=0)["running"] == [0]
        refused = call("stop", trial=1)
        assert refused.is_error
        assert refused.structured_content["error"] == "trial=1 does not run; see running"
        assert [json.loads(each["text"]) for each in refused.content] == [refused.structured_content]
        assert call("end")["over"] == "optimizer"

    with Conversation(make_terms()) as conversation:
        client(conversation, search)


def test_after_a_full_disk_every_reply_says_so_and_the_command_ends_with_it(client, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def search(call) -> None:
        call("submit", config=CONFIGS[0])
        with full_disk(log.stat().st_size + 9):
            replies = [call("wait")]
        before = log.read_bytes(), log.with_name("log.jsonl.requests").read_bytes()
        replies += [call("submit", config=CONFIGS[1]), call("wait"), call("trials"), call("end")]
        assert all(
            "log.jsonl could not be written: the disk is full" in reply.structured_content["error"] for reply in replies
        )
        assert (log.read_bytes(), log.with_name("log.jsonl.requests").read_bytes()) == before

    with Conversation(make_terms(), log=log) as conversation, pytest.raises(OutOfSpace, match="the disk is full"):
        client(conversation, search)
    with Conversation(make_terms(), log=log) as conversation:
        assert len(conversation.answer({"do": "trials"})["trials"]) == 1
