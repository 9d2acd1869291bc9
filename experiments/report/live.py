"""The page of the study `live`: optimisers on real trainings, and the same optimisers on the surrogate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.critical_differences import rank_agreement
from experiments.live.beside import N_RUNS, N_RUNS_OF_REFIT
from experiments.live.declared import CORNER, STAGES
from experiments.live.results import LiveResults, attainable, curve_distance, distinct, read_live, reversed_pairs
from experiments.report.build import made_facts
from experiments.report.left_out import left_out_blocks
from experiments.report.single import ERROR_LABEL, error_limits
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import FEWEST_SEEDS, number_text
from jahs.simulate import Trial
from jahs.tasks.definitions import TASKS, caveats_of
from surrogate.judging.agreement import agreement
from workshop.pages.document import Block, Document, Figure, Table, Text, answer, led_by_answer, sections_of
from workshop.pages.drawing import Curve, draw_curves
from workshop.resampling import interval_text

_LAST: Final = 20
_ENDS: Final = (0.05, 0.95)
_MOST_SD: Final = 1.0  # required of the mean difference of ends, in standard deviations between trainings
_COVERAGE: Final = (85, 95)  # required of 90 % intervals, in percent, for the last proposals of each optimiser
_TIME: Final = "full evaluations (epochs of one)"


def live_document(path: Path, *, runs: Path | None = None) -> Document:
    """Return the page of a live study, finished or not; arguments and errors are those of `read_live`."""
    results = read_live(path, runs=runs)
    study = results.folder.study
    document = Document(
        title=study.title,
        caveats=caveats_of([TASKS[results.task]] if results.task in TASKS else []),
        subtitle=f"{study.question} {_progress(results)}",
        sections=sections_of(_blocks(results)),
        facts=_facts(results, runs),
    )
    return led_by_answer(document)


def _blocks(results: LiveResults) -> Iterator[str | Block]:
    yield "Order of the optimisers"
    yield from _order_blocks(results)
    yield "Curves"
    yield from _curve_blocks(results)
    yield "On the refits"
    yield from _refit_blocks(results)
    yield from left_out_blocks(results)
    yield "Predicted and trained accuracies"
    yield from _prediction_blocks(results)
    yield "Settings"
    yield Text(results.folder.study.protocol)
    yield Table(
        caption="Full evaluations that each optimiser has spent, by seed; partial trainings count by their epochs",
        columns=("optimiser", *(f"seed {seed}" for seed in range(results.n_done.shape[1])), "surrogate"),
        rows=tuple(
            (arm.title, *(f"{n:.1f}" for n in done), "yes" if (arm.name, None) in results.beside else "missing")
            for arm, done in zip(results.arms, results.n_done, strict=True)
        ),
    )


def _progress(results: LiveResults) -> str:
    n_done, n_wanted = results.n_done.sum(), results.curves.size
    size = ", ".join(f"{name}={value:g}" for name, value in CORNER.items())
    where = f"on {results.bench.task.title} at {size}, with {results.folder.study.n_seeds} seeds"
    if n_done >= n_wanted:
        return f"All {n_wanted:,} evaluations are trained, {where}."
    return f"The study is not finished: {n_done:,.0f} of {n_wanted:,} evaluations are trained, {where}."


def _order_blocks(results: LiveResults) -> Iterator[Block]:
    """Yield the agreement of orders at every stage that all optimisers have reached with some seed."""
    numbers = results.has_beside(None)
    if len(numbers) < 2:
        yield Text("The runs on the surrogate are missing; `python -m experiments.run live --beside` adds them.")
        return
    rows, taus = [], []
    for stage in _stages(results):
        if len(seeds := results.seeds_at(stage, numbers)):
            trained, surrogate = _errors_at(results, stage, numbers, seeds)
            tau, chance = rank_agreement(trained, surrogate.mean(axis=2), has_same_seeds=True), attainable(surrogate)
            attained = f"{chance.value:.2f}", f"{chance.low:.2f} to {chance.high:.2f}"
            rows.append((str(stage), str(len(seeds)), interval_text(tau), *attained))
            taus.append(f"{tau.value:.2f} at {stage} evaluations")
    titles = [results.arms[i].title for i in numbers]
    if not rows:
        n_least = int(results.n_done[numbers].min(axis=0).max())
        names = ", ".join(titles)
        yield answer(f"No stage has been reached by all of {names}: the slowest has spent {n_least} evaluations.")
        return
    yield answer(
        f"Kendall's τ between the rankings of {len(titles)} optimisers on trainings and on the surrogate is "
        f"{', '.join(taus)}."
    )
    yield Table(
        caption="Agreement of the rankings by mean validation error of the incumbent; a 95 % bootstrap interval "
        f"requires {FEWEST_SEEDS} seeds. The attainable τ is the agreement that trainings would reach if the surrogate "
        "were exact",
        columns=("evaluations", "seeds", "Kendall's τ", "attainable τ: mean", "attainable τ: central 95 %"),
        rows=tuple(rows),
    )
    yield from _final_blocks(results, numbers)


def _stages(results: LiveResults) -> list[int]:
    return [n for n in STAGES if n <= results.folder.study.n_evaluations]


def _errors_at(
    results: LiveResults, stage: int, numbers: NDArray[np.intp], seeds: NDArray[np.intp], refit: int | None = None
) -> tuple[Floats, Floats]:
    """Return errors at a stage: trained (n_arms, n_seeds), and on the surrogate (n_arms, n_seeds, n_runs).

    An optimiser without a full evaluation yet counts as one with an error of 100 %.
    """
    trained = results.curves[numbers][:, seeds, stage - 1]
    surrogate = np.stack([results.beside[results.arms[i].name, refit][seeds][..., stage - 1] for i in numbers])
    return np.nan_to_num(trained, nan=100.0), np.nan_to_num(surrogate, nan=100.0)


def _final_blocks(results: LiveResults, numbers: NDArray[np.intp]) -> Iterator[Block]:
    """Yield the errors of each optimiser's furthest seeds, and the distance between both worlds."""
    rows, differences, noise = [], [], results.noise
    for i in numbers.tolist():
        arm, (n, seeds) = results.arms[i], results.furthest(i)
        cells: tuple[str, ...] = ("–",) * 5
        if n >= 1 and np.isfinite(results.curves[i, seeds, n - 1]).all():
            trained, surrogate = results.curves[i, seeds, :n], results.beside[arm.name, None][seeds, :, :n]
            ends = float(trained[:, -1].mean()), float(surrogate[..., -1].mean())
            difference = abs(ends[0] - ends[1])
            differences.append(difference)
            cells = (*map(number_text, (*ends, curve_distance(trained, surrogate), difference, difference / noise.sd)),)
        rows.append((arm.title, str(n), str(len(seeds)), *cells))
    mean = float(np.mean(differences or np.nan))
    mean_sds = mean / noise.sd
    rows.append(("mean", *("",) * 5, number_text(mean), number_text(mean_sds)))
    if noise.n_configs and differences:
        yield answer(
            f"The final incumbents' mean errors on trainings and on the surrogate are {mean_sds:.2f} standard "
            f"deviations apart on average. At most {_MOST_SD:g} is required: "
            f"{'met' if mean_sds <= _MOST_SD else 'not met'}. The "
            f"standard deviation between trainings of one config, {noise.sd:.2f} points, was measured on "
            f"{noise.n_trainings} trainings of {noise.n_configs} configs: the better half of those of this fidelity "
            f"group that were trained more than once. The noise model predicts {_predicted_sd(results):.2f}."
        )
    yield Table(
        caption="Mean observed validation error of the incumbent on trainings and on the surrogate, over the seeds "
        "with the most evaluations so far, and distances of the mean curves and of their ends",
        columns=(
            *("optimiser", "evaluations", "seeds", "trained: error (%)", "surrogate: error (%)"),
            *("distance of curves (points)", "difference of ends (points)"),
            "difference of ends (measured sd between trainings)",
        ),
        rows=tuple(rows),
    )


def _predicted_sd(results: LiveResults) -> float:
    """Return the mean predicted standard deviation between trainings of the best trained config of each run."""
    best = [
        max(run, key=lambda training: training.metrics["valid_acc"]).config for run in results.trained.values() if run
    ]
    if not (best and results.folder.tasks[results.task].n_refits):
        return np.nan
    return float(results.bench.predict(best, metrics=("valid_acc",)).noise_sd["valid_acc"].mean())


def _curve_blocks(results: LiveResults) -> Iterator[Block]:
    grid = np.arange(1.0, results.curves.shape[2] + 1)
    furthest = [results.furthest(i) for i in range(len(results.arms))]
    trained = {i: results.curves[i][seeds] for i, (n, seeds) in enumerate(furthest) if n}
    beside = results.has_beside(None).tolist()
    surrogate = {i: results.beside[results.arms[i].name, None].reshape(-1, len(grid)) for i in beside}
    means = [values.mean(axis=0) for values in (*trained.values(), *surrogate.values())]
    if not means:
        yield Text("No optimiser has spent a whole evaluation.")
        return
    limits = error_limits(np.concatenate(means))
    for name, description, by_arm in (
        ("trained", "On real trainings: mean over the seeds with the most evaluations, and standard error.", trained),
        ("surrogate", f"On the surrogate: mean over seeds and {N_RUNS} runs each, and standard deviation.", surrogate),
    ):
        curves = []
        for i, values in by_arm.items():
            mean = values.mean(axis=0)
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
            spread = spread / np.sqrt(len(values)) if name == "trained" else spread
            title, band = results.arms[i].title, {"low": mean - spread, "high": mean + spread}
            curves.append(Curve(title=title, x=grid, y=mean, **band, number=i))
        if curves:
            yield Figure(
                name=f"live-{name}",
                caption=f"{description} Observed validation error of the incumbent. Both figures have the same axes.",
                alt=f"Validation error of the incumbent over evaluations, {name}: "
                f"{', '.join(curve.title for curve in curves)}.",
                drawing=draw_curves(curves, x_label=_TIME, y_label=ERROR_LABEL, x_scale="log", y_limits=limits),
            )


def _refit_blocks(results: LiveResults) -> Iterator[Block]:
    """Yield which refits order the optimisers differently from the release, and how they agree with trainings."""
    rows, n_otherwise = [], 0
    for refit in range(results.folder.tasks[results.task].n_refits):
        numbers = np.intersect1d(results.has_beside(None), results.has_beside(refit))
        if len(numbers) < 2:
            continue
        stages, all_seeds = _stages(results), np.arange(results.n_done.shape[1])
        mean, refit_mean = (
            _errors_at(results, stages[-1], numbers, all_seeds, which)[1].mean(axis=(1, 2)) for which in (None, refit)
        )
        titles = [results.arms[i].title for i in numbers]
        pairs = [f"{titles[i]} and {titles[j]}" for i, j in reversed_pairs(mean, refit_mean)]
        n_otherwise += bool(pairs)
        tau = "–"
        if last := max((n for n in stages if len(results.seeds_at(n, numbers))), default=0):
            trained, surrogate = _errors_at(results, last, numbers, results.seeds_at(last, numbers), refit)
            tau = interval_text(rank_agreement(trained, surrogate.mean(axis=2), has_same_seeds=True))
        rows.append((str(refit), str(len(numbers)), titles[refit_mean.argmin()], tau, "; ".join(pairs) or "none"))
    if rows:
        yield answer(f"On {n_otherwise} of {len(rows)} refits, at least one pair of optimisers is in another order.")
        yield Table(
            caption=f"Each refit, with {N_RUNS_OF_REFIT} runs for each seed, after the largest number of evaluations, "
            "and its agreement with trainings after the most evaluations that these have reached. The last column has "
            "the pairs whose order differs from that on the release; small differences change their sign by chance",
            columns=("refit", "optimisers", "best optimiser", "τ with trainings", "pairs ordered differently"),
            rows=tuple(rows),
            n_labels=3,
        )


def _prediction_blocks(results: LiveResults) -> Iterator[Block]:
    """Yield how well the release, which was fitted to none of these trainings, predicts them."""
    if not results.folder.tasks[results.task].n_refits:
        yield Text("The release has no refits, so it gives no predictive intervals.")
        return
    proposed = {
        arm.title: [run for (name, _), run in sorted(results.trained.items()) if name == arm.name]
        for arm in results.arms
    }
    all_runs = [run for runs in proposed.values() for run in runs]
    rows = [_prediction_row(results, name, runs) for name, runs in {"all": all_runs, **proposed}.items() if any(runs)]
    if not rows:
        yield Text("No training has reached the last epoch yet.")
        return
    coverages, (low, high) = [int(row[5]) for row in rows[1:]], _COVERAGE
    n_outside = sum(not low <= share <= high for share in coverages)
    yield answer(
        f"90 % predictive intervals (model and noise) cover {min(coverages)} to {max(coverages)} % of the last {_LAST} "
        f"proposals of each run: {n_outside} of {len(coverages)} optimisers are outside of {low} to {high} %. Over all "
        f"{rows[0][1]} trainings, which the release was not fitted to, coverage is {rows[0][4]} %."
    )
    yield Table(
        caption="Predicted and trained validation accuracy after the last epoch. Each training counts once in a "
        "row. No model was fitted to data of any of these optimisers",
        columns=(
            *("proposed by", "trainings", "R²", "sparse τ", "in the 90 % interval (%)"),
            f"last {_LAST} of each run in the interval (%)",
        ),
        rows=tuple(rows),
    )


def _prediction_row(results: LiveResults, name: str, runs: list[tuple[Trial, ...]]) -> tuple[str, ...]:
    trained, predicted, is_in = _predicted(results, [training for run in runs for training in run])
    scores = agreement("valid_acc", trained, predicted)
    texts = (number_text(scores[key]) for key in ("r2", "sparse_tau"))
    is_in_last = _predicted(results, [training for run in runs for training in run[-_LAST:]])[2]
    return (name, str(len(trained)), *texts, f"{100 * is_in.mean():.0f}", f"{100 * is_in_last.mean():.0f}")


def _predicted(results: LiveResults, trainings: list[Trial]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return trained and predicted accuracies of different trainings, and whether the 90 % interval covers each."""
    unique = distinct(trainings)
    trained = np.array([training.metrics["valid_acc"] for training in unique])
    prediction = results.bench.predict([training.config for training in unique], metrics=("valid_acc",))
    low, high = prediction.quantile(_ENDS)["valid_acc"].T
    return trained, prediction.mean["valid_acc"], (low <= trained) & (trained <= high)


def _facts(results: LiveResults, runs: Path | None) -> tuple[tuple[str, str], ...]:
    facts, folder = results.folder.tasks[results.task], results.folder
    commands, versions = made_facts(folder.made_with)
    return (
        *commands,
        ("release", f"{results.task}: {facts.version} ({facts.source}, {facts.release})"),
        ("configs of the release", "none of those trained here; checked when this page was written"),
        ("seeds", f"0 to {folder.study.n_seeds - 1}, for optimisers and for trainings"),
        ("noise between trainings", f"measured in {'the record of the release' if runs is None else '--runs RUNS'}"),
        ("runs on the surrogate", f"{N_RUNS} for each optimiser and seed, {N_RUNS_OF_REFIT} on each refit"),
        *versions,
    )
