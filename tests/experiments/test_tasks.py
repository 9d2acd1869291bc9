"""Two tasks on the same configs: planted agreements, honest ceilings, one page from the same inputs, clear errors."""

import csv
import math
from itertools import combinations

import numpy as np
import pytest

import jahs
from experiments import tasks as command
from experiments.analysis import paired as analysis
from experiments.analysis.paired import PairedConfigs, agreement, agreements, warm_starts
from experiments.tasks import compare_tasks
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.runs import read_protocol
from jahs.files.tables import write_table
from jahs.queries.references import build_references
from jahs.schema import RUN_COLUMNS
from jahs.tasks.definitions import TASKS
from tests.building import make_configs, make_runs, make_runs_folder
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from workshop.pages.markdown import caveat_text

NAMES = ("digits", "fashion_mnist_mini")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Fewer resamples: the laws do not need them."""
    monkeypatch.setattr(analysis, "_N_RESAMPLES", 50)


@pytest.fixture
def folders(tmp_path):
    """The runs of two tasks, 60 and 81 configs, and nothing else."""
    return tuple(
        make_runs_folder(tmp_path / name / "runs", n, task=name) for name, n in zip(NAMES, (60, 81), strict=True)
    )


@pytest.fixture
def settings(folders, tmp_path, monkeypatch):
    """Settings of a page that finds no release."""
    monkeypatch.setattr(command, "open_benchmark", missing)

    def make(**given):
        return {"runs": folders, "landscape": None, "release": None, "seeds": 2, "out": tmp_path / "page", **given}

    return make


def missing(task, release):
    raise MissingData(f"there is no release of {task}")


def planted(*, noise, n=400, seed=0):
    """Two tasks with the same true accuracies and independent noise; every second config has three seeds."""
    chance = np.random.default_rng(seed)
    values = chance.normal(50, 10, n)[None, :, None] + chance.normal(0, noise, (2, n, 3))
    values[:, 1::2, 1:] = np.nan
    configs = {**make_configs(n), "source": np.full(n, "uniform")}
    return PairedConfigs(tasks=(TASKS[NAMES[0]], TASKS[NAMES[1]]), configs=configs, accuracies=values)


def test_tasks_that_differ_by_noise_alone_agree_as_much_as_the_ceiling_allows():
    for noise in (1.0, 10.0):
        whole, *_ = agreements(planted(noise=noise, n=3000))
        assert (whole.n, whole.n_repeated) == (3000, 1500)
        assert whole.rho.value == pytest.approx(whole.ceiling, abs=0.04)
        assert whole.rho.low < whole.rho.value < whole.rho.high
        real = agreement("", planted(noise=noise, n=3000).accuracies[:1], planted(noise=1e-9, n=3000).first[0])
        assert real.rho.value == pytest.approx(real.ceiling, abs=0.04)


def test_the_parts_are_all_within_groups_both_best_tenths_and_every_group():
    found = list(agreements(planted(noise=3.0)))
    assert [each.title for each in found[:3]] == [
        "all configs",
        "within fidelity groups",
        f"best tenth of {TASKS[NAMES[0]].title}",
    ]
    assert len(found) == 4 + 27
    assert found[4].title == "N=1, W=4, Resolution=0.25"
    assert [each.n for each in found[:4]] == [400, 400, 40, 40]
    mixed = planted(noise=3.0)
    mixed.configs["source"][::4] = "full"
    assert [each.n for each in agreements(mixed)][1:3] == [100, 300]


def test_what_few_configs_cannot_say_is_not_said():
    values = planted(noise=1.0).accuracies
    of_four = agreement("", values[:, :4])
    assert math.isnan(of_four.rho.value)
    assert math.isnan(of_four.ceiling)


def test_a_warm_start_is_compared_with_the_mean_of_random_starts():
    values = np.random.default_rng(3).normal(size=8)
    for k in (1, 3, 8):
        wanted = np.mean([max(of) for of in combinations(values.tolist(), k)])
        assert analysis._mean_best(values, k) == pytest.approx(wanted)
    for each in warm_starts(planted(noise=0.0)):
        assert each.n_random == 400
        assert each.gain.value > 0
    worthless = planted(noise=1e6, n=3000)
    assert all(each.n_random < 500 for each in warm_starts(worthless) if each.k == 1)


def test_the_same_inputs_give_the_same_page_with_its_data(settings, tmp_path):
    page = compare_tasks(**settings(landscape=make_release(tmp_path / "cifar10", task="cifar10")))
    files = {path.relative_to(page.parent): path.read_bytes() for path in page.parent.rglob("*") if path.is_file()}
    assert {str(path) for path in files} == {
        "README.md",
        "paired.csv",
        "figures/correlations.svg",
        "figures/effects.svg",
    }
    text = page.read_text()
    opening, _ = text.split("\n\n## ", 1)
    assert caveat_text(TASKS["fashion_mnist_mini"].caveat or "", is_folded=True) in opening
    assert "The validation accuracies of 60 configs, trained on both tasks, have a Spearman correlation of " in text
    assert "Both against the real landscape" in text
    assert "Not yet: Digits" in text
    with (page.parent / "paired.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == list(range(60))
    assert [bool(row["digits seed 2"]) for row in rows] == [i % 10 == 0 for i in range(60)]
    assert all(0 <= float(row["cifar10 epoch 200"]) <= 100 for row in rows)
    compare_tasks(**settings(landscape=tmp_path / "cifar10"))
    again = {path.relative_to(page.parent): path.read_bytes() for path in page.parent.rglob("*") if path.is_file()}
    assert again == files


@pytest.mark.usefixtures("undrawn")
def test_with_releases_fronts_and_orders_are_compared(folders, tmp_path):
    for name in ("plain", "releases"):
        (tmp_path / name).mkdir()
    for name, runs in zip(NAMES, folders, strict=True):
        parts = {"task": name, "n_trees": 5, "depth": 3, "facts": {"protocol": read_protocol(runs).digest}}
        bench = jahs.Benchmark(name, release=make_release(tmp_path / "plain" / name, **parts), engine="numpy")
        references = build_references(bench, n_configs=100, seed=0, n_rounds=1).to_dict()
        noise = noise_model(name).to_dict()
        make_release(tmp_path / "releases" / name, noise=noise, references=references, **parts)
    wanted = {"landscape": None, "release": tmp_path / "releases", "seeds": 2, "out": tmp_path / "page"}
    text = compare_tasks(folders, **wanted).read_text()
    assert "valid_acc and latency" in text
    assert "Kendall's tau between the rankings" in text
    assert "Not yet" not in text


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("one task", InvalidArgument, "both folders have runs of digits; give the runs of two tasks"),
        ("other configs", InvalidArgument, "share 0 finished configs; at least 20 are needed; collect the same"),
        ("no folder", MissingData, "is not a folder of runs"),
        ("other protocol", ProtocolMismatch, "has protocol .* but rows of"),
        ("short landscape", InvalidArgument, "'digits' with 12 epochs; give an imported release"),
        ("other release", ProtocolMismatch, "was fitted to runs of protocol 0{16}, but the runs of digits have"),
        ("no seeds", InvalidArgument, "seeds=0 must be at least 1"),
    ],
)
def test_bad_input_is_one_clear_error_and_no_page(fault, error, message, folders, settings, tmp_path, monkeypatch):
    one, other = folders
    given = {
        "one task": {"runs": (one, one)},
        "other configs": {"runs": (one, tmp_path / "others")},
        "no folder": {"runs": (one, tmp_path / "nowhere")},
        "short landscape": {"landscape": tmp_path / "release"},
        "no seeds": {"seeds": 0},
    }.get(fault, {})
    if fault == "other configs":
        make_runs_folder(tmp_path / "others", 60, task=NAMES[1], seed=1)
    if fault == "other protocol":
        strange = make_runs(make_configs(2), seeds=[(7,), (7,)], n_epochs=4, protocol="f" * 16)
        write_table(other / "runs-0002.parquet", strange, RUN_COLUMNS)
    if fault in {"short landscape", "other release"}:
        released = jahs.Benchmark("digits", release=make_release(tmp_path / "release"))
        opener = "open_benchmark" if fault == "other release" else "Benchmark"
        monkeypatch.setattr(command, opener, lambda *_, **__: released)
    with pytest.raises(error, match=message):
        compare_tasks(**settings(**given))
    assert not (tmp_path / "page").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_command_prints_the_page(folders, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "open_benchmark", missing)
    assert command.main([*map(str, folders), "--out", str(tmp_path / "page")]) == 0
    assert "README.md" in capsys.readouterr().out
    assert command.main([str(folders[0]), str(tmp_path / "nowhere"), "--out", str(tmp_path / "page")]) == 2
