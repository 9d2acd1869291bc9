"""Every command ends in one way: its result on stdout, what went wrong on stderr, and a status that says which."""

from __future__ import annotations

import errno
import json
import logging
import sys

import pytest

from jahs.errors import InvalidArgument
from workshop.command import FailedResult, new_parser, run_command


def fail(error: BaseException) -> object:
    raise error


def test_a_text_is_printed_as_it_is_and_anything_else_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("room.tool", lambda: "done") == 0
    assert capsys.readouterr() == ("done\n", "")
    assert run_command("room.tool", lambda: {"b": 1, "a": [2]}) == 0
    assert json.loads(capsys.readouterr().out) == {"b": 1, "a": [2]}


def test_a_result_that_is_no_success_is_printed_and_the_status_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("room.tool", lambda: FailedResult("two faults")) == 1
    assert capsys.readouterr() == ("two faults\n", "")


@pytest.mark.parametrize("error", [InvalidArgument("a=1\nb=2"), OSError("a=1\nb=2")])
def test_a_mistake_is_named_line_by_line_and_the_status_is_2(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("room.tool", lambda: fail(error)) == 2
    assert capsys.readouterr() == ("", "room.tool: a=1\nroom.tool: b=2\n")


def test_a_result_that_cannot_be_printed_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "write", lambda _: fail(OSError(errno.ENOSPC, "No space left")))
    assert run_command("room.tool", lambda: "done") == 2
    said = "room.tool: standard output could not be written: the disk is full; free some space and start again\n"
    assert capsys.readouterr() == ("", said)


def test_ctrl_c_says_what_was_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("room.tool", lambda: fail(KeyboardInterrupt()), stopped="all is kept") == 130
    assert capsys.readouterr() == ("", "room.tool: stopped; all is kept\n")


def test_our_own_mistakes_keep_their_traceback() -> None:
    with pytest.raises(AssertionError):
        run_command("room.tool", lambda: fail(AssertionError()))


def test_the_log_goes_to_stderr_while_the_command_runs_and_no_longer(capsys: pytest.CaptureFixture[str]) -> None:
    before = [*logging.getLogger().handlers], logging.getLogger().level
    assert run_command("room.tool", lambda: logging.getLogger("x").info("half way") or "done") == 0
    assert capsys.readouterr() == ("done\n", "half way\n")
    assert before == ([*logging.getLogger().handlers], logging.getLogger().level)


def test_help_shows_a_call_that_works() -> None:
    text = new_parser("room.tool", "Do it.", example="a.txt", more="Also: b.").format_help()
    assert text.startswith("usage: python -m room.tool")
    assert text.endswith("Example: python -m room.tool a.txt\nAlso: b.\n")
