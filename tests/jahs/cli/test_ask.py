"""`jahs query` and `jahs trajectory`: what the library answers, for people and for machines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from jahs.cli import main

DEEP = "[" * 50_000


def test_a_query_is_what_the_library_answers(run, bench) -> None:
    lines = [json.loads(line) for line in run("query", "N=5", "--at", "3", "--at", "12", "--json").splitlines()]
    config = {**bench.sample(seed=0), "N": 5}
    assert [(line["config"], line["at"], line["seed"]) for line in lines] == [(config, 3, None), (config, 12, None)]
    assert [line["metrics"] for line in lines] == [bench.query(config, at=at).as_dict() for at in (3, 12)]


@pytest.mark.parametrize(
    "words", ["N=5 --at 5 W=16", "--at 5 N=5 W=16", "N=5 W=16 --at 5", "N=5 --at 5 W=16 --metrics runtime"]
)
def test_values_stand_before_and_behind_options(run, bench, words: str) -> None:
    line = json.loads(run("query", *words.split(), "--json"))
    assert (line["config"], line["at"]) == ({**bench.sample(seed=0), "N": 5, "W": 16}, 5)


def test_two_dashes_end_the_options(capsys, release: Path) -> None:
    assert main(["query", "N=5", "--json", "--release", str(release), "--at", "5", "--", "W=16"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["config"]["N"], line["config"]["W"], line["at"]) == (5, 16, 5)


def test_a_query_without_epochs_is_at_the_last_one_and_metrics_are_chosen_by_name(run_json, bench) -> None:
    line = run_json("query", "--config-seed", "7", "--metrics", "runtime,valid-acc")
    result = bench.query(bench.sample(1, seed=7)[0])
    assert line["at"] == 27
    assert line["metrics"] == {"runtime": result.runtime, "valid_acc": result.valid_acc}


def test_a_person_sees_the_config_and_every_metric_with_its_unit(run, bench) -> None:
    shown = run("query", "W=16", "--at", "5")
    assert "CIFAR-10 (16 px): surrogate, a full training has 27 epochs, mean over the training noise" in shown
    assert "  W               16\n" in shown
    for name, metric in bench.metrics.items():
        (row,) = [line.split() for line in shown.splitlines() if line.split()[:1] == [name]]
        assert row[-1] == metric.unit


def test_configs_are_read_from_a_file_or_from_another_command(run, bench, tmp_path: Path, monkeypatch) -> None:
    configs = bench.sample(3, seed=4)
    text = "".join(json.dumps(config) + "\n\n" for config in configs)
    (tmp_path / "configs.jsonl").write_text(text)
    from_file = run("query", "--configs", str(tmp_path / "configs.jsonl"), "--json")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert run("query", "--configs", "-", "--json") == from_file
    assert [json.loads(line)["config"] for line in from_file.splitlines()] == configs
    rows = run("query", "--configs", str(tmp_path / "configs.jsonl"), "--at", "1", "--at", "2").splitlines()
    assert [row.split()[:2] for row in rows[3:]] == [[str(i), str(at)] for i in range(3) for at in (1, 2)]


def test_a_trajectory_is_what_the_library_answers(run_json, bench) -> None:
    shown = run_json("trajectory", "--from", "2", "--to", "10", "--step", "4")
    expected = bench.trajectory(bench.sample(seed=0), frm=2, to=10, step=4)
    assert shown["columns"] == {name: values.tolist() for name, values in expected.items()}
    assert shown["columns"]["epoch"] == [2, 6, 10]


def test_what_no_epoch_changes_is_shown_once(run) -> None:
    table, beside = run("trajectory").split("at every epoch")
    assert "runtime" in table
    assert "latency" not in table
    assert "latency" in beside


def test_recorded_runs_are_asked_for_by_kind(run_json, release: Path) -> None:
    line = run_json("query", "--kind", "table", "--metrics", "valid_acc")
    assert 0 <= line["metrics"]["valid_acc"] <= 100


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["query", "N=4", "Op9=1"], ["N=4 is not one of 1, 3, 5", "Op9 is not a key of a config"]),
        (["query", "N"], ["N: write KEY=VALUE; KEY is one of: Activation"]),
        (["query", "--at", "5", "N"], ["N: write KEY=VALUE; KEY is one of: Activation"]),
        (["query", "N=5", "--at", "5", "N=3"], ["N=3: N is given twice; give it once"]),
        (["query", "--at", "0"], ["--at 0 is not an integer in 1..27; for several epochs: --at 5 --at 12"]),
        (["query", "--at", "5,12"], ["--at '5,12' is not an integer in 1..27; for several epochs"]),
        (["query", "at=5"], ["at=5: at is not a key of a config; write --at 5"]),
        (["query", "seed=3"], ["seed=3: seed is not a key of a config; write --seed 3"]),
        (["query", "--configs", "no.jsonl"], ["--configs no.jsonl: No such file or directory"]),
        (["query", "--at", "1.5"], ["--at 1.5 is not an integer in 1..27"]),
        (["query", "--at", "late"], ["--at 'late' is not an integer"]),
        (["query", "--metrics", "speed"], ["metric='speed' does not exist", "valid_acc"]),
        (["query", "--kind", "guess"], ["kind='guess' does not exist"]),
        (["query", "--configs", "no/such/file"], ["--configs no/such/file: "]),
        (["query", "--configs", "-", "--config-seed", "3"], ["--configs and --config-seed both name configs"]),
        (["trajectory", "--step", "1.5"], ["step=1.5 is not an integer in 1..27\n"]),
        (["query", "LearningRate=0.5", "--kind", "table"], ["no run of this config is recorded"]),
        (["trajectory", "--from", "9", "--to", "3"], ["from=9 is after to=3"]),
        (["trajectory", "--from", "28"], ["from=28 is not an integer in 1..27"]),
        (["query", "--at", DEEP], ["--at '[[[", "is not an integer"]),
        (["query", f"N={DEEP}"], ["N='[[[", "is a str, not an int"]),
    ],
    ids=lambda value: "-".join(value)[:50] if isinstance(value, list) else None,
)
def test_a_mistake_is_told_on_stderr_with_exit_code_2(run, argv: list[str], said: list[str]) -> None:
    told = run(*argv, code=2)
    assert all(line.startswith(f"jahs {argv[0]}: ") for line in told.splitlines())
    assert all(text in told for text in said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\nN=5\n", "line 2 is not JSON"),
        ("[1]", "line 1 is not a JSON object"),
        ("{}", "N is missing"),
        ("{}\n" + "[" * 100_000, "line 2 is not JSON"),
        ("", "holds no config"),
        ("\n \n", "holds no config"),
        ('{}\n{"N": 1, "N": 5}', "line 2 is not JSON (the key 'N' twice"),
        ('{"N": NaN}', "line 1 is not JSON (NaN is not a finite number"),
        ('{"N": "\x85\u2028"}\n{\x0c}', "line 2 is not JSON"),
    ],
    ids=["text", "list", "no keys", "deep", "empty", "blank", "twice", "nan", "lines"],
)
def test_a_file_that_holds_no_configs_is_refused(run, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "configs").write_text(text, encoding="utf-8")
    assert said in run("query", "--configs", str(tmp_path / "configs"), code=2)


def test_a_trajectory_is_of_one_config(run, tmp_path: Path) -> None:
    (tmp_path / "configs").write_text("{}\n{}\n")
    assert "2 configs; a trajectory needs" in run("trajectory", "--configs", str(tmp_path / "configs"), code=2)


@pytest.mark.parametrize("named", [["--release", "no/such/folder"], ["--task", "colorectal_histology"]])
def test_a_release_that_is_not_there_is_a_mistake(capsys, monkeypatch, named: list[str]) -> None:
    monkeypatch.delenv("JAHS_DATA_DIR", raising=False)
    assert main(["query", *named]) == 2
    assert " release" in capsys.readouterr().err
