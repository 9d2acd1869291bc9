"""Views: what is searched, fixed or a fidelity, and that a view answers what the benchmark answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, MissingData
from jahs.queries.views import FIDELITIES, View
from jahs.schema import CONFIG_KEYS, OPS
from jahs.simulate import visible
from jahs.spaces.space import GROUPS
from tests.fake_bench import FakeBench

BENCH = FakeBench()
SHARES = st.floats(0, 1, exclude_min=True)
SUBSETS = st.lists(st.sampled_from(FIDELITIES), min_size=1, unique=True)


def view(*, fidelities=("epoch", "Resolution"), fixed=None, search="all") -> View:
    return View(BENCH, fidelities=fidelities, fixed={"N": 5, "W": 16} if fixed is None else fixed, search=search)


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_neither_fixed_nor_a_fidelity_is_searched() -> None:
    searched = set(view().space.searched)
    assert searched == set(CONFIG_KEYS) - {"N", "W", "Resolution"}
    assert view().space.fixed == {"N": 5, "W": 16, "Resolution": 1.0}
    assert set(View(BENCH).space.searched) == set(CONFIG_KEYS)


@pytest.mark.parametrize(
    ("search", "searched"),
    [
        ("nas", OPS),
        ("hpo", GROUPS["hyperparameters"]),
        ("LearningRate", ("LearningRate",)),
        (("W", "Op1"), ("Op1", "W")),
        ((), ()),
    ],
    ids=["nas", "hpo", "one-key", "keys", "none"],
)
def test_the_rest_is_fixed_at_defaults_but_sizes_are_full(search: object, searched: tuple[str, ...]) -> None:
    chosen = View(BENCH, search=search, fixed="default")
    assert chosen.space.searched == tuple(sorted(searched, key=CONFIG_KEYS.index))
    rest = {**BENCH.space.default(), "N": 5, "W": 16, "Resolution": 1.0}
    assert chosen.space.fixed == {key: rest[key] for key in CONFIG_KEYS if key not in searched}


def test_what_is_not_searched_is_fixed_at_the_reference_and_a_mapping_changes_single_keys() -> None:
    bench = FakeBench()
    bench.reference_config = {**bench.space.sample(seed=4), "N": 5, "W": 16, "Resolution": 1.0}
    reference = {key: bench.reference_config[key] for key in CONFIG_KEYS if key not in GROUPS["hyperparameters"]}
    assert (
        View(bench, search="hpo").space.fixed == View(bench, search="hpo", fixed="reference").space.fixed == reference
    )
    assert View(bench, search="hpo", fixed={"Op1": 1, "N": 3}).space.fixed == {**reference, "Op1": 1, "N": 3}


@pytest.mark.parametrize("fixed", ["reference", {"N": 3}], ids=repr)
def test_without_a_reference_a_view_that_needs_one_names_the_alternatives(fixed: object) -> None:
    bench = FakeBench()
    bench.reference_config = None
    with pytest.raises(MissingData, match=r"has no reference_config; give fixed='default', or values for every key"):
        View(bench, search="nas", fixed=fixed)
    rates = {"Activation": "Mish", "LearningRate": 0.03, "TrivialAugment": True, "WeightDecay": 1e-4}
    assert View(bench, search="nas", fixed=rates).space.searched == OPS
    assert View(bench, search="nas", fixed="default").space.searched == OPS
    assert View(bench, fidelities=FIDELITIES).space.fixed == {"N": 5, "Resolution": 1.0, "W": 16}


def test_repr_shows_what_can_be_searched_and_every_value_that_is_fixed() -> None:
    assert repr(View(BENCH, search="hpo", fidelities=("epoch", "Resolution"))).endswith(
        ": searches Activation, LearningRate, TrivialAugment, WeightDecay; fidelities epoch, Resolution; "
        "fixes N=5, Op1=0, Op2=0, Op3=0, Op4=0, Op5=0, Op6=0, W=16>"
    )
    assert repr(View(BENCH)).endswith("W, WeightDecay; fidelities epoch; fixes nothing>")
    assert "Optimizer" not in repr(View(BENCH)) + repr(View(BENCH, search="nas"))


def test_a_named_search_leaves_out_what_is_fixed() -> None:
    assert View(BENCH, fixed={"Op1": 2}, search="nas").space.searched == OPS[1:]


def test_fidelities_have_their_legal_values_in_order_and_the_full_one_is_the_highest() -> None:
    chosen = view(fidelities=("Resolution", "epoch", "W"), fixed={})
    assert dict(chosen.fidelities) == {"epoch": tuple(range(1, 13)), "W": (4, 8, 16), "Resolution": (0.25, 0.5, 1.0)}
    assert dict(chosen.full) == {"epoch": 12, "W": 16, "Resolution": 1.0}
    assert chosen.max_epoch == 12


def test_every_contradiction_is_told_at_once() -> None:
    with pytest.raises(InvalidArgument) as caught:
        View(
            BENCH,
            fidelities=("epoch", "N", "N", "width"),
            fixed={"N": 3, "LearningRate": 7.0, "Op1": 2, "Depth": 1},
            search=("Op1", "N", "Op9"),
        )
    lines = str(caught.value).splitlines()
    assert lines == [
        "fidelities: 'width' is not one of epoch, N, W, Resolution",
        "fidelities: N is repeated",
        "fixed: N cannot be both fixed and a fidelity",
        "fixed: LearningRate=7.0 is outside [0.001, 1.0] (nearest: 1.0)",
        "fixed: Depth is not a key of a config (did you mean N?)",
        "search: 'Op9' is not one of all, nas, hpo, " + ", ".join(CONFIG_KEYS),
        "search: N cannot be both searched and a fidelity",
    ]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"fidelities": ()}, "fidelities is empty; give one or more of epoch, N, W, Resolution"),
        ({"fidelities": None}, "fidelities: None is not one of"),
        ({"fidelities": {"epoch": 9}}, "fidelities is a mapping; give names, and the values of a query as at="),
        ({"search": {"N": 5}}, "search is a mapping; give names, and values as fixed="),
        ({"fixed": {"epoch": 3}, "fidelities": "N"}, "fixed: epoch is not a key of a config"),
        ({"fixed": {"epoch": 3}}, "fixed: epoch cannot be both fixed and a fidelity"),
        ({"fixed": [("N", 5)]}, "fixed must be 'reference', 'default' or a mapping of keys to values, got"),
        ({"fixed": "best"}, "fixed must be 'reference', 'default' or a mapping of keys to values, got 'best'"),
        ({"fixed": {"Op1": 2}, "search": ["Op1"]}, "search: Op1 cannot be both searched and fixed"),
        ({"search": "everything"}, "search: 'everything' is not one of all, nas, hpo"),
        ({"search": 3}, "search: 3 is not one of"),
        ({"search": [["N"]]}, r"search: \['N'\] is not one of"),
        ({"search": [np.array(["N", "W"])]}, "search: array.* is not one of"),
    ],
)
def test_a_view_that_makes_no_sense_is_refused(choice: dict, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        View(BENCH, **choice)


def test_a_view_of_a_view_is_refused_since_it_would_ignore_what_that_one_fixes() -> None:
    with pytest.raises(InvalidArgument, match=r"fixes N=5, W=16> is a view itself; .* from its benchmark, VIEW.bench"):
        View(View(BENCH, fixed={"N": 5, "W": 16}))


def test_integers_are_epochs_whether_they_are_a_list_or_an_array() -> None:
    mf = view()
    configs = mf.sample(3, seed=0)
    lists, arrays = (mf.query_many(configs, each_at=at)["valid_acc"] for at in ([1, 5, 12], np.array([1, 5, 12])))
    singles = [mf.query(config, at=epoch).valid_acc for config, epoch in zip(configs, (1, 5, 12), strict=True)]
    assert lists.tolist() == arrays.tolist() == singles
    with pytest.raises(InvalidFidelity, match=r"epoch=13 is not an integer in 1\.\.12"):
        mf.query_many(configs, each_at=np.array([1, 5, 13]))
    without = View(BENCH, fixed={"N": 5, "W": 16}, fidelities=("Resolution",))
    with pytest.raises(InvalidFidelity, match="every query of this view is at epoch 12"):
        without.query_many(configs, each_at=np.array([1, 5, 12]))


def test_an_optimiser_cannot_change_the_view_that_scores_it() -> None:
    mf = view()
    visible(mf).fidelities["epoch"] = (1, 2, 3)  # type: ignore[index]  # a dict of its own
    assert mf.full["epoch"] == 12


def test_a_query_is_the_benchmarks_at_the_views_fidelity() -> None:
    mf = view()
    config = mf.sample(seed=1)
    result = mf.query(config, at={"epoch": 3, "Resolution": 0.5}, seed=7)
    assert result.values == BENCH.query({**config, "Resolution": 0.5}, at=3, seed=7).values
    assert result.fidelity == {"epoch": 3, "Resolution": 0.5}
    assert mf.query(config, at=result.fidelity, seed=7) == result
    assert mf.query(config, at=3).values == BENCH.query(config, at=3).values
    assert mf.query(config).values == BENCH.query(config, at=12).values
    assert mf.query(config, at={"Resolution": 0.25}).fidelity == {"epoch": 12, "Resolution": 0.25}


def test_many_queries_are_single_queries_in_every_form() -> None:
    mf = view()
    configs = mf.sample(6, seed=0)
    there = [4, {"Resolution": 0.25}, {"epoch": 1, "Resolution": 0.5}]
    wide = mf.query_many(configs, at=there, seed=1)
    assert wide["valid_acc"].shape == (6, 3)
    for j, at in enumerate(there):
        single = [mf.query(config, at=at, seed=1).values for config in configs]
        alone = mf.query_many(configs, at=at, seed=1)
        each = mf.query_many(configs, each_at=[at] * 6, seed=1)
        for name in mf.metrics:
            expected = [values[name] for values in single]
            assert wide[name][:, j].tolist() == alone[name].tolist() == each[name].tolist() == expected
    columns = {key: np.array([config[key] for config in configs]) for key in mf.space.searched}
    assert same(mf.query_many(columns, at=there, seed=1), wide)
    assert same(mf.query_many(configs, metrics=["runtime"]), {"runtime": mf.query_many(configs)["runtime"]})


def test_one_config_or_a_number_is_not_many_configs() -> None:
    mf = view()
    whole = mf.sample(seed=0)
    for one in (whole, {key: whole[key] for key in mf.space.searched}):
        with pytest.raises(InvalidArgument, match="configs is one config, not columns; give a list of configs"):
            mf.query_many(one)
    with pytest.raises(InvalidArgument, match="configs=5 is not an iterable of configs"):
        mf.query_many(5)


def test_a_list_is_a_column_whatever_it_holds() -> None:
    mf = View(BENCH, fixed={"W": 16})
    columns = {key: values.tolist() for key, values in mf.space.sample_columns(2, seed=0).items() if key != "W"}
    first = next(iter(columns))
    with pytest.raises(InvalidConfig, match=rf"{first}=\[1\] is a list.*\(row 0\)"):
        mf.query_many({**columns, first: [[1], [1, 2]]})
    assert same(mf.query_many(columns), mf.query_many({**columns, "W": [16, 16]}))


def test_a_trajectory_stays_at_one_size() -> None:
    mf = view()
    config = mf.sample(seed=1)
    low = mf.trajectory(config, frm=2, to={"epoch": 8, "Resolution": 0.5}, step=3)
    assert low["epoch"].tolist() == [2, 5, 8]
    assert low["valid_acc"].tolist() == [
        mf.query(config, at={"epoch": e, "Resolution": 0.5}).valid_acc for e in (2, 5, 8)
    ]
    assert same(mf.trajectory(config), BENCH.trajectory(config))
    assert same(mf.trajectory(config, to=3), BENCH.trajectory(config, to=3))
    assert same(mf.trajectory(config, to={"Resolution": 1.0}), BENCH.trajectory(config))
    for last in (None, 0, 13, 2.5):
        with pytest.raises(InvalidFidelity, match=r"to=.* is not an integer in 1\.\.12"):
            mf.trajectory(config, to={"epoch": last})


def test_fixed_keys_may_be_left_out_and_must_not_be_contradicted() -> None:
    mf = view()
    whole = mf.sample(seed=0)
    part = {key: whole[key] for key in mf.space.searched}
    assert mf.query(part).values == mf.query(whole).values
    wrong = {**part, "N": 3, "Resolution": 0.5}
    said = r"N=3 is fixed at 5 in this space.*\n?.*Resolution=0.5 is fixed at 1.0 in this space"
    with pytest.raises(InvalidConfig, match=said):
        mf.query(wrong)
    with pytest.raises(InvalidConfig, match=r"N=3 is fixed at 5 in this space \(config 1\)"):
        mf.query_many([part, wrong])
    with pytest.raises(InvalidConfig, match=r"N=1 is fixed at 5 in this space \(row 0\)"):
        mf.query_many({**mf.space.sample_columns(2, seed=0), "N": np.array([1, 5])})
    with pytest.raises(InvalidConfig, match=r"LearningRate=9.0 is outside \[0.001, 1.0\] .*\(config 1\)"):
        mf.query_many([part, {**part, "LearningRate": 9.0}])


def test_one_config_and_many_report_the_same_faults() -> None:
    mf = view()
    part = {key: value for key, value in mf.sample(seed=0).items() if key in mf.space.searched}
    wrong = {**part, "N": 3, "Op1": 9}
    with pytest.raises(InvalidConfig) as one:
        mf.query(wrong)
    assert [fault.split(" ")[0] for fault in one.value.faults] == ["Op1=9", "N=3"]
    with pytest.raises(InvalidConfig) as many:
        mf.query_many([part, wrong])
    assert many.value.faults == tuple(f"{fault} (config 1)" for fault in one.value.faults)
    with pytest.raises(InvalidConfig) as columns:
        mf.query_many({key: [value] for key, value in wrong.items()})
    assert sorted(columns.value.faults) == sorted(f"{fault} (row 0)" for fault in one.value.faults)


def test_the_groups_of_keys_may_be_listed_beside_keys() -> None:
    nas = ("Op1", "Op2", "Op3", "Op4", "Op5", "Op6")
    assert View(BENCH, search=["nas", "LearningRate"], fixed="default").space.searched == ("LearningRate", *nas)
    both, whole = (View(BENCH, search=search, fixed="default") for search in (["nas", "hpo"], "all"))
    assert {*both.space.searched} == {*whole.space.searched} - {"N", "W", "Resolution"}
    assert View(BENCH, search=["nas"], fixed={"Op2": 0}).space.searched == ("Op1", *nas[2:])
    with pytest.raises(InvalidArgument, match="search: 'cell' is not one of all, nas, hpo, Activation"):
        View(BENCH, search=["nas", "cell"])


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0, r"epoch=0 is not an integer in 1\.\.12"),
        (1.5, r"epoch=1\.5 is not an integer in 1\.\.12; bench\.fidelity\(\) rounds"),
        ({"epoch": 2, "Resolution": 0.3}, r"Resolution=0\.3 is not one of"),
        (
            {"N": 3},
            "N=3 is not a fidelity of this view, which fixes it at 5; the fidelities of this",
        ),
        ({"depth": 3}, "'depth' is not a fidelity; the fidelities of this view are epoch, Resolution"),
        ({"epoch": 0, "Resolution": 2}, r"(?s)epoch=0 is.*Resolution=2 is"),
    ],
    ids=["zero", "half", "illegal", "fixed", "unknown", "two-faults"],
)
def test_a_fidelity_that_a_view_does_not_have_is_refused(at: object, said: str) -> None:
    config = view().sample(seed=0)
    for ask in (
        lambda: view().query(config, at=at),
        lambda: view().query_many([config], at=at),
        lambda: view().query_many([config], at=[at]),
        lambda: view().query_many([config], each_at=[at]),
    ):
        with pytest.raises(InvalidFidelity, match=said):
            ask()


def test_a_searched_size_stands_in_the_config_and_not_in_the_fidelity() -> None:
    with pytest.raises(InvalidFidelity, match="N=3: N is searched in this view and belongs in the config"):
        View(BENCH).query(BENCH.sample(seed=0), at={"N": 3})


def test_a_view_without_epochs_is_always_at_the_last_one() -> None:
    sizes = view(fidelities="N", fixed={})
    config = sizes.sample(seed=0)
    assert sizes.query(config, at={"N": 1}).values == BENCH.query({**config, "N": 1}, at=12).values
    assert sizes.query(config, at={"N": 1, "epoch": 12}).fidelity == {"epoch": 12, "N": 1}
    with pytest.raises(InvalidFidelity, match="epoch=5: every query of this view is at epoch 12"):
        sizes.query(config, at=5)


@given(SUBSETS, SHARES, SHARES)
def test_along_the_path_every_fidelity_is_legal_and_grows(names: list[str], a: float, b: float) -> None:
    chosen = View(BENCH, fidelities=names)
    low, high = chosen.path(min(a, b)), chosen.path(max(a, b))
    assert list(low) == list(chosen.fidelities)
    assert all(low[name] in chosen.fidelities[name] and low[name] <= high[name] for name in low)
    assert chosen.fidelity(low) == {"epoch": 12, **low}


@given(SUBSETS)
def test_the_path_ends_at_the_full_fidelity_and_begins_at_the_lowest(names: list[str]) -> None:
    chosen = View(BENCH, fidelities=names)
    assert chosen.path(1.0) == chosen.path(1) == dict(chosen.full)
    assert chosen.path(1e-9) == {name: values[0] for name, values in chosen.fidelities.items()}


def test_thirds_of_the_path_are_the_steps_of_the_published_diagonal() -> None:
    diagonal = View(BENCH, fidelities=FIDELITIES)
    assert diagonal.path(1 / 9) == {"epoch": 1, "N": 1, "W": 4, "Resolution": 0.25}
    assert diagonal.path(1 / 3) == {"epoch": 4, "N": 3, "W": 8, "Resolution": 0.5}


@pytest.mark.parametrize("s", [0, -0.1, 1.01, float("nan"), 10**400, True, "1", None], ids=lambda s: repr(s)[:9])
def test_a_share_is_a_number_above_zero_up_to_one(s: object) -> None:
    with pytest.raises(InvalidFidelity, match=r"share=.* must be in \(0, 1\]; 1 is the full fidelity"):
        view().path(s)


def test_a_trajectory_starts_at_an_epoch_and_its_sizes_are_in_to() -> None:
    mf = View(BENCH, fidelities=("epoch", "N"))
    with pytest.raises(InvalidFidelity, match=r"frm=.* must be an epoch; give N in to="):
        mf.trajectory(mf.sample(seed=0), frm={"epoch": 2, "N": 1}, to={"epoch": 3, "N": 1})
    with pytest.raises(InvalidFidelity, match=r"rounds to 1e\+308, which is outside"):
        mf.bench.fidelity(1e308)


def test_rounding_is_half_to_even_and_only_where_it_is_asked_for() -> None:
    mf = view()
    assert mf.fidelity({"epoch": 2.469}) == {"epoch": 2, "Resolution": 1.0}
    assert [mf.fidelity(e)["epoch"] for e in (2.5, 3.5, np.float32(11.6))] == [2, 4, 12]
    assert mf.fidelity() == dict(mf.full)
    for wrong in (0.4, 12.6, float("nan"), float("inf")):
        with pytest.raises(InvalidFidelity, match="epoch="):
            mf.fidelity(wrong)
