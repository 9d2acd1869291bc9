"""The simulation with a real benchmark: a small made-up release, its views and its noise."""

from __future__ import annotations

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, NotRecorded, OptimizerFailed
from jahs.files.hashing import sha256_file
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation, read_log, to_pandas
from tests.jahs.simulate.chaos import Chaos
from tests.releases import make_release, make_table


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    release = make_release(tmp_path_factory.mktemp("release") / "digits")
    return jahs.Benchmark("digits", release=release, engine="numpy")


def test_trials_have_the_answers_of_the_benchmark(bench):
    trials = Simulation(bench, 3, n_trials=30).run(Chaos(View(bench), seed=0, has_seeds=False))
    for trial in trials:
        if trial.metrics:
            found = bench.query(trial.config, at=trial.fidelity["epoch"], seed=trial.seed).as_dict()
            assert {name: found[name] for name in trial.metrics} == dict(trial.metrics)


def test_a_table_of_trials_has_their_networks_and_metrics(bench, tmp_path):
    pytest.importorskip("pandas")
    view = bench.view(fidelities=("epoch", "N"))
    configs = view.sample(6, seed=0)
    steps = [Proposal(config=config, at={"N": 1, "epoch": 3}, seed=None) for config in configs[:5]]
    log, simulation = tmp_path / "log", {"budget": 0.9 * bench.query({**configs[5]}).runtime}
    trials = Simulation(view, 2, **simulation, log=log).run(lambda told: [*steps, configs[5], None][len(told)])
    table = to_pandas(trials)
    assert table.equals(to_pandas(read_log(log).trials))
    assert table.trial.tolist() == [trial.trial for trial in trials]
    assert table.N.tolist() == [trial.fidelity["N"] for trial in trials]
    assert table.epoch.dtype == table.N.dtype == np.int64
    for i, trial in enumerate(trials):
        row = table.iloc[i]
        assert [row[key] for key in ("Op1", "LearningRate", "status")] == [
            *(trial.config[key] for key in ("Op1", "LearningRate")),
            trial.status,
        ]
        assert trial.metrics.get("valid_acc") == (None if np.isnan(row.valid_acc) else row.valid_acc)
    assert list(to_pandas([]).columns[:3]) == ["trial", "status", "worker"]


def test_sizes_are_taken_from_the_fidelity(bench):
    view = bench.view(fidelities=("epoch", "N", "Resolution"))
    config = view.sample(seed=0)
    small = Proposal(config=config, at={"N": 1, "Resolution": 0.25})
    trials = Simulation(view, 1, n_trials=2).run(lambda told: [small, config][len(told)])
    assert trials[0].metrics["runtime"] == bench.query({**config, "N": 1, "Resolution": 0.25}).runtime
    assert trials[1].metrics["runtime"] == bench.query(config).runtime
    assert trials[1].end - trials[1].start == pytest.approx(trials[1].metrics["runtime"])


def test_a_proposal_that_the_table_lacks_is_named_and_those_before_it_count(tmp_path):
    release = make_release(tmp_path / "digits", table=make_table("digits", 30))
    table = jahs.Benchmark("digits", release=release, kind="table")
    known, strange = table.sample(seed=0), jahs.space().sample(seed=123)
    log = tmp_path / "log.jsonl"
    with pytest.raises(OptimizerFailed, match=r"trial 1, at .*: its proposal is invalid:") as failed:
        Simulation(table, 1, n_trials=4, log=log).run(lambda told: [known, strange][min(len(told), 1)])
    assert isinstance(failed.value.__cause__, NotRecorded)
    assert [trial.config for trial in read_log(log).trials] == [known]
    with pytest.raises(OptimizerFailed, match="its proposal is invalid"):
        Simulation(table, 1, n_trials=4).submit(strange)


def test_the_header_names_the_release(bench, tmp_path):
    Simulation(bench, n_trials=3, log=tmp_path / "log").run(lambda told: bench.sample(seed=len(told)))
    header = read_log(tmp_path / "log").header
    assert header["task"] == "digits"
    assert header["release"] == sha256_file(bench.release / "manifest.json")
    assert header["release_version"] == "test"
    assert ", test, " in repr(bench)


def test_a_fact_cannot_name_another_release_than_the_one_that_answers(bench):
    for facts in ({"release": "0" * 64}, {"release": None}):
        with pytest.raises(InvalidArgument, match="facts must not have release, which the log's header has already"):
            Simulation(bench, n_trials=3, facts=facts)


def test_a_log_does_not_depend_on_how_queries_are_batched(bench, tmp_path):
    for n_ahead in (1, 16):
        optimizer = Chaos(View(bench), seed=1, n_ahead=n_ahead, rests=0.0, has_seeds=False)
        optimizer.should_stop = lambda trial: False
        Simulation(bench, 2, n_trials=60, log=tmp_path / str(n_ahead)).run(optimizer)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "16").read_bytes()
    assert np.isfinite([t.metrics["runtime"] for t in read_log(tmp_path / "1").trials if t.metrics]).all()


def test_a_benchmark_of_one_metric_is_simulated_with_its_runtime(bench):
    of_one = jahs.Benchmark("digits", release=bench.release, engine="numpy", metrics=["valid_acc"])
    (trial,) = Simulation(of_one, n_trials=1).run(lambda _: bench.sample(seed=0))
    assert trial.metrics == {name: bench.query(trial.config).as_dict()[name] for name in ("valid_acc", "runtime")}


def test_a_simulation_reads_the_configs_that_a_query_reads(bench):
    view = bench.view(fixed={"N": 1, "W": 4, "Resolution": 0.25})
    config = view.sample(seed=0)
    series = pytest.importorskip("pandas").Series({name: config[name] for name in view.space.searched}, dtype=object)
    for proposal in (series, Proposal(config=series)):
        (trial,) = Simulation(view, n_trials=1).run(lambda _, given=proposal: given)
        assert trial.config == config
