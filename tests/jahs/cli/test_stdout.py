"""Results reach whoever reads them, and a reader who leaves early is no error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jahs.cli.stdout import open_streams, write_stdout


@pytest.mark.parametrize("text", ["a result", "a result\n"])
def test_a_result_ends_with_one_line_end(capsys, text):
    write_stdout(text)
    assert capsys.readouterr().out == "a result\n"


def test_a_reader_who_has_seen_enough_is_no_error():
    code = "from jahs.cli.stdout import write_stdout\nwrite_stdout('x\\n' * 1_000_000)\nwrite_stdout('more')"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"x\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_where_nobody_listens_nothing_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it where a shell says >&-
    write_stdout("a result")


def test_no_result_is_no_line(capsys):
    write_stdout("")
    assert capsys.readouterr().out == ""


def test_streams_that_are_closed_are_there_and_go_nowhere(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with open_streams():
        sys.stdout.write("a result \u2192")
        sys.stderr.write("a fault")
        assert not sys.stdout.isatty()
    assert sys.stdout is sys.stderr is None


def test_a_terminal_without_a_character_shows_another():
    code = "from jahs.cli.stdout import write_stdout\nwrite_stdout('a \\u2192 b')"
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=ascii_only,
        check=True,
    )
    assert told.stdout.rstrip() == b"a ? b"
