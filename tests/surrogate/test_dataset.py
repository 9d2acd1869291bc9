"""Rows for fitting: each measurement once, on its side, and nothing that was not measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidTable, ProtocolMismatch
from jahs.files.tables import Table, take
from jahs.models.cost import n_macs
from jahs.schema import CONFIG_KEYS
from jahs.spaces.encoding import encode
from splits.kinship import group_name
from splits.split import Split, write_split
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import (
    Rows,
    assemble,
    assemble_answered,
    assemble_repeats,
    by_part,
    check_groups,
    group_numbers,
    unmeasured,
)
from surrogate.judging.agreement import ceiling
from tests.surrogate.landscape import EPOCHS, measurements, split_of, write_folder
from workshop.measured import TIMES
from workshop.numbered import FIDELITY_GROUPS, REPEATED_EVERY

MEASURED = measurements()
SPLIT = split_of(MEASURED)


def parts_of(metric: str, measured: Measurements = MEASURED, split: Split = SPLIT) -> dict[str, Rows]:
    return by_part(assemble(metric, measured), split)


def with_runs(change: Callable[[Table], Table]) -> Measurements:
    return replace(MEASURED, runs=change({name: values.copy() for name, values in MEASURED.runs.items()}))


def set_value(name: str, rows: object, value: object) -> Measurements:
    def change(runs: Table) -> Table:
        runs[name] = runs[name].astype("U16") if runs[name].dtype.kind == "U" else runs[name]
        runs[name][rows] = value
        return runs

    return with_runs(change)


def test_every_measurement_is_on_its_configs_side_once() -> None:
    parts = parts_of("valid_acc")
    assert sum(map(len, parts.values())) == len(MEASURED.runs["epoch"])
    for number, rows in enumerate(parts.values()):
        assert (SPLIT.parts_of(rows.config_id) == number).all()
        assert len(np.unique(np.column_stack([rows.config_id, rows.seed, rows.epoch]), axis=0)) == len(rows)


def test_rows_hold_their_own_config_and_value() -> None:
    rows = parts_of("test_acc")["train"]
    of_id = {int(i): k for k, i in enumerate(MEASURED.configs["config_id"])}
    runs = MEASURED.runs
    keys = zip(runs["config_id"].tolist(), runs["seed"].tolist(), runs["epoch"].tolist(), strict=True)
    values = dict(zip(keys, runs["test_acc"].tolist(), strict=True))
    for i in (0, 17, len(rows) - 1):
        config = {key: MEASURED.configs[key][[of_id[int(rows.config_id[i])]]] for key in CONFIG_KEYS}
        assert (encode(config, int(rows.epoch[i]))[0] == rows.X[i]).all()
        assert rows.y[i] == values[int(rows.config_id[i]), int(rows.seed[i]), int(rows.epoch[i])]


def test_the_order_of_rows_in_the_tables_changes_nothing() -> None:
    shuffled = with_runs(lambda runs: take(runs, np.random.default_rng(0).permutation(len(runs["epoch"]))))
    for metric in ("valid_acc", "runtime"):
        a, b = parts_of(metric)["train"], parts_of(metric, shuffled)["train"]
        assert a.X.tobytes() == b.X.tobytes()
        assert a.y.tobytes() == b.y.tobytes()


def test_a_runtime_row_is_a_runs_seconds_per_epoch() -> None:
    rows = parts_of("runtime")["train"]
    assert (rows.epoch == EPOCHS[-1]).all()
    cumulative = by_part(assemble_answered("runtime", MEASURED), SPLIT)["train"]
    last = cumulative.take(cumulative.epoch == EPOCHS[-1])
    assert rows.y == pytest.approx(last.y / EPOCHS[-1])
    assert (rows.config_id == last.config_id).all()


def test_a_latency_row_is_a_config() -> None:
    rows = parts_of("latency")
    assert sum(map(len, rows.values())) == len(MEASURED.profile["latency"])
    assert (rows["train"].epoch == 1).all()


def test_a_config_that_is_only_profiled_trains_the_latency_model_and_nothing_else() -> None:
    waiting = SPLIT.config_ids[SPLIT.parts == 2][:5]
    is_split = ~np.isin(SPLIT.config_ids, waiting)
    split = replace(SPLIT, config_ids=SPLIT.config_ids[is_split], parts=SPLIT.parts[is_split])
    measured = with_runs(lambda runs: take(runs, ~np.isin(runs["config_id"], waiting)))
    before, after = parts_of("latency"), parts_of("latency", measured, split)
    assert set(after["train"].config_id) == {*before["train"].config_id, *waiting}
    assert set(after["test"].config_id) == {*before["test"].config_id} - {*waiting}
    assert (after["valid"].config_id == before["valid"].config_id).all()
    for metric in ("valid_acc", "runtime"):
        assert not np.isin(
            np.concatenate([r.config_id for r in parts_of(metric, measured, split).values()]), waiting
        ).any()
    assert not np.isin(parts_of("n_macs", measured, split)["train"].config_id, waiting).any()


def test_a_diverged_run_gives_its_rows_before_the_epoch_in_which_it_diverged() -> None:
    ids, seeds = MEASURED.runs["config_id"], MEASURED.runs["seed"]
    run = (ids == ids[0]) & (seeds == seeds[0])

    def diverge(runs: Table) -> Table:
        runs["status"] = np.where(run, "diverged", runs["status"])
        runs["valid_acc"][run & (runs["epoch"] == 6)] = np.nan
        return take(runs, ~(run & (runs["epoch"] > 6)))

    measured = with_runs(diverge)
    rows = next(r for r in parts_of("valid_acc", measured).values() if ids[0] in r.config_id)
    assert rows.epoch[(rows.config_id == ids[0]) & (rows.seed == seeds[0])].tolist() == [1, 3]
    times = next(r for r in parts_of("runtime", measured).values() if ids[0] in r.config_id)
    assert times.epoch[(times.config_id == ids[0]) & (times.seed == seeds[0])].tolist() == [3]


def test_runs_on_an_accelerator_give_accuracies_and_no_epoch_time() -> None:
    on_gpu = MEASURED.runs["seed"] > 0
    measured = with_runs(
        lambda runs: {
            **runs,
            "runtime": np.where(on_gpu, np.nan, runs["runtime"]),
            "device": np.where(on_gpu, "an accelerator", "cpu"),
        }
    )
    assert sum(map(len, parts_of("valid_acc", measured).values())) == len(on_gpu)
    assert all((rows.seed == 0).all() for rows in parts_of("runtime", measured).values())


def test_runs_on_another_processor_give_accuracies_and_no_epoch_time() -> None:
    """Also where they are more than those on the profile's."""
    is_elsewhere = MEASURED.runs["seed"] < 2
    measured = set_value("machine", is_elsewhere, "another processor")
    assert sum(map(len, parts_of("valid_acc", measured).values())) == len(is_elsewhere)
    for assembled in (assemble, assemble_answered):
        assert all((rows.seed == 2).all() for rows in by_part(assembled("runtime", measured), SPLIT).values())
    assert unmeasured(measured, SPLIT) == {}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("valid_acc", np.nan, r"valid_acc: 2 of \d+ values are invalid \(2 NaN\); they must be in \[0, 100\]"),
        ("train_acc", 100.5, r"2 of .*0 NaN.*\[0, 100\]: 100.5 at config_id=[0-9a-f]{16} s"),
        ("runtime", np.nan, r"runtime: 2 of .*2 NaN"),
        ("runtime", 0.0, r"runtime: 2 of .* and above 0"),
        ("epoch", 0, "runs: 2 epochs are below 1"),
    ],
)  # fmt: skip
def test_invalid_values_are_refused_when_they_are_read(column: str, value: float, message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        set_value(column, [3, 7], value)


def test_every_metric_with_invalid_values_is_named_at_once() -> None:
    runs = {**MEASURED.runs, "valid_acc": np.full(len(MEASURED.runs["epoch"]), np.nan)}
    profile = {**MEASURED.profile, "latency": -MEASURED.profile["latency"]}
    with pytest.raises(InvalidTable, match=r"valid_acc: (.|\n)*latency: 270 of 270 values"):
        replace(MEASURED, runs=runs, profile=profile)


def test_duplicate_rows_are_refused() -> None:
    with pytest.raises(InvalidTable, match=r"runs: 2 rows occur more than once: config_id=[0-9a-f]{16} seed=0 epoch=1"):
        with_runs(lambda runs: take(runs, np.append(np.arange(len(runs["epoch"])), [0, 5])))


def test_configs_that_are_not_in_the_table_are_refused() -> None:
    configs = take(MEASURED.configs, np.arange(len(MEASURED.configs["N"])) != 5)
    message = r"runs: 1 configs are not in the config table(.|\n)*profile: 1 configs are not in the config table"
    with pytest.raises(InvalidTable, match=message):
        replace(MEASURED, configs=configs)


def test_a_split_that_does_not_fit_is_refused_when_it_is_read(tmp_path: Path) -> None:
    runs = write_folder(tmp_path / "runs", MEASURED)
    write_split(tmp_path / "fewer.json", replace(SPLIT, config_ids=SPLIT.config_ids[3:], parts=SPLIT.parts[3:]))
    with pytest.raises(InvalidTable, match="3 of 270 recorded configs are not in the split"):
        read_with_split(runs, tmp_path / "fewer.json")
    write_split(tmp_path / "other.json", replace(SPLIT, protocol="feed", task="digits"))
    with pytest.raises(
        ProtocolMismatch, match=rf"protocol feed \(digits\), but the runs have \w+ \({MEASURED.task.name}\)"
    ):
        read_with_split(runs, tmp_path / "other.json")


def test_answers_about_runtime_are_compared_with_cumulative_seconds() -> None:
    answered = assemble_answered("runtime", MEASURED)
    assert set(answered.epoch.tolist()) == set(EPOCHS)
    assert sorted(answered.y.tolist()) == sorted(MEASURED.runs["runtime"].tolist())


def test_exact_costs_are_one_row_a_trained_config() -> None:
    parts = parts_of("n_macs", MEASURED, SPLIT)
    assert sum(map(len, parts.values())) == len(np.unique(MEASURED.runs["config_id"]))
    assert parts["train"].y.tolist() == n_macs(parts["train"].X, MEASURED.task).tolist()


def test_metrics_without_a_measurement_are_named_with_the_reason() -> None:
    assert unmeasured(MEASURED, SPLIT) == {}
    elsewhere = {**MEASURED.runs, "device": np.full(len(MEASURED.runs["epoch"]), "an accelerator")}
    nothing = take(MEASURED.profile, np.zeros(len(MEASURED.profile["latency"]), dtype=bool))
    assert set(unmeasured(replace(MEASURED, runs=elsewhere, profile=nothing), SPLIT)) == {"latency", "runtime"}
    is_first = MEASURED.runs["config_id"] == SPLIT.config_ids[SPLIT.parts == 0][0]
    almost = set_value("machine", ~is_first, "another processor")
    assert unmeasured(almost, SPLIT) == {"runtime": "1 training configs were timed on a processor"}


def test_what_was_measured_of_no_training_config_is_unmeasured() -> None:
    held_out = SPLIT.config_ids[SPLIT.parts != 0]
    is_timed = np.isin(MEASURED.runs["config_id"], held_out)
    profile = take(MEASURED.profile, np.isin(MEASURED.profile["config_id"], held_out))
    measured = replace(set_value("machine", ~is_timed, "another processor"), profile=profile)
    assert unmeasured(measured, SPLIT) == {
        "latency": "0 training configs were profiled",
        "runtime": "0 training configs were timed on a processor",
    }


def test_a_digest_stands_for_what_was_measured() -> None:
    assert digest_measurements(measurements()) == digest_measurements(measurements())
    assert digest_measurements(set_value("valid_acc", [0], 1.0)) != digest_measurements(measurements())
    assert digest_measurements(set_value("machine", [0], "another")) != digest_measurements(measurements())


def test_what_configs_were_trained_for_is_no_measurement() -> None:
    n_configs = len(MEASURED.configs["N"])
    sources = {
        name: np.full(n_configs, value) for name, value in {"source": "best", "round": 1, "release": "ab"}.items()
    }
    proposed = replace(MEASURED, configs={**MEASURED.configs, **sources})
    assert digest_measurements(proposed) == digest_measurements(MEASURED)
    split = split_of(MEASURED)
    for metric in ("valid_acc", "runtime", "latency"):
        one, other = parts_of(metric, proposed, split), parts_of(metric, MEASURED, split)
        assert all(np.array_equal(one[part].X, other[part].X) for part in one)


def test_groups_are_named_by_their_numbers() -> None:
    rows = parts_of("valid_acc")["train"]
    for x, number in zip(rows.X[:40], group_numbers(rows.X[:40]).tolist(), strict=True):
        assert group_name(FIDELITY_GROUPS[number]) == f"N={x[2]:g} W={x[12]:g} Resolution={x[10]:g}"


def test_an_empty_profile_says_how_to_make_one() -> None:
    empty = take(MEASURED.profile, np.zeros(len(MEASURED.profile["latency"]), dtype=bool))
    with pytest.raises(InvalidTable, match=r"no measurement in profile.parquet; run python -m pipeline.profile"):
        assemble("latency", replace(MEASURED, profile=empty))


def test_groups_with_too_few_configs_are_counted_and_named() -> None:
    rows = parts_of("valid_acc")["train"]
    check_groups("valid_acc", rows, fewest=7)
    some = rows.take((group_numbers(rows.X) != 26) & (group_numbers(rows.X) != 1))
    with pytest.raises(
        InvalidTable, match=r"2 of 27 fidelity groups have fewer than 7.*N=1 W=4 Resolution=0.5 has 0, N=5 W=16"
    ):
        check_groups("valid_acc", some, fewest=7)


def test_a_latency_is_repeated_by_the_other_half_of_its_visits() -> None:
    rows = assemble_repeats("latency", measured_with_visits(n_visits=3))
    ids = MEASURED.profile["config_id"]
    assert {*zip(rows.config_id.tolist(), rows.seed.tolist(), strict=True)} == {*product(ids.tolist(), (0, 1))}
    assert len(rows) == 2 * len(ids)
    even = rows.take(rows.seed == 0)
    at = np.argsort(ids)
    np.testing.assert_allclose(even.y, MEASURED.profile["latency"][at], rtol=1e-6)  # its least visit is the first
    np.testing.assert_allclose(rows.take(rows.seed == 1).y, even.y * 1.5, rtol=1e-6)
    assert rows.epoch.tolist() == [1] * len(rows)
    assert ceiling("latency", rows)["tau"] == pytest.approx(1.0)


def test_configs_that_were_repeated_for_their_results_give_no_ceiling_if_there_are_enough_others() -> None:
    configs, everywhere = MEASURED.configs, set(MEASURED.runs["config_id"].tolist())
    numbers, ids = configs["config_index"], configs["config_id"]

    def repeats(metric: str, *, is_best: np.ndarray) -> set[int]:
        measured = replace(MEASURED, configs={**configs, "source": np.where(is_best, "best", "uniform")})
        return set(assemble_repeats(metric, measured).config_id.tolist())

    is_best = numbers % 50 == 0
    others = set(ids[(numbers % REPEATED_EVERY == 0) & ~is_best].tolist())
    assert len(others) == 21
    assert repeats("valid_acc", is_best=is_best) == others
    assert repeats("runtime", is_best=is_best) == everywhere  # they were not chosen by it
    assert repeats("valid_acc", is_best=numbers > 150) == everywhere  # too few are left


@pytest.mark.parametrize("n_visits", [0, 1])
def test_without_two_visits_no_latency_is_repeated(n_visits: int) -> None:
    rows = assemble_repeats("latency", measured_with_visits(n_visits=n_visits))
    assert len(rows) == 0
    assert ceiling("latency", rows)["tau"] is None


def test_visits_are_checked_like_every_other_table() -> None:
    visits = measured_with_visits(n_visits=2).visits
    twice = {name: np.append(values, values[:1]) for name, values in visits.items()}
    with pytest.raises(InvalidTable, match=r"visits: 1 rows occur more than once: .* visit=0 repeat=0"):
        replace(MEASURED, visits=twice)
    unknown = {**visits, "config_id": visits["config_id"] + np.uint64(1)}
    with pytest.raises(InvalidTable, match=r"visits: .* configs are not in the config table"):
        replace(MEASURED, visits=unknown)
    assert digest_measurements(replace(MEASURED, visits=visits)) != digest_measurements(MEASURED)


def measured_with_visits(*, n_visits: int) -> Measurements:
    """Visit number v takes 1 + v / 2 times as long as the profile says."""
    profile = MEASURED.profile
    n_configs = len(profile["config_id"])
    visits = {
        "config_id": np.repeat(profile["config_id"], n_visits),
        "visit": np.tile(np.arange(n_visits, dtype=np.int8), n_configs),
        "repeat": np.zeros(n_configs * n_visits, np.int8),
        **{name: np.repeat(profile[name], n_visits) for name in ("machine", "torch_version", "protocol")},
    }
    slower = 1 + visits["visit"] / 2
    times = {name: (np.repeat(profile[name], n_visits) * slower).astype(np.float32) for name in TIMES}
    return replace(MEASURED, visits={**visits, **times})
