"""Lists of configs to train next: the same every time, nothing that is known, and what the collector reads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.release import read_release
from jahs.schema import OPS
from jahs.spaces.cell import canonical_keys, live_paths
from jahs.spaces.columns import config_ids, rows
from jahs.tasks import TASKS, register
from pipeline.proposals import read_proposals
from splits.final import FinalTest, write_final
from surrogate import propose as command
from surrogate.models import optima
from surrogate.models.boosting import ForestSettings
from tests.releases import make_release
from tests.surrogate.landscape import PROTOCOL, TASK, measurements
from workshop.numbered import full_range

MEASURED = measurements(8)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("made") / "release", task=TASK.name, facts={"protocol": PROTOCOL})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """TPE needs a tool that is not everywhere; its own test asks for it."""
    monkeypatch.setattr(command, "_SEARCHES", ("local_search", "regularized_evolution"))
    monkeypatch.setattr(command, "_EVALUATIONS", 300)
    monkeypatch.setattr(command, "_N_FOLDS", 2)
    monkeypatch.setattr(command, "settings_of", lambda _: ForestSettings(n_trees=5, max_depth=3))


def call(source: str, runs: Path, out: Path, *more: object, split: Path | None = None) -> int:
    split = runs / "split.json" if split is None else split
    arguments = [source, runs, "--split", split, "--out", out, *more]
    return command.main([str(argument) for argument in arguments])


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def columns_of(path: Path) -> dict[str, np.ndarray]:
    configs = [line["config"] for line in lines(path)]
    return {key: np.array([config[key] for config in configs]) for key in configs[0]}


@pytest.mark.parametrize("source", command.KINDS)
def test_the_same_arguments_give_the_same_list_and_the_collector_reads_it(
    source: str, runs: Path, release: Path, tmp_path: Path
) -> None:
    more = ("--release", release, "--n", 12, "--round", 2, "--seed", 3)
    for name in ("one", "two"):
        assert call(source, runs, tmp_path / name, *more) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    configs, seeds = read_proposals(tmp_path / "one", source, protocol=PROTOCOL)
    assert len(seeds) == (96 if source == "paired" else 12)
    assert set(configs["round"].tolist()) == {2}
    named = read_release(release).sha256 if source in {"best", "disagreement"} else ""
    assert set(configs["release"].tolist()) == {named}


def test_the_best_have_a_cell_each_at_full_size_and_the_first_ten_two_seeds(
    runs: Path, release: Path, tmp_path: Path
) -> None:
    assert call("best", runs, tmp_path / "list", "--release", release, "--n", 12) == 0
    columns = columns_of(tmp_path / "list")
    assert {key: set(columns[key].tolist()) for key in ("N", "W", "Resolution")} == {
        "N": {5}, "W": {16}, "Resolution": {1.0}
    }  # fmt: skip
    assert len(np.unique(canonical_keys(np.column_stack([columns[op] for op in OPS])))) == 12
    assert [line["seeds"] for line in lines(tmp_path / "list")] == [[0, 1]] * 10 + [[0]] * 2
    bench = jahs.Benchmark(TASK.name, release=release)
    values = bench.query_many([line["config"] for line in lines(tmp_path / "list")])["valid_acc"]
    assert (np.diff(values) <= 0).all()
    random = bench.query_many(jahs.space({"N": 5, "W": 16, "Resolution": 1.0}).sample(300, seed=0))["valid_acc"]
    assert values[0] >= random.max()


def test_nothing_that_is_recorded_or_in_the_final_test_set_is_proposed(
    runs: Path, release: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    more = ("--release", release, "--n", 5)
    split = tmp_path / "split.json"
    split.write_bytes((runs / "split.json").read_bytes())
    assert call("best", runs, first, *more, split=split) == 0
    configs = tuple(line["config"] for line in lines(first))
    write_final(
        split, FinalTest(task=TASK.name, protocol=PROTOCOL, configs=configs, groups=("uniform",) * 5, seeds=(0, 1))
    )
    assert call("best", runs, second, *more, split=split) == 0
    assert not np.isin(config_ids([line["config"] for line in lines(second)]), config_ids(configs)).any()


def test_the_stream_at_full_size_is_a_function_of_the_number_alone(runs: Path, tmp_path: Path) -> None:
    assert call("full", runs, tmp_path / "list", "--n", 4, "--start", 7, "--seed", 5) == 0
    assert [line["config"] for line in lines(tmp_path / "list")] == rows(full_range(7, 11))


def test_the_measured_best_of_train_and_valid_get_three_seeds(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("seeds", runs, tmp_path / "list", "--n", 10**6) == 2
    assert "n=1000000 must be at most" in capsys.readouterr().err
    assert call("seeds", runs, tmp_path / "list", "--n", 6) == 0
    ids = config_ids([line["config"] for line in lines(tmp_path / "list")])
    assert all(line["seeds"] == [0, 1, 2] for line in lines(tmp_path / "list"))
    last = MEASURED.runs["epoch"] == TASK.max_epoch
    means = {
        config_id: MEASURED.runs["valid_acc"][last & (MEASURED.runs["config_id"] == config_id)].mean(dtype=np.float64)
        for config_id in MEASURED.configs["config_id"][MEASURED.configs["config_index"] // 27 % 10 < 9].tolist()
    }
    assert ids.tolist() == sorted(means, key=lambda config_id: (-means[config_id], config_id))[:6]


def test_a_paired_config_differs_in_its_size_alone(runs: Path, tmp_path: Path) -> None:
    assert call("paired", runs, tmp_path / "list", "--n", 3) == 0
    proposals = lines(tmp_path / "list")
    sizes = [tuple(line["config"][key] for key in ("N", "W", "Resolution")) for line in proposals]
    assert len(set(sizes)) == 8
    assert sizes[:8] == sizes[8:16] == sizes[16:]
    rest = [{key: v for key, v in line["config"].items() if key not in {"N", "W", "Resolution"}} for line in proposals]
    assert rest[0] == rest[7] != rest[8]


def test_the_poor_have_few_paths_or_extreme_rates(runs: Path, tmp_path: Path) -> None:
    assert call("poor", runs, tmp_path / "list", "--n", 40) == 0
    columns = columns_of(tmp_path / "list")
    paths = live_paths(np.column_stack([columns[op] for op in OPS])).sum(axis=1)
    assert (paths[::2] <= 1).all()
    rate, decay = np.log10(columns["LearningRate"][1::2]), np.log10(columns["WeightDecay"][1::2])
    assert (np.abs(rate + 1.5) >= 1.2).all()
    assert (np.abs(decay + 3.5) >= 1.2).all()
    assert len({(n, w) for n, w in zip(columns["N"], columns["W"], strict=True)}) > 4


def test_as_many_poor_configs_as_are_drawn_can_be_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optima, "_N_RANDOM", 3000)

    def proposed(n: int) -> int:
        return len(optima.poor(n=n, seed=0, is_known=lambda columns: np.zeros(len(columns["N"]), np.bool_))["N"])

    with pytest.raises(InvalidArgument, match="must be at most") as refused:
        proposed(10_000)
    most = int(str(refused.value).split()[-1])
    assert (proposed(most), proposed(most - 1)) == (most, most - 1)


def test_tpe_searches_too(runs: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(command, "_SEARCHES", ("tpe",))
    more = ("--release", release, "--n", 3)
    for name in ("one", "two"):
        assert call("best", runs, tmp_path / name, *more) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("besst", (), "source='besst' does not exist (did you mean 'best'?)"),
        ("best", (), "best is proposed by a release; name one: --release RELEASE"),
        (
            "full",
            ("--n", 0, "--round", -1),
            "n=0 must be an integer in 1..2**31-1\nsurrogate.propose: round=-1 must be",
        ),
        ("poor", ("--n", 100_000), "n=100000 must be at most"),
        ("poor", ("--start", 5), "start=5 is not used by poor; leave it out"),
    ],
)
def test_what_cannot_be_proposed_is_refused_and_nothing_is_written(
    source: str, more: tuple, message: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(source, runs, tmp_path / "list", *more) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_list_that_cannot_be_written_is_refused_before_anything_is_searched(
    runs: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "propose", lambda *_, **__: pytest.fail("it searched"))
    for out in (tmp_path / "no" / "list", tmp_path):
        assert call("best", runs, out, "--release", release) == 2
        assert str(out) in capsys.readouterr().err


def test_a_file_that_is_not_a_list_is_kept_and_a_list_is_replaced(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (runs / "split.json").read_bytes()
    assert call("poor", runs, runs / "split.json", "--n", 4) == 2
    assert "split.json exists and is not a list of configs; choose another file" in capsys.readouterr().err
    assert (runs / "split.json").read_bytes() == before
    for n in (4, 6):
        assert call("poor", runs, tmp_path / "list", "--n", n) == 0
        assert len(lines(tmp_path / "list")) == n


def test_a_release_of_another_protocol_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_release(tmp_path / "other", task=TASK.name, facts={"protocol": "f" * 16})
    assert call("best", runs, tmp_path / "list", "--release", other) == 2
    assert f"protocol {'f' * 16}, but the runs have task {TASK.name} and protocol {PROTOCOL}" in capsys.readouterr().err
    assert not (tmp_path / "list").exists()


def test_a_list_for_more_cells_than_were_found_is_refused(
    runs: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("best", runs, tmp_path / "list", "--release", release, "--n", 500) == 2
    assert "different cells that are not recorded were found, not n=500; lower --n" in capsys.readouterr().err


def test_the_command_for_a_task_of_ones_own_names_its_file(tmp_path: Path) -> None:
    leaves = register(dataclasses.replace(TASKS["digits"], name="leaves", max_epoch=30))
    said = command.write_list(tmp_path / "list", "", dataclasses.replace(MEASURED, task=leaves), tmp_path, "full")
    assert "--task leaves.json --data-dir IMAGES --out" in said
