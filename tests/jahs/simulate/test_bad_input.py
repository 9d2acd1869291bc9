"""An optimiser that goes wrong is named with its trial, and the log up to there can be resumed."""

from __future__ import annotations

import contextlib
import math
import re
from types import MappingProxyType

import numpy as np
import pytest

from jahs.errors import InvalidArgument, InvalidConfig, InvalidTable, MissingData, OptimizerFailed, UnknownName
from jahs.optimizers import make
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation, read_log
from jahs.simulate.settings import Settings
from tests.fake_benchmark import FakeBenchmark
from tests.hostile import VALUES

BENCH = FakeBenchmark(max_epoch=6)
VIEW = View(BENCH, search="nas")
CONFIGS = VIEW.sample(50, seed=0)


class Scripted:
    """Proposes configs one by one, and at one trial something else."""

    name = "scripted"

    def __init__(self, at=-1, wrong=None, n_ahead=1):
        self.at, self.wrong, self.n_asked, self.n_ahead = at, wrong, 0, n_ahead

    def ask(self, n):
        found = []
        for _ in range(n):
            if self.n_asked == self.at and isinstance(self.wrong, Exception):
                raise self.wrong
            found.append(self.wrong if self.n_asked == self.at else CONFIGS[self.n_asked])
            self.n_asked += 1
        return found

    def tell(self, trial):
        pass


def simulation(**settings):
    return Simulation(VIEW, workers=2, **{"n_trials": 20, **settings})


@pytest.mark.parametrize(
    ("wrong", "cause", "message"),
    [
        ({**CONFIGS[0], "Op1": 7}, InvalidConfig, "Op1=7 is not one of"),
        ({**CONFIGS[0], "N": 1}, InvalidConfig, "N=1 is fixed at 5"),
        ({**CONFIGS[0], "epoch": 3}, InvalidConfig, "epoch is not a key of a config"),
        (None, InvalidArgument, "None is neither a config nor a Proposal"),
        (Proposal(config=CONFIGS[0], at=7), ValueError, "epoch=7"),
        (Proposal(config=CONFIGS[0], at=math.nan), ValueError, "epoch=nan"),
        (Proposal(config=CONFIGS[0], at={"N": 1}), ValueError, "N=1"),
        (Proposal(config=CONFIGS[0], seed=-1), ValueError, "seed=-1"),
        (Proposal(config=CONFIGS[0], reports=(6,)), ValueError, "reports="),
        (Proposal(config=CONFIGS[0], reports=(2, 1)), ValueError, "reports="),
        (Proposal(config=CONFIGS[0], reports=3), ValueError, "reports=3 is not a sequence"),
        (Proposal(config=CONFIGS[0], reports=(1.9, 3.2)), ValueError, "reports=(1.9, 3.2) is not a sequence"),
        (Proposal(config=CONFIGS[0], reports="37"), ValueError, "reports='37' is not a sequence"),
        (Proposal(config=CONFIGS[0], reports=(True,)), ValueError, "reports=(True,) is not a sequence"),
        (Proposal(config=CONFIGS[0], reports=np.array([2.0, 4.0])), ValueError, "is not a sequence"),
        (Proposal(config=CONFIGS[0], reports=np.array([0, 4])), ValueError, "are not increasing epochs from 1"),
    ],
    ids=[
        *("config", "fixed", "epoch", "none", "late", "nan", "size", "seed", "last", "order", "number"),
        *("fractions", "text", "boolean", "floats", "zero"),
    ],
)
@pytest.mark.parametrize("n_ahead", [1, 8])
def test_an_invalid_proposal_is_named(wrong, cause, message, n_ahead, tmp_path):
    path = tmp_path / "log.jsonl"
    with pytest.raises(OptimizerFailed, match=r"^scripted, trial 7, at [0-9.]+ simulated seconds: ") as caught:
        simulation(log=path).run(Scripted(at=7, wrong=wrong, n_ahead=n_ahead))
    assert isinstance(caught.value.__cause__, cause)
    assert message in str(caught.value)
    assert len(read_log(path).trials) == 6  # of two workers one was to get trial 7, the other still ran


def test_the_log_of_a_failed_run_is_resumed_once_the_optimiser_is_mended(tmp_path):
    simulation(log=tmp_path / "whole").run(Scripted())
    with pytest.raises(OptimizerFailed, match=r"trial 7, .*: ask\(1\) raised RuntimeError: no"):
        simulation(log=tmp_path / "log").run(Scripted(at=7, wrong=RuntimeError("no")))
    cut = (tmp_path / "log").read_bytes()
    assert (tmp_path / "whole").read_bytes().startswith(cut)
    simulation(log=tmp_path / "log").run(Scripted())
    assert (tmp_path / "log").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("method", ["tell", "should_stop"])
def test_an_optimiser_that_raises_when_told_is_named(method, tmp_path):
    def fail(trial):
        raise KeyError("what")

    optimizer = Scripted()
    optimizer.ask = lambda n: [Proposal(config=config, reports=(1,)) for config in CONFIGS[:n]]
    setattr(optimizer, method, fail)
    with pytest.raises(OptimizerFailed, match=f"scripted, trial [01], .*: {method} raised KeyError: 'what'"):
        simulation(log=tmp_path / "log").run(optimizer)
    assert len(read_log(tmp_path / "log").trials) == (1 if method == "tell" else 0)


def test_the_line_of_an_error_is_named_and_why_a_test_metric_is_missing():
    def tell(trial):
        return trial.metrics["test_acc"]

    optimizer = Scripted()
    optimizer.tell = tell
    line = tell.__code__.co_firstlineno + 1
    with pytest.raises(
        OptimizerFailed,
        match=rf"KeyError: 'test_acc' \(.*test_bad_input\.py, line {line}\); optimisers do not see metr",
    ):
        simulation().run(optimizer)


@pytest.mark.parametrize("name", ["name", "settings", "n_ahead", "should_stop"])
def test_an_attribute_that_raises_is_named(name):
    def fail(self):
        raise RuntimeError("no")

    optimizer = type("Raising", (Scripted,), {name: property(fail, lambda self, value: None)})()
    optimizer.ask = lambda n: [Proposal(config=config, reports=(1,)) for config in CONFIGS[:n]]
    with pytest.raises(OptimizerFailed, match=f"^Raising: {name} raised RuntimeError: no$"):
        simulation().run(optimizer)


def test_a_decision_to_stop_that_is_neither_true_nor_false_is_named():
    optimizer = Scripted()
    optimizer.ask = lambda n: [Proposal(config=config, reports=(1,)) for config in CONFIGS[:n]]
    optimizer.should_stop = lambda trial: np.array([True, False])
    with pytest.raises(OptimizerFailed, match=r"^scripted, trial [01], .*: should_stop raised ValueError: The truth"):
        simulation().run(optimizer)


def test_a_wait_within_a_run_is_refused(tmp_path):
    of, optimizer = simulation(log=tmp_path / "log"), Scripted()
    optimizer.tell = lambda trial: of.wait()
    with pytest.raises(
        OptimizerFailed, match=r"tell raised InvalidArgument: `run` drives this simulation; wait\(\) is"
    ):
        of.run(optimizer)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (CONFIGS[0], r"one proposal, not a list; return \[it\]"),
        (None, r"None, not a list; return \[\] to wait"),
        (CONFIGS[:3], "3 proposals"),
    ],
    ids=["one", "none", "more"],
)
def test_an_answer_that_is_no_list_of_up_to_as_many_proposals_is_named(answer, message):
    optimizer = Scripted()
    optimizer.ask = lambda n: answer
    with pytest.raises(OptimizerFailed, match=rf"^scripted, trial 0, .*: ask\(2\) returned {message}"):
        simulation().run(optimizer)


def test_a_simulation_without_the_metric_of_its_optimiser_is_refused():
    with pytest.raises(InvalidArgument, match="metrics lacks valid_acc, which random_search optimises"):
        simulation(metrics=["latency"]).run(make("random_search", VIEW, seed=0))
    with pytest.raises(InvalidArgument, match=r"metrics='valid_acc' is not a list of names"):
        simulation(metrics="valid_acc")


def test_a_simulation_that_was_closed_before_its_end_hides_its_trials():
    of = simulation()
    with of:
        of.submit(CONFIGS[0])
        of.wait()
    assert of.wait() == []
    with pytest.raises(InvalidArgument, match="was closed before it was over; resume it with its log"):
        of.trials()


@pytest.mark.parametrize("speed", [5e-324, 9e-10, 0.0, np.inf])
def test_speeds_at_which_a_trial_might_never_end_are_refused(speed):
    with pytest.raises(InvalidArgument, match=r"speeds=.* is not one number >= 1e-09 for each of the 2 workers"):
        simulation(speeds=[1.0, speed])
    assert simulation(speeds=[1.0, 1e-9]).run(lambda trials: None) == []


def test_thinking_that_might_sum_to_an_infinite_time_is_refused():
    for seconds in (1e308, 1.1e15):
        with pytest.raises(
            InvalidArgument, match=r"^thinking=.* is not 'free', 'measured' or .* seconds up to 1e\+15$"
        ):
            simulation(thinking=seconds)
        with pytest.raises(InvalidArgument, match=r"^seconds=.* is not a number of seconds up to 1e\+15$"):
            simulation().think(seconds)
    assert simulation(thinking=np.float16(2), n_trials=1).run(Scripted())[0].start == 2.0
    assert all(math.isfinite(trial.end) for trial in simulation(thinking=1e15).run(Scripted()))


def test_a_proposal_after_the_simulation_was_closed_says_so():
    of = simulation()
    of.close()
    with pytest.raises(OptimizerFailed, match="a trial was submitted after the simulation was closed; make another"):
        of.submit(CONFIGS[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [(3, "int has no ask and tell, and is not a function"), (Scripted, "Scripted is a class; give an instance of it")],
    ids=["number", "class"],
)
def test_what_is_no_optimiser_is_refused(given, message):
    with pytest.raises(OptimizerFailed, match=message):
        simulation().run(given)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"view": VIEW}, "not JSON serializable"),
        ([], "it is of type list"),
        ("seed", "it is of type str"),
        (None, "it is of type NoneType"),
        ({1: 2, "1": 3}, "the key 1 is of type int"),
        ({None: 2}, "the key None is of type NoneType"),
        ({"a": {1: 2, "1": 3}}, "the key '1' twice"),
        ({"a": nested(100_000)}, "nests too deep"),
        ({"a": math.nan}, "not JSON compliant"),
    ],
    ids=["object", "list", "text", "none", "key", "no key", "twice", "deep", "nan"],
)
def test_settings_that_a_log_cannot_hold_are_refused(settings, fault, tmp_path):
    optimizer = Scripted()
    optimizer.settings = settings
    with pytest.raises(OptimizerFailed, match=rf"scripted: settings=.* is not a mapping of JSON: .*{fault}.*; give a"):
        simulation(log=tmp_path / "log").run(optimizer)
    with pytest.raises(InvalidArgument, match=r"facts=.* is not a mapping of JSON: .*; give a"):
        simulation(facts=settings or [1])
    assert not (tmp_path / "log").exists()


def test_settings_are_any_mapping(tmp_path):
    optimizer = Scripted()
    for optimizer.settings in (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}):
        simulation(log=tmp_path / type(optimizer.settings).__name__).run(optimizer)
        optimizer.n_asked = 0
    assert (tmp_path / "mappingproxy").read_bytes() == (tmp_path / "dict").read_bytes()


@pytest.mark.parametrize("n_ahead", [None, "4", 2.5, True])
def test_proposals_ahead_are_a_whole_number(n_ahead):
    with pytest.raises(OptimizerFailed, match=rf"^scripted, trial 0, .*: n_ahead={n_ahead!r} is not an integer; give"):
        simulation().run(Scripted(n_ahead=n_ahead))
    assert simulation().run(Scripted(n_ahead=np.int64(4))) == simulation().run(Scripted())


def test_an_error_of_the_benchmark_is_not_blamed_on_the_optimiser():
    broken = FakeBenchmark(max_epoch=6)
    broken.query_many = lambda configs, **_: {"runtime": [0.0] * len(configs)}
    with pytest.raises(InvalidTable, match=r"runtime=0.0 of .*: a trial takes a positive number of seconds"):
        Simulation(broken, n_trials=3, metrics=["runtime"]).run(lambda trials: BENCH.sample(seed=0))


def test_settings_are_refused_all_at_once():
    with pytest.raises(InvalidArgument) as caught:
        Simulation(
            VIEW,
            workers=0,
            budget=math.nan,
            n_trials=0,
            seed=-1,
            mode="both",
            continuation="no",
            speeds=[1.0],
            failure_rate=1.0,
            thinking=-1.0,
            evaluation_seed=0.5,
        )
    lines = str(caught.value).splitlines()
    assert [line.split("=")[0] for line in lines] == [
        *("workers", "budget", "n_trials", "seed", "mode", "continuation", "failure_rate", "thinking"),
        *("evaluation_seed", "speeds"),
    ]
    with pytest.raises(InvalidArgument, match="give at least one"):
        Simulation(VIEW)
    with pytest.raises(UnknownName, match="metric='acc' does not exist"):
        Simulation(VIEW, budget=1.0, metrics=["acc"])


NUMBERS = {
    "workers": np.int64(2),
    "budget": np.int32(500),
    "n_trials": np.uint8(20),
    "seed": np.uint64(2**63 - 1),
    "speeds": np.array([1, 2]),
    "failure_rate": np.float32(0.25),
    "thinking": np.float16(0.5),
    "evaluation_seed": np.int64(3),
}


def test_numbers_of_numpy_are_numbers(tmp_path):
    plain = {name: value.tolist() for name, value in NUMBERS.items()}
    for log, given in (("numpy", NUMBERS), ("plain", plain)):
        Simulation(VIEW, log=tmp_path / log, **given).run(Scripted())
    assert (tmp_path / "numpy").read_bytes() == (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("name", [*NUMBERS, "mode", "continuation"])
def test_whatever_a_setting_is_it_is_taken_or_refused(name):
    for value in (*VALUES, [1.0, VALUES], np.array([1.0, math.nan])):
        with contextlib.suppress(InvalidArgument):
            Settings(**{"workers": 2, "n_trials": 1, "speeds": [1.0, 2.0], name: value})
    with pytest.raises(InvalidArgument, match=f"^{name}=array"):
        Settings(**{"n_trials": 1, name: np.array([[1, 2]])})


@pytest.mark.parametrize("name", ["budget", "thinking"])
def test_a_number_that_no_float_can_hold_is_refused(name):
    with pytest.raises(InvalidArgument, match=f"{name}=1000.* is not"):
        Simulation(VIEW, **{"n_trials": 1, name: 10**400})


@pytest.mark.parametrize(("oracle", "what"), [("fashion_mnist_mini", "a str"), (None, "a NoneType"), (3, "an int")])
def test_what_is_no_benchmark_is_refused(oracle, what):
    message = f"{oracle!r} is {what}, not a Benchmark or View; jahs.Benchmark"
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        Simulation(oracle, n_trials=1)


def test_a_log_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"log=.*nowhere/log.jsonl: the folder .*nowhere does not exist"):
        simulation(log=tmp_path / "nowhere" / "log.jsonl")


def test_a_log_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(MissingData, match=r"the log .*nothing.jsonl cannot be read: No such file"):
        read_log(tmp_path / "nothing.jsonl")
    with pytest.raises(InvalidArgument, match="cannot be written: Is a directory"):
        simulation(log=tmp_path).run(Scripted())


class TestWhoeverDrives:
    """`submit` and `wait` in place of `run`."""

    def test_is_told_when_no_worker_is_free(self):
        driven = simulation(facts={"optimizer": "mine"})
        driven.submit(CONFIGS[0])
        driven.submit(CONFIGS[1])
        with pytest.raises(OptimizerFailed, match=r"mine, trial 2, .*: no worker is free"):
            driven.submit(CONFIGS[2])

    def test_may_not_ask_after_the_end(self):
        driven = simulation(budget=1e-3)
        driven.submit(CONFIGS[0])
        assert driven.wait() == []
        with pytest.raises(
            OptimizerFailed, match=r"the optimiser, trial 1, .*: proposes a trial after the end \(budget\)"
        ):
            driven.submit(CONFIGS[1])
        assert [t.status for t in driven.trials()] == ["unfinished"]
        thinker = simulation(budget=10.0, n_trials=None)
        thinker.think(20.0)
        with pytest.raises(OptimizerFailed, match=r"proposes a trial after the end \(budget\)"):
            thinker.submit(CONFIGS[0])
        assert (thinker.wait(), thinker.ended, thinker.now) == ([], "budget", 10.0)

    def test_may_not_stop_what_does_not_run(self):
        driven = simulation()
        driven.submit(CONFIGS[0])
        with pytest.raises(OptimizerFailed, match="trial 3 cannot be stopped: it was never started"):
            driven.stop(3)
        for trial in ([0], None, "0", 0.0, True, {}):
            with pytest.raises(OptimizerFailed, match=r"trial .* cannot be stopped: it is not an integer; give"):
                driven.stop(trial)
        driven.wait()
        for trial in (0, np.int64(0)):
            with pytest.raises(OptimizerFailed, match="trial 0 cannot be stopped: it has ended"):
                driven.stop(trial)

    def test_submits_valid_configs(self):
        with pytest.raises(OptimizerFailed, match=r"trial 0, .*\nOp1=9 is not one of"):
            simulation().submit({**CONFIGS[0], "Op1": 9})

    def test_sees_metrics_of_the_test_images_at_the_end_alone(self):
        driven = simulation(n_trials=1)
        driven.submit(CONFIGS[0])
        with pytest.raises(InvalidArgument, match="not over"):
            driven.trials()
        (trial,) = driven.wait()
        assert "test_acc" not in trial.metrics
        assert driven.wait() == []
        assert "test_acc" in driven.trials()[0].metrics

    def test_finds_the_trials_of_a_run_at_the_end(self):
        driven = simulation(n_trials=3)
        configs = iter(CONFIGS)
        assert driven.run(lambda _: next(configs)) == driven.trials() != []

    def test_cannot_run_another_optimiser_on_the_same_simulation(self):
        driven = simulation()
        driven.submit(CONFIGS[0])
        with pytest.raises(InvalidArgument, match="for one run"):
            driven.run(Scripted())
