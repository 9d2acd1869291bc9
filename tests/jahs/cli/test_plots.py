"""`jahs plot`: a picture where it was asked for, and a word on what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jahs.cli import main
from jahs.cli.plots import differences


@pytest.mark.parametrize("what", ["curves", "front"])
@pytest.mark.parametrize(("name", "starts"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml")], ids=["png", "svg"])
def test_a_picture_is_written_and_its_path_printed(run, tmp_path: Path, what: str, name: str, starts: bytes) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / name
    assert run("plot", what, "-n", "5", "N=5", "--out", str(out)) == f"{out}\n"
    assert out.read_bytes().startswith(starts)
    assert list(tmp_path.iterdir()) == [out]


def test_a_legend_names_what_differs_between_configs() -> None:
    same = {"LearningRate": 0.1, "N": 1, "W": 4}
    assert differences([same, {**same, "N": 3}]) == ["N=1", "N=3"]
    named = differences([same, {**same, "N": 3}, {**same, "W": 8}])
    assert named == ["N=1, W=4", "N=3, W=4", "N=1, W=8"]
    assert differences([same]) == ["config 0"]


def test_machines_get_the_path_too(run_json, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = str(tmp_path / "a.png")
    assert run_json("plot", "curves", "-n", "2", "--metrics", "runtime", "--out", out) == {"picture": out}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["front", "--metrics", "valid_acc"], "a front needs exactly two metrics"),
        (["front", "--metrics", "latency,runtime"], "latency, runtime have no reference point; there is one for valid"),
        (["curves", "--metrics", "valid_acc,runtime"], "curves show exactly one metric"),
        (["curves", "--metrics", "speed"], "'speed' does not exist"),
        (["curves", "-n", "1", "N=4"], "N=4 is not one of"),
        (["curves", "--configs", "-", "-n", "50"], "-n and --configs both name configs; give one of them"),
    ],
    ids=["one", "no-point", "two", "unknown", "config", "file"],
)
def test_a_mistake_leaves_no_picture(run, tmp_path: Path, argv: list[str], said: str) -> None:
    pytest.importorskip("matplotlib")
    assert said in run("plot", *argv, "--out", str(tmp_path / "a.png"), code=2)
    assert not list(tmp_path.iterdir())


def test_only_what_is_required_is_called_so(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["plot"])
    assert "the following arguments are required: what, --out\n" in capsys.readouterr().err


def test_where_to_is_checked_before_anything_is_loaded(run, tmp_path: Path) -> None:
    assert "write a name that ends in .png or .svg" in run("plot", "curves", "--out", str(tmp_path / "a.pdf"), code=2)
    assert "there is no folder" in run("plot", "curves", "--out", str(tmp_path / "no" / "a.png"), code=2)
    for command, folder in ((["plot", "curves"], tmp_path / "a.png"), (["explore"], tmp_path / "a.html")):
        folder.mkdir()
        assert "must be a file, got a folder" in run(*command, "--out", str(folder), code=2)


def test_without_matplotlib_it_says_what_to_install(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    told = run("plot", "curves", "--out", str(tmp_path / "a.png"), code=1)
    assert told.startswith("jahs plot: matplotlib.figure cannot be imported (")
    assert told.endswith("): pip install matplotlib\n")
