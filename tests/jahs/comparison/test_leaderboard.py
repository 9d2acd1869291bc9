"""Other people's logs: what a leaderboard takes, and every kind of lie that it refuses."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil

import numpy as np
import pytest

import jahs
from jahs.cli import main
from jahs.comparison.claims import claim_of
from jahs.comparison.leaderboard import board_text, find_logs, leaderboard
from jahs.comparison.terms import ViewChoice, open_view
from jahs.errors import CorruptFile, InvalidArgument
from jahs.optimizers import make, random_search
from jahs.queries.views import View
from jahs.release import read_release
from jahs.simulate import Proposal, Simulation, read_log
from tests.jahs.simulate.chaos import Chaos
from tests.releases import make_release


def write_log(
    path, bench, *, optimizer="random_search", seed=0, fidelities=("epoch",), n=8, workers=2, options=None, **settings
):
    view = open_view(bench, ViewChoice(fidelities=fidelities))
    simulation = Simulation(view, workers, n_trials=n, budget=1e9, seed=seed, log=path, **settings)
    simulation.run(make(optimizer, view, seed=seed, **(options or {})))
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


def test_the_refits_score_what_a_search_on_the_released_models_found(log, bench, tmp_path):
    (board,), _ = boards_of(bench, log)
    assert np.isnan(board.lines[0].refit_error)  # the release has none
    release = make_release(tmp_path / "release", task=bench.task.name, n_refits=2)
    released = jahs.Benchmark(bench.task.name, release=release)
    own = write_log(tmp_path / "own.jsonl", released)
    ((line,),) = (board.lines for board in boards_of(released, own)[0])
    winner = max(read_log(own).trials, key=lambda trial: trial.metrics.get("valid_acc", 0)).config
    refits = [jahs.Benchmark(bench.task.name, release=release, refit=refit) for refit in range(2)]
    wanted = 100 - np.mean([refit.query(winner).valid_acc for refit in refits])
    assert line.refit_error == pytest.approx(wanted)
    assert line.refit_error != line.valid_error
    of_refit = write_log(tmp_path / "refit.jsonl", refits[0])
    ((line,),) = (board.lines for board in boards_of(refits[0], of_refit)[0])
    assert np.isnan(line.refit_error)  # a refit cannot score its own search


def test_seeds_are_one_line_and_other_terms_are_another_board(tmp_path, bench):
    paths = [write_log(tmp_path / f"{seed}.jsonl", bench, seed=seed, n=60) for seed in range(3)]
    paths.append(write_log(tmp_path / "sh.jsonl", bench, optimizer="successive_halving", n=60))
    paths.append(write_log(tmp_path / "few.jsonl", bench))
    paths.append(write_log(tmp_path / "one.jsonl", bench, workers=1))
    paths.append(write_log(tmp_path / "noisy.jsonl", bench, evaluation_seed=0))
    paths.append(write_log(tmp_path / "sizes.jsonl", bench, optimizer="hyperband", fidelities=("epoch", "W"), n=60))
    boards, refused = boards_of(bench, *paths)
    assert refused == []
    assert [sorted((line.name, line.n_seeds) for line in board.lines) for board in boards] == [
        [("random_search", 3), ("successive_halving", 1)],
        [("random_search", 1)],
        [("random_search", 1)],
        [("random_search", 1)],
        [("hyperband", 1)],
    ]
    assert [board.terms.n_trials for board in boards] == [60, 8, 8, 8, 60]
    errors = [line.valid_error for line in boards[0].lines]
    assert errors == sorted(errors)


@pytest.mark.parametrize(
    ("rule", "value", "usual", "words"),
    [
        ("mode", "synchronous", "asynchronous", "2 workers, synchronous; "),
        ("continuation", "scratch", "resume", "; continuation scratch; "),
        ("failure_rate", 0.25, 0.0, "; failure rate 0.25; "),
        ("thinking", 1.5, "free", "; thinking 1.5 s; "),
    ],
)
def test_runs_under_other_rules_are_another_board(tmp_path, bench, log, release, capsys, rule, value, usual, words):
    other = write_log(tmp_path / "b.jsonl", bench, seed=1, **{rule: value})
    boards, refused = boards_of(bench, log, other)
    assert refused == []
    assert [getattr(board.terms, rule) for board in boards] == [usual, value]
    assert main(["leaderboard", str(log), str(other), "--release", str(release)]) == 0
    usual_board, other_board = capsys.readouterr().out.split("\n\n")
    assert words in other_board.splitlines()[0]
    assert words not in usual_board


def test_two_lines_of_one_optimiser_can_be_told_apart(tmp_path, bench, release, capsys):
    for size in (5, 6):
        options = {"population_size": size}
        write_log(tmp_path / f"{size}.jsonl", bench, optimizer="regularized_evolution", seed=size, options=options)
    assert main(["leaderboard", str(tmp_path), "--release", str(release)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "regularized_evolution" in line]
    assert sorted(re.findall(r"population_size=(\d)", "".join(lines))) == ["5", "6"]


def test_values_that_a_view_fixes_by_hand_stand_beside_the_optimiser(tmp_path, bench):
    def line_of(*rates):
        paths = []
        for seed, rate in enumerate(rates):
            given = {} if rate is None else {"LearningRate": rate}
            view = bench.view(fixed=given, search="nas")
            paths.append(tmp_path / f"{rate}-{seed}.jsonl")
            Simulation(view, 1, n_trials=4, seed=seed, log=paths[-1]).run(make("random_search", view, seed=seed))
        (board,), refused = boards_of(bench, *paths)
        assert refused == []
        (line,) = board.lines
        return line.fixed

    assert line_of(None, None) == line_of(0.1) == ""
    assert line_of(0.03, 0.03) == "LearningRate=0.03"
    assert line_of(0.03, None) == line_of(0.03, 0.04) == "LearningRate varies"


def test_a_log_of_an_older_release_with_the_same_answers_still_counts(tmp_path, log, release):
    newer = tmp_path / "newer"
    shutil.copytree(release, newer)
    manifest = json.loads((newer / "manifest.json").read_text())
    manifest["same_answers"] = [hashlib.sha256((release / "manifest.json").read_bytes()).hexdigest()]
    (newer / "manifest.json").write_text(json.dumps(manifest))
    boards, refused = boards_of(jahs.Benchmark("fashion_mnist_mini", release=newer), log)
    assert (len(boards), refused) == (1, [])
    manifest["same_answers"] = None
    (newer / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptFile, match=r"manifest\.json: same_answers must be a list of texts"):
        _ = read_release(newer).answers_as


GONE = object()


def replaced(part, values):
    """Return a change of values of the header, or of the first or the best trial; `GONE` removes one."""

    def replace(target, values):
        for key, value in values.items():
            if value is GONE:
                del target[key]
            elif isinstance(value, dict):
                replace(target[key], value)
            else:
                target[key] = value

    return lambda header, trials, ending: replace(
        {"header": header, "first": trials[0], "best": best(trials)}[part], values
    )


def better(header, trials, ending):
    best(trials)["metrics"]["valid_acc"] += 0.5


def at_once(header, trials, ending):
    for trial in trials:
        trial["worker"] = 0


def late(header, trials, ending):
    header["budget"] = trials[3]["start"]


def cut(header, trials, ending):
    ending.clear()


def other_view(header, trials, ending):
    header["view"]["searched"] = header["view"]["searched"][1:]


def twice(header, trials, ending):
    trials.append(trials[0])


LIES = [
    (better, "but the release answers"),
    (replaced("best", {"config": {"LearningRate": 0.0123}}), "but the release answers"),
    (replaced("best", {"start": 0.0, "end": 0.0}), "but its training costs"),
    (at_once, "on worker 0, which is busy until"),
    (late, "after the budget of"),
    (replaced("first", {"worker": 7}), "worker=7, but there are 2"),
    (replaced("header", {"release": "0" * 64}), "but the pinned release is"),
    (replaced("header", {"speeds": [4.0, 4.0]}), "workers of other speeds cannot be compared"),
    (cut, "the log was cut short"),
    (other_view, "the header says that"),
    (replaced("header", {"view": {"fidelities": {"epoch": 3}}}), "the header says that"),
    (replaced("first", {"config": {"N": 1}}), "N=1 is fixed at 5"),
    (replaced("first", {"fidelity": {"W": 4}}), "W must be a fidelity of its view"),
    (twice, "some trials are in the log twice"),
    (replaced("best", {"metrics": {"valid_acc": 10**400}}), "is not a trial: metrics="),
    (replaced("best", {"metrics": {"valid_acc": GONE}}), "finished without valid_acc"),
    (replaced("first", {"fidelity": {"epoch": math.nan}}), "is not JSON: NaN is not a finite number"),
    (replaced("first", {"fidelity": {"epoch": 3.7}}), "is not a trial: fidelity={'epoch': 3.7}"),
    (replaced("first", {"start": math.inf, "end": math.inf}), "is not JSON: Infinity is not a finite number"),
    (replaced("header", {"view": {"searched": GONE}}), "the view in the header is invalid: 'searched'"),
    (replaced("header", {"view": {"searched": None}}), "the view in the header is invalid"),
    (replaced("header", {"view": {"searched": [1, 2]}}), "the header says that 1, 2 are searched"),
    (replaced("header", {"budget": math.nan}), "is not JSON: NaN is not a finite number"),
    (replaced("header", {"budget": -1.0}), "budget=-1.0 is not a positive number of seconds"),
    (replaced("header", {"budget": 10**400}), "is not a positive number of seconds"),
    (replaced("header", {"budget": None, "n_trials": None}), "n_trials are both None"),
    (replaced("header", {"n_trials": 5}), "there are 8 trials, but n_trials=5"),
    (replaced("header", {"n_trials": 8.5}), "n_trials=8.5 is not a positive integer"),
    (replaced("header", {"workers": 0}), "workers=0 is not an integer in 1.."),
    (
        replaced("header", {"mode": ["asynchronous", "synchronous"]}),
        "mode=['asynchronous', 'synchronous'] is not 'asynchronous' or 'synchronous'",
    ),
    (replaced("header", {"continuation": GONE}), "continuation=None is not 'resume' or 'scratch'"),
    (replaced("header", {"thinking": math.inf}), "is not JSON: Infinity is not a finite number"),
    (replaced("header", {"failure_rate": 2}), "failure_rate=2 is not a number in [0, 1)"),
    (replaced("first", {"trial": 10**30}), "is not a trial: trial=1000"),
]


@pytest.mark.parametrize(("lie", "message"), LIES, ids=[message for _, message in LIES])
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


def test_lower_epochs_do_not_count_where_the_epoch_is_no_fidelity(tmp_path, bench):
    def stop_early(header, trials, ending):
        trials[0]["fidelity"]["epoch"] = 3

    path = write_log(tmp_path / "sizes.jsonl", bench, optimizer="hyperband", fidelities=("N",), n=20)
    assert boards_of(bench, path)[1] == []
    (refusal,) = boards_of(bench, changed(path, stop_early))[1]
    assert "epoch must be a fidelity of its view" in refusal.fault


def test_logs_of_smaller_networks_have_terms_of_their_own(tmp_path, bench):
    paths = []
    for n in (5, 3):
        view = bench.view(fixed={"N": n, "W": 16, "Resolution": 1.0})
        paths.append(tmp_path / f"{n}.jsonl")
        Simulation(view, 1, n_trials=2, log=paths[-1]).run(Plan(*view.sample(2, seed=0)))
    (season, other), refused = boards_of(bench, *paths)
    assert refused == []
    assert "N=5; Resolution=1; W=16; fidelities epoch" in board_text(season)
    assert list(other.differs) == ["sizes"]
    assert "sizes=N=3, Resolution=1, W=16 (season: N=5, Resolution=1, W=16)" in board_text(other)


def test_a_config_may_be_trained_twice_where_the_epoch_is_no_fidelity_and_pays_twice(tmp_path, bench):
    view = bench.view(fidelities=("N",))
    path, config = tmp_path / "twice.jsonl", view.sample(seed=0)
    Simulation(view, 1, n_trials=2, log=path).run(Plan(config, config))
    assert boards_of(bench, path)[1] == []

    def pay_once(header, trials, ending):
        ending["clock"] = trials[1]["end"] = trials[1]["start"]

    (refusal,) = boards_of(bench, changed(path, pay_once))[1]
    assert "trial 1: took 0 s, but its training costs" in refusal.fault


@pytest.mark.parametrize("text", ["[" * 100_000, "", '{"format": 1}', "\0", '{"format": 1, "task": {}}'])
def test_what_is_no_log_is_refused_and_the_others_are_read(tmp_path, bench, log, text):
    (tmp_path / "bad.jsonl").write_text(text + "\n")
    (tmp_path / "folder.jsonl").mkdir()
    (board,), refused = boards_of(bench, *find_logs([tmp_path]))
    assert len(board.lines) == 1
    assert sorted(refusal.path for refusal in refused) == [
        str(tmp_path / "bad.jsonl"),
        str(tmp_path / "folder.jsonl"),
    ]


class Plan:
    """Proposes what a list says, each when the one before has been reported or has ended."""

    def __init__(self, *proposals):
        self.proposals, self.is_next = list(proposals), True

    def ask(self, n):
        found, self.proposals = self.proposals[: self.is_next], self.proposals[self.is_next :]
        self.is_next = False
        return found

    def tell(self, trial):
        self.is_next = True

    def should_stop(self, trial):
        self.is_next = True
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_may_be_taken_up_where_another_one_was_reported(tmp_path, bench, workers):
    config = bench.sample(seed=1)
    plan = Plan(Proposal(config=config, at=12, reports=(4,)), Proposal(config=config, at=8))
    path = tmp_path / "log.jsonl"
    trials = Simulation(bench, workers, n_trials=2, log=path).run(plan)
    second = next(trial for trial in trials if trial.trial == 1)
    reported, reached = (bench.query(config, at=epoch).runtime for epoch in (4, 8))
    assert second.end - second.start == pytest.approx(reached - reported)
    assert (second.start == pytest.approx(reported)) == (workers == 2)
    assert boards_of(bench, path)[1] == []

    def sooner_than_the_report(header, trials, ending):
        (line,) = (trial for trial in trials if trial["trial"] == 1)
        line["start"], line["end"] = 0.0, line["end"] - line["start"]
        line["worker"], header["workers"] = 1, 2

    def not_before_its_end(header, trials, ending):
        (line,) = (trial for trial in trials if trial["trial"] == 1)
        line["end"] = line["start"]

    text = path.read_text()
    for lie in (sooner_than_the_report, not_before_its_end):
        path.write_text(text)
        (refusal,) = boards_of(bench, changed(path, lie))[1]
        assert "trial 1: took" in refusal.fault


@pytest.mark.parametrize("seed", range(8))
def test_whatever_an_optimiser_does_its_log_is_taken(tmp_path, bench, seed):
    path = tmp_path / "log.jsonl"
    budget = 15 * bench.query(bench.sample(seed=0)).runtime
    settings = {"failure_rate": 0.2, "thinking": [0.0, 1.0][seed % 2], "seed": seed}
    trials = Simulation(bench, 1 + seed % 4, budget=budget, log=path, **settings).run(
        Chaos(View(bench), seed=seed, has_seeds=False)
    )
    assert len({trial.status for trial in trials}) > 2
    assert boards_of(bench, path)[1] == []


def test_the_same_run_counts_once(tmp_path, log, bench):
    again = tmp_path / "b.jsonl"
    again.write_text(log.read_text().replace('"optimizer":"random_search"', '"optimizer":"mine"'))
    (board,), (refusal,) = boards_of(bench, log, again)
    assert len(board.lines) == 1
    assert refusal.fault == f"the same run as {log}"


def test_another_run_of_the_same_optimiser_and_seed_does_not_count_beside_the_first(tmp_path, log, bench):
    paths, view = [tmp_path / f"{i}.jsonl" for i in range(2)], bench.view()
    for i, path in enumerate(paths):
        Simulation(view, 2, n_trials=8, log=path).run(make("random_search", view, seed=i))
    (board,), (refusal,) = boards_of(bench, *paths)
    assert board.lines[0].valid_error == claim_of(read_log(paths[0]), bench).valid_error
    assert refusal.fault == f"{paths[0]} has another run of random_search, seed 0"


def test_a_rerun_of_one_of_our_optimisers_makes_its_settings(log, bench):
    rerun = f"{random_search.__file__}:RandomSearch"
    boards, refused = leaderboard([log], opened=lambda task: bench, rerun=rerun)
    assert (len(boards), refused) == (1, [])


def test_what_a_rerun_prints_is_no_part_of_the_result(tmp_path, log, release, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text("""
from jahs.optimizers import make
print("a file")

def mine(view, *, seed):
    print("an optimiser")
    return make("random_search", view, seed=seed)
""")
    command = ["leaderboard", str(log), "--release", str(release), "--json"]
    assert main([*command, "--rerun", f"{mine}:mine"]) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)["boards"]) == 1
    assert said.err.startswith("a file\nan optimiser\n")


def test_a_board_of_a_study_of_several_objectives_says_what_it_ranks_by(tmp_path, release, bench, log):
    own = jahs.terms("multiobjective", release=release)
    path = tmp_path / "many.jsonl"
    own.simulation(0, log=path).run(make("random_search", own.view, seed=0, objectives=own.rules.objectives))
    said = "ranked by validation error alone; `jahs compare` ranks by hypervolume"
    assert [said in board_text(board) for board in boards_of(bench, log, path)[0]] == [False, True]


def test_the_command_prints_boards_and_says_what_it_refused(tmp_path, log, release, bench, capsys):
    changed(write_log(tmp_path / "lie.jsonl", bench, seed=1), better)
    assert main(["leaderboard", str(tmp_path), "--release", str(release)]) == 1
    printed, said = capsys.readouterr()
    assert "random_search" in printed
    assert " ± –" in printed
    assert "nan" not in printed
    assert f"refused {tmp_path / 'lie.jsonl'}: trial" in said
    assert main(["leaderboard", str(log), "--release", str(release), "--json"]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert content["boards"][0]["lines"][0]["name"] == "random_search"
    assert content["boards"][0]["lines"][0]["valid_se"] is None
    assert main(["leaderboard", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_runs_on_refits_and_retrained_incumbents_of_a_study_are_left_out_of_its_folder(tmp_path, caplog):
    names = ("task/arm/seed-0000.jsonl", "task/arm/refit-0/seed-0000.jsonl", "retrained/task.jsonl")
    logs = [tmp_path / "study" / name for name in names]
    for log in logs:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    assert find_logs([tmp_path / "study"]) == logs[:1]
    assert "2 logs on refits or of retrained incumbents are left out" in caplog.text
    assert find_logs([logs[1]]) == [logs[1]]  # named, it is not left out


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"no \*\.jsonl"):
        find_logs([tmp_path])


@pytest.mark.parametrize("fidelities", [("epoch",), ("epoch", "W")])
def test_noise_is_for_the_optimiser_and_the_mean_is_for_the_reader(tmp_path, bench, fidelities):
    log = write_log(tmp_path / "noisy.jsonl", bench, evaluation_seed=0, n=90, fidelities=fidelities, optimizer="asha")
    claim = claim_of(read_log(log), bench)
    ended = [trial for trial in read_log(log).trials if trial.status == "finished"]
    full = [trial for trial in ended if trial.fidelity["epoch"] == bench.max_epoch]
    full = [trial for trial in full if trial.fidelity.get("W", 16) == 16]
    chosen = max(full, key=lambda trial: trial.metrics["valid_acc"])
    asked = bench.query(chosen.config)
    assert claim.valid_error == pytest.approx(100 - asked.valid_acc) != pytest.approx(100 - chosen.metrics["valid_acc"])
    assert claim.test_error == pytest.approx(100 - asked.test_acc)
    means = bench.query_many([trial.config for trial in full])
    for name, values in claim.full.metrics.items():
        assert values == pytest.approx(means[name])
    (board,), _ = boards_of(bench, log)
    assert board.lines[0].valid_error == board.lines[0].valid_median == claim.valid_error
