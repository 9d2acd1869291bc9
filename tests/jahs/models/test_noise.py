"""Draws of training noise are the same in every company, stay in bounds and spread as the law says."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, InvalidFidelity, UnknownFormat, UnknownName
from jahs.models.noise import NoiseModel, model
from jahs.models.noise.chance import normal_table
from jahs.models.noise.spread import Spread
from jahs.schema import COLUMNS as NAMES
from jahs.spaces.columns import config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from tests.jahs.models.noise_models import ACCURACIES, noise_model

MODEL = noise_model()
N_ROWS = 240
COLUMNS = space().sample_columns(20, seed=0)
IDS = np.repeat(config_ids(COLUMNS), 12)
X = encode({key: np.repeat(values, 12) for key, values in COLUMNS.items()}, np.arange(N_ROWS) % 12 + 1)
_chance = np.random.default_rng(1)
MEANS = {
    "latency": _chance.uniform(0, 1, N_ROWS),
    **{name: np.append(_chance.uniform(0, 100, N_ROWS - 2), [0.0, 100.0]) for name in ACCURACIES},
    "runtime": np.repeat(_chance.uniform(0.1, 9, 20), 12) * X[:, -1],
}
SEEDS = st.integers(0, 2**63 - 1)


def first_means(n: int) -> dict[str, np.ndarray]:
    return {name: values[:n] for name, values in MEANS.items()}


def repeated(row: int, n: int, y: float) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """One row with every accuracy predicted as `y`, drawn with n seeds."""
    means = {name: np.full(n, y) for name in ACCURACIES} | {"runtime": np.full(n, 5.0)}
    return means, X[[row] * n], IDS[[row] * n], np.arange(n)


@given(seed=SEEDS, rows=st.lists(st.integers(0, N_ROWS - 1), min_size=1, max_size=30))
def test_a_row_gets_the_same_bits_alone_and_in_any_batch(seed: int, rows: list[int]) -> None:
    drawn = MODEL.draw(MEANS, X, IDS, seed)
    some = MODEL.draw({name: values[rows] for name, values in MEANS.items()}, X[rows], IDS[rows], seed)
    for name, values in drawn.items():
        assert values[rows].tobytes() == some[name].tobytes(), name


@given(seed=SEEDS, row=st.integers(0, N_ROWS - 1), wanted=st.sets(st.sampled_from(sorted(MEANS)), min_size=1))
def test_a_metric_gets_the_same_bits_whichever_others_are_asked_for(seed: int, row: int, wanted: set[str]) -> None:
    drawn = MODEL.draw(MEANS, X, IDS, seed)
    means = {name: MEANS[name].item(row) for name in wanted}
    one = MODEL.draw_one(means, X[row].tolist(), int(IDS[row]), seed)
    assert one == {name: drawn[name].item(row) for name in wanted}


def test_a_seed_for_each_row_gives_what_the_seeds_give_one_by_one() -> None:
    seeds = np.arange(N_ROWS) % 3
    drawn = MODEL.draw(MEANS, X, IDS, seeds)
    alone = [MODEL.draw(MEANS, X, IDS, seed) for seed in range(3)]
    for name in MEANS:
        assert np.array_equal(drawn[name], np.choose(seeds, [one[name] for one in alone]))


def test_draws_never_change() -> None:
    """These are of spreads that are alike from the first epoch to the last."""
    state = noise_model().to_dict()
    for kinds in state["accuracies"].values():
        for part in kinds.values():
            part["last"] = part["level"]
    means = {"train_acc": 70.0, "valid_acc": 60.0, "test_acc": 99.0, "runtime": 20.0}
    drawn = NoiseModel.from_dict(state).draw_one(means, X[6].tolist(), 2**64 - 1, 7)
    assert {name: value.hex() for name, value in drawn.items()} == {
        "train_acc": "0x1.057b96bb1f72ap+6",
        "valid_acc": "0x1.c9e0abf256ec6p+5",
        "test_acc": "0x1.8bee993f8d39bp+6",
        "runtime": "0x1.4f4d0595bf58ap+4",
    }


def test_a_spread_goes_from_its_first_to_its_last_table_with_the_epoch() -> None:
    rows = np.repeat(X[:1], 4, axis=0)
    rows[:, -1] = np.arange(1, 5)
    both = Spread(level=(0.1,) * 21, last=(0.3,) * 21, epoch=(1.0, 1.0, 2.0, 1.0))
    assert both.of_rows(np.full(4, 60.0), rows) == pytest.approx([0.15, 0.2, 0.5, 0.3])


@settings(max_examples=20)
@given(seed=SEEDS, y=st.floats(-1e-6, 100 + 1e-6))
def test_accuracies_stay_in_bounds(seed: int, y: float) -> None:
    drawn = MODEL.draw({name: np.full(N_ROWS, y) for name in ACCURACIES}, X, IDS, seed)
    assert all(((values >= 0) & (values <= 100)).all() for values in drawn.values())


@given(seed=SEEDS)
def test_runtime_rises_with_the_epoch_by_one_factor_for_each_training(seed: int) -> None:
    runtime = MODEL.draw({"runtime": MEANS["runtime"]}, X, IDS, seed)["runtime"].reshape(20, 12)
    assert (np.diff(runtime, axis=1, prepend=0) > 0).all()
    factors = runtime / MEANS["runtime"].reshape(20, 12)
    assert np.allclose(factors, factors[:, :1], rtol=1e-14)
    assert len(np.unique(factors[:, 0])) >= 17  # of 65,536 that there are; two of 20 may be alike


def test_latency_and_whatever_else_is_known_stay_as_they_are() -> None:
    drawn = MODEL.draw({**MEANS, "n_params": X[:, 0]}, X, IDS, 0)
    assert drawn["latency"] is MEANS["latency"]
    assert np.array_equal(drawn["n_params"], X[:, 0])


@pytest.mark.parametrize("y", [3.0, 12.0, 45.0, 80.0, 97.0])
def test_draws_have_the_predicted_mean_and_the_wanted_spread(y: float) -> None:
    n = 20_000
    means, rows, ids, seeds = repeated(23, n, y)
    drawn = MODEL.draw(means, rows, ids, seeds)
    for name in ACCURACIES:
        sigma = float(MODEL.accuracies[name]["seed"].of_rows(means[name][:1], rows[:1])[0])
        slope = 51 * (1 - ((y - 50) / 51) ** 2) ** 1.5
        wanted = sigma * slope
        assert drawn[name].mean() == pytest.approx(y, abs=4 * wanted / math.sqrt(n) + 0.03 * wanted)
        if sigma < 0.15:
            assert drawn[name].std() == pytest.approx(wanted, rel=0.06)
    assert drawn["runtime"].mean() == pytest.approx(5, rel=0.002)
    assert np.log(drawn["runtime"]).std() == pytest.approx(0.06, rel=0.03)


@pytest.mark.parametrize("tail", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.55, 0.8])
def test_the_mean_of_all_draws_is_the_prediction(sigma: float, tail: float) -> None:
    """Also of spreads for which a term of second order is far off, by two points of accuracy and more."""
    spread = Spread(level=(sigma,) * 21, last=(sigma,) * 21, epoch=(1.0,) * 12, tail=tail)
    g = normal_table()[::8]
    for y in (12.0, 23.5, 41.0, 50.0, 66.0, 88.0):
        drawn = model._moved(spread, np.full(len(g), y), np.repeat(X[:1], len(g), axis=0), g)
        assert drawn.mean() == pytest.approx(y, abs=0.1)


def test_intervals_hold_their_share_of_the_draws() -> None:
    for row, y in ((0, 30.0), (11, 75.0), (17, 90.0)):
        means, rows, ids, seeds = repeated(row, 20_000, y)
        drawn = MODEL.draw(means, rows, ids, seeds)
        for name, (low, high) in MODEL.interval(means, rows, of="seed").items():
            assert np.mean((drawn[name] >= low) & (drawn[name] <= high)) == pytest.approx(0.9, abs=0.01)


def test_an_interval_around_one_outcome_is_wider_than_the_draws() -> None:
    seed, outcome = (MODEL.interval(MEANS, X, of=kind) for kind in ("seed", "outcome"))
    assert set(seed) == {*ACCURACIES, "runtime"}
    for name, (low, high) in outcome.items():
        inner = (MEANS[name] > 5) & (MEANS[name] < 95) if name != "runtime" else np.ones(N_ROWS, bool)
        assert (high - low > seed[name][1] - seed[name][0])[inner].all()


def test_epochs_and_accuracies_of_one_training_are_correlated_as_the_model_says() -> None:
    n = 20_000
    drawn = {}
    for epoch in (3, 6, 12):
        means, rows, ids, seeds = repeated(epoch - 1, n, 85.0)
        drawn[epoch] = MODEL.draw(means, rows, ids, seeds)

    def correlation(a: tuple[int, str], b: tuple[int, str]) -> float:
        return float(np.corrcoef(drawn[a[0]][a[1]], drawn[b[0]][b[1]])[0, 1])

    assert correlation((12, "valid_acc"), (12, "test_acc")) == pytest.approx(0.97, abs=0.02)
    assert correlation((12, "train_acc"), (12, "valid_acc")) == pytest.approx(math.sqrt(0.98 * 0.9), abs=0.02)
    at_half = math.sqrt(0.94 * 0.98) * 0.8
    assert correlation((6, "train_acc"), (12, "train_acc")) == pytest.approx(at_half, abs=0.02)
    assert correlation((3, "train_acc"), (12, "train_acc")) < at_half
    assert correlation((6, "valid_acc"), (12, "valid_acc")) == pytest.approx(math.sqrt(0.55 * 0.9) * 0.8, abs=0.02)


def test_neighbouring_seeds_configs_and_tasks_have_nothing_in_common() -> None:
    n = 20_000
    means, rows, ids, seeds = repeated(0, n, 60.0)
    a = MODEL.draw(means, rows, ids, seeds)["valid_acc"]
    others = [
        MODEL.draw(means, rows, ids + np.uint64(1), seeds)["valid_acc"],
        noise_model("other").draw(means, rows, ids, seeds)["valid_acc"],
        np.roll(a, 1),
    ]
    for other in others:
        assert abs(np.corrcoef(a, other)[0, 1]) < 0.04


def test_a_task_of_200_epochs_is_as_smooth() -> None:
    model = noise_model(max_epoch=200)
    rows = np.repeat(X[:1], 200, axis=0)
    rows[:, -1] = np.arange(1, 201)
    means = {"train_acc": np.full(200, 80.0), "runtime": np.arange(1.0, 201)}
    drawn = model.draw(means, rows, np.full(200, IDS[0]), 5)
    for epoch in (1, 37, 200):
        alone = model.draw_one({"train_acc": 80.0}, rows[epoch - 1].tolist(), int(IDS[0]), 5)
        assert alone["train_acc"] == drawn["train_acc"][epoch - 1]
    for epoch, loadings in enumerate(model.correlation.slow_loadings(200), 1):
        assert sum(value**2 for value in loadings) == pytest.approx(1), epoch


def test_a_model_comes_back_from_json_with_every_bit() -> None:
    state = json.loads(json.dumps(MODEL.to_dict()))
    again = NoiseModel.from_dict(state)
    assert again == MODEL
    first, second = (model.draw(MEANS, X, IDS, 3) for model in (MODEL, again))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_another_version_is_refused() -> None:
    for version in (1, 99):
        with pytest.raises(UnknownFormat, match=f"noise: format {version}; this version of jahs reads format 2"):
            NoiseModel.from_dict({**MODEL.to_dict(), "format": version})
    with pytest.raises(InvalidArgument, match="noise: a part is missing or of a wrong type"):
        NoiseModel.from_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "value", "fault"),
    [
        (("max_epoch",), 13, "valid_acc: the spread of seed has 12 epochs, not 13"),
        (("max_epoch",), 0, "max_epoch=0 is not an integer in 1..10000"),
        (
            ("accuracies", "valid_acc", "seed", "level"),
            [1.0],
            "valid_acc seed: level=(1.0,) is not 21 positive numbers",
        ),
        (("accuracies", "test_acc", "outcome", "tail"), -1, "test_acc outcome: tail=-1 is not a number in 0..1"),
        (("accuracies", "test_acc", "outcome"), {}, "test_acc outcome: not a mapping of level, epoch, last, N, W"),
        (("runtime", "seed", "spread"), 9.0, "runtime seed: spread=9.0 is not a number in (0, 1.5]"),
        (("runtime", "seed"), None, "runtime seed: not a mapping of spread, tail"),
        (("correlation", "halving"), "no", "correlation: halving='no' is not a number in 0..1"),
        (("correlation", "evaluation"), [0.1, 1.0], "correlation: evaluation=(0.1, 1.0) exceeds twins"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_damaged_model_is_refused(where: tuple[str, ...], value: object, fault: str) -> None:
    state = json.loads(json.dumps(MODEL.to_dict()))
    part = state
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    with pytest.raises(InvalidArgument, match=re.escape(fault)):
        NoiseModel.from_dict(state)


@pytest.mark.parametrize("part", ["accuracies", "runtime", "correlation", "counts", "task"])
def test_a_model_without_a_part_is_refused(part: str) -> None:
    state = {key: value for key, value in MODEL.to_dict().items() if key != part}
    with pytest.raises(InvalidArgument, match="a part is missing"):
        NoiseModel.from_dict(state)


@pytest.mark.parametrize("seed", [1.0, True, None, 2**63, "1"], ids=str)
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(f"seed={seed!r} is not an integer in 0..2**63-1")):
        MODEL.draw(MEANS, X, IDS, seed)  # type: ignore[arg-type]


def test_seeds_are_one_for_each_row() -> None:
    with pytest.raises(InvalidArgument, match=r"of shape \(2,\); give an integer, or an array of one for each of 240"):
        MODEL.draw(MEANS, X, IDS, np.array([1, 2]))


@pytest.mark.parametrize("n", [1, N_ROWS], ids=["one", "many"])
@pytest.mark.parametrize("name", [*ACCURACIES, "runtime"])
def test_a_prediction_that_is_no_number_is_refused(name: str, n: int) -> None:
    with pytest.raises(InvalidArgument, match=f"{name}: 1 of {n} predictions are NaN"):
        MODEL.draw({name: np.append(np.ones(n - 1), np.nan)}, X[:n], IDS[:n], 0)


@pytest.mark.parametrize("n", [1, N_ROWS], ids=["one", "many"])
@pytest.mark.parametrize("epoch", [0, 13])
def test_an_epoch_without_known_noise_is_refused(n: int, epoch: int) -> None:
    rows = X[:n].copy()
    rows[-1, -1] = epoch
    with pytest.raises(InvalidFidelity, match=f"epoch={epoch} is not in 1..12"):
        MODEL.draw({"valid_acc": np.ones(n)}, rows, IDS[:n], 0)
    with pytest.raises(InvalidFidelity, match=f"epoch={epoch} is not in 1..12"):
        MODEL.interval({"valid_acc": np.ones(n)}, rows)
    with pytest.raises(InvalidFidelity, match=f"epoch={epoch} is not in 1..12"):
        MODEL.deviations(["valid_acc"], np.ones((1, n)), rows)
    with pytest.raises(InvalidFidelity, match=f"epoch={epoch} is not in 1..12"):
        MODEL.on_line(["valid_acc"], np.ones((1, n)), rows)


def test_a_level_that_is_no_share_is_refused() -> None:
    for level in (1.5, "0.9", float("nan"), True):
        with pytest.raises(InvalidArgument, match=r"level=.* is not a number between 0 and 1"):
            MODEL.interval(MEANS, X, level=level)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="of='foo' does not exist; of is one of: seed, outcome"):
        MODEL.interval(MEANS, X, of="foo")  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [3, N_ROWS], ids=["few", "many"])
def test_columns_of_another_length_are_refused(n: int) -> None:
    with pytest.raises(InvalidArgument) as refused:
        MODEL.draw({"valid_acc": np.ones(2 * n)}, X[:n], IDS[:1], 0)
    lines = [f"valid_acc has shape ({2 * n},), and X has {n} rows", f"config_ids has shape (1,), and X has {n} rows"]
    assert str(refused.value).splitlines() == lines
    with pytest.raises(InvalidArgument, match=f"valid_acc has shape .*, and X has {n} rows"):
        MODEL.interval({"valid_acc": np.ones(1)}, X[:n])
    few = MODEL.draw({"valid_acc": [50.0] * n}, X[:n], IDS[:n], 0)  # type: ignore[dict-item]
    assert few["valid_acc"].shape == (n,)


@pytest.mark.parametrize("n", [3, N_ROWS], ids=["few", "many"])
@pytest.mark.parametrize(
    ("column", "value", "error", "message"),
    [
        (-1, 5.5, InvalidFidelity, "epoch=5.5 is not an integer"),
        (-1, np.nan, InvalidArgument, "X holds numbers that are not finite"),
        (NAMES.index("LearningRate"), np.inf, InvalidArgument, "X holds numbers that are not finite"),
        (NAMES.index("N"), 2, InvalidArgument, "X has values of N that no config has"),
    ],
)
def test_rows_that_encode_no_config_are_refused(
    n: int, column: int, value: float, error: type[Exception], message: str
) -> None:
    rows = X[:n].copy()
    rows[1, column] = value
    for ask in (lambda: MODEL.draw(first_means(n), rows, IDS[:n], 0), lambda: MODEL.interval(first_means(n), rows)):
        with pytest.raises(error, match=re.escape(message)):
            ask()


def test_float32_predictions_and_lists_draw_as_float64_arrays_do() -> None:
    few = {name: values[:30].astype(np.float32) for name, values in MEANS.items()}
    drawn = MODEL.draw(few, X[:30], IDS[:30], 3)
    expected = MODEL.draw({name: values.astype(np.float64) for name, values in few.items()}, X[:30], IDS[:30], 3)
    lists = MODEL.draw({name: values.tolist() for name, values in few.items()}, X[:30].tolist(), IDS[:30], 3)  # type: ignore[arg-type, misc]
    alone = MODEL.draw({name: values[:1] for name, values in few.items()}, X[:1], IDS[:1], 3)
    for name, values in expected.items():
        assert drawn[name].tobytes() == lists[name].tobytes() == values.tobytes()
        assert alone[name].tobytes() == values[:1].tobytes()


def test_published_names_are_drawn_under_ours() -> None:
    drawn = MODEL.draw({"valid-acc": MEANS["valid_acc"]}, X, IDS, 3)
    assert drawn["valid_acc"].tobytes() == MODEL.draw(MEANS, X, IDS, 3)["valid_acc"].tobytes()
    assert [*MODEL.interval({"valid-acc": MEANS["valid_acc"]}, X)] == ["valid_acc"]
    with pytest.raises(UnknownName, match="metric='accuracy' does not exist"):
        MODEL.draw({"accuracy": MEANS["valid_acc"]}, X, IDS, 3)
    with pytest.raises(InvalidArgument, match="means=valid-acc, valid_acc names a metric twice; give each once"):
        MODEL.draw(dict.fromkeys(["valid-acc", "valid_acc"], MEANS["valid_acc"]), X, IDS, 3)


def test_predictions_and_configs_that_are_no_numbers_are_refused() -> None:
    text = {"valid_acc": np.array(["50"])}
    for ask in (lambda: MODEL.draw(text, X[:1], IDS[:1], 3), lambda: MODEL.interval(text, X[:1])):  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="valid_acc must hold numbers, got <U2"):
            ask()
    with pytest.raises(
        InvalidArgument, match=r"X must hold numbers, \(n, 15\), got float32 of shape \(15,\); jahs.enc"
    ):
        MODEL.interval({"valid_acc": np.ones(1)}, X[0])


def test_no_rows_give_no_draws() -> None:
    drawn = MODEL.draw({"valid_acc": np.empty(0)}, X[:0], IDS[:0], 0)
    assert drawn["valid_acc"].shape == (0,)


@pytest.mark.parametrize("n", [3, N_ROWS], ids=["few", "many"])
@pytest.mark.parametrize("given", [np.int64, object, np.float64, list])
def test_ids_of_another_type_are_refused_however_many_they_are(n: int, given: type) -> None:
    ids = IDS[:n].tolist() if given is list else IDS[:n].astype(given)
    with pytest.raises(InvalidArgument, match=r"config_ids must be uint64, got \w+; jahs.config_ids\(\) returns them"):
        MODEL.draw({"valid_acc": np.ones(n)}, X[:n], np.asarray(ids, object if given is list else None), 0)
