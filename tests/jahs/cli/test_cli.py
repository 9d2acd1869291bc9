"""The command `jahs`: results on stdout, mistakes on stderr with exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import jahs
from jahs.cli import main
from jahs.models.cost import cost
from jahs.spaces.cell import Cell

ROOT = Path(__file__).resolve().parents[3]
RELEASES = Path(jahs.__file__).parent / "releases"


def stdout_of(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_demo_shows_machines_and_people_what_the_library_answers(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("demo", "--seed", "3", "--task", "cifar10")
    facts, shown = json.loads(stdout_of(capsys, *command, "--json")), stdout_of(capsys, *command)
    config = jahs.space().sample(seed=3)
    cell = Cell.from_config(config)
    assert facts["config"] == config
    assert facts["cell"] == cell.nb201_string
    assert {key: facts[key] for key in ("n_params", "n_macs")} == cost(config, jahs.tasks.task("cifar10"))
    assert f"{facts['n_params']:,} trainable parameters" in shown
    assert f"{facts['n_macs']:,} multiply-adds per image" in shown
    assert all(line.rstrip() in shown for line in cell.draw().splitlines())


def test_samples_are_one_valid_config_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = stdout_of(capsys, "sample", "-n", "3", "--seed", "5", "--json").splitlines()
    assert [json.loads(line) for line in lines] == jahs.space().sample(3, seed=5)


@pytest.mark.parametrize("text", ["Mish", '"Mish"'])
def test_fixed_parameters_are_read_as_numbers_booleans_and_strings(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--fix", "N=5", "--fix", "Resolution=0.5", "--fix", "TrivialAugment=True", "--fix", f"Activation={text}"]
    (line,) = stdout_of(capsys, "sample", *given, "--json").splitlines()
    fixed = {"N": 5, "Resolution": 0.5, "TrivialAugment": True, "Activation": "Mish"}
    assert {key: json.loads(line)[key] for key in fixed} == fixed


@pytest.mark.parametrize(
    "given",
    [["4", "1", "2", "0", "2", "1"], ["12954"], [Cell((4, 1, 2, 0, 2, 1)).nb201_string]],
    ids=["ops", "index", "string"],
)
def test_a_cell_goes_by_three_names(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(stdout_of(capsys, "cell", *given, "--json"))
    assert facts["ops"] == [4, 1, 2, 0, 2, 1]
    assert facts["nb201_index"] == 12954
    assert Cell((4, 1, 2, 0, 2, 1)).draw() in stdout_of(capsys, "cell", *given)


def test_info_lists_every_task_and_metric(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(stdout_of(capsys, "info", "--json"))
    shown = stdout_of(capsys, "info")
    assert facts["tasks"] == list(jahs.tasks.TASKS)
    assert all(name in shown for name in [*facts["tasks"], *facts["metrics"], *facts["versions"]])
    assert all(f"{number}, {facts['releases'][task]}" in shown for task, number in facts["release_numbers"].items())


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["demo", "--task", "cifar"], "'cifar' does not exist"),
        (["demo", "--seed", "-1"], "seed=-1"),
        (["leaderboard", "logs", "--release", "/nowhere"], "--release /nowhere is not a folder"),
        (["query", "--config-seed", "-1", "--seed", "3"], "--config-seed=-1 is not an integer"),
        (["sample", "--fix", "N=2"], "N=2 is not one of 1, 3, 5"),
        (["sample", "--fix", "N"], "write KEY=VALUE"),
        (["sample", "--fix", "N=5", "--fix", "N=3"], "N=3: N is given twice; give it once"),
        (["sample", "-n", "-1"], "n=-1"),
        (["sample", "-n", "1000000000000"], "n=1000000000000 is not an integer in 0..10000000"),
        (["import", "no/such.tar", "--out", "releases"], "no/such.tar"),
        (
            ["query", "--task", "fashion_mnist_mini", "--release", str(RELEASES / "cifar10_mini")],
            "is a release of cifar10_mini, not of fashion_mnist_mini",
        ),
        (["cell", "1", "2", "3"], "ops=(1, 2, 3)"),
        (["cell", "15625"], "15625"),
        (["cell", "conv"], "'conv' is not an integer"),
        (["cell", "1_0"], "'1_0' is not an integer"),
        (["cell", "\u0663"], "is not an integer"),
        (["cell", "4", "1", "2", "0", "2", "-1"], "Op6=-1 is not an operation"),
        (["cell", "9" * 5000], "is not an integer"),
        (["cell", "|none~0|"], "none"),
    ],
)
def test_a_mistake_is_told_on_stderr_with_exit_code_2(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"jahs {argv[0]}: ")
    assert said in captured.err


def test_every_fault_of_the_fixed_values_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "--fix", "N=2", "--fix", "LearningRate=NaN", "--fix", "Width=4"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (
            ["download", "jahs-bench-201", "--what", "surrogates"],
            "; the same command keeps finished work and continues",
        ),
        (["info"], ""),
    ],
    ids=["download", "info"],
)
@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_a_command_that_is_stopped_says_so_in_one_line(
    argv: list[str],
    kept: str,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jahs.cli.releases.download_archives", stop)
    monkeypatch.setattr("jahs.cli.ask.releases", stop)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert main(argv) == 130
    line_end = "\n" if is_terminal else ""
    assert capsys.readouterr().err == f"{line_end}jahs {argv[0]}: stopped{kept}\n"


@pytest.mark.parametrize("argv", [[], ["play"], ["sample", "-n", "few"], ["sample", "N=5"], ["query", "--near", "N=5"]])
def test_what_the_parser_refuses_ends_with_exit_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "usage: jahs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("sample >&-", 0),
        ("sample >&- 2>&-", 0),
        ("query >&-", 0),
        ("trajectory >&-", 0),
        ("quality >&-", 0),
        ("verify fashion_mnist_mini >&-", 0),
        ("sample --fix N=2 2>&-", 2),
        ("play 2>&-", 2),
        ("import no/such.tar --out x 2>&-", 2),
        ("query --configs - <&-", 2),
    ],
)
def test_closed_streams_change_no_exit_code(command: str, code: int) -> None:
    shell = f"{sys.executable} -m jahs {command}"
    done = subprocess.run(shell, cwd=ROOT, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


def test_nothing_to_print_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert stdout_of(capsys, "sample", "-n", "0", "--json") == ""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["qury"], "did you mean query?"),
        (["plot", "fronts", "--out", "f.png"], "did you mean front?"),
        (["query", "--metrc", "valid_acc"], "did you mean --metrics?"),
        (["quality", "--relase", "x"], "usage: jahs quality"),
        ([], "Try: jahs demo"),
    ],
)
def test_a_typing_error_is_answered_with_what_was_meant(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main(words)
    assert ending.value.code == 2
    assert hint in capsys.readouterr().err


def test_what_the_demo_says_to_try_next_needs_no_further_package(capsys: pytest.CaptureFixture[str]) -> None:
    said = stdout_of(capsys, "demo").partition("Try next:\n")[2].splitlines()
    assert len(said) == 3
    for line in said:
        stdout_of(capsys, *line.partition("#")[0].split()[1:])
    assert "plot" not in " ".join(said)  # needs matplotlib
