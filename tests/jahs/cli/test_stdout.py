"""Results reach whoever reads them, and a reader who leaves early is no error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jahs.cli.stdout import format_number, format_table, open_streams, paint, write_stdout


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
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ascii_only, check=True)
    assert told.stdout.rstrip() == b"a ? b"


def test_numbers_stand_right_and_text_left() -> None:
    shown = format_table(["name", "value"], [["a", 1200], ["longer", 7]])
    assert shown == "  name    value\n  a       1,200\n  longer      7"


def test_numbers_of_one_size_share_their_decimals() -> None:
    rows = [[0.0472], [0.5665], [0.23]]
    assert format_table(["s"], rows).split() == ["s", "0.0472", "0.5665", "0.2300"]
    assert format_table(["x"], [[0.0001], [2e6]]).split() == ["x", "0.0001", "2,000,000"]


def test_a_table_without_rows_is_its_head() -> None:
    assert format_table(["a", "b"], []) == "  a  b"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, "5"),
        (1362250.0, "1,362,250"),
        (80.4567, "80.46"),
        (0.0025981, "0.002598"),
        (True, "True"),
        ("-", "-"),
        (1e30, "1e+30"),
    ],
    ids=["integer", "whole", "percent", "small", "bool", "text", "huge"],
)
def test_numbers_are_short(value: object, shown: str) -> None:
    assert format_number(value) == shown


@pytest.mark.parametrize(
    ("is_terminal", "environment", "is_coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
    ids=["terminal", "pipe", "no-color", "empty-no-color", "dumb"],
)
def test_colour_is_for_terminals_and_can_be_refused(monkeypatch, is_terminal, environment, is_coloured) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert paint("x", "good") == ("\x1b[32mx\x1b[0m" if is_coloured else "x")


def test_colour_does_not_move_the_columns(monkeypatch) -> None:
    plain = format_table(["a", "b"], [[1, 2], [3, 4]], good=[1])
    monkeypatch.setattr("jahs.cli.stdout.is_coloured", lambda: True)
    coloured = format_table(["a", "b"], [[1, 2], [3, 4]], good=[1])
    for code in ("\x1b[1m", "\x1b[32m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain
