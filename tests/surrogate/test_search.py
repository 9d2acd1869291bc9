"""Hyperparameter searches are reproducible, and a resumed one repeats no proposal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from surrogate.data.rows import assemble, by_part
from surrogate.models.search import Range, search
from tests.surrogate.landscape import measurements, split_of

MEASURED = measurements(10)
PARTS = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
SEARCHED = {
    "rate": Range(lower=0.1, upper=10.0, default=1.0, is_log=True),
    "depth": Range(lower=1, upper=30, default=3, is_integer=True),
}


def points_of(folder: Path, optimizer: str, *, evaluations: int) -> list[dict[str, Any]]:
    records = search(
        folder,
        SEARCHED,
        lambda point: float(-abs(point["rate"] - 1)),
        facts={},
        parts=PARTS,
        evaluations=evaluations,
        optimizer=optimizer,
    )
    return [record["point"] for record in records]


@pytest.mark.parametrize("optimizer", ["random_search", "pibo"])
def test_a_search_proposes_the_same_settings_again_and_leaves_the_generator_alone(
    optimizer: str, tmp_path: Path
) -> None:
    first = points_of(tmp_path / "first", optimizer, evaluations=4)
    torch.manual_seed(7)
    again = points_of(tmp_path / "again", optimizer, evaluations=4)
    drawn = torch.rand(3)
    assert first == again
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), drawn)


def test_a_resumed_search_proposes_nothing_twice(tmp_path: Path) -> None:
    points_of(tmp_path, "random_search", evaluations=2)
    points = points_of(tmp_path, "random_search", evaluations=5)
    assert len({point["rate"] for point in points}) == 5
