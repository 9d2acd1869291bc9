"""The protocol digest covers what training measures, and no prose."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jahs.tasks.definitions import PROSE, TASKS
from pipeline.protocol import protocol_digest, protocol_facts


@pytest.mark.parametrize("field", PROSE)
def test_prose_may_change_without_a_new_protocol(field: str) -> None:
    found = TASKS["digits"]
    other: dict[str, Any] = {field: "Other words."}
    changed = dataclasses.replace(found, **other)
    assert protocol_facts(changed) == protocol_facts(found)


def test_the_embedded_release_keeps_its_protocol() -> None:
    assert protocol_digest(TASKS["fashion_mnist_mini"]) == "ec4b573f56e5dcc8"
