"""The page of the rounds: the release of the time predicts, and only what it did not know is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.files.tables import take, write_table
from jahs.release import read_release
from jahs.release.table import RecordedTable
from jahs.schema import CONFIG_TABLE_COLUMNS
from surrogate import rounds as command
from surrogate.card.figures import write_figures
from surrogate.data.measurements import Measurements
from surrogate.judging.top import figure
from surrogate.rounds import rounds_of
from tests.releases import make_release
from tests.surrogate.landscape import PROTOCOL, TASK, arguments, measurements, split_of, write_folder
from tests.surrogate.test_card_figures import FOUND

MEASURED = measurements(8)
N = len(MEASURED.configs["config_id"])


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_release(tmp_path / "release", task=TASK.name, facts={"protocol": PROTOCOL})


def in_rounds(sha256: str) -> Measurements:
    """Two rounds: `best` and `full` of one release, then `best` of one that is not at hand."""
    number = np.arange(N)
    source = np.select([number % 4 == 0, number % 4 == 1, number % 4 == 2], ["uniform", "best", "full"], "best")
    columns = {
        "source": source,
        "round": np.where(number % 4 == 3, 2, np.where(number % 4 == 0, 0, 1)),
        "release": np.select([number % 4 == 1, number % 4 == 3], [sha256, "f" * 64], ""),
    }
    return replace(MEASURED, configs={**MEASURED.configs, **columns})


def test_every_source_of_a_round_is_predicted_by_its_release(tmp_path: Path) -> None:
    seen = MEASURED.configs["config_id"][MEASURED.configs["config_index"] % 8 == 1]
    tables = {"configs": MEASURED.configs, "runs": MEASURED.runs, "profile": MEASURED.profile}
    table = RecordedTable(**{name: take(of, np.isin(of["config_id"], seen)) for name, of in tables.items()})
    opened = read_release(make_release(tmp_path / "release", task=TASK.name, facts={"protocol": PROTOCOL}, table=table))
    measured, split = in_rounds(opened.sha256), split_of(MEASURED)
    outcomes = rounds_of(measured, split, {opened.sha256: opened})
    assert [(outcome.round, outcome.source, outcome.release) for outcome in outcomes] == [
        (1, "full", opened.sha256), (1, "best", opened.sha256), (2, "best", "f" * 64)
    ]  # fmt: skip
    in_parts = split.parts_of(MEASURED.configs["config_id"]) < 2
    full, best, later = outcomes
    assert full.n_configs == (in_parts & (np.arange(N) % 4 == 2)).sum() == full.n_new
    assert best.n_new == (in_parts & (np.arange(N) % 8 == 5)).sum() < best.n_configs < best.n_runs
    assert best.predicted is not None
    assert best.measured is not None
    assert best.scores is not None
    assert best.scores["bias"] == pytest.approx(best.predicted - best.measured)
    assert (later.predicted, later.scores) == (None, None)
    assert rounds_of(MEASURED, split, {}) == []


def test_the_page_shows_what_came_and_how_the_figures_moved(release: Path, tmp_path: Path) -> None:
    sha256, version = read_release(release).sha256, read_release(release).facts["version"]
    runs = write_folder(tmp_path / "runs", MEASURED)
    write_table(runs / "configs.parquet", in_rounds(sha256).configs, CONFIG_TABLE_COLUMNS)
    write_figures(tmp_path / "f.json", {**FOUND, "release": sha256, "search": figure(9.0)})
    more = ["--releases", str(release), "--figures", str(tmp_path / "f.json")]
    assert command.main([*arguments(runs, tmp_path / "rounds.md"), *more]) == 0
    text = (tmp_path / "rounds.md").read_text()
    assert "## Round 1" in text
    assert f"| best | release {version} ({sha256[:8]}) |" in text
    assert f"| figure, ordinary test configs | release {version} ({sha256[:8]}) |" in text
    assert "Not measured yet if release ffffffff is not given" in text
    assert "| 0.940 (0.92 to 0.96; 305) |" in text
    assert "1.100" not in text, "which is of the final test set"
    assert "9.000" not in text, "which was measured before its proposals were trained"
    assert "| ten best of a long search: mean of trained minus predicted / seed sd | not measured yet |" in text


def test_a_release_of_another_protocol_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = make_release(tmp_path / "other", task=TASK.name, facts={"protocol": "f" * 16})
    runs = write_folder(tmp_path / "runs", MEASURED)
    assert command.main([*arguments(runs, tmp_path / "rounds.md"), "--releases", str(other)]) == 2
    said = f"has task {TASK.name} and protocol {'f' * 16}, but the runs have task {TASK.name} and protocol {PROTOCOL}"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "rounds.md").exists()
