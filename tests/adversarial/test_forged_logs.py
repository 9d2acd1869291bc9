"""Every way of winning the leaderboard with a log that no simulation has written, or that replays an older search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jahs
from jahs.cli import main
from jahs.comparison.leaderboard import Board, Refusal, leaderboard
from jahs.comparison.runs import read_factory
from jahs.errors import CorruptFile, InvalidArgument
from jahs.optimizers import make
from jahs.simulate import Proposal, Simulation, read_log

N_SEEDS = 3000
CLIMBER = """
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class ClimberSettings:
    n_first: int = 3

class Climber:
    name = "climber"

    def __init__(self, view, *, seed, settings=ClimberSettings()):
        self.view, self.rng = view, np.random.default_rng(seed)
        self.settings = {"seed": seed, "n_first": settings.n_first}
        self.best, self.found, self.n_first = None, -1.0, settings.n_first

    def ask(self, n):
        if self.best is None or self.n_first > 0:
            self.n_first -= 1
            return [self.view.sample(1, seed=int(self.rng.integers(2**31)))[0]]
        near = self.view.space.neighbors(self.best)
        return [near[self.rng.integers(len(near))]]

    def tell(self, trial):
        if trial.metrics.get("valid_acc", -1.0) > self.found:
            self.best, self.found = dict(trial.config), trial.metrics["valid_acc"]

def raises(view, **given):
    raise RuntimeError("no optimiser today")

class Illegal(Climber):
    def ask(self, n):
        return [{**self.view.sample(1, seed=0)[0], "N": 2}]

number = 5
"""
Lines = list[dict[str, Any]]  # Any: JSON


@pytest.fixture(scope="module")
def bench() -> jahs.Benchmark:
    return jahs.Benchmark("fashion_mnist_mini")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CLIMBER)
    return path


@pytest.fixture
def log(tmp_path: Path, bench: jahs.Benchmark, mine: Path) -> Path:
    path = tmp_path / "climber.jsonl"
    simulation = Simulation(bench, 2, budget=900.0, n_trials=20, seed=0, evaluation_seed=0, log=path)
    with read_factory(f"{mine}:Climber") as climber:
        simulation.run(climber(bench, seed=0))
    return path


def boards_of(bench: jahs.Benchmark, *paths: Path, rerun: str | None = None) -> tuple[list[Board], list[Refusal]]:
    return leaderboard(list(paths), opened=lambda task: bench, rerun=rerun)


def rewrite(path: Path, change: Callable[[dict[str, Any], Lines, dict[str, Any]], object]) -> Path:
    header, *trials, ending = map(json.loads, path.read_text().splitlines())
    change(header, trials, ending)
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *trials, ending)))
    return path


def test_the_best_of_many_noise_seeds_is_refused(bench, tmp_path):
    config = bench.sample(seed=3)
    accuracies = bench.query_many([config] * N_SEEDS, seed=list(range(N_SEEDS)))["valid_acc"]
    lucky = int(accuracies.argmax())

    def write_log(seed, evaluation_seed, proposal):
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.jsonl"
        settings = {"n_trials": 1, "seed": seed, "evaluation_seed": evaluation_seed}
        facts = {"optimizer": f"of seed {seed}"}
        Simulation(bench, 1, **settings, log=path, facts=facts).run(lambda trials: proposal)
        return path

    chosen = Proposal(config=config, seed=lucky)
    for evaluation_seed, proposal, message in (
        (0, chosen, f"trial 0: seed={lucky}"),
        (lucky, config, "evaluation_seed="),
    ):
        (refusal,) = boards_of(bench, write_log(0, evaluation_seed, proposal))[1]
        assert message in refusal.fault
    honest, lied = write_log(0, 0, bench.sample(seed=1)), write_log(lucky, lucky, config)
    (board,), refused = boards_of(bench, honest, lied)  # one seed, but not the first: it could have been chosen
    assert not refused
    assert [line.has_chosen_seeds for line in board.lines] == [False, True]


def test_a_repeated_config_has_the_seeds_of_a_simulation_and_no_others(bench, tmp_path):
    config, other = bench.sample(2, seed=3)
    path = tmp_path / "repeats.jsonl"
    steps = iter([config, other, config, config])
    Simulation(bench, 1, n_trials=4, evaluation_seed=0, log=path, facts={"optimizer": "a"}).run(lambda _: next(steps))
    assert not boards_of(bench, path)[1]

    def first_is_the_second(header, trials, ending):
        trials[0]["seed"], trials[2]["seed"] = trials[2]["seed"], trials[0]["seed"]
        trials[0]["metrics"], trials[2]["metrics"] = trials[2]["metrics"], trials[0]["metrics"]

    (refusal,) = boards_of(bench, rewrite(path, first_is_the_second))[1]
    assert "trial 0: seed=" in refusal.fault


def only_the_best(header, trials, ending):
    trials[:] = [max(trials, key=lambda trial: trial["metrics"].get("valid_acc", 0.0))]
    ending["n_trials"] = 1


def only_the_best_as_the_first(header, trials, ending):
    only_the_best(header, trials, ending)
    trials[0] |= {"trial": 0, "worker": 0, "end": trials[0]["end"] - trials[0]["start"], "start": 0.0}


LIES = {
    "a refit": (lambda h, t, e: h.update(refit=3), "refit=3, but this comparison requires refit=None"),
    "dropped": (only_the_best, "is missing: trials are numbered from 0"),
    "dropped and numbered": (only_the_best_as_the_first, "the last line says clock="),
    "n_trials": (lambda h, t, e: e.update(n_trials=3), "the last line says n_trials=3"),
    "true": (lambda h, t, e: e.update(n_trials=True), "the last line says n_trials=True"),
    "clock": (lambda h, t, e: e.update(clock=1.0), "the last line says clock=1.0"),
    "ended": (lambda h, t, e: e.update(ended="optimizer"), "the last line says ended='optimizer'"),
    "incumbent": (lambda h, t, e: e.update(incumbent=99.9), "the last line has incumbent"),
    "another seed": (lambda h, t, e: h.update(seed=1), "evaluation_seed=0 must be None or seed=1"),
    "no seed": (lambda h, t, e: h.update(evaluation_seed=None), "but the header says evaluation_seed=None"),
    "failed": (lambda h, t, e: t[2].update(status="failed"), "trial 2: failed, but it must not fail with seed=0"),
    "unfinished": (lambda h, t, e: t[2].update(status="unfinished"), "unfinished at"),
    "order": (lambda h, t, e: t.reverse(), "which ended later"),
    "a true budget": (lambda h, t, e: h.update(budget=True), "budget=True"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_forged_log_is_refused(bench, log, lie):
    change, message = LIES[lie]
    (refusal,) = boards_of(bench, rewrite(log, change))[1]
    assert message in refusal.fault


def hyperband_log(bench: jahs.Benchmark, path: Path, **settings: Any) -> Path:  # Any: settings of a simulation
    view = bench.view(fidelities=("epoch",), fixed={"N": 1, "W": 8, "Resolution": 0.5})
    settings = {"n_trials": 30, "seed": 0, "evaluation_seed": 0, **settings}
    Simulation(view, 3, log=path, **settings).run(make("hyperband", view, seed=0))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"continuation": "scratch"}, "but its training costs"),
        ({"mode": "synchronous"}, "but the trials before it run until"),
        ({"failure_rate": 0.9}, "finished, but it must fail with seed=0"),
        ({"thinking": 1000.0}, "but thinking takes 1000.0 s"),
    ],
)
def test_a_log_under_terms_that_it_did_not_have_is_refused(bench, tmp_path, change, message):
    log = rewrite(hyperband_log(bench, tmp_path / "log.jsonl"), lambda h, t, e: h.update(change))
    (refusal,) = boards_of(bench, log)[1]
    assert message in refusal.fault


@pytest.mark.parametrize("mode", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("continuation", ["resume", "scratch"])
@pytest.mark.parametrize("failure_rate", [0.0, 0.3])
@pytest.mark.parametrize("thinking", ["free", 0.5])
def test_an_honest_log_is_accepted_whatever_its_terms(bench, tmp_path, mode, continuation, failure_rate, thinking):
    terms = {"mode": mode, "continuation": continuation, "failure_rate": failure_rate, "thinking": thinking}
    assert not boards_of(bench, hyperband_log(bench, tmp_path / "log.jsonl", **terms))[1]


@pytest.mark.parametrize("settings", [{}, {"optimizer_settings": {"depth": 3}}], ids=["plain", "settings"])
def test_a_log_whose_writer_thought_until_the_budget_was_spent_is_accepted(bench, tmp_path, settings):
    path = tmp_path / "log.jsonl"
    facts = {"optimizer": "mine", **settings}
    with Simulation(bench, 1, budget=3000.0, evaluation_seed=0, log=path, facts=facts) as simulation:
        for seed in range(3):
            simulation.submit(bench.sample(seed=seed))
            simulation.wait()
        simulation.think(5000.0)
        while simulation.wait():
            pass
    stated = {"thinking": True} if settings else {}
    assert read_log(path).ending == {"clock": 3000.0, "ended": "budget", "n_trials": 3, **stated}
    assert not boards_of(bench, path)[1]
    rewrite(path, lambda header, trials, ending: ending.pop("thinking", None))
    assert bool(boards_of(bench, path)[1]) == bool(settings)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_log_of_rounds_in_which_its_writer_thought_between_submissions_is_accepted(bench, tmp_path, workers):
    path, configs = tmp_path / "log.jsonl", iter(bench.sample(60, seed=0))
    facts = {"optimizer": "mine"}
    simulation = Simulation(bench, workers, n_trials=9, evaluation_seed=0, mode="synchronous", log=path, facts=facts)
    happened = True
    while happened:
        while simulation.n_free:
            simulation.submit(next(configs))
            simulation.think(1000.0)  # the second one may start after the first one ends
        happened = bool(simulation.wait())
    starts = [trial.start for trial in simulation.trials()]
    assert len(set(starts)) == 9
    assert not boards_of(bench, path)[1]


@pytest.mark.parametrize("facts", [None, {"optimizer": ""}, {"arm": "", "optimizer": ""}])
def test_a_log_that_names_no_optimiser_is_refused(bench, tmp_path, facts):
    path = tmp_path / "log.jsonl"
    with Simulation(bench, 1, n_trials=1, evaluation_seed=0, log=path, facts=facts) as simulation:
        simulation.submit(bench.sample(seed=0))
        while simulation.wait():
            pass
    (refusal,) = boards_of(bench, path)[1]
    assert refusal.fault == "the header names no optimizer; give facts={'optimizer': 'NAME'} to the Simulation"


@pytest.mark.parametrize(
    ("term", "change"),
    [
        ("budget_s", lambda h, t, e: h.update(budget=1e9)),
        ("n_trials", lambda h, t, e: h.update(n_trials=None) or e.update(ended="optimizer")),
        ("workers", lambda h, t, e: h.update(workers=3)),
        ("continuation", lambda h, t, e: h.update(continuation="scratch")),
    ],
)
def test_other_terms_are_another_board_that_says_which(bench, log, tmp_path, term, change):
    other = tmp_path / "other.jsonl"
    Simulation(bench, 2, budget=900.0, n_trials=20, seed=1, evaluation_seed=1, log=other).run(
        make("random_search", bench, seed=1)
    )
    boards, refused = boards_of(bench, log, rewrite(other, change))
    assert not refused
    assert [list(board.differs) for board in boards] == [[], [term]]


@pytest.mark.parametrize("line", [0, 1, -1])
def test_a_key_that_is_there_twice_is_refused(log, line):
    lines = log.read_text().splitlines()
    name, value = next(iter(json.loads(lines[line]).items()))
    lines[line] = lines[line].replace("{", f"{{{json.dumps(name)}: {json.dumps(value)}, ", 1)
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(CorruptFile, match=f"the key '{name}' twice in the object"):
        read_log(log)


def test_a_rerun_of_the_code_that_wrote_a_log_finds_the_same_trials(bench, log, mine):
    boards, refused = boards_of(bench, log, rerun=f"{mine}:Climber")
    assert not refused
    assert len(boards) == 1


def test_a_search_that_was_done_before_is_found_by_a_rerun(bench, log, mine, tmp_path):
    best = max(read_log(log).trials, key=lambda trial: trial.metrics.get("valid_acc", 0.0)).config
    played, configs = tmp_path / "played.jsonl", iter([best, *bench.sample(7, seed=0)])
    Simulation(bench, 2, n_trials=8, evaluation_seed=0, log=played).run(lambda trials: next(configs))
    assert not boards_of(bench, played)[1]
    (refusal,) = boards_of(bench, played, rerun=f"{mine}:Climber")[1]
    assert "the rerun differs at trial " in refusal.fault


STATE = "import itertools\ncounter = itertools.count()\n"
COUNTED = "import jahs\ndef counted(trials):\n    return jahs.space().sample(seed=next(counter))\n"


@pytest.mark.parametrize(
    "files", [{"mine.py": STATE + COUNTED}, {"mine.py": "from state import counter\n" + COUNTED, "state.py": STATE}]
)
def test_a_rerun_reads_the_code_anew_for_each_log_as_compare_does(bench, tmp_path, files):
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    logs = [tmp_path / f"{seed}.jsonl" for seed in range(2)]
    for seed, path in enumerate(logs):
        with read_factory(f"{tmp_path / 'mine.py'}:counted") as counted:
            Simulation(bench, 1, n_trials=3 + seed, seed=seed, log=path).run(counted)
    assert boards_of(bench, *logs, rerun=f"{tmp_path / 'mine.py'}:counted")[1] == []


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("{}:missing", "has no missing to call; it has Climber"),
        ("{}:number", "has no number to call"),
        ("{}", "must be FILE.py:NAME"),
        ("no.py:Climber", "no.py is not a file"),
    ],
)
def test_a_factory_that_is_missing_is_one_clear_error(log, mine, named, message, capsys):
    with pytest.raises(InvalidArgument, match=message), read_factory(named.format(mine)):
        pass
    assert main(["leaderboard", str(log), "--rerun", named.format(mine)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_raises_is_one_clear_error(log, mine, capsys):
    mine.write_text("raise ValueError('not today')")
    assert main(["leaderboard", str(log), "--rerun", f"{mine}:Climber"]) == 2
    assert "raised ValueError: not today" in capsys.readouterr().err


def test_a_file_that_ends_the_process_is_one_clear_error(log, mine, capsys):
    mine.write_text("import sys; sys.exit(0)")
    assert main(["leaderboard", str(log), "--rerun", f"{mine}:Climber"]) == 2
    assert "mine.py:Climber called sys.exit(0); an optimiser must not end the process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [("raises", "raises raised RuntimeError: no optimiser today"), ("Illegal", "N=2 is not one of 1, 3, 5")],
)
def test_an_optimiser_that_raises_or_breaks_the_rules_is_one_clear_error(bench, log, mine, name, message):
    (refusal,) = boards_of(bench, log, rerun=f"{mine}:{name}")[1]
    assert refusal.fault.count("the rerun failed") == 1
    assert message in refusal.fault
