"""A landscape is what a benchmark answers: functions whose landscape is known, and a release."""

import functools
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import jahs
from experiments import landscape as command
from experiments.analysis import landscape_measures
from experiments.analysis.landscape_measures import measure_landscape, with_errors_of_fit
from jahs.errors import InvalidArgument, UnknownName
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import METRICS
from tests.experiments.conftest import TASK, page_written_twice


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Fewer walks and random configs: the laws do not need them."""
    for name, n in {"N_RANDOM": 2000, "_N_CONTEXTS": 8, "_N_STEPS": 12, "_N_LAGS": 6, "_N_OF_CONTEXT": 50}.items():
        monkeypatch.setattr(landscape_measures, name, n)


def made(of, metric="valid_acc"):
    """A benchmark that answers a function of a config's columns and the epoch."""

    def query_many(configs, *, at, metrics):
        (name,) = metrics
        columns = configs if isinstance(configs, dict) else {k: np.array([c[k] for c in configs]) for k in configs[0]}
        return {name: of(columns, at)}

    return SimpleNamespace(metrics={metric: METRICS[metric]}, max_epoch=12, query_many=query_many)


def test_where_only_the_rate_counts_nothing_else_decides():
    bench = made(lambda columns, _: 50 + 10 * np.log10(columns["LearningRate"]))
    landscape = measure_landscape(bench, "valid_acc", n=512, seed=0)
    for variance in landscape.variances:
        for shares in variance.shares.values():
            assert shares["hyperparameters"].value == pytest.approx(1)
            assert sum(abs(share.value) for share in shares.values()) == pytest.approx(1)
        assert variance.total["LearningRate"].value == pytest.approx(1, abs=0.1)
        assert {key for key, share in variance.total.items() if share.value > 0} == {"LearningRate"}
    assert [*landscape.walks] == [*landscape.mutants] == ["all keys"]
    assert landscape.walks["all keys"][0].value > 0.9


def test_groups_that_add_up_have_no_interplay_and_an_exclusive_or_is_nothing_else():
    def is_conv(columns):
        return columns["Op1"] == 2

    def is_fast(columns):
        return columns["LearningRate"] > 10**-1.5

    added = made(lambda columns, _: 10.0 * is_conv(columns) + 20.0 * is_fast(columns))
    either = made(lambda columns, _: 1.0 * ((columns["Op1"] < 3) ^ is_fast(columns)))
    for bench, wanted in ((added, 0.0), (either, 1.0)):
        largest = measure_landscape(bench, "valid_acc", n=4096, seed=0).variances[1]
        assert largest.shares["value"]["architecture × hyperparameters"].value == pytest.approx(wanted, abs=0.1)


def test_what_is_equally_good_for_most_has_no_better_half():
    bench = made(lambda columns, _: 1.0 * (columns["Op1"] > 0))
    variance = measure_landscape(bench, "valid_acc", n=256, seed=0).variances[1]
    assert [*variance.shares] == ["rank", "value"]


def test_sizes_decide_in_the_whole_space_alone():
    found = measure_landscape(made(lambda columns, _: columns["W"] + 1e-3 * columns["Op6"]), "valid_acc", n=256, seed=0)
    whole, largest, smallest = found.variances
    assert whole.shares["value"]["fidelities"].value == pytest.approx(1, abs=1e-3)
    assert [*whole.shares["value"]] != [*largest.shares["value"]] == [*smallest.shares["value"]]
    assert largest.shares["value"]["architecture"].value == pytest.approx(1)


def test_less_is_better_where_a_metric_says_so():
    bench = made(lambda columns, _: columns["Op1"] + 0.01 * columns["Op2"], "latency")
    landscape = measure_landscape(bench, "latency", n=256, seed=0)
    # The best have Op1 = Op2 = 0; to change either of six operations keeps all of that in four of six cases.
    assert landscape.mutants["all keys"][0].value > 0.5
    assert landscape.variances[1].epochs == (12,)


def test_the_epochs_are_those_of_the_task_and_each_has_its_shares():
    bench = made(lambda columns, at: columns["Op1"] * (at < 12) + columns["WeightDecay"] * (at == 12))
    largest = measure_landscape(bench, "valid_acc", n=256, seed=0).variances[1]
    assert largest.epochs[0] == 1
    assert largest.epochs[-1] == 12
    *earlier, last = (share.value for share in largest.by_epoch["architecture"])
    assert (set(earlier), last) == ({1.0}, 0.0)


def test_bad_questions_are_refused_all_at_once():
    bench = made(lambda columns, _: columns["Op1"])
    with pytest.raises(InvalidArgument) as caught:
        measure_landscape(bench, "valid_acc", n=10, seed=-1)
    assert str(caught.value).splitlines() == [
        "n=10 must be an integer >= 64",
        "seed=-1 is not an integer in 0..2**63-1",
    ]
    with pytest.raises(UnknownName, match="valid_ac"):
        measure_landscape(bench, "valid_ac", n=64, seed=0)
    with pytest.raises(InvalidArgument, match="do not vary"):
        measure_landscape(made(lambda columns, _: 0.0 * columns["Op1"]), "valid_acc", n=64, seed=0)


@pytest.mark.parametrize("metric", ["valid_acc", "n_params"])
def test_the_page_of_a_release(release, tmp_path, capsys, metric):
    arguments = ["--task", TASK, "--release", str(release), "--metric", metric, "--n", "128"]
    assert command.main([*arguments, "--out", str(tmp_path / "page")]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["page"] == str(tmp_path / "page" / "index.html")
    text = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert f"The landscape of {metric}" in text
    assert "--n 128 --seed 0" in text
    assert ("computed from the config" in text) == (metric == "n_params")
    figures = {path.stem for path in (tmp_path / "page" / "figures").glob("*.svg")}
    assert {"keys-largest", "keys-smallest", "walks", "mutants"} <= figures
    assert ("epochs-largest" in figures) == (metric == "valid_acc")


def test_the_same_release_gives_the_same_page(release, tmp_path):
    arguments = ["--task", TASK, "--release", str(release), "--n", "64", "--docs"]
    assert "index.html" not in page_written_twice(command.main, arguments, tmp_path)


def test_a_mistake_ends_with_a_message(release, tmp_path, caplog):
    arguments = ["--task", TASK, "--release", str(release), "--metric", "accuracy", "--out", str(tmp_path / "page")]
    assert command.main(arguments) == 2
    assert "valid_acc" in caplog.text
    assert not (tmp_path / "page").exists()


def test_it_says_how_good_the_shipped_surrogate_is():
    bench = jahs.Benchmark("fashion_mnist_mini")
    said = command._quality(bench, "valid_acc")
    scores = bench.quality()["metrics"]["valid_acc"]["refitted_test"]
    assert f"τ {scores['last epoch']['model']['tau']:.2f}" in said
    assert f"τ {scores['best tenth']['model']['tau']:.2f} among the best tenth" in said


def test_intervals_grow_by_what_other_fits_say():
    one = measure_landscape(made(lambda columns, _: columns["Op1"] + 0.1 * columns["W"]), "valid_acc", n=128, seed=0)
    other = measure_landscape(made(lambda columns, _: columns["Op1"] + 0.2 * columns["W"]), "valid_acc", n=128, seed=0)
    wide = with_errors_of_fit(one, [one, other])
    own, wider = (found.variances[0].shares["value"]["fidelities"] for found in (one, wide))
    share = other.variances[0].shares["value"]["fidelities"].value
    error = 1.96 * abs(share - own.value) / np.sqrt(2)  # the standard deviation of two
    assert wider.value == own.value
    same = with_errors_of_fit(one, [one, one]).variances[0].shares["value"]["fidelities"]
    assert (same.low, same.high) == pytest.approx((own.low, own.high))
    assert wider.high - wider.value == pytest.approx(np.hypot(own.high - own.value, error))
    assert wider.value - wider.low == pytest.approx(np.hypot(own.value - own.low, error))


def test_ties_at_the_top_are_counted():
    landscape = measure_landscape(made(lambda columns, _: 1.0 * (columns["Op1"] == 0)), "valid_acc", n=128, seed=0)
    assert landscape.top == (1, 1)
    assert landscape.share_of_top == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("flags", [[], ["--docs"]], ids=["page", "docs"])
def test_what_no_page_has_left_is_never_replaced(release, tmp_path, caplog, monkeypatch, flags):
    monkeypatch.setattr(command, "measure_landscape", lambda *_, **__: pytest.fail("measured before looking"))
    folder = tmp_path / "mine"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "raw.csv").write_text("x")
    (folder / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    arguments = ["--task", TASK, "--release", str(release), *flags, "--out"]
    assert command.main([*arguments, str(folder)]) == 2
    assert "thesis.tex, figures/raw.csv" in caplog.text
    assert command.main([*arguments, str(tmp_path / "file")]) == 2
    assert command.main([*arguments, str(tmp_path / "file" / "below")]) == 2
    monkeypatch.chdir(tmp_path / "mine")
    (folder / "thesis.tex").unlink()
    (folder / "figures" / "raw.csv").unlink()
    assert command.main([*arguments, "."]) == 2
    assert "runs inside of it" in caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_the_page_shows_the_caveat_of_its_task(bench, monkeypatch):
    monkeypatch.setattr(command, "measure_landscape", functools.cache(measure_landscape))
    for caveat in ("Short training.", None):
        monkeypatch.setattr(bench, "task", replace(TASKS[TASK], caveat=caveat))
        document = command._document(bench, "valid_acc", n=64, seed=0)
        assert document.caveats == (() if caveat is None else (caveat,))
