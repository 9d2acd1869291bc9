"""Terms on a benchmark of formulas, and a client in this process."""

from __future__ import annotations

import io
import json

import pytest

from jahs.comparison.terms import Rules, StudyTerms, ViewChoice, open_view
from jahs.serve.conversation import Conversation
from jahs.serve.transport import serve_lines
from tests.fake_bench import FakeBench


def make_terms(*, budget_s: float = 2.0, workers: int = 1, **choice) -> StudyTerms:
    bench, rules = FakeBench(), Rules(noise="seeded", workers=workers, view=ViewChoice(**choice))
    view = open_view(bench, rules.view)
    return StudyTerms(study="baselines", rules=rules, bench=bench, view=view, release="0" * 64, budget_s=budget_s)


def told(conversation: Conversation, *requests: object) -> list[dict]:
    """What a client reads that writes these requests: objects, or lines as bytes."""
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in requests]
    replies = io.BytesIO()
    serve_lines(conversation, io.BytesIO(b"".join(line + b"\n" for line in lines)), replies)
    return [json.loads(line) for line in replies.getvalue().splitlines()]


@pytest.fixture
def conversation():
    with Conversation(make_terms()) as opened:
        yield opened
