"""Incumbents of a study as trained: recorded once, and read by the page without training."""

import json
import re
from pathlib import Path

import pytest

from experiments.pack import pack
from experiments.report.__main__ import main as report
from experiments.retrain import RECORD, SEEDS, main, read_record
from jahs.errors import CorruptFile, MissingData
from jahs.files.runs import read_configs, read_runs
from jahs.schema import CONFIG_KEYS
from pipeline.verify import verify
from tests.experiments.conftest import TASK, short_study
from tests.experiments.live_fakes import fake_train

ARMS = ("random_search", "local_search")


@pytest.fixture
def without_images(monkeypatch):
    monkeypatch.setattr("pipeline.train.train", fake_train)
    monkeypatch.setattr("pipeline.worker.images_of", lambda chosen, data_dir: dict.fromkeys((0.25, 0.5, 1.0)))
    monkeypatch.setattr("pipeline.collect.check_images", lambda *_, **__: {})


@pytest.fixture
def study(release, tmp_path):
    return short_study("baselines", tmp_path, release, arms=ARMS, seeds=3)


def retrain(study, release, *more):
    return main([str(study), "--top", "2", "--release", str(release), "--workers", "1", *map(str, more)])


def test_the_best_incumbents_are_trained_twice_and_on_the_page(study, release, without_images):
    assert retrain(study, release) == 0
    runs, configs = read_runs(study / "retrained" / TASK), read_configs(study / "retrained" / TASK)
    assert verify(study / "retrained" / TASK) == []
    assert set(runs["seed"].tolist()) == set(SEEDS)
    assert set(configs["source"].tolist()) == {"retrained"}
    releases = {TASK: json.loads((study / "study.json").read_text())["tasks"][TASK]["release"]}
    incumbents = read_record(study / RECORD, study="baselines", releases=releases)
    assert read_record(study / RECORD, study="baselines", releases={**releases, "another_task": "0" * 64}) == incumbents
    for study_name, others in (("joint", releases), ("baselines", {TASK: "0" * 64})):
        with pytest.raises(CorruptFile, match="to other releases"):
            read_record(study / RECORD, study=study_name, releases=others)
    assert len(incumbents) == len(configs["config_id"]) == 2
    assert incumbents[0].predicted <= incumbents[1].predicted
    assert all(set(one.trained) == set(map(str, SEEDS)) and set(one.config) == set(CONFIG_KEYS) for one in incumbents)
    last = runs["valid_acc"][(runs["epoch"] == runs["epoch"].max()) & (runs["seed"] == SEEDS[0])]
    assert sorted(100 - last) == pytest.approx(sorted(one.trained[str(SEEDS[0])] for one in incumbents), abs=1e-4)

    before = sorted((study / "retrained" / TASK).rglob("*.parquet"))
    assert retrain(study, release) == 0  # nothing is trained again
    assert sorted((study / "retrained" / TASK).rglob("*.parquet")) == before

    assert report([str(study), "--docs", "--release", str(release), "--workers", "1"]) == 0
    page = (study / "report" / "report.md").read_text()
    assert "## As trained" in page
    assert "2 of the best incumbents were trained, 4 times in all" in page


@pytest.mark.usefixtures("undrawn")
def test_a_record_elsewhere_needs_no_training(study, release, without_images, tmp_path):
    record = tmp_path / "record.json"
    assert retrain(study, release, "--record", record) == 0
    assert report([str(study), "--docs", "--release", str(release), "--workers", "1"]) == 0
    assert "## As trained" not in (study / "report" / "report.md").read_text()
    shown = [str(study), "--docs", "--release", str(release), "--workers", "1", "--retrained", str(record)]
    assert report(shown) == 0
    assert "2 of the best incumbents were trained, 4 times in all" in (study / "report" / "report.md").read_text()
    assert report([*shown, "--retrained", str(record)]) == 0
    assert "4 of the best incumbents were trained, 8 times in all" in (study / "report" / "report.md").read_text()
    record.write_text(re.sub(r'"seed": (\d+)', lambda found: f'"seed": {int(found[1]) + 1}', record.read_text()))
    with pytest.raises(CorruptFile, match="damaged or edited"):
        read_record(record, study="baselines", releases={})
    with pytest.raises(MissingData):
        read_record(Path("nowhere.json"), study="baselines", releases={})


def test_later_trainings_are_added_to_a_record_and_a_pack_stays_as_it_is(
    study, release, without_images, tmp_path, caplog
):
    releases = {TASK: json.loads((study / "study.json").read_text())["tasks"][TASK]["release"]}
    packed, record = pack(study, tmp_path / "packs"), tmp_path / "record.json"
    before = {path.name: path.read_bytes() for path in packed.iterdir()}
    assert retrain(packed, release) == 2
    assert retrain(packed, release, "--record", packed / RECORD) == 2
    assert caplog.text.count("is a pack, which is not changed; name a file outside of it with --record") == 2
    assert retrain(packed, release, "--record", record) == 0
    two = read_record(record, study="baselines", releases=releases)
    assert {path.name: path.read_bytes() for path in packed.iterdir()} == before
    assert sorted(path.name for path in (tmp_path / "record.json.runs").iterdir()) == [TASK, f"{TASK}.jsonl"]
    assert retrain(study, release, "--record", record, "--top", 1, "--minutes", 1e-9) == 0
    assert read_record(record, study="baselines", releases=releases) == two
    assert retrain(study, release, "--record", packed / "manifest.json") == 2
    assert "is not a record of retrained incumbents" in caplog.text


def test_a_wrong_start_names_every_fault(study, release, without_images, caplog):
    assert retrain(study, release, "--top", 0, "--task", "digits") == 2
    assert "top=0 must be at least 1" in caplog.text
    assert "'digits' is not in this study" in caplog.text
    assert retrain(study, release, "--arms", "hyperband") == 2
    assert "no arm of fashion_mnist_mini that matches hyperband has an incumbent" in caplog.text
    assert not (study / RECORD).exists()


def test_a_result_that_cannot_be_written_is_refused_before_the_work(study, release, without_images, tmp_path, caplog):
    (tmp_path / "file").touch()
    assert retrain(study, release, "--record", tmp_path / "file" / "record.json") == 2
    assert not (study / "retrained").exists(), "nothing was trained"
    shown = [str(study), "--release", str(release), "--out", str(tmp_path / "page"), "--workers", "1"]
    assert report([*shown, "--ship", str(tmp_path / "file" / "seasons")]) == 2
    assert not (tmp_path / "page").exists()
    assert caplog.text.count("file is not a folder; choose another folder") == 2


def test_missing_images_are_said(study, release, tmp_path, caplog):
    assert retrain(study, release, "--data-dir", tmp_path / "nothing") == 2
    assert "fashion" in caplog.text.lower()
