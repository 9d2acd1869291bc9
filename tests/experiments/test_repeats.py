"""The page of two trainings of a config."""

import pytest

from experiments.science.repeats import _row, measure_repeats
from experiments.science.subjects import open_subject
from jahs.comparison.summaries import Interval
from jahs.release import read_release
from surrogate.card.figures import write_figures
from tests.experiments.conftest import TASK
from tests.releases import make_release, make_table
from workshop.repeats import Repeats


def test_too_few_configs_have_no_tau(tmp_path):
    release = make_release(tmp_path / TASK, task=TASK, n_trees=2, depth=2, table=make_table(TASK, 120))
    repeats = measure_repeats(open_subject(TASK, release))
    found, full = repeats["all sizes"], repeats["full size"]
    assert found["valid_acc"].n == 12
    assert -1 <= found["valid_acc"].tau.value <= 1
    assert found["latency"] == (0, None)
    assert full["valid_acc"].n < 10
    assert full["valid_acc"].tau is None


def test_random_configs_of_the_final_test_set_are_added_from_the_figures_of_this_release_alone(tmp_path):
    release = make_release(tmp_path / TASK, task=TASK, n_trees=2, depth=2, table=make_table(TASK, 120))
    seeds = {"valid_acc": {"value": 0.8, "interval": [0.7, 0.9], "n": 60}, "runtime": {"value": None, "n": 0}}
    figures = tmp_path / "data" / TASK / "figures.json"
    figures.parent.mkdir(parents=True)
    facts = {"final": {"seeds": seeds}, "release": "0" * 64, "answers_as": sorted(read_release(release).answers_as)}
    write_figures(figures, facts)
    found = measure_repeats(open_subject(TASK, release, data=tmp_path / "data"))["full size, random configs"]
    assert found == {"valid_acc": Repeats(60, Interval(value=0.8, low=0.7, high=0.9))}
    for other in ({**facts, "answers_as": ["0" * 64]}, {**facts, "final": None}):
        write_figures(figures, other)
        assert set(measure_repeats(open_subject(TASK, release, data=tmp_path / "data"))) == {"full size", "all sizes"}


@pytest.mark.parametrize(
    ("metric", "tau", "sign", "reason"),
    [
        ("valid_acc", (0.7, 0.8, 0.9), "–", "the interval holds a figure of the paper"),
        ("valid_acc", (0.75, 0.8, 0.85), "–", "between the paper's tasks"),
        ("latency", (0.8, 0.9, 1.0), "–", "higher: the minimum of several"),
        ("test_acc", (-0.2, 0.1, 0.3), "–", "lower"),
        ("runtime", None, "inconclusive", "too few configs"),
    ],
)
def test_a_row_says_whether_a_figure_of_the_paper_is_in_the_interval_and_why_not(metric, tau, sign, reason):
    found = None if tau is None else Interval(low=tau[0], value=tau[1], high=tau[2])
    *_, same, said = _row("tau", "task", metric, found)
    assert same == sign
    assert said.startswith(reason)
