"""The protocol digest covers what training measures, and no prose."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.runs import read_protocol
from jahs.release import EMBEDDED, read_release
from jahs.tasks.definitions import EARLIER, PROSE, TASKS
from pipeline.protocol import NASBENCH201, protocol_digest, protocol_facts, recorded_task

ROOT = Path(__file__).parents[2]
DATA, RELEASES = ROOT / "data", ROOT / "jahs" / "releases"


@pytest.mark.parametrize("field", PROSE)
def test_prose_may_change_without_a_new_protocol(field: str) -> None:
    task = TASKS["digits"]
    other: dict[str, Any] = {field: "Other words."}
    changed = dataclasses.replace(task, **other)
    assert protocol_facts(changed) == protocol_facts(task)


@pytest.mark.parametrize("name", sorted(EMBEDDED))
def test_an_embedded_release_and_its_record_have_the_protocol_of_their_task(name: str) -> None:
    wanted = protocol_digest(TASKS[name])
    assert read_release(RELEASES / name).facts["protocol"] == wanted
    assert read_protocol(DATA / name / "runs").digest == wanted


def test_earlier_protocols_have_their_digests() -> None:
    assert {digest: protocol_digest(task) for digest, task in EARLIER.items()} == {digest: digest for digest in EARLIER}
    assert read_protocol(DATA / "candidates/short/runs").digest in EARLIER


def test_cells_of_nasbench201_are_scored_under_the_protocol_of_their_record() -> None:
    assert protocol_digest(NASBENCH201) == read_protocol(DATA / "nasbench201" / "runs").digest


@pytest.mark.parametrize("name", ["digits", "fashion_mnist_mini", "cifar10_mini", "cifar10"])
@pytest.mark.parametrize(
    "change", [{}, {"epoch_images": 7, "keeps_decay": True}, {"random_crop": False}, {"batch_size": 3, "n_train": 99}]
)
def test_an_earlier_protocol_of_a_task_is_read_from_its_facts(name: str, change: dict[str, Any]) -> None:
    earlier = dataclasses.replace(TASKS[name], **{"index_digest": "0" * 16, "epoch_images": None, **change})
    assert recorded_task(protocol_facts(earlier)) == earlier
    assert protocol_digest(recorded_task(protocol_facts(earlier))) == protocol_digest(earlier)


def test_facts_that_are_no_protocol_are_refused_with_every_fault() -> None:
    facts: dict[str, Any] = protocol_facts(TASKS["digits"])
    facts["task"] = {**facts["task"], "side": "wide", "n_train": -1, "speed": 3}
    with pytest.raises(InvalidArgument, match=r"(?s)speed.* is not a field.*side must be.*n_train must be"):
        recorded_task(facts)


@pytest.mark.parametrize("facts", [{}, {"task": "digits"}, {"task": {}}, {"task": {"name": 3}}])
def test_facts_without_a_task_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(CorruptFile, match=r"protocol\.json names no task"):
        recorded_task(facts)
