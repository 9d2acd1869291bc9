"""The frozen declarations."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments.optimizers import OPTIMIZERS, make
from experiments.studies import STUDIES, find_study
from experiments.study import Study, TaskFacts
from experiments.views import CELLS, open_view, tuned_config
from jahs.comparison.benches import open_benchmark, refits_of
from jahs.comparison.terms import ViewChoice
from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.views import View
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import GROUPS, space
from jahs.tasks.metrics import METRICS
from tests.fake_benchmark import FakeBenchmark

BENCH = FakeBenchmark(max_epoch=12, metrics=tuple(METRICS)[:7])
ARMS = [pytest.param(study, arm, id=f"{study.name}-{arm.name}") for study in STUDIES.values() for arm in study.arms]


def test_the_studies_are_these():
    of_search = ["joint", "fidelity", "multiobjective", "baselines", "strong"]
    assert list(STUDIES) == [*of_search, "truth", "families", "long", "workers"]


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_seeds_are_enough_for_a_pair_to_differ_after_the_correction(study):
    sizes = Counter(arm.chapter for arm in study.arms).values()
    n_pairs = len(study.tasks) * sum(n * (n - 1) // 2 for n in sizes)
    least = 2 / 2**study.n_seeds  # p-value of the signed-rank test if one arm is better with every seed
    assert n_pairs * least < 0.05


def test_workers_of_an_arm_are_declared_where_they_differ():
    study = STUDIES["workers"]
    assert len({study.digest_of(arm.name) for arm in study.arms}) == len(study.arms)
    assert [arm["workers"] for arm in study.to_dict()["arms"][:4]] == [1, 4, 16, 64]
    assert all("workers" not in arm for arm in STUDIES["baselines"].to_dict()["arms"])


@pytest.mark.parametrize("search", ["nas", "hpo"])
def test_an_arm_at_the_default_stays_there_whatever_the_reference_is(search):
    bench = FakeBenchmark()
    bench.reference_config = bench.space.sample(seed=5)
    fixed = open_view(bench, ViewChoice(search=search), seed=0).space.fixed
    assert fixed == View(bench, search=search, fixed="default").space.fixed
    assert fixed != View(bench, search=search).space.fixed


@pytest.mark.parametrize(("study", "arm"), ARMS)
def test_every_arm_can_be_made_and_searches_what_it_says(study, arm):
    entry = OPTIMIZERS[arm.optimizer]
    assert entry.family == arm.family
    view = open_view(BENCH, arm.view, seed=0)
    assert set(view.fidelities) == set(arm.view.fidelities)
    searched = set(view.space.searched)
    sizes = set() if arm.view.search != "sizes" else {"N", "W", "Resolution"}
    wanted = {
        "nas": set(GROUPS["architecture"]),
        "hpo": set(GROUPS["hyperparameters"]),
    }.get(arm.view.search, set(GROUPS["architecture"]) | set(GROUPS["hyperparameters"]) | sizes)
    assert searched == wanted
    if not entry.needs:
        assert make(arm.optimizer, view, seed=0, objectives=arm.objectives, **dict(arm.settings)).ask(1)


def test_sizes_that_are_not_searched_are_full():
    view = open_view(BENCH, ViewChoice(search="nas", fidelities=("epoch", "W")), seed=0)
    assert {key: view.space.fixed[key] for key in ("N", "W", "Resolution")} == {"N": 5, "W": 16, "Resolution": 1.0}
    assert view.full == {"epoch": 12, "W": 16}


def test_a_random_fixed_part_is_that_of_its_seed_and_a_default_one_is_not():
    def fixed(seed, **choice):
        return open_view(BENCH, ViewChoice(search="nas", **choice), seed=seed).space.fixed["LearningRate"]

    assert fixed(0, fixed_part="random") == fixed(0, fixed_part="random") != fixed(1, fixed_part="random")
    assert fixed(0, fixed_part="reference") == BENCH.reference_config["LearningRate"]
    assert fixed(0) == fixed(1) == 0.1


@pytest.mark.parametrize("name", CELLS)
def test_a_named_cell_is_fixed(name):
    view = open_view(BENCH, ViewChoice(search="hpo", fixed_part=name), seed=0)
    assert {**LARGEST, **CELLS[name].to_config()}.items() <= view.space.fixed.items()


def test_tuned_hyperparameters_are_the_best_by_the_mean_of_the_refits_for_every_seed_and_refit(monkeypatch):
    bench = open_benchmark("cifar10_mini", None)
    refits = refits_of(bench, "valid_acc")[:2]
    monkeypatch.setattr("experiments.views.refits_of", lambda bench, metric: refits)
    choice = ViewChoice(search="nas", fixed_part="tuned")
    fixed = open_view(bench, choice, seed=0).space.fixed
    hpo = space(fixed={**LARGEST, **CELLS["resnet"].to_config()})
    configs = [{**hpo.default(), **fixed}, hpo.default(), *hpo.sample(500, seed=0)]
    reached = np.mean([refit.query_many(configs, metrics=("valid_acc",))["valid_acc"] for refit in refits], axis=0)
    assert reached[0] >= reached[1:].max()
    assert fixed == open_view(bench, choice, seed=1).space.fixed == open_view(refits[1], choice, seed=0).space.fixed


def test_a_benchmark_without_refits_is_itself_searched_for_tuned_hyperparameters():
    hpo = space(fixed={**LARGEST, **CELLS["resnet"].to_config()})
    configs = [tuned_config(BENCH), *hpo.sample(500, seed=0)]
    reached = BENCH.query_many(configs, metrics=("valid_acc",))["valid_acc"]
    assert reached[0] >= reached[1:].max()


def test_named_cells_are_those_of_nas_bench_201():
    assert {name: cell.nb201_index for name, cell in CELLS.items()} == {"resnet": 11472, "nasbench201": 6111}


@pytest.mark.parametrize("study", [pytest.param(study, id=study.name) for study in STUDIES.values()])
def test_a_declaration_survives_json(study):
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert [again.digest_of(arm.name) for arm in again.arms] == [study.digest_of(arm.name) for arm in study.arms]
    assert [arm.name for arm in again.arms] == [arm.name for arm in study.arms]
    assert again.combinations == study.combinations


def test_the_order_of_settings_decides_nothing_and_their_values_do():
    arm = replace(STUDIES["joint"].arms[0], settings=(("tournament_size", 5), ("population_size", 20)))
    study = replace(STUDIES["joint"], arms=(arm,))
    again = Study.from_dict(json.loads(json.dumps(study.to_dict(), sort_keys=True)))
    assert again.arms[0].settings != arm.settings
    assert again.digest_of(arm.name) == study.digest_of(arm.name)
    other = replace(study, arms=(replace(arm, settings=(("tournament_size", 20), ("population_size", 5))),))
    assert other.digest_of(arm.name) != study.digest_of(arm.name)


def test_digests_of_what_has_been_run_stay():
    digests = {name: STUDIES["baselines"].digest_of(name) for name in ("random_search", "hyperband-eta-2.0")}
    assert digests == {"random_search": "a26d66866628d92c", "hyperband-eta-2.0": "38517e406629b479"}


def test_a_digest_stands_for_what_decides_about_a_cell_and_for_nothing_else():
    study = STUDIES["joint"]
    arm = study.arms[0]
    digest = study.digest_of(arm.name)
    renamed = (replace(arm, title="z"), *study.arms[1:])
    for same in ({"title": "x"}, {"n_seeds": 3}, {"tasks": ("digits",)}, {"arms": study.arms[:1]}, {"arms": renamed}):
        assert replace(study, **same).digest_of(arm.name) == digest
    other_view = (replace(arm, view=ViewChoice(search="sizes")),)
    for other in ({"n_evaluations": 3}, {"workers": 2}, {"noise": "mean"}, {"arms": other_view}):
        assert replace(study, **other).digest_of(arm.name) != digest
    assert len({study.digest_of(each.name) for each in study.arms}) == len(study.arms)


def test_a_name_is_one_arm():
    study = STUDIES["joint"]
    with pytest.raises(InvalidArgument, match="several arms have the name random_search-jahs"):
        replace(study, arms=(study.arms[0], study.arms[0]))
    with pytest.raises(UnknownName, match="did you mean 'random_search-jahs'"):
        study.arm("random_search-jah")
    with pytest.raises(UnknownName, match="did you mean 'joint'"):
        find_study("joints")


def test_repetitions_come_seed_after_seed_and_those_on_refits_last():
    study = replace(STUDIES["joint"], n_refit_seeds=1)
    facts = TaskFacts(release="0" * 64, version="1", source="test", mean_runtime_s=1.0, budget_s=100.0, n_refits=2)
    repetitions = study.repetitions(tasks={"digits": facts}, arms=["a", "b"], n_seeds=2)
    assert [repetition.path for repetition in repetitions] == [
        "digits/a/seed-0000.jsonl",
        "digits/b/seed-0000.jsonl",
        "digits/a/seed-0001.jsonl",
        "digits/b/seed-0001.jsonl",
        "digits/a/refit-0/seed-0000.jsonl",
        "digits/b/refit-0/seed-0000.jsonl",
        "digits/a/refit-1/seed-0000.jsonl",
        "digits/b/refit-1/seed-0000.jsonl",
    ]
