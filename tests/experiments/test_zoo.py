"""The page of model families: scores from stored answers, differences with intervals, the same bytes again."""

import itertools

import numpy as np
import pytest

from experiments.zoo import PAPER, _why, best_tau_sd, main, score_zoo
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.files.sealed_json import sealed_text
from surrogate.models.search import default_point
from surrogate.models.zoo import FAMILIES
from tests.experiments.conftest import page_written_twice
from workshop.ranks import kendall_tau
from workshop.resampling import interval_text

N = 60
RNG = np.random.default_rng(0)
MEASURED = RNG.uniform(10, 90, N).round(2)
GROUPS = (np.arange(N) % 5 == 0) * 26
ERRORS = {name: 1 + 3 * i for i, name in enumerate(PAPER)}


def answers(error):
    return (MEASURED + np.random.default_rng(1).normal(0, error, N)).round(2).tolist()


VALID = np.random.default_rng(2).permutation(MEASURED)


def of_valid(error):
    return (VALID + np.random.default_rng(3).normal(0, error, N)).round(2).tolist()


def result(families=tuple(FAMILIES), *, ensembles=("xgboost",)):
    timed = {"fit_s": 1.0, "one_ms": 2.0, "each_us": 3.0}
    part = {"measured": MEASURED.tolist(), "group": GROUPS.tolist(), "config_id": [f"{i:016x}" for i in range(N)]}
    return {
        "task": "fashion_mnist_mini", "split": "s", "measurements": "m", "evaluations": 2, "versions": {"numpy": "2"},
        "n_fitted": {"rows": 200, "configs": 150},
        "parts": {"valid": {**part, "measured": VALID.tolist()}, "test": part},
        "families": {
            name: {
                **timed, "tau": 0.5, "point": (point := default_point(FAMILIES[name].space)),
                "evaluations": [{"number": n, "point": point, "tau": tau} for n, tau in enumerate((0.4, 0.5, None))],
                "predicted": {"valid": of_valid(ERRORS[name]), "test": answers(ERRORS[name])},
            }
            for name in families
        },
        "ensembles": {name: {**timed, "predicted": {"test": answers(ERRORS[name])}} for name in ensembles},
    }  # fmt: skip


def test_scores_are_those_of_the_answers_and_differences_are_paired():
    part = result()["parts"]["test"]
    both = {"xgboost": answers(5), "gin": answers(5), "svr": answers(60)}
    scored = score_zoo(part, both, "all", n_resamples=50)
    assert scored.n == N
    assert scored.scores["xgboost"][1].value == pytest.approx(kendall_tau(MEASURED, answers(5)))
    assert scored.differences["gin"][1] == Interval(value=0.0, low=0.0, high=0.0)
    worse = scored.differences["svr"][1]
    assert worse.low < worse.value < worse.high < 0


def test_the_order_of_the_families_is_compared_with_the_papers_without_ensembles():
    part, by_paper = result()["parts"]["test"], sorted(PAPER, key=lambda name: -PAPER[name][1])
    like_the_paper = dict(zip(by_paper, map(answers, ERRORS.values()), strict=True))
    scored = score_zoo(part, {**like_the_paper, "xgboost x 10": answers(60)}, "all", n_resamples=5)
    assert scored.order.value == pytest.approx(1)
    opposite = dict(zip(by_paper[::-1], like_the_paper.values(), strict=True))
    assert score_zoo(part, opposite, "all", n_resamples=5).order.value == pytest.approx(-1)


def test_a_cut_with_too_few_configs_has_no_scores():
    part = result()["parts"]["test"]
    assert score_zoo(part, {"xgboost": answers(5)}, "full size", n_resamples=5).n == 12
    assert score_zoo(part, {"xgboost": answers(5)}, "best tenth", n_resamples=5) is None


def test_a_score_without_a_resample_is_refused():
    part = result()["parts"]["test"]
    with pytest.raises(InvalidArgument, match="resamples=0"):
        score_zoo(part, {"xgboost": answers(5)}, "all", n_resamples=0)


def test_a_reason_follows_from_the_paper_and_the_interval():
    ours = Interval(value=-0.1, low=-0.15, high=-0.05)
    assert _why("svr", -0.12, ours) == "the interval holds the paper's difference"
    assert _why("svr", -0.2, ours).startswith("closer to XGBoost")
    assert _why("gin", 0.0, ours).startswith("further from XGBoost than in the paper, probably")


def test_the_luck_of_a_search_is_that_of_resamples():
    taus = [0.4, 0.3, None, 0.6, 0.5]
    drawn = [tau or -1.0 for tau in taus[1:]]
    best = [max(taus[0], *resample) for resample in itertools.product(drawn, repeat=len(drawn))]
    assert best_tau_sd(taus) == pytest.approx(np.std(best))


def test_the_page_says_who_is_better_beside_the_paper_and_is_the_same_again(tmp_path):
    path = tmp_path / "zoo.json"
    path.write_text(sealed_text(result()), encoding="utf-8")
    arguments = ["--results", str(path), "--resamples", "20", "--docs"]
    page = page_written_twice(main, arguments, tmp_path)["report.md"].decode()
    assert "XGBoost, ensemble" in page
    of_gin = next(line for line in page.splitlines() if line.startswith("| GIN | 0.") and line.count("|") == 9)
    assert f"| {kendall_tau(VALID, of_valid(ERRORS['gin'])):.3f} (" in of_gin
    assert f"| {kendall_tau(MEASURED, answers(ERRORS['gin'])):.3f} (" in of_gin
    assert f"beside {N} validation configs" in page
    assert "GIN's space is narrower than the paper's, because" in page
    assert "Defaults are those of the paper's table 5 except" in page
    assert "nu=0.1839, shrinking=True, tol=0.002 | 0.500 | 0.400 |" in page
    assert "LightGBM scores highest by sparse τ, " in page
    assert "| R² of LightGBM minus XGBoost's | Fashion-MNIST (16 px) | 0.892 - 0.832 = +0.060 |" in page
    of_all = {name: answers(error) for name, error in ERRORS.items()}
    scored = score_zoo(result()["parts"]["test"], of_all, "all", n_resamples=20)
    r2, _, sparse = (interval_text(score, 3) for score in scored.scores["gin"])
    assert f"| GIN | 0.832 | {r2} | 0.778 | {sparse} |" in page
    assert f"with the paper's is {interval_text(scored.order)} on Fashion-MNIST (16 px) (7 families" in page
    assert page.count("## Scores on") == 1
    assert "would change a family's best validation τ by 0.043 to 0.043 (standard deviation)" in page


def test_the_page_says_which_families_are_missing(tmp_path):
    path = tmp_path / "zoo.json"
    path.write_text(sealed_text(result(["xgboost", "svr", "lightgbm"], ensembles=())), encoding="utf-8")
    assert main(["--results", str(path), "--resamples", "5", "--docs", "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert "Not fitted yet on Fashion-MNIST (16 px): GIN, NGBoost, nu-SVR and random forest" in page


def test_a_result_without_the_family_of_comparison_is_refused(tmp_path, capsys):
    path = tmp_path / "zoo.json"
    path.write_text(sealed_text(result(["gin"], ensembles=())), encoding="utf-8")
    assert main(["--results", str(path), "--out", str(tmp_path / "page")]) == 2
    assert main(["--results", str(path), "--resamples", "0", "--out", str(tmp_path / "page")]) == 2
