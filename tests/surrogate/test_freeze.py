"""The final test set: half uniform, half proposed; frozen once, and its list is what the collector reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jahs.schema import OPS
from jahs.spaces.cell import canonical_keys
from jahs.spaces.columns import config_ids, rows
from pipeline.proposals import read_proposals
from splits.final import final_beside
from surrogate import freeze as command
from tests.surrogate.landscape import PROTOCOL, TASK, arguments, measurements, write_folder
from workshop.numbered import FINAL_SEED, full_range

MEASURED = measurements(8)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "runs", MEASURED)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small set; TPE needs a tool that is not everywhere."""
    for name, value in (("N_UNIFORM", 12), ("_N_FOLDS", 2), ("_EVALUATIONS", 120)):
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr(command, "OPTIMIZERS", ("random_search", "local_search", "regularized_evolution"))


def test_it_is_frozen_once_and_its_list_is_written_again(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments(runs, runs / "split.json")) == 2
    assert "split.json exists and is not a list of configs" in capsys.readouterr().err
    assert command.main(arguments(runs, tmp_path / "no" / "list")) == 2
    assert "its folder does not exist; make it first" in capsys.readouterr().err
    assert not (runs / "final_test.json").exists()
    assert command.main(arguments(runs, tmp_path / "list")) == 0
    output = capsys.readouterr().out
    assert "is frozen: 12 uniform, 4 random_search, 4 local_search, 4 regularized_evolution" in output
    final = final_beside(runs / "split.json")
    assert final is not None
    frozen = (runs / "final_test.json").read_bytes()
    configs, seeds = read_proposals(tmp_path / "list", "final", protocol=PROTOCOL)
    assert configs["config_id"].tolist() == final.config_ids.tolist()
    assert {tuple(each) for each in seeds} == {(0, 1)}
    assert command.main(arguments(runs, tmp_path / "again")) == 0
    assert "was frozen already" in capsys.readouterr().out
    assert (tmp_path / "again").read_bytes() == (tmp_path / "list").read_bytes()
    assert (runs / "final_test.json").read_bytes() == frozen


def test_half_is_uniform_and_every_search_finds_cells_of_its_own(runs: Path, tmp_path: Path) -> None:
    assert command.main(arguments(runs, tmp_path / "list")) == 0
    final = final_beside(runs / "split.json")
    assert final is not None
    assert list(final.configs[:12]) == rows(full_range(0, 12, seed=FINAL_SEED))
    assert len(set(final.config_ids.tolist())) == 24
    assert not np.isin(final.config_ids, MEASURED.configs["config_id"]).any()
    assert {(c["N"], c["W"], c["Resolution"]) for c in final.configs} == {(5, 16, 1.0)}
    for start in range(12, 24, 2):
        ops = np.array([[config[op] for op in OPS] for config in final.configs[start : start + 2]])  # type: ignore[literal-required]
        assert len(set(canonical_keys(ops).tolist())) == 2
    assert config_ids(list(final.configs)).tolist() == final.config_ids.tolist()
    assert final.facts["seed"] == 0
    assert json.loads((runs / "final_test.json").read_text())["task"] == TASK.name
