"""The final incumbents of a study: their errors, queried again from the release, and as trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from experiments.report.results import RepetitionResult, Results
from experiments.report.single import median_text, summary_text, test_errors
from experiments.retrain import RECORD, Incumbent, read_record
from experiments.study import Arm
from jahs.comparison.benches import errors_by_refits
from jahs.comparison.rules import RELATIVE
from jahs.comparison.summaries import number_text, summarize
from jahs.errors import CorruptFile
from jahs.queries.benchmark import Benchmark
from jahs.simulate.answers import redrawn
from workshop.pages.document import Block, Table, Text, answer

BOARD_COLUMNS: Final[tuple[str, ...]] = (
    *("place", "arm", "optimiser", "validation error (%)", "median", "test error (%)"),
    "seeds with a result",
)


def leaderboard_blocks(results: Results) -> Iterator[str | Block]:
    """Yield a table for each task; refuse logs that contradict their release."""
    yield "Leaderboard"
    yield Text(
        "The errors of all final incumbents were queried again from the release and match the logs. "
        "`jahs leaderboard` checks every trial, also of other people's logs."
    )
    for task in results.tasks:
        yield Table(
            caption=f"{task}: mean errors of final incumbents, mean ± standard error and median over seeds; by "
            "validation error",
            columns=BOARD_COLUMNS,
            rows=tuple(board(results, task).values()),
            n_labels=3,
        )


def board(results: Results, task: str) -> dict[Arm, tuple[str, ...]]:
    """Return the row of each arm with a result on a task, best first; refuse logs that contradict their release."""
    by_arm = {arm: results.of_chapter(task, arm) for arm in results.arms}
    rows = {
        arm: _row(results, task, arm, found) for arm, found in by_arm.items() if any(result.configs for result in found)
    }
    best_first = sorted(rows, key=lambda arm: rows[arm][0])
    return {arm: (str(place), *rows[arm][1]) for place, arm in enumerate(best_first, start=1)}


def _row(results: Results, task: str, arm: Arm, found: Sequence[RepetitionResult]) -> tuple[float, tuple[str, ...]]:
    """Return the mean validation error of the incumbents of an arm, and its row."""
    finished = [result for result in found if result.configs]
    _check(results, task, arm, finished)
    valid = summarize(np.array([result.incumbents.values[-1] for result in finished]))
    test = summarize(test_errors(results, task, arm, finished))
    errors = summary_text(valid), median_text(valid), summary_text(test)
    return float(valid.mean), (_title(arm), arm.optimizer, *errors, f"{len(finished)}/{len(found)}")


def _title(arm: Arm) -> str:
    return f"{arm.chapter}: {arm.title}" if arm.chapter else arm.title


def _check(results: Results, task: str, arm: Arm, finished: Sequence[RepetitionResult]) -> None:
    """Refuse logs whose last incumbents have other errors than the release says."""
    seeds = np.array([result.repetition.seed for result in finished])
    answers = results.bench[task].query_many(
        [result.configs[-1] for result in finished],
        seed=seeds if results.study.noise == "seeded" else None,
        metrics=("valid_acc",),
    )
    logs, queried = np.array([result.observed for result in finished]), 100.0 - answers["valid_acc"]
    wrong = np.flatnonzero(~np.isclose(logs, queried, rtol=RELATIVE, atol=RELATIVE))
    if results.study.noise == "seeded":
        wrong = wrong[[not _is_redrawn(results.bench[task], finished[i]) for i in wrong.tolist()]]
    if wrong.size:
        i = int(wrong[0])
        raise CorruptFile(
            f"{task}/{arm.name}/seed-{seeds[i]:04d}.jsonl has an incumbent with {logs[i]} % validation error, but the "
            f"release has {queried[i]} %; {wrong.size} logs of this arm do not match their release"
        )


def _is_redrawn(bench: Benchmark, result: RepetitionResult) -> bool:
    """Return whether the last incumbent is from a later training of its config, whose noise is another draw."""
    seeds = [redrawn(result.repetition.seed, number) for number in range(1, result.n_trials)]
    answers = bench.query_many([result.configs[-1]] * len(seeds), seed=seeds, metrics=("valid_acc",))
    return bool(np.isclose(result.observed, 100.0 - answers["valid_acc"], rtol=RELATIVE, atol=RELATIVE).any())


def retrained_blocks(results: Results, records: Sequence[Path]) -> Iterator[str | Block]:
    """Yield the trained incumbents of a study; nothing where none is recorded.

    Args:
        records: records of `experiments.retrain`; without any, the one in the study's folder, if there is one.
    """
    own = results.folder.path / RECORD
    trained = read_trained(results, records or [own] * own.is_file())
    if not trained:
        return
    n_trained = sum(len(incumbent.trained) for incumbent in trained)
    errors = np.array([np.mean([*incumbent.trained.values()]) for incumbent in trained])
    crossed = np.array([errors_by_refits(results.bench[one.task], [one.config])[0] for one in trained])
    differences = errors - [incumbent.predicted for incumbent in trained]
    sds = np.array([_noise_sd(results, incumbent) for incumbent in trained])
    in_sds, crossed_in_sds = differences / sds, (errors - crossed) / sds
    titles = {arm.name: _title(arm) for arm in results.arms}
    yield "As trained"
    tasks = np.array([one.task for one in trained])
    text = f"{len(trained)} of the best incumbents were trained, {n_trained} times in all."
    by_refits = "the mean of the refits", errors - crossed, crossed_in_sds
    for against, points, of_sd in (("the prediction", differences, in_sds), by_refits):
        if np.isfinite(points).all():
            means = []
            for task in dict.fromkeys(tasks.tolist()):
                mean, sds = points[tasks == task].mean(), of_sd[tasks == task]
                in_sd = f" ({sds.mean():+.2f} standard deviations between trainings)" if np.isfinite(sds).all() else ""
                means.append(f"{results.bench[task].task.title} {mean:+.2f} points{in_sd}")
            text += f" Validation error as trained minus {against}, on average: {'; '.join(means)}."
    yield answer(text)
    yield Table(
        caption="Validation errors of final incumbents, in percent: predicted means, and trainings with new seeds. A "
        "positive difference means that trainings are worse than predicted",
        columns=(
            *("task", "found by", "predicted", "by the refits", "trained", "trained minus predicted (points)"),
            *("trained minus predicted (sd between trainings)", "trained minus refits (sd)"),
        ),
        rows=tuple(
            (
                *(incumbent.task, titles.get(incumbent.arm, incumbent.arm), f"{incumbent.predicted:.2f}"),
                number_text(crossed_error, 2),
                ", ".join(f"{error:.2f}" for _, error in sorted(incumbent.trained.items())),
                *(f"{difference:+.2f}", number_text(in_sd, sign="+"), number_text(crossed_in_sd, sign="+")),
            )
            for incumbent, crossed_error, difference, in_sd, crossed_in_sd in zip(
                trained, *(values.tolist() for values in (crossed, differences, in_sds, crossed_in_sds)), strict=True
            )
        ),
        n_labels=2,
    )


def read_trained(results: Results, records: Sequence[Path]) -> list[Incumbent]:
    """Return the incumbents of these records that were trained, in order of the study's tasks."""
    releases = {task: facts.release for task, facts in results.folder.tasks.items()}
    incumbents = [one for path in records for one in read_record(path, study=results.study.name, releases=releases)]
    trained = [incumbent for incumbent in incumbents if incumbent.trained and incumbent.task in results.tasks]
    return sorted(trained, key=lambda incumbent: results.tasks.index(incumbent.task))


def _noise_sd(results: Results, incumbent: Incumbent) -> float:
    """Return the standard deviation between trainings of an incumbent; NaN if its release has no refits."""
    if not results.folder.tasks[incumbent.task].n_refits:
        return float("nan")
    prediction = results.bench[incumbent.task].predict(incumbent.config, metrics=("valid_acc",))
    return float(prediction.noise_sd["valid_acc"])
