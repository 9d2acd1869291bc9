"""The leaderboard of a study: the final incumbents, recomputed from the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from experiments.report.results import RepetitionResult, Results
from experiments.report.single import summary_text, test_errors
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import digits_for, number_text, summarize
from jahs.errors import CorruptFile
from jahs.queries.benchmark import Benchmark
from workshop.pages.document import Block, Section, Table, Text

_RELATIVE: Final = 1e-5


def leaderboard_section(results: Results) -> Section:
    """Return a table for each task. The accuracy of every incumbent must equal the one in its log.

    Raises:
        CorruptFile: a log contradicts its release.
    """
    blocks: list[Block] = [
        Text(
            "The errors of all final incumbents were queried again from the release and match the logs. "
            "`jahs leaderboard` checks every trial, also of other people's logs."
        )
    ]
    for task in results.tasks:
        found = (row for arm in results.arms if (row := _row(results, task, arm)))
        rows = sorted(found, key=lambda row: row[0])
        blocks.append(
            Table(
                caption=f"{task}: mean errors of final incumbents, mean ± standard error and median over seeds; by "
                "validation error",
                columns=(
                    *("place", "arm", "optimiser", "validation error (%)", "median", "test error (%)"),
                    "seeds with a result",
                ),
                rows=tuple((str(place), *texts) for place, (_, texts) in enumerate(rows, start=1)),
                n_labels=3,
            )
        )
    return Section(title="Leaderboard", blocks=tuple(blocks))


def _row(results: Results, task: str, arm: Arm) -> tuple[float, tuple[str, ...]] | None:
    found = [result for result in results.of(task, arm) if result.configs]
    if not found:
        return None
    seeds = [result.repetition.seed for result in found]
    said = np.array([result.observed for result in found])
    _check(said, _asked(results.bench[task], found, is_noisy=results.study.noise == "seeded"), task, arm, seeds)
    valid = summarize(np.array([result.incumbents.values[-1] for result in found]))
    test = summarize(test_errors(results, task, arm, seeds))
    texts = (
        f"{arm.chapter}: {arm.title}" if arm.chapter else arm.title,
        arm.optimizer,
        summary_text(valid),
        number_text(float(valid.median), digits_for(float(valid.se))),
        summary_text(test),
        f"{len(found)}/{len(results.of(task, arm))}",
    )
    return float(valid.mean), texts


def _asked(bench: Benchmark, found: Sequence[RepetitionResult], *, is_noisy: bool) -> Floats:
    configs = [result.configs[-1] for result in found]
    seeds = np.array([result.repetition.seed for result in found]) if is_noisy else None
    return np.asarray(100.0 - bench.query_many(configs, seed=seeds, metrics=("valid_acc",))["valid_acc"])


def _check(said: Floats, asked: Floats, task: str, arm: Arm, seeds: Sequence[int]) -> None:
    wrong = np.flatnonzero(~np.isclose(said, asked, rtol=_RELATIVE, atol=_RELATIVE))
    if wrong.size:
        i = int(wrong[0])
        raise CorruptFile(
            f"{task}/{arm.name}/seed-{seeds[i]:04d}.jsonl has an incumbent with {said[i]} % validation error, but the "
            f"release has {asked[i]} %; {wrong.size} logs of this arm do not match their release"
        )
