"""A bar says how much time is left, and is right where some was done before."""

from __future__ import annotations

import io

import pytest

from workshop import progress as module
from workshop.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def shown(stream):
    return stream.getvalue().rsplit("\r", 1)[1]


def test_the_time_left_is_that_of_the_units_left(clock):
    stream = Terminal()
    bar = Progress(40, "digits", stream=stream)
    clock[0] += 30
    bar.update(10, "ok")
    assert "10/40 0:01:30 left  ok" in shown(stream)
    bar.update(40, "ok")
    assert "40/40 0:00:00 left" in shown(stream)


def test_what_was_done_before_does_not_make_the_rest_look_short(clock):
    stream = Terminal()
    bar = Progress(40, "digits", stream=stream)
    clock[0] += 5
    bar.update(20, "ok", spent_s=100.0)
    assert "20/40 0:01:40 left" in shown(stream)


def test_a_limit_ends_it_earlier_than_the_units_would(clock):
    stream = Terminal()
    bar = Progress(100, "runs", limit_s=60.0, stream=stream)
    clock[0] += 45
    bar.update(1, "ok")
    assert "1/100 0:00:15 left" in shown(stream)
    clock[0] += 45
    bar.update(2, "ok")
    assert "2/100 0:00:00 left" in shown(stream)


def test_without_an_end_no_time_is_said(clock):
    stream = Terminal()
    Progress(None, "runs", stream=stream).update(3, "ok")
    assert "left" not in shown(stream)
    assert "3  ok" in shown(stream)


def test_quick_units_share_lines_but_the_last_one_is_always_said(clock, caplog):
    caplog.set_level("INFO")
    lines = Progress(1001, "logs", stream=io.StringIO())
    for done in range(1, 1001):
        clock[0] += 0.001
        lines.update(done, "ok")
    lines.update(1001, "the last")
    assert 5 <= len(caplog.messages) <= 7
    assert caplog.messages[0].startswith("1/1001 logs ok")
    assert caplog.messages[-1].startswith("1001/1001 logs the last")


def test_a_limit_that_is_never_reached_is_shown_as_a_long_time(clock):
    stream = Terminal()
    bar = Progress(None, "digits", limit_s=float("inf"), stream=stream)
    clock[0] += 1
    bar.update(1, "ok")
    assert "days" in shown(stream)
