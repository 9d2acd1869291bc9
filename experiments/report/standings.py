"""The leaderboard of a study: who has the best networks in the end, asked again from the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.summaries import summarize
from experiments.report.results import RepetitionResult, Results
from experiments.report.single import number_text, test_errors
from experiments.studies.study import Arm
from jahs.errors import CorruptFile
from jahs.queries.benchmark import Benchmark
from workshop.pages.document import Block, Section, Table, Text

__all__ = ["leaderboard_section"]

_RELATIVE: Final = 1e-5


def leaderboard_section(results: Results) -> Section:
    """A table for each task; every incumbent's accuracy is asked again, and must be the one in its log.

    Raises:
        CorruptFile: a log says something else than its release.
    """
    blocks: list[Block] = [
        Text(
            text="Recomputed from the logs: every final incumbent was asked again from the release, and is what its "
            "log says. python -m experiments.leaderboard checks every trial, and takes other people's logs as well."
        )
    ]
    for task in results.tasks:
        found = (row for arm in results.arms if (row := _row(results, task, arm)))
        rows = sorted(found, key=lambda row: row[0])
        blocks.append(
            Table(
                caption=f"{task}: error of the final incumbents in %, mean ± standard error over seeds",
                columns=("", "arm", "", "validation", "test", "seeds"),
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
    said = np.array([result.incumbents.values[-1] for result in found])
    _check(said, _asked(results.bench[task], found, is_noisy=results.study.noise == "seeded"), task, arm, seeds)
    valid, test = summarize(said), summarize(test_errors(results, task, arm, seeds))
    texts = (
        f"{arm.chapter}: {arm.title}" if arm.chapter else arm.title,
        arm.optimizer,
        f"{valid.mean:.3f} ± {number_text(float(valid.se), 3)}",
        f"{test.mean:.3f} ± {number_text(float(test.se), 3)}",
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
            f"{task}/{arm.name}/seed-{seeds[i]:04d}.jsonl says {said[i]} % validation error for its incumbent, but the "
            f"release answers {asked[i]} %; {wrong.size} logs of this arm do not match their release"
        )
