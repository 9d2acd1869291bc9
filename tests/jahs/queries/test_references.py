"""Reference fronts and frozen reference points: what they hold, how they are asked, and what a file must say."""

from __future__ import annotations

import copy
import json
from itertools import permutations

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, UnknownFormat, UnknownName
from jahs.queries.references import References, build_references
from jahs.tasks.objectives import objective_matrix, read_objectives
from jahs.tasks.pareto import hypervolume, is_non_dominated
from tests.fake_bench import FakeBench

N_CONFIGS = 400
THREE = ("valid_acc", "latency", "n_params")


@pytest.fixture(scope="module")
def references() -> References:
    return build_references(FakeBench(), n_configs=N_CONFIGS, seed=0, n_rounds=2)


def evaluated(configs: list, metrics: tuple[str, ...]) -> np.ndarray:
    return objective_matrix(FakeBench().query_many(configs), read_objectives(metrics))


def test_the_accuracy_is_combined_with_every_one_and_every_two_of_the_costs(references: References) -> None:
    assert len(references.combinations) == 4 + 6
    assert all(names[0] == "valid_acc" and len(names) in (2, 3) for names in references.combinations)


def test_a_front_is_what_a_query_of_its_configs_answers_and_none_beats_another(references: References) -> None:
    for names in references.combinations:
        front = references.front(names)
        assert np.array_equal(front.F, evaluated(list(front.configs), names))
        assert is_non_dominated(front.F).all()
        assert len(np.unique(front.F, axis=0)) == len(front.F)
        assert jahs.validate_many(front.configs) == list(front.configs)


def test_no_random_config_beats_a_front(references: References) -> None:
    configs = jahs.space().sample(N_CONFIGS, seed=0)
    for names in references.combinations:
        F = references.front(names).F
        both = np.concatenate([F, evaluated(configs, names)])
        assert is_non_dominated(both)[: len(F)].all()


def test_neighbours_of_the_front_are_asked_until_nothing_is_left() -> None:
    at_random, searched, longer = (
        build_references(FakeBench(), n_configs=N_CONFIGS, seed=0, n_rounds=n).front(THREE) for n in (0, 30, 60)
    )
    corner = np.maximum(at_random.reference_point, searched.reference_point)
    assert hypervolume(searched.F, corner) > hypervolume(at_random.F, corner)
    assert np.array_equal(longer.F, searched.F)


def test_the_same_seed_gives_the_same_bytes_and_no_config_is_asked_twice() -> None:
    first, second = FakeBench(), FakeBench()
    texts = [json.dumps(build_references(b, n_configs=99, seed=3, n_rounds=2).to_dict()) for b in (first, second)]
    assert texts[0] == texts[1]
    assert first.n_asked == json.loads(texts[0])["facts"]["n_asked"]


def test_a_reference_point_lies_beyond_the_front_and_beyond_half_of_the_configs(references: References) -> None:
    sample = jahs.space().sample(N_CONFIGS, seed=0)
    for names in references.combinations:
        front = references.front(names)
        ordinary = np.median(evaluated(sample, names), axis=0)
        beyond = np.maximum(front.nadir + 0.1 * (front.nadir - front.ideal), ordinary)
        assert (front.reference_point >= beyond).all()
        assert (front.reference_point <= beyond * 1.01).all()
        assert all(float(f"{value:.3g}") == value for value in front.reference_point)
        assert front.hypervolume > 0
    everywhere = [references.front(names).nadir[0] for names in references.combinations]
    assert min(everywhere) < np.median(evaluated(sample, ("valid_acc",)))  # both ways are met here


def test_an_error_never_has_a_reference_point_above_a_hundred() -> None:
    class Hopeless(FakeBench):
        def query_many(self, configs, **asked):
            answers = super().query_many(configs, **asked)
            return {**answers, "valid_acc": answers["valid_acc"] * answers["latency"] / answers["latency"].max()}

    references = build_references(Hopeless(), n_configs=N_CONFIGS, seed=0, n_rounds=0)
    assert references.front(("valid_acc", "latency")).nadir[0] > 95
    assert references.reference_point(("valid_acc", "latency"))[0] == 100.0


def test_the_order_of_the_metrics_is_the_order_of_the_columns(references: References) -> None:
    plain = references.front(THREE)
    for order in permutations(range(3)):
        names = [THREE[j] for j in order]
        front = references.front(names)
        assert front.metrics == tuple(names)
        assert np.array_equal(references.reference_point(names), plain.reference_point[list(order)])
        assert sorted(map(tuple, front.F)) == sorted(map(tuple, plain.F[:, order]))
        assert np.array_equal(front.F, evaluated(list(front.configs), tuple(names)))
        assert (np.diff(front.F[:, 0]) >= 0).all()
        assert front.hypervolume == pytest.approx(plain.hypervolume, rel=1e-12)


def test_published_names_name_the_same_front(references: References) -> None:
    point = references.reference_point(("valid_acc", "n_params"))
    assert np.array_equal(references.reference_point(("valid-acc", "size_MB")), point)


def test_a_combination_without_a_point_is_refused_and_those_with_one_are_named(references: References) -> None:
    said = r"metrics=valid_acc, train_loss have no reference point; there is one for valid_acc, latency; valid_acc, run"
    with pytest.raises(UnknownName, match=said):
        references.reference_point(("valid_acc", "train_loss"))
    with pytest.raises(UnknownName, match="have no reference point"):
        references.front(("latency", "runtime"))
    with pytest.raises(UnknownName, match="'accuracy' does not exist"):
        references.reference_point(("accuracy", "latency"))


def test_a_benchmark_without_latency_has_the_other_combinations() -> None:
    references = build_references(FakeBench(names=("valid_acc", "n_macs")), n_configs=50, seed=0, n_rounds=0)
    assert references.combinations == (("valid_acc", "n_macs"),)


@pytest.mark.parametrize("names", [("valid_acc",), ("latency", "n_macs")], ids=["no-cost", "no-accuracy"])
def test_a_benchmark_that_trades_nothing_has_no_references(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument, match="references need valid_acc and at least one of latency, runtime"):
        build_references(FakeBench(names=names), n_configs=5, seed=0)


@pytest.mark.parametrize("n_configs", [0, 1])
def test_no_config_and_one_alone_make_no_front(n_configs: int) -> None:
    with pytest.raises(InvalidArgument, match=f"none of {n_configs} configs trades valid_acc for any"):
        build_references(FakeBench(), n_configs=n_configs, seed=0, n_rounds=0)


def test_a_file_brings_everything_back(references: References) -> None:
    content = json.loads(json.dumps(references.to_dict()))
    again = References.from_dict(content)
    assert again.to_dict() == references.to_dict()
    assert again.facts == references.facts
    for names in references.combinations:
        assert again.front(names).configs == references.front(names).configs
        assert np.array_equal(again.front(names).F, references.front(names).F)


def test_a_config_to_start_from_is_kept_although_it_is_on_no_front() -> None:
    start = jahs.space({"N": 5, "W": 16, "Resolution": 1.0}).sample(seed=3)
    made = build_references(FakeBench(), n_configs=N_CONFIGS, seed=0, n_rounds=0, starts=[start])
    again = References.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.starts == (start,)
    assert start in again.configs
    assert again.to_dict() == made.to_dict()


def spoil(content: dict, path: tuple, value: object) -> dict:
    spoilt = copy.deepcopy(content)
    inner = spoilt
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return spoilt


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("configs", "N", 0), 4, "N=4 is not one of 1, 3, 5"),
        (("configs", "N", 0), 300, "references: "),
        (("configs", "N"), [1], "N has 1 rows"),
        (("configs",), {}, "references: "),
        (("minimised", "latency", 0), None, "not one finite number"),
        (("minimised", "latency"), [0.5], "references: "),
        (("minimised", "speed"), [], "'speed' does not exist"),
        (("fronts", 0, "front", 0), 10**6, "front holds no numbers of configs in 0"),
        (("fronts", 0, "front", 0), -1, "front holds no numbers"),
        (("fronts", 0, "front"), [], "front holds no numbers"),
        (("fronts", 0, "metrics"), ["latency"], "not two or three of valid_acc"),
        (("fronts", 0, "reference_point"), [1.0], "front or reference_point do not fit"),
        (("fronts", 0), None, "references: "),
        (("facts",), 7, "references: "),
        (("starts",), [{"N": 4}], "N=4 is not one of 1, 3, 5"),
        (("starts",), 7, "references: "),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_a_file_that_does_not_fit_together_is_refused(
    references: References, path: tuple, value: object, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        References.from_dict(spoil(references.to_dict(), path, value))


@pytest.mark.parametrize("version", [2, None, "1", True])
def test_another_format_is_refused(references: References, version: object) -> None:
    with pytest.raises(UnknownFormat, match="this version of jahs reads format 1"):
        References.from_dict({**references.to_dict(), "format": version})
