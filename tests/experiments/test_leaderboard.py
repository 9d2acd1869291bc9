"""Other people's logs: what a leaderboard takes, and every kind of lie that it refuses."""

from __future__ import annotations

import json

import pytest

from experiments.cells import open_view
from experiments.leaderboard import find_logs, leaderboard, main
from experiments.optimizers import make
from experiments.studies.study import ViewChoice
from jahs.errors import InvalidArgument
from jahs.simulate import Simulation, read_log


def write_log(path, bench, *, optimizer="random_search", seed=0, fidelities=("epoch",), n=8, workers=2, **settings):
    view = open_view(bench, ViewChoice(fidelities=fidelities), seed=0)
    simulation = Simulation(view, workers, n_trials=n, budget=1e9, seed=seed, log=path, **settings)
    simulation.run(make(optimizer, view, seed=seed))
    return path


def boards_of(bench, *paths):
    return leaderboard([*paths], opened=lambda task: bench)


@pytest.fixture
def log(tmp_path, bench):
    return write_log(tmp_path / "a.jsonl", bench)


def changed(path, change):
    """Rewrite a log's lines, as a cheat would; `change` gets the header, the trials and the ending."""
    header, *trials, ending = map(json.loads, path.read_text().splitlines())
    change(header, trials, ending)
    lines = [header, *trials, *([ending] if ending else [])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def best(trials):
    return max((trial for trial in trials if trial["metrics"]), key=lambda trial: trial["metrics"]["valid_acc"])


def test_what_counts_is_asked_from_the_release(log, bench):
    (board,), refused = boards_of(bench, log)
    assert refused == []
    winner = max(read_log(log).trials, key=lambda trial: trial.metrics.get("valid_acc", 0))
    asked = bench.query(winner.config)
    (line,) = board.lines
    assert line.name == "random_search"
    assert line.valid_error == pytest.approx(100 - asked.valid_acc)
    assert line.test_error == pytest.approx(100 - asked.test_acc)
    assert (board.terms.workers, board.terms.fidelities, board.terms.is_noisy) == (2, ("epoch",), False)


def test_seeds_are_one_line_and_other_terms_are_another_board(tmp_path, bench):
    paths = [write_log(tmp_path / f"{seed}.jsonl", bench, seed=seed) for seed in range(3)]
    paths.append(write_log(tmp_path / "sh.jsonl", bench, optimizer="successive_halving", n=60))
    paths.append(write_log(tmp_path / "one.jsonl", bench, workers=1))
    paths.append(write_log(tmp_path / "noisy.jsonl", bench, evaluation_seed=4))
    paths.append(write_log(tmp_path / "sizes.jsonl", bench, optimizer="hyperband", fidelities=("epoch", "W"), n=60))
    boards, refused = boards_of(bench, *paths)
    assert refused == []
    assert [sorted((line.name, line.n_seeds) for line in board.lines) for board in boards] == [
        [("random_search", 3), ("successive_halving", 1)],
        [("random_search", 1)],
        [("random_search", 1)],
        [("hyperband", 1)],
    ]
    errors = [line.valid_error for line in boards[0].lines]
    assert errors == sorted(errors)


def better(header, trials, ending):
    best(trials)["metrics"]["valid_acc"] += 0.5


def better_config(header, trials, ending):
    best(trials)["config"]["LearningRate"] = 0.0123


def sooner(header, trials, ending):
    trial = best(trials)
    trial["start"] = trial["end"] = 0.0


def at_once(header, trials, ending):
    for trial in trials:
        trial["worker"] = 0


def late(header, trials, ending):
    header["budget"] = trials[3]["start"]


def many_workers(header, trials, ending):
    trials[0]["worker"] = 7


def other_release(header, trials, ending):
    header["release"] = "0" * 64


def fast_workers(header, trials, ending):
    header["speeds"] = [4.0, 4.0]


def cut(header, trials, ending):
    ending.clear()


def other_view(header, trials, ending):
    header["view"]["searched"] = header["view"]["searched"][1:]


def low_full(header, trials, ending):
    header["view"]["fidelities"] = {"epoch": 3}


def outside(header, trials, ending):
    trials[0]["config"]["N"] = 1


def no_fidelity(header, trials, ending):
    trials[0]["fidelity"]["W"] = 4


def twice(header, trials, ending):
    trials.append(trials[0])


def infinite(header, trials, ending):
    best(trials)["metrics"]["valid_acc"] = 10**400


def unsaid(header, trials, ending):
    best(trials)["metrics"].pop("valid_acc")


LIES = [
    (better, "but the release answers"),
    (better_config, "but the release answers"),
    (sooner, "but its training costs"),
    (at_once, "on worker 0, which is busy until"),
    (late, "after the budget of"),
    (many_workers, "worker=7, but there are 2"),
    (other_release, "but the pinned release is"),
    (fast_workers, "workers of other speeds cannot be compared"),
    (cut, "the log was cut short"),
    (other_view, "the header says that"),
    (low_full, "the header says that"),
    (outside, "N=1 is fixed at 5"),
    (no_fidelity, "W is no fidelity of its view"),
    (twice, "some trials stand in the log twice"),
    (infinite, "too large"),
    (unsaid, "finished without valid_acc"),
]


@pytest.mark.parametrize(("lie", "message"), [pytest.param(*each, id=each[0].__name__) for each in LIES])
def test_a_log_that_does_not_match_its_release_is_refused(log, bench, lie, message):
    boards, (refusal,) = boards_of(bench, changed(log, lie))
    assert boards == []
    assert message in refusal.fault


def test_a_continued_training_may_cost_the_difference_but_not_less(tmp_path, bench):
    path = write_log(tmp_path / "sh.jsonl", bench, optimizer="successive_halving", n=40, workers=1)
    assert boards_of(bench, path)[1] == []

    def skip_the_first_rung(header, trials, ending):
        trials[:] = [trial for trial in trials if trial["fidelity"]["epoch"] > 1]

    (refusal,) = boards_of(bench, changed(path, skip_the_first_rung))[1]
    assert "but its training costs" in refusal.fault


def test_the_same_run_counts_once(tmp_path, log, bench):
    again = tmp_path / "b.jsonl"
    again.write_text(log.read_text().replace('"optimizer":"random_search"', '"optimizer":"mine"'))
    (board,), (refusal,) = boards_of(bench, log, again)
    assert len(board.lines) == 1
    assert refusal.fault == f"the same run as {log}"


def test_the_command_prints_boards_and_says_what_it_refused(tmp_path, log, release, bench, capsys, caplog):
    changed(write_log(tmp_path / "lie.jsonl", bench, seed=1), better)
    assert main([str(tmp_path), "--release", str(release)]) == 1
    assert "random_search" in capsys.readouterr().out
    assert f"refused {tmp_path / 'lie.jsonl'}: trial" in caplog.text
    assert main([str(log), "--release", str(release), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["boards"][0]["lines"][0]["name"] == "random_search"
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in caplog.text


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"no \*\.jsonl"):
        find_logs([tmp_path])
