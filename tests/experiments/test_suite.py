"""The rule that chooses the problems of a suite: different orders, a share for every stratum, the same choice again."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments.suite import ARMS, BUDGETS, _blocks, candidates, choose, correlations, kept, main
from jahs.comparison.suite import SUITES
from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.release import EMBEDDED
from workshop.pages.document import Text

EVERY = candidates(sorted(EMBEDDED))
ROOT = Path(__file__).resolve().parents[2]


def results(seed=0, n_seeds=3):
    return np.random.default_rng(seed).normal(size=(len(EVERY), len(ARMS), n_seeds))


def test_numbers_that_select_nothing_are_refused_before_any_run(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("experiments.suite.orders", lambda *_, **__: pytest.fail("something ran"))
    assert main(["--out", str(tmp_path), "--n", "0", "--seeds", "21", "--workers", "0"]) == 2
    assert f"n=0 must be in 2..{len(EVERY)}" in caplog.text
    assert "seeds=21 must be in 2..20" in caplog.text
    assert "workers=0" in caplog.text
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert "file cannot be written" in caplog.text
    assert main(["--out", str(tmp_path / "suite"), "--page", str(tmp_path)]) == 2
    assert "would be replaced, but has files that are not part of a page: file" in caplog.text


def test_candidates_are_pairs_of_budgets_in_every_stratum():
    assert len({each.id for each in EVERY}) == len(EVERY)
    assert Counter(each.rules.n_evaluations for each in EVERY) == dict.fromkeys(BUDGETS, len(EVERY) // len(BUDGETS))
    assert len({each.stratum for each in EVERY}) == 16


def test_correlations_are_those_of_orders():
    values = np.arange(5.0)[None, :, None] + np.zeros((3, 5, 4))
    values[1] = 100 * values[1] ** 3
    values[2] = -values[2]
    assert correlations(values) == pytest.approx(np.array([[1, 1, -1], [1, 1, -1], [-1, -1, 1]]))


def test_every_stratum_has_its_share_and_the_choice_is_the_same_again():
    chosen = choose(EVERY, results(), n=20)
    assert len(set(chosen)) == 20
    assert set(Counter(EVERY[i].stratum for i in chosen).values()) == {1, 2}
    assert choose(EVERY, results(), n=20) == chosen
    assert choose(EVERY, results(), n=10_000) != chosen
    assert sorted(choose(EVERY, results(), n=10_000)) == list(range(len(EVERY)))


def test_within_a_stratum_the_order_least_like_the_others_is_chosen():
    same = [i for i, each in enumerate(EVERY) if each.stratum == EVERY[0].stratum]
    few = [EVERY[i] for i in same]
    alike = np.arange(5.0)[None, :, None] + np.zeros((len(few), 5, 4))
    alike[2] = -alike[2]
    assert 2 in choose(few, alike, n=2)


def test_a_candidate_whose_optimisers_all_tie_has_no_order_and_is_chosen_last():
    same = [i for i, each in enumerate(EVERY) if each.stratum == EVERY[0].stratum]
    few, values = [EVERY[i] for i in same], results()[same]
    values[1] = 7.0
    assert np.isnan(correlations(values)[1]).all()
    assert choose(few, values, n=len(few))[-1] == 1


def test_chosen_orders_are_more_diverse_than_the_candidates():
    for seed in range(5):
        similar = correlations(results(seed))
        chosen = choose(EVERY, results(seed), n=20)
        off = ~np.eye(len(EVERY), dtype=bool)
        own = similar[np.ix_(chosen, chosen)][~np.eye(20, dtype=bool)]
        assert own.mean() < similar[off].mean()


def test_the_page_says_on_which_releases_the_problems_were_chosen():
    problem = {"id": "x", "objectives": ["valid_acc"], "view": {"search": "all", "fidelities": ["epoch"]}}
    problems = [{**problem, "n_evaluations": 20, "best": 1.0, "random_search": 2.0, "random_search_se": 0.1}] * 2
    for name, is_said in (("jahs-20", True), ("jahs-2", False)):
        blocks = _blocks(name, problems, chosen=[0, 1], results=results()[:4])
        texts = [block.text for block in blocks if isinstance(block, Text)]
        said = "Those of jahs-20 were chosen on cifar10_mini 1.3.0 and fashion_mnist_mini 0.1.2"
        assert any(said in text for text in texts) == is_said


def test_the_guide_has_the_pages_agreement_of_halves():
    page, guide = (
        (ROOT / "docs" / path).read_text(encoding="utf-8") for path in ("studies/suite/report.md", "guides/suite.md")
    )
    (shown,) = re.findall(r"two halves of the 4 seeds correlate at ([\d.]+)", page)
    assert f"halves of the seeds correlate at only {shown}" in " ".join(guide.split())


def test_a_suite_keeps_its_problems(tmp_path):
    path = tmp_path / "jahs-20.json"
    assert kept(path, EVERY) is None
    chosen = sorted(choose(EVERY, results(), n=20))
    path.write_text(sealed_text({"problems": [{"id": EVERY[i].id} for i in chosen]}))
    assert kept(path, EVERY) == chosen
    with pytest.raises(InvalidArgument, match=f"not candidates: {EVERY[chosen[0]].id}; remove it to choose anew"):
        kept(path, EVERY[chosen[0] + 1 :])
    path.write_text(sealed_text({"problem": []}))
    with pytest.raises(CorruptFile, match="is not a suite"):
        kept(path, EVERY)


@pytest.mark.parametrize("path", sorted(SUITES.glob("*.json")), ids=lambda path: path.stem)
def test_frozen_problems_are_candidates(path):
    known = {each.id: each for each in EVERY}
    problems = read_sealed(path)["problems"]
    assert problems
    for problem in problems:
        rules = known[problem["id"]].rules
        assert (problem["task"], tuple(problem["objectives"]), problem["n_evaluations"]) == (
            known[problem["id"]].task,
            rules.objectives,
            rules.n_evaluations,
        )
        assert tuple(problem["view"]["fidelities"]) == rules.view.fidelities
