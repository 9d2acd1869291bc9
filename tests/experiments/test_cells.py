"""The landscape of all cells: exact sums over functions whose landscape is known."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import rankdata

from experiments.science.cells import (
    CUTS,
    GONE,
    MEASURES,
    _beside,
    cells_page,
    live_shape,
    measure_cells,
    measures_of,
    replacements,
)
from experiments.science.moves import autocorrelation_of_cells, distance_to, means_of_points
from experiments.science.step_times import step_changes
from experiments.science.subjects import MAIN, fidelities_of, open_subject, values_of_cells
from jahs.release import RecordedTable
from jahs.spaces.cell import EDGES, PATHS, all_ops, canonical_keys
from jahs.spaces.cell.operations import CONV3X3
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from surrogate.data.rows import GROUP_VALUES
from tests.experiments.conftest import TASK
from workshop.exhaustive import ops_of
from workshop.pages.markdown import to_markdown

SHAPE = (5,) * 6
OPS = all_ops()
RNG = np.random.default_rng(0)


def test_values_of_one_edge_decay_by_the_chance_that_it_moved():
    values = OPS[:, 0].astype(float).reshape(SHAPE)
    correlations = autocorrelation_of_cells(values, 3)
    assert correlations == pytest.approx([(1 - 5 / 24) ** step for step in (1, 2, 3)])


def test_noise_has_no_neighbours():
    assert abs(autocorrelation_of_cells(RNG.normal(size=SHAPE), 1)[0]) < 0.02


def test_distances_are_numbers_of_changed_edges():
    chosen = np.zeros(SHAPE, np.bool_)
    chosen[2, 2, 2, 2, 2, 2] = True
    plain, canonical = (distance_to(chosen, is_canonical=flag) for flag in (False, True))
    assert plain.ravel().tolist() == (OPS != 2).sum(axis=1).tolist()
    assert (canonical <= plain).all()
    same = (canonical_keys(OPS) == canonical_keys(OPS[chosen.ravel()])[0]).reshape(SHAPE)
    assert (canonical[same] == 0).all()
    dead = chosen & False
    dead[1, 1, 1, 1, 1, 1] = True  # all zero
    assert distance_to(dead, is_canonical=True)[1, 1, 1, 3, 1, 1] == 0  # no live path goes over the fourth edge
    assert distance_to(dead, is_canonical=False)[1, 1, 1, 3, 1, 1] == 1


def test_functions_are_points_with_the_mean_of_their_cells_and_walks_go_from_function_to_function():
    keys = canonical_keys(OPS)
    values = RNG.normal(size=SHAPE)
    assert means_of_points(values, is_canonical=True)[7] == pytest.approx(values.ravel()[keys == 7].mean())
    assert means_of_points(values, is_canonical=False) == pytest.approx(values.ravel())

    pairs = set()
    for edge, op in product(range(6), range(5)):
        moved = OPS.copy()
        moved[:, edge] = op
        pairs.update(zip(keys.tolist(), canonical_keys(moved).tolist(), strict=True))
    neighbors = np.array([(one, other) for one, other in pairs if one != other])
    ranks = rankdata(means_of_points(values, is_canonical=True))
    one_step = autocorrelation_of_cells(values, 1, is_canonical=True)[0]
    assert one_step == pytest.approx(np.corrcoef(ranks[neighbors].T)[0, 1])


def test_a_replacement_changes_by_the_difference_of_operations():
    worth = np.array([0.0, -5.0, 3.0, 2.0, 1.0])
    values = worth[OPS].sum(axis=1).reshape(SHAPE)
    every, good, others = replacements(values)
    assert every == pytest.approx(worth[None, :] - worth[:, None])
    assert good == pytest.approx(every)
    assert others == pytest.approx(every)


def test_cells_chosen_by_their_accuracy_lose_by_any_replacement():
    every, good, others = replacements(RNG.normal(size=SHAPE))
    apart = ~np.eye(5, dtype=bool)
    assert abs(every[apart]).max() < 0.1
    assert good[apart].max() < -0.5
    assert others[apart].min() > 0.5
    assert np.isnan(replacements(np.ones(SHAPE))[2]).all()  # no cell is below the median


def test_both_halves_and_the_intervals_of_every_fidelity_are_on_the_page(release_with_refits):
    subject = open_subject(TASK, release_with_refits)
    fidelities = [LARGEST, {"N": 1, "W": 4, "Resolution": 0.25}, {**LARGEST, "epoch": 1}]
    landscape = measure_cells(subject, fidelities=fidelities)
    values, errors = landscape["by fidelity"]
    assert values.shape == errors.shape == (3, len(MEASURES) + 1)
    assert values[0, :-1] == pytest.approx(landscape["measures"].values)
    assert values[0, -1] == pytest.approx(1)
    assert errors[0, :-1] == pytest.approx(landscape["measures"].errors)
    page = to_markdown(cells_page([subject]), has_png=False)
    for cut in CUTS[:2]:
        assert f"| replacing a 3x3 by a 1x1 convolution, in {cut} | Fashion-MNIST" in page
    assert "two cells that differ in one operation have accuracy ranks that correlate at" in page


def test_the_fidelities_are_all_sizes_and_earlier_epochs(release_with_refits):
    bench = open_subject(TASK, release_with_refits).bench
    found = fidelities_of(bench)
    assert [{**size, "epoch": bench.max_epoch} for size in GROUP_VALUES] == found[: len(GROUP_VALUES)]
    epochs = [fidelity["epoch"] for fidelity in found[len(GROUP_VALUES) :]]
    assert epochs == sorted(set(epochs))
    assert max(epochs) < bench.max_epoch
    first, last = (values_of_cells(bench, MAIN, {**LARGEST, "epoch": epoch}) for epoch in (1, bench.max_epoch))
    assert (first != last).any()
    assert (last == values_of_cells(bench, MAIN, LARGEST)).all()


def test_a_wider_cell_has_a_greater_directed_cut():
    edges, is_live = list(EDGES), np.zeros(OPS.shape, np.bool_)
    for path, alive in zip(PATHS, live_paths(OPS).T, strict=True):
        is_live[np.ix_(alive, [edges.index(edge) for edge in pairwise(path)])] = True
    cuts = []
    for left in ({1}, {1, 2}, {1, 3}, {1, 2, 3}):
        forward, back = ([(a in own and b not in own) for a, b in edges] for own in (left, {1, 2, 3, 4} - left))
        cuts.append(np.where(is_live[:, back].any(axis=1), 0, is_live[:, forward].sum(axis=1)))
    assert (np.max(cuts, axis=0) == live_shape()[1]).all()


def test_gains_are_differences_of_mean_accuracy_and_the_walk_has_a_reach(release_with_refits):
    subject = open_subject(TASK, release_with_refits)
    landscape = measure_cells(subject, fidelities=[LARGEST])
    values, (depth, width) = values_of_cells(subject.bench, MAIN, LARGEST).ravel(), live_shape()
    assert landscape["gains"].at(1).value == pytest.approx(
        values[depth == 3].mean() - values[depth == 2].mean(), abs=1e-4
    )
    assert landscape["gains"].at(4).value == pytest.approx(
        values[width == 4].mean() - values[width == 3].mean(), abs=1e-4
    )
    walk, reach = landscape["walk"].values, landscape["reach"].values
    assert (
        np.isnan(reach)
        if (walk >= GONE).all()
        else walk[round(reach**2) - 1] < GONE <= walk[: round(reach**2) - 1].min()
    )


def profiled(n, *, noise=0.0):
    """Return profiles: at full size, a step takes twice as long for each 3x3 convolution; others are small."""
    columns = {key: np.tile(values, 2) for key, values in space(LARGEST).sample_columns(n, seed=0).items()}
    columns["N"][n:] = 1
    ids = np.arange(2 * n, dtype=np.uint64)
    logs = np.log(2) * (ops_of(columns) == CONV3X3).sum(axis=1) + 0.3 * (columns["Activation"] == "Mish")
    times = np.where(columns["N"] == 1, 1.0, np.exp(logs + noise * RNG.normal(size=2 * n)))
    order = RNG.permutation(2 * n)
    profile = {"config_id": ids[order], "step_time_s": times[order]}
    return RecordedTable(configs={"config_id": ids, **columns}, runs={}, profile=profile)


def test_the_time_of_an_operation_is_found_among_other_factors():
    found = step_changes(profiled(200))
    assert found.values[CONV3X3] == pytest.approx([-50 + 50 * (b == CONV3X3) for b in range(5)])
    assert found.values[:, CONV3X3] == pytest.approx([100 - 100 * (a == CONV3X3) for a in range(5)])
    assert found.errors == pytest.approx(np.zeros((5, 5)), abs=1e-6)
    noisy = step_changes(profiled(200, noise=0.2))
    is_other = ~np.eye(5, dtype=np.bool_)
    assert (noisy.errors[is_other] > 1).all()
    assert (np.abs(noisy.values - found.values) < 2 * noisy.errors)[is_other].all()


def test_few_profiled_configs_have_no_times_of_operations():
    assert step_changes(profiled(29)) is None
    assert step_changes(profiled(30)) is not None


def test_training_times_are_compared_only_where_steps_were_recorded(release_with_refits):
    landscape = measure_cells(open_subject(TASK, release_with_refits), fidelities=[LARGEST])
    more = {"step time": step_changes(profiled(200))}
    for cells, n in ((landscape, 0), ({**landscape, **more}, 2)):
        rows = list(_beside("title", cells))
        times = [row for row in rows if "training time" in row[0]]
        assert [same for *_, same, _ in times] == ["yes"] * n
        assert all(reason for *_, reason in rows)


def test_a_hill_is_found_from_afar():
    peak = np.array([2, 2, 0, 2, 2, 2])
    hill = -(peak != OPS).sum(axis=1) + 1e-3 * RNG.normal(size=len(OPS))
    found = dict(zip(MEASURES, measures_of(hill.reshape(SHAPE)), strict=True))
    assert found["fitness-distance correlation"] < -0.8
    assert found["fitness-distance correlation, functions"] < -0.6
    shares = [found[f"within {d}"] for d in range(1, 7)]
    assert shares == sorted(shares)
    assert shares[-1] == found["within 6, functions"] == 1
    assert all(found[f"within {d}, functions"] >= found[f"within {d}"] for d in range(1, 7))


def test_a_cell_of_zeros_has_no_depth_and_a_full_one_three():
    depth, width = (of.reshape(SHAPE) for of in live_shape())
    assert depth[1, 1, 1, 1, 1, 1] == width[1, 1, 1, 1, 1, 1] == 0
    assert (depth[0, 0, 0, 0, 0, 0], width[0, 0, 0, 0, 0, 0]) == (3, 4)
    assert (depth[1, 1, 2, 1, 1, 1], width[1, 1, 2, 1, 1, 1]) == (1, 1)
