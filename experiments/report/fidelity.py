"""The page of the study `fidelity`: rank correlations between fidelities, speed-ups and curves of each view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from experiments.analysis.resampled_ranks import correlation_text, rho_among_best, tau_with_interval
from experiments.report.results import Results
from experiments.report.single import overview
from experiments.report.speedups import speedup_of_arms, speedup_text
from experiments.study import Arm
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import View
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.spaces.columns import Columns
from jahs.spaces.parameters import LARGEST, PARAMETERS
from jahs.spaces.space import space
from workshop.exhaustive import at_full_size
from workshop.pages.document import Block, Figure, Table, answer
from workshop.pages.drawing import Curve, draw_curves

N_CONFIGS: Final = 1000
N_RANKED: Final = 10_000
_PERCENTS: Final = (100, 50, 25, 10, 1)
_FEWEST: Final = 10
_INTERVALS: Final = "Intervals are 95 % bootstrap intervals over configs, without the errors of the surrogate"
_SIZES: Final = {key: tuple(map(float, PARAMETERS[key].choices)) for key in SIZE_KEYS}


def fidelity_blocks(results: Results) -> Iterator[str | Block]:
    """Yield each optimiser's comparison with black-box search, and the rank correlations between fidelities."""
    plain = tuple(arm for arm in results.arms if arm.view.fidelities == ("epoch",) and arm.chapter == "black box")
    for chapter in results.study.chapters:
        arms = tuple(arm for arm in results.arms_of(chapter) if arm not in plain)
        if not arms:
            continue
        yield f"{chapter[0].upper()}{chapter[1:]} against black-box search"
        for task in results.tasks:
            if plain:
                yield from _speedup_answer(results, task, plain[0], arms)
            yield from overview(results, task, (*plain, *arms), key=f"{task}-{arms[0].optimizer}".replace("_", "-"))
    yield "Rank correlation with the highest fidelity"
    for task in results.tasks:
        yield from _correlation_blocks(results.bench[task])


def rank_correlations(bench: Benchmark) -> dict[str, tuple[Floats, list[Interval], Floats]]:
    """Return Kendall's tau between validation accuracies at each fidelity and at the highest one, over random configs.

    All other fidelities are at their highest values.

    Returns:
        For each of epoch, N, W, Resolution and the diagonal: values, tau with its 95 % bootstrap interval over configs,
        and the share of the full cost.
    """
    columns = space(fixed=LARGEST).sample_columns(N_CONFIGS, seed=0)
    last = bench.max_epoch
    epochs = np.arange(1, last + 1) if last <= 20 else np.unique(np.geomspace(1, last, 20).round().astype(int))
    path = View(bench, fidelities=("epoch", *_SIZES))
    steps = {share: path.path(share) for share in (1 / 9, 1 / 3, 2 / 3, 1.0)}
    asked: dict[str, dict[float, tuple[dict[str, float], int]]] = {  # sizes and epoch of each value
        "epoch": {epoch: ({}, epoch) for epoch in epochs.tolist()},
        **{name: {value: ({name: value}, last) for value in values} for name, values in _SIZES.items()},
        "diagonal": {s: ({name: step[name] for name in _SIZES}, int(step["epoch"])) for s, step in steps.items()},
    }
    accuracy, runtime = _ask(bench, columns, {}, last)
    curves = {}
    for name, by_value in asked.items():
        answers = [_ask(bench, columns, sizes, epoch) for sizes, epoch in by_value.values()]
        tau = [tau_with_interval(low, accuracy) for low, _ in answers]
        cost = np.array([low.mean() / runtime.mean() for _, low in answers])
        curves[name] = np.array([*by_value], dtype=np.float64), tau, cost
    return curves


def _ask(
    bench: Benchmark, columns: Columns, sizes: Mapping[str, float], epoch: int, *, seed: int | None = None
) -> tuple[Floats, Floats]:
    n = len(columns["N"])
    changed = {name: np.full(n, value, dtype=columns[name].dtype) for name, value in sizes.items()}
    answers = bench.query_many({**columns, **changed}, at=epoch, seed=seed, metrics=("valid_acc", "runtime"))
    return answers["valid_acc"], answers["runtime"]


def top_correlations(bench: Benchmark) -> list[tuple[str, str, int, list[Interval]]]:
    """Return Spearman's rho of a lower with the highest fidelity among the best configs at the highest one.

    Predicted means, draws of one training, and recorded trainings at full size, of the first seed of each config.

    Returns:
        The lower fidelity, whose accuracies these are, the number of configs, and rho among the best shares of them,
        with 95 % bootstrap intervals over configs.
    """
    columns = space(fixed=LARGEST).sample_columns(N_RANKED, seed=0)
    last = bench.max_epoch
    epochs = sorted({max(1, last // part) for part in (27, 9, 3)} - {last})
    recorded, trained = trained_at_full_size(bench)
    rows = []
    worlds: dict[str, int | None] = {"predicted means": None, "predicted, with training noise": 0}
    top = {world: _ask(bench, columns, {}, last, seed=seed)[0] for world, seed in worlds.items()}
    drawn = _ask(bench, recorded, {}, last, seed=0)[0] if len(trained) else trained
    lower = [
        *((f"epoch {epoch}", {}, epoch) for epoch in epochs),
        *((f"{name}={value:g}", {name: value}, last) for name, values in _SIZES.items() for value in values[:-1]),
    ]
    for title, size, epoch in lower:
        for world, seed in worlds.items():
            low = _ask(bench, columns, size, epoch, seed=seed)[0]
            rows.append((title, world, N_RANKED, rho_at_top(low, top[world])))
        if len(trained) and epoch < last:
            rho = rho_at_top(_ask(bench, recorded, {}, epoch, seed=0)[0], drawn)
            rows.append((title, "predicted, with training noise, trained configs", len(trained), rho))
            rows.append((title, "trained", len(trained), rho_at_top(trained[:, epoch - 1], trained[:, -1])))
    return rows


def trained_at_full_size(bench: Benchmark) -> tuple[Columns, Floats]:
    """Return the recorded configs of full size and validation accuracies of a training of each, (n, max_epoch)."""
    release = release_of(bench)
    if not release.has("table.npz"):
        return {}, np.empty((0, bench.max_epoch))
    configs, runs = release.table.configs, release.table.runs
    curves = {}
    for row in np.flatnonzero(at_full_size(configs)).tolist():
        rows = np.flatnonzero(runs["config_id"] == configs["config_id"][row])
        first = rows[runs["seed"][rows] == runs["seed"][rows].min(initial=np.iinfo(np.int64).max)]
        if len(first) == bench.max_epoch:  # it did not diverge
            curves[row] = runs["valid_acc"][first[np.argsort(runs["epoch"][first])]].astype(np.float64)
    columns = {name: configs[name][[*curves]] for name in CONFIG_KEYS}
    return columns, np.reshape([*curves.values()], (len(curves), bench.max_epoch))


def rho_at_top(low: Floats, high: Floats) -> list[Interval]:
    """Return Spearman's rho among the best shares by `high`; NaN among fewer than ten."""
    sizes = [len(high) * percent // 100 for percent in _PERCENTS]
    return rho_among_best(low, high, [size if size >= _FEWEST else 0 for size in sizes])


def _top_table(bench: Benchmark) -> Table:
    return Table(
        caption=f"{bench.task.title}: Spearman's rho between validation accuracies at a lower and at the highest "
        "fidelity, among the best configs at the highest one. Trained: one training of each recorded config of full "
        "size; optimisers proposed some of them, so their best shares differ less than those of random configs. "
        f"{_INTERVALS}. NAS-Bench-101 (supplement, figure 7) has 0.365 between 36 and 108 epochs in its best 10 %",
        columns=("lower fidelity", "accuracies", "configs", *(f"best {p} %" if p < 100 else "all" for p in _PERCENTS)),
        rows=tuple(
            (low, world, f"{n:,}", *map(correlation_text, rhos)) for low, world, n, rhos in top_correlations(bench)
        ),
        n_labels=2,
    )


def _correlation_blocks(bench: Benchmark) -> Iterator[Block]:
    curves = rank_correlations(bench)
    lowest = (
        f"{name} {correlation_text(tau[0])} at {100 * cost[0]:.1f} % of the cost"
        for name, (_, tau, cost) in curves.items()
    )
    intro = "Kendall's τ of the lowest fidelity, with 95 % bootstrap intervals over configs: "
    yield answer(f"{intro}{'; '.join(lowest)}.")
    yield Figure(
        name=f"{bench.task.name}-correlations".replace("_", "-"),
        caption=f"Rank correlation between validation accuracies at a lower and at the highest fidelity, over "
        f"{N_CONFIGS} random configs ({bench.task.title}), against the cost of an evaluation. Curves near the upper "
        "left corner show useful fidelities.",
        alt="Kendall's tau rising with the share of the full cost, one curve for each fidelity.",
        drawing=draw_curves(
            [_curve(name, cost, tau, number=number) for number, (name, (_, tau, cost)) in enumerate(curves.items())],
            x_label="mean cost (share of a full evaluation)",
            y_label="Kendall's τ with full fidelity",
            x_scale="log",
        ),
    )
    yield _top_table(bench)
    yield Table(
        caption="Rank correlations as numbers. On the diagonal, all fidelities rise together (`jahs.View.path`); its "
        f"value is the share of the path. {_INTERVALS}",
        columns=("fidelity", "value", "Kendall's τ", "mean cost (share of a full evaluation)"),
        rows=tuple(
            (name, f"{value:.3g}", correlation_text(t), f"{100 * c:.1f} %")
            for name, (values, tau, cost) in curves.items()
            for value, t, c in zip(values, tau, cost, strict=True)
        ),
        is_folded=True,
    )


def _curve(fidelity: str, cost: Floats, tau: Sequence[Interval], *, number: int) -> Curve:
    y = np.array([found.value for found in tau])
    return Curve(title=fidelity, x=cost, y=y, number=number, is_step=False, has_markers=True)


def _speedup_answer(results: Results, task: str, slow: Arm, arms: Sequence[Arm]) -> Iterator[Block]:
    speedups = ((arm, speedup_of_arms(results, task, arm, slow)) for arm in arms)
    parts = [f"{arm.title} {speedup_text([speedup])}" for arm, speedup in speedups if speedup is not None]
    if parts:
        intro = "Speed-up to random search's final median validation error, with 95 % bootstrap intervals: "
        bounds = (
            " (≤ marks an upper bound: the arm, or more than 2.5 % of its resamples, does not reach it within the "
            "budget)"
        )
        yield answer(f"{intro}{'; '.join(parts)}{bounds * any('≤' in part for part in parts)}.")
