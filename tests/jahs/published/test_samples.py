"""Files in the exact formats of JAHS-Bench-201, with what its own code predicts: imported, we answer the same.

They are no part of the project. `JAHS_SAMPLES` names their folder; otherwise they are looked for beside the checkout.
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.published.surrogates import import_surrogates
from jahs.schema import CONFIG_KEYS
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.metrics import METRICS, metric

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = Path(os.environ.get("JAHS_SAMPLES") or ROOT.parent / "shared" / "samples")
OFFICIAL, OLD = SAMPLES / "official_format", SAMPLES / "prerelease_cifar10"

pytestmark = pytest.mark.skipif(
    not OFFICIAL.is_dir(), reason=f"no sample files in {SAMPLES}; set JAHS_SAMPLES to their folder"
)


def golden(path):
    """Configs, epochs and predictions of a table of golden numbers."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    kinds = {key: type(PARAMETERS[key].default) for key in CONFIG_KEYS}
    read = {bool: lambda text: text == "True"}
    configs = [{key: read.get(kind, kind)(row[key]) for key, kind in kinds.items()} for row in rows]
    names = [name for name in rows[0] if name not in CONFIG_KEYS and name != "epoch"]
    answers = {name: np.array([float(row[name]) for row in rows]) for name in names}
    return configs, [int(row["epoch"]) for row in rows], answers


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    out = tmp_path_factory.mktemp("releases")
    import_surrogates(OFFICIAL / "assembled_surrogates.tar", out)
    return out


@pytest.mark.parametrize("task", ["cifar10", "fashion_mnist"])
def test_an_imported_release_answers_as_the_published_code_does(releases, task):
    configs, epochs, expected = golden(OFFICIAL / f"golden_{task}.csv")
    assert len(configs) == 300
    assert len(expected) == 7
    bench = jahs.Benchmark(task, release=releases, engine="numpy")
    found = bench.query_many(configs, each_at=epochs)
    for name, values in expected.items():
        assert found[metric(name).name] == pytest.approx(values, rel=1e-4)
        assert found[metric(name).name] == pytest.approx(values, rel=1e-6)  # which is what it is
    for k in range(20):
        answer = bench(configs[k], nepochs=epochs[k])[epochs[k]]
        assert answer == pytest.approx({name: values[k] for name, values in expected.items()}, rel=1e-4)
        assert bench.query(configs[k], at=epochs[k]).costs == "published"


def test_a_repaired_release_has_exact_costs_and_a_runtime_that_rises(releases, tmp_path):
    import_surrogates(OFFICIAL / "assembled_surrogates.tar", tmp_path, tasks=["cifar10"], costs="repaired")
    bench = jahs.Benchmark("cifar10", release=tmp_path, engine="numpy")
    published = jahs.Benchmark("cifar10", release=releases, engine="numpy")
    from jahs.models.cost import cost

    for config in bench.sample(5, seed=0):
        path = bench.trajectory(config)
        assert (np.diff(path["runtime"]) > 0).all()
        assert np.ptp(path["latency"]) == 0
        exact = cost(config, bench.task)
        result = bench.query(config, at=100)
        assert (result.n_macs, result.n_params) == (exact["n_macs"], exact["n_params"])
        assert result.costs == "repaired"
        assert result.valid_acc == published.query(config, at=100).valid_acc
        assert result.latency == published.query(config).latency


@pytest.mark.skipif(not OLD.is_dir(), reason=f"no {OLD}; set JAHS_SAMPLES to a folder that has it")
def test_the_older_layout_answers_as_it_did(tmp_path):
    configs, epochs, expected = golden(OLD / "golden_200.csv")
    import_surrogates(OLD, tmp_path, tasks=["cifar10"])
    bench = jahs.Benchmark("cifar10", release=tmp_path, engine="numpy")
    assert list(bench.metrics) == ["valid_acc", "latency", "n_params"]
    found = bench.query_many(configs, each_at=epochs)
    for name, values in expected.items():
        assert found[metric(name).name] == pytest.approx(values, rel=1e-6)
    one = bench.query(configs[0], at=epochs[0]).as_dict()
    assert one == {name: values[0] for name, values in found.items()}


def test_the_published_table_becomes_runs_and_its_planted_faults_are_found(tmp_path):
    pytest.importorskip("pyarrow")
    from jahs.published.table import import_table

    folders = import_table(OFFICIAL / "metric_data.tar", tmp_path)
    assert set(folders) == {"cifar10", "fashion_mnist"}
    report = json.loads((folders["cifar10"] / "report.json").read_text())
    found = {name: entry["n_found"] for name, entry in report["findings"].items() if entry["n_found"]}
    assert found == {
        "falling_runtime": 40,
        "flops_label": 1,
        "nan_row": 25,
        "repeated_config": 8,
        "shared_by_split": 11,
    }
    assert report["counts"] == {
        "configs_read": 32,
        "configs_written": 32,
        "runs_read": 40,
        "runs_written": 40,
        "rows_read": 8000,
        "rows_written": 7975,
    }
    bench = jahs.Benchmark("cifar10", kind="table", release=folders["cifar10"])
    config = bench.sample(seed=0)
    assert 0 <= bench.query(config, at=200).valid_acc <= 100
    assert set(bench.metrics) <= set(METRICS)
