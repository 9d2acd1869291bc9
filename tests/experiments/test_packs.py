"""Packs: every trial of a study in little space, nothing lost, and one clear error for each fault."""

import dataclasses
import json
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import jahs
from experiments.folder import read_folder
from experiments.pack import main, pack
from experiments.packs import (
    COLUMNS,
    MANIFEST,
    RATES_COLUMNS,
    RATES_FILE,
    read_manifest,
    read_pack,
    read_packed_table,
    read_packed_tables,
    read_rates,
    season_of,
)
from experiments.report.results import read_results
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.sealed_json import sealed_text
from jahs.files.tables import write_table
from jahs.simulate import read_log
from jahs.spaces.columns import rows
from tests.experiments.conftest import N_REFITS, TASK, short_study
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release

SEEDS = 2


@pytest.fixture(scope="module")
def release(release_with_refits):
    return release_with_refits


@pytest.fixture(scope="module")
def study(release, tmp_path_factory):
    folder, arms = tmp_path_factory.mktemp("study"), ["random_search", "hyperband-diagonal", "hyperband-W"]
    return short_study("fidelity", folder, release, arms=arms, seeds=SEEDS)


@pytest.fixture
def copy(study, tmp_path):
    return shutil.copytree(study, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))


def test_a_pack_has_every_trial_of_every_log_and_the_release_knows_the_rest(study, release, tmp_path):
    packed = pack(study, tmp_path)
    logs, columns, trials, _ = read_packed_tables(packed)
    assert len(logs["seed"]) == 3 * SEEDS * (1 + N_REFITS)
    configs = rows(columns)
    assert len({tuple(config.values()) for config in configs}) == len(configs)
    rates = read_rates(packed.parent).tolist()
    assert len(set(rates)) == len(rates)
    assert set(rates) == {config[key] for config in configs for key in ("LearningRate", "WeightDecay")}
    row, first = trials["config"], 0
    for number, own in enumerate(read_pack(packed)):
        path = study / own.repetition.path
        log = read_log(path)
        assert logs["digest"][number] == sha256(path.read_bytes()).hexdigest()[:16]
        assert (logs["ended"][number], logs["clock"][number]) == (log.ending["ended"], log.ending["clock"])
        assert own.settings == log.header["optimizer_settings"]
        assert own.n_trials == len(log.trials)
        assert own.n_finished == sum(trial.status == "finished" for trial in log.trials)
        for i, trial in enumerate(log.trials):
            at = first + i
            assert configs[row[at]] == trial.config
            sizes = {name: trial.fidelity.get(name, trial.config[name]) for name in ("N", "W", "Resolution")}
            asked = {"epoch": trial.fidelity["epoch"], **sizes, "status": trial.status}
            assert {name: trials[name][at] for name in asked} == asked
        last = log.trials[len(log.trials) // 2]
        bench = jahs.Benchmark(TASK, release=release, refit=own.repetition.refit)
        sizes = {name: value for name, value in last.fidelity.items() if name != "epoch"}
        answer = bench.query({**last.config, **sizes}, at=last.fidelity["epoch"], seed=own.repetition.seed)
        assert answer.valid_acc == last.metrics["valid_acc"]
        first += len(log.trials)
    assert first == len(row)


def test_results_are_the_same_from_logs_and_from_their_pack(study, release, tmp_path):
    bench = {TASK: jahs.Benchmark(TASK, release=release)}
    whole, packed = (read_results(path, bench=bench) for path in (study, pack(study, tmp_path)))
    for of in ("by_arm", "on_refits"):
        assert getattr(whole, of).keys() == getattr(packed, of).keys()
        for key, results in getattr(whole, of).items():
            for one, other in zip(results, getattr(packed, of)[key], strict=True):
                assert one.repetition == other.repetition
                assert one.incumbents.times.tolist() == other.incumbents.times.tolist()
                assert one.incumbents.values.tolist() == other.incumbents.values.tolist()
                assert (one.configs, one.observed, one.n_trials) == (other.configs, other.observed, other.n_trials)
                assert one.n_finished == other.n_finished <= one.n_trials
                assert one.settings == other.settings


def test_a_pack_with_more_repetitions_and_files_of_something_else_are_not_replaced(copy, study, tmp_path):
    packed = pack(study, tmp_path)
    before = {path.name: path.read_bytes() for path in packed.iterdir()}
    sorted(copy.rglob("seed-0001.jsonl"))[0].unlink()
    with pytest.raises(InvalidArgument, match=rf"would be replaced and lose {TASK}/hyperband-W/.*/1; choose another"):
        pack(copy, tmp_path)
    assert pack(study, tmp_path) == packed
    assert {path.name: path.read_bytes() for path in packed.iterdir()} == before
    (packed / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"would be replaced and lose notes\.txt"):
        pack(study, tmp_path)
    assert (packed / "notes.txt").read_text() == "mine"


def test_an_unfinished_study_is_packed_as_it_is(copy, study, tmp_path):
    removed = sorted(copy.rglob("seed-0001.jsonl"))[::2]
    for log in removed:
        log.unlink()
    packed = pack(copy, tmp_path / "packs")
    n_logs = len(list(copy.rglob("*.jsonl")))
    assert len(list(read_pack(packed))) == n_logs == 3 * SEEDS * (1 + N_REFITS) - len(removed)
    for log in copy.rglob("*.jsonl"):
        log.unlink()
    with pytest.raises(MissingData, match=r"no finished repetition; python -m experiments\.run continues it"):
        pack(copy, tmp_path / "packs")
    assert len(list(read_pack(packed))) == n_logs


@pytest.mark.parametrize(
    ("change", "fault", "message"),
    [
        (lambda data: data[:-200], CorruptFile, "was cut short; remove it and run again"),
        (lambda data: data.replace(b'"seed":1', b'"seed":7'), CorruptFile, "seed=7 instead of 1"),
        (lambda data: data.replace(b'"status":"finished"', b'"status":"fine"', 1), CorruptFile, "status='fine'"),
        (lambda data: data.replace(b'"Op1":', b'"Op7":'), CorruptFile, "Op7"),
        (lambda data: data.replace(b'"Activation":"ReLU"', b'"Activation":"RELU"'), CorruptFile, "RELU"),
        (lambda data: b"no log\n", CorruptFile, "line 1 is not JSON"),
    ],
)
def test_a_bad_log_is_one_clear_error_and_no_pack(copy, tmp_path, change, fault, message):
    log = copy / TASK / "random_search" / "seed-0001.jsonl"
    log.write_bytes(change(log.read_bytes()))
    with pytest.raises(fault, match=message):
        pack(copy, tmp_path / "packs")
    assert [file for file in (tmp_path / "packs").rglob("*") if file.is_file()] == []


def test_another_season_is_refused_and_named(copy, study, tmp_path, release):
    packed = pack(study, tmp_path / "packs")
    facts = json.loads((copy / "study.json").read_text())
    facts["tasks"][TASK]["release"] = "0" * 64
    facts["study"]["name"] = "joint"
    (copy / "study.json").write_text(json.dumps(facts))
    with pytest.raises(ProtocolMismatch, match=r"cannot mix seasons(.|\n)*fidelity: fashion_mnist_mini is release"):
        pack(copy, tmp_path / "packs")
    other = make_release(tmp_path / "other", task=TASK, n_trees=5, noise=noise_model(TASK).to_dict())
    for folder in (study, packed):
        with pytest.raises(ProtocolMismatch, match=r"the logs used release .* a page does not mix seasons"):
            read_results(folder, bench={TASK: jahs.Benchmark(TASK, release=other)})
    first = read_folder(study).tasks[TASK]
    tasks = {"b": dataclasses.replace(first, version="0.2.0"), "a": dataclasses.replace(first, version="0.1.1")}
    assert season_of(tasks) == "a-0.1.1_b-0.2.0"


@pytest.mark.parametrize("name", [MANIFEST, *COLUMNS])
def test_a_damaged_or_missing_file_is_refused(study, tmp_path, name):
    packed = pack(study, tmp_path)
    data = (packed / name).read_bytes()
    (packed / name).write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
    with pytest.raises(CorruptFile, match=name):
        list(read_pack(packed))
    (packed / name).unlink()
    with pytest.raises(MissingData, match=name):
        list(read_pack(packed))


@pytest.mark.parametrize("name", ["trials.parquet", "configs.parquet", "asked.parquet"])
def test_tables_of_two_packs_do_not_make_one(study, tmp_path, copy, name):
    packed = pack(study, tmp_path)
    for log in copy.rglob("seed-0001.jsonl"):
        log.unlink()
    other = pack(copy, tmp_path / "other")
    shutil.copy(other / name, packed)
    said = read_manifest(packed / MANIFEST)
    said["files"][name] = sha256((packed / name).read_bytes()).hexdigest()
    (packed / MANIFEST).write_text(sealed_text(said))
    with pytest.raises(CorruptFile, match="do not belong together"):
        list(read_pack(packed))


@pytest.mark.parametrize("where", ["nowhere", "first log"])
def test_a_trial_of_a_config_that_its_log_does_not_have_is_refused(study, tmp_path, where):
    packed = pack(study, tmp_path)
    name = "trials.parquet"
    trials = read_packed_table(packed / name)
    back = trials["back"].copy()
    again = np.flatnonzero(back)[-1]
    back[again] = -1 if where == "nowhere" else np.sum(back[:again] == 0)
    trials["back"] = back
    write_table(packed / name, trials, COLUMNS[name])
    said = read_manifest(packed / MANIFEST)
    said["files"][name] = sha256((packed / name).read_bytes()).hexdigest()
    (packed / MANIFEST).write_text(sealed_text(said))
    with pytest.raises(CorruptFile, match="do not belong together"):
        list(read_pack(packed))


def test_the_packs_of_a_season_share_their_rates(study, copy, tmp_path):
    rename_study(copy, "joint")
    for log in copy.rglob("seed-0001.jsonl"):
        log.unlink()
    small = pack(copy, tmp_path)
    before = list(read_pack(small))
    n_small = len(read_rates(small.parent))
    large = pack(study, tmp_path)
    rates = read_rates(large.parent).tolist()
    assert small.parent == large.parent
    assert n_small < len(rates) == len(set(rates))  # it only grew
    assert_same(read_pack(small), before)
    assert_same(read_pack(large), read_pack(pack(study, tmp_path / "alone")))
    assert pack(copy, tmp_path) == small
    assert read_rates(small.parent).tolist() == rates
    (link := tmp_path / "link").symlink_to(small)
    assert_same(read_pack(link), before)
    table = small.parent / RATES_FILE
    write_table(table, {"rate": np.array(rates[::-1])}, RATES_COLUMNS)
    for packed in (small, large):
        with pytest.raises(CorruptFile, match=rf"does not begin with the rates of .*{packed.name}; restore both"):
            list(read_pack(packed))
    with pytest.raises(CorruptFile, match=r"does not begin with the rates of .*fidelity"):
        pack(copy, tmp_path)
    table.unlink()
    for attempt in (lambda: list(read_pack(small)), lambda: pack(copy, tmp_path)):
        with pytest.raises(MissingData, match="the packs of a season share it; restore it from a copy"):
            attempt()
    assert not table.exists()


def rename_study(folder, name):
    """Rename the study in study.json, with the digests of its arms in every log."""
    before, path = read_folder(folder).study, folder / "study.json"
    content = json.loads(path.read_text())
    content["study"]["name"] = name
    path.write_text(json.dumps(content))
    after = read_folder(folder).study
    for log in folder.rglob("*.jsonl"):
        arm = log.relative_to(folder).parts[1]
        log.write_text(log.read_text().replace(before.digest_of(arm), after.digest_of(arm)))


def assert_same(logs, expected):
    """Compare logs of packs."""
    for one, other in zip(logs, expected, strict=True):
        assert (one.repetition, one.configs, one.settings) == (other.repetition, other.configs, other.settings)
        assert one.found.end.tolist() == other.found.end.tolist()


def test_the_command_says_how_large_a_pack_is(study, tmp_path, capsys):
    assert main([str(study), "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["total"] == sum(said["bytes"].values())
    assert set(said["bytes"]) == {MANIFEST, *COLUMNS}
    assert [*said["shared by the season"]] == [RATES_FILE]
    assert main([str(study), "--out", str(study / "packs")]) == 2
    assert main([str(tmp_path), "--out", str(tmp_path)]) == 2


def test_all_trials_of_both_embedded_tasks_take_at_most_25_megabytes():
    studies = Path(__file__).parents[2] / "data/studies"
    folders = [folder for folder in studies.iterdir() if folder.name != "cifar10-JAHS-Bench-201"]
    assert 0 < sum(file.stat().st_size for folder in folders for file in folder.rglob("*.*")) <= 25_000_000


def test_tasks_of_another_pack_are_added_as_if_they_had_been_run(study, release, tmp_path):
    digits = shutil.copytree(study, tmp_path / "digits", ignore=shutil.ignore_patterns("report"))
    (digits / TASK).rename(digits / "digits")
    rename_task(digits, "digits")
    of_digits = json.loads((digits / "study.json").read_text())
    of_digits["made_with"][0]["commit"] = "0" * 40
    (digits / "study.json").write_text(json.dumps(of_digits))
    both = shutil.copytree(digits, tmp_path / "both")
    shutil.copytree(study / TASK, both / TASK)
    content = json.loads((study / "study.json").read_text())
    content["tasks"] |= of_digits["tasks"]
    content["made_with"] = [*of_digits["made_with"], *content["made_with"]]
    (both / "study.json").write_text(json.dumps(content))
    wanted = pack(both, tmp_path / "wanted")
    added = pack(study, tmp_path / "added", other=pack(digits, tmp_path / "first"))
    assert added.relative_to(tmp_path / "added") == wanted.relative_to(tmp_path / "wanted")
    assert {file.name: file.read_bytes() for file in added.iterdir()} == {
        file.name: file.read_bytes() for file in wanted.iterdir()
    }
    again = pack(study, tmp_path / "again", other=added)  # its own logs before those of the pack
    assert (again / MANIFEST).read_bytes() == (added / MANIFEST).read_bytes()
    reverse = pack(digits, tmp_path / "reverse", other=pack(study, tmp_path / "second"))
    assert all((reverse / name).read_bytes() == (added / name).read_bytes() for name in COLUMNS)


def rename_task(folder, name):
    """Say another task in study.json and in every log."""
    for path in (folder / "study.json", *folder.rglob("*.jsonl")):
        path.write_text(path.read_text().replace(f'"{TASK}"', f'"{name}"'))


def test_a_pack_with_other_seeds_or_of_another_study_is_not_added(study, copy, tmp_path):
    packed = pack(study, tmp_path / "packs")
    content = json.loads((copy / "study.json").read_text())
    (copy / "study.json").write_text(json.dumps({**content, "n_seeds": SEEDS - 1}))
    with pytest.raises(ProtocolMismatch, match=rf"has {SEEDS} seeds of random_search, .*; run the study again on all"):
        pack(copy, tmp_path / "out", other=packed)
    content["study"]["name"] = "other"
    (copy / "study.json").write_text(json.dumps(content))
    with pytest.raises(ProtocolMismatch, match=r"cannot be added(.|\n)*the study 'fidelity', not 'other'"):
        pack(copy, tmp_path / "out", other=packed)
    assert not (tmp_path / "out").exists()
