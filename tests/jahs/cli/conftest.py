"""A small made-up release, and running the command in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jahs.cli import main
from jahs.queries.benchmark import Benchmark
from jahs.queries.references import build_references
from tests.releases import make_release, make_table

TASK = "cifar10_mini"
SCORES = {"n": 60, "r2": 0.91234, "tau": 0.8, "mae": 1.25}
QUALITY = {
    "format": 1,
    "data": {"configs": 300, "runs": 1360, "rows": 16320},
    "metrics": {
        "valid_acc": {"test": {"cuts": {"all": {"model": SCORES}, "last epoch": {"model": {"tau": 0.7}}}}},
        "latency": {"test": None},
    },
    "requirements": [
        {
            "metric": "valid_acc",
            "score": "tau",
            "cut": "last epoch",
            "value": 0.76,
            "ceiling": 0.8,
            "required": 0.92,
            "reached": 0.95,
            "is_met": True,
        },
        {"metric": "valid_acc", "score": "r2", "cut": "all", "value": 0.9, "ceiling": 0.93, "required": 0.95}
        | {"reached": 0.9, "is_met": False},
        {
            "metric": "latency",
            "score": "r2",
            "cut": "all",
            "required": 0.9,
            "reached": None,
            "is_met": None,
            "is_due": False,
        },
    ],
}

Run = Callable[..., str]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases")
    plain = make_release(folder / "plain", task=TASK)
    references = build_references(Benchmark(TASK, release=plain, engine="numpy"), n_configs=300, seed=0, n_rounds=1)
    whole = {"references": references.to_dict(), "quality": QUALITY, "table": make_table(TASK, 30)}
    return make_release(folder / "whole", task=TASK, **whole)


@pytest.fixture
def bench(release: Path) -> Benchmark:
    return Benchmark(TASK, release=release, engine="numpy")


@pytest.fixture
def run(release: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the release, expect an exit code, and return what it printed where it should."""

    def run_it(*argv: str, code: int = 0) -> str:
        assert main([*argv, "--release", str(release)]) == code
        captured = capsys.readouterr()
        assert (captured.err if code == 0 else captured.out) == ""
        return captured.out if code == 0 else captured.err

    return run_it


@pytest.fixture
def run_json(run: Run) -> Callable[..., object]:
    return lambda *argv: json.loads(run(*argv, "--json"))
