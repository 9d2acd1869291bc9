"""A search through the official client: the tools, a refusal, a whole run, and a log that the leaderboard accepts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

from jahs.comparison.benches import open_benchmark
from jahs.comparison.leaderboard import leaderboard

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"space", "submit", "wait", "stop", "trials", "status", "end"}


def served(*options: object, file_kib: str = "unlimited") -> Client:
    """Return a client of the command, whose files may have `file_kib` KiB."""
    command = [sys.executable, "-m", "jahs", "serve", "--mcp", *map(str, options)]
    arguments = ["-c", 'ulimit -f "$0"; exec "$@"', file_kib, *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return Client(StdioServerParameters(command="bash", args=arguments, env=environment))


async def call(client: Client, name: str, **arguments: object) -> dict:
    result = await client.call_tool(name, arguments)
    reply = result.structured_content
    assert result.is_error == ("error" in reply), result.content
    assert [json.loads(each.text) for each in result.content] == [reply]
    return reply


def first_config(space: dict) -> dict:
    return {name: key.get("choices", [key.get("upper")])[0] for name, key in space["parameters"].items()}


def test_a_blind_model_runs_a_search_that_the_leaderboard_recomputes(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def search() -> dict:
        async with served("--blind", 1, "--budget", 2000, "--client", "model", "--log", log) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            assert all(tool.description for tool in tools)
            space = await call(client, "space")
            assert "x1" in space["parameters"]
            refused = await call(client, "submit", config={"LearningRate": 0.1})
            assert "LearningRate is not a key" in refused["error"]
            config = first_config(space)
            assert (await call(client, "submit", config=config, at=2, reports=[1]))["trial"] == 0
            report = await call(client, "wait")
            assert report["trials"][0]["status"] == "running"
            await call(client, "stop", trial=0)
            assert (await call(client, "wait"))["trials"][0]["status"] == "stopped"
            await call(client, "submit", config=config, at={"f1": 12})
            assert (await call(client, "status"))["running"] == [1]
            return await call(client, "end")

    state = asyncio.run(search())
    assert state["over"] == "optimizer"
    boards, refused = leaderboard([log], opened=lambda task: open_benchmark(task, None))
    assert refused == []
    assert boards[0].lines[0].name == "model"


def test_a_client_that_leaves_can_come_back(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def visit() -> list[dict]:
        async with served("--log", log) as client:
            config = first_config(await call(client, "space"))
            await call(client, "submit", config=config, at=1)
            await call(client, "wait")
            return (await call(client, "trials"))["trials"]

    assert [len(asyncio.run(visit())) for _ in range(3)] == [1, 2, 3]


def test_a_log_that_cannot_be_written_is_named_in_every_reply_and_resumed(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def visit(file_kib: str = "unlimited") -> list[dict]:
        async with served("--log", log, file_kib=file_kib) as client:
            config = first_config(await call(client, "space"))
            replies = [
                await call(client, name, **each) for name, each in [("submit", {"config": config}), ("wait", {})] * 9
            ]
            return [*replies, await call(client, "trials")]

    replies = asyncio.run(visit("4"))
    first = next(i for i, reply in enumerate(replies) if "error" in reply)
    assert first > 0
    assert all("could not be written" in reply["error"] for reply in replies[first:])
    before = [trial for reply in replies[:first] for trial in reply.get("trials", [])]
    assert asyncio.run(visit())[-1]["trials"][: len(before)] == before
