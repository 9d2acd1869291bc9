"""The page as a file: one piece, small, the same each time; what it says of a release that lacks something."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import jahs
from jahs.cli import main
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.explorer import MOST_BYTES, page, read_subject
from jahs.explorer.arrays import recorded_columns
from jahs.explorer.page import Subject, _without_models, make_page
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import TASKS
from tests.building import make_runs_folder
from tests.releases import make_release, make_table


@pytest.fixture(scope="module")
def embedded():
    return make_page(read_subject("fashion_mnist_mini"))


def part(text: str, name: str) -> str:
    return re.search(rf'<script type="[\w/]+" id="{name}">(.*?)</script>', text, re.DOTALL)[1]


def facts_of(text: str) -> dict:
    return json.loads(part(text, "facts"))


def recorded_arrays(text: str) -> dict[str, np.ndarray]:
    data = base64.b64decode(part(text, "data-recorded"))
    types = {
        "Float64Array": "<f8",
        "Float32Array": "<f4",
        "Uint32Array": "<u4",
        "Uint16Array": "<u2",
        "Uint8Array": "u1",
    }
    places = facts_of(text)["recorded"]["arrays"].items()
    return {name: np.frombuffer(data, types[kind], length, start) for name, (kind, start, length) in places}


def subject(tmp_path, **parts) -> Subject:
    tmp_path.mkdir(exist_ok=True)
    make_release(tmp_path / "release", **parts)
    return read_subject("digits", tmp_path / "release")


def test_the_embedded_page_is_small_and_the_same_each_time(embedded):
    assert len(embedded.encode()) < MOST_BYTES
    assert embedded == make_page(read_subject("fashion_mnist_mini"))


def test_a_page_asks_for_nothing(embedded):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', embedded)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    source = re.sub(r'<script type="(?:text/plain|application/json)".*?</script>', "", embedded, flags=re.DOTALL)
    assert (
        re.findall(
            r"https?:|//[a-z]+\.|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(|^import .*from|@import|url\(",
            source,
            re.MULTILINE,
        )
        == []
    )
    assert re.findall(r'(?:src|href)="([^"]*)"', source) == ["data:,", "#content"]


def test_text_of_a_release_is_no_markup(tmp_path):
    evil = "</script><script>alert(1)</script>"
    found = subject(tmp_path, facts={"version": evil}, table=make_table("digits", 12))
    found = replace(found, task=replace(found.task, title=evil, caveat=f"{evil}. {evil}. {evil}"), without_models=evil)
    text = make_page(found)
    assert evil not in text
    assert text.count("<script") == text.count("</script>") == 4
    assert facts_of(text)["without_models"] == evil


def test_the_caveat_of_a_task_comes_first_and_a_task_without_one_has_none(embedded, tmp_path):
    after = embedded.partition("</h1>")[2]
    opening = "fashion_mnist_mini ranks configs well over the whole space"
    assert re.sub(r"<[^>]+>", "", after).strip().startswith(opening)
    assert "caveat" not in make_page(subject(tmp_path)).partition("<body>")[2].partition("<script")[0]


def test_the_recorded_columns_are_the_table(embedded):
    table, arrays, facts = read_subject("fashion_mnist_mini").table, recorded_arrays(embedded), facts_of(embedded)
    assert facts["recorded"]["n_shown"] == facts["recorded"]["n_configs"] == len(table.configs["N"])
    for name, parameter in PARAMETERS.items():
        values = np.array(parameter.choices)[arrays[name]] if parameter.choices else arrays[name]
        assert (values == table.configs[name]).all()
    bench = jahs.Benchmark("fashion_mnist_mini", kind="table")
    timed = int(np.flatnonzero(np.isfinite(arrays["runtime"]))[0])  # configs trained on another processor have none
    config = {name: table.configs[name][timed].item() for name in PARAMETERS}
    for name in facts["recorded"]["metrics"]:
        assert arrays[name][timed] == pytest.approx(bench.query(config, metrics=[name]).as_dict()[name], rel=1e-6)
    curve = arrays["curve_valid_acc"].reshape(-1, len(facts["recorded"]["epochs"]))[arrays["config"] == timed]
    shown = bench.query_many([config], at=facts["recorded"]["epochs"], metrics=["valid_acc"])["valid_acc"][0]
    assert curve.mean(axis=0) == pytest.approx(shown, rel=1e-6)


def test_of_many_trainings_some_are_shown_with_the_whole_front(tmp_path, monkeypatch):
    monkeypatch.setattr("jahs.explorer.arrays.MOST_RUNS", 20)
    monkeypatch.setattr("jahs.explorer.arrays._MOST_EPOCHS", 4)
    text = make_page(subject(tmp_path, table=make_table("digits", 90)))
    facts, arrays = facts_of(text)["recorded"], recorded_arrays(text)
    assert facts["n_shown"] == len(arrays["N"]) < facts["n_configs"] == 90
    assert facts["epochs"] == [1, 5, 8, 12]
    whole, _ = recorded_columns(make_table("digits", 90), TASKS["digits"])
    assert whole["n_trainings"] == facts["n_trainings"]
    monkeypatch.setattr("jahs.explorer.arrays.MOST_RUNS", 4000)
    _, every = recorded_columns(make_table("digits", 90), TASKS["digits"])
    assert arrays["valid_acc"].max() == every["valid_acc"].max()


def test_diverged_trainings_are_curves_without_an_end(tmp_path):
    text = make_page(subject(tmp_path, table=make_table("digits", 12, diverged=[3])))
    facts, arrays = facts_of(text)["recorded"], recorded_arrays(text)
    assert facts["n_unfinished"] == 1
    assert np.isnan(arrays["valid_acc"]).tolist() == [i == 3 for i in range(12)]
    curve = arrays["curve_valid_acc"].reshape(-1, 12)[arrays["config"] == 3]
    assert np.isfinite(curve[0]).tolist() == [epoch < 6 for epoch in range(1, 13)]  # it diverged in epoch 6


def test_a_release_that_lacks_a_part_says_so(tmp_path):
    only_table = subject(tmp_path / "a", metrics=(), table=make_table("digits", 12))
    assert only_table.without_models == "The release has no models."
    facts = facts_of(make_page(only_table))
    assert facts["models"] is None
    assert facts["recorded"]["n_configs"] == 12
    facts = facts_of(make_page(subject(tmp_path / "b")))
    assert facts["recorded"] is None
    assert facts["models"]["band"] is None


def test_a_page_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_BYTES", 1000)
    with pytest.raises(InvalidArgument, match="at most 1,000 are allowed"):
        make_page(subject(tmp_path))


def test_forests_that_are_too_large_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("jahs.explorer.page.MOST_NODES", 10)
    assert "at most 10 fit a page" in subject(tmp_path).without_models


def test_models_of_an_imported_release_are_left_out(tmp_path, monkeypatch):
    found = subject(tmp_path)
    monkeypatch.setattr(found.release, "models", replace(found.release.models, costs="published"), raising=False)
    assert "was imported" in _without_models(found.release)


def test_a_folder_of_runs_has_a_page(tmp_path):
    pytest.importorskip("pyarrow")
    make_runs_folder(tmp_path / "runs", task="digits", n_configs=12, n_epochs=12)
    found = read_subject("digits", tmp_path / "runs")
    assert found.without_models == "It is a folder of recorded runs, which has no models."
    text = make_page(found)
    assert "digits, recorded runs, 12 epochs" in text
    assert facts_of(text)["recorded"]["n_configs"] == 12


@pytest.mark.parametrize("table", [None, make_table("digits", 2, diverged=[0, 1])], ids=["no runs", "none finished"])
def test_a_release_with_nothing_to_show_has_no_page(tmp_path, capsys, table):
    make_release(tmp_path / "release", metrics=(), table=table)
    assert main(["explore", "--release", str(tmp_path / "release"), "--out", str(tmp_path / "page.html")]) == 2
    said = "digits: The release has no models. There are no finished runs to show instead; give another release"
    assert capsys.readouterr() == ("", f"jahs explore: {said}\n")
    assert not (tmp_path / "page.html").exists()


def test_another_task_or_no_release_is_refused(tmp_path):
    make_release(tmp_path / "release")
    with pytest.raises(ProtocolMismatch, match="release of digits, not of cifar10_mini"):
        read_subject("cifar10_mini", tmp_path / "release")
    with pytest.raises(MissingData):
        read_subject("digits", tmp_path / "nowhere")


def test_the_command_writes_the_page(tmp_path, capsys):
    make_release(tmp_path / "release", metrics=(), table=make_table("digits", 12))
    given = ["explore", "--task", "Digits", "--release", str(tmp_path / "release"), "--out"]
    out = tmp_path / "page.html"
    assert main([*given, str(out)]) == 0
    assert capsys.readouterr().out == f"{out} (0.1 MB)\nThe release has no models. The page shows the recorded runs.\n"
    assert main([*given, str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == out.stat().st_size
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]
    assert main([*given, str(tmp_path / "page.txt")]) == 2
    assert "write a name that ends in .html" in capsys.readouterr().err
