"""The check of a release against the real landscape: what agrees fully is reported so, and mistakes end with 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surrogate.landscape_check import main
from tests.releases import make_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases, and accuracies of all NAS-Bench-201 cells."""
    folder = tmp_path_factory.mktemp("releases")
    for name in ("digits", "cifar10"):
        make_release(folder / name, task=name, n_trees=5, depth=3)
    rows = "".join(f"{index},{index % 97},{index % 89}\n" for index in range(15_625))
    (folder / "cells.csv").write_text("index,cifar10_test_200_epochs,cifar10_valid_12_epochs\n" + rows)
    return folder


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer resamples: what is shown does not depend on them."""
    monkeypatch.setattr("workshop.real_landscape._N_RESAMPLES", 100)


def test_a_landscape_agrees_with_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = str(folder / "cifar10")
    assert main([real, "--landscape", real, "--configs", "60", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_configs"] == 60
    assert facts["epochs"]["200"]["rho"] == pytest.approx(1)
    assert facts["resolution"]["ratio"] == pytest.approx(1)
    assert facts["shares"]["ours"] == facts["shares"]["real"]
    assert "cells" not in facts


def test_a_person_sees_every_part_and_the_same_every_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(folder / "digits"), "--landscape", str(folder / "cifar10"), "--configs", "60"]
    arguments += ["--cells", str(folder / "cells.csv")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Digits (16 px) against CIFAR-10 (JAHS-Bench-201): 60 uniform configs")
    for part in ("rho with epoch 200", "rho with epoch   3", "Resolution 0.25 to 1", "LearningRate x WeightDecay"):
        assert part in shown
    assert "NAS-Bench-201's accuracies, 1000 cells: Spearman's rho with them, ours\n  after 200 epochs: " in shown
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["nothing"], "nothing is neither a release's folder nor a task; tasks: digits, "),
        (["{}/digits", "--configs", "2"], "2 configs were"),
        (["{}/digits", "--cells", "{}/none.csv"], "none.csv cannot be read"),
    ],
    ids=["task", "configs", "no cells"],
)
def test_a_mistake_ends_with_a_message(
    folder: Path, caplog: pytest.LogCaptureFixture, given: list[str], message: str
) -> None:
    arguments = [part.replace("{}", str(folder)) for part in given]
    assert main([*arguments, "--landscape", str(folder / "cifar10")]) == 2
    assert message in caplog.text
