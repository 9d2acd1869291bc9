"""Incumbents as trained: the section of a page that says what real trainings of a study's winners reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.report.results import Results
from experiments.retrain import RECORD, Incumbent, read_record
from jahs.comparison.summaries import number_text
from workshop.pages.document import Section, Table, answer


def retrained_section(results: Results, record: Path | None = None) -> Section | None:
    """Return the trained incumbents of a study; None where none is recorded.

    Args:
        record: the record of `experiments.retrain`; None: the one in the study's folder, if there is one.

    Raises:
        MissingData: the named record does not exist.
        CorruptFile: it is damaged, or of another study.
    """
    path = record or results.folder.path / RECORD
    if record is None and not path.is_file():
        return None
    releases = {task: facts.release for task, facts in results.folder.tasks.items()}
    every = read_record(path, study=results.study.name, releases=releases)
    found = [one for one in every if one.trained and one.task in results.tasks]
    if not found:
        return None
    n_trained = sum(len(one.trained) for one in found)
    apart = np.array([np.mean([*one.trained.values()]) - one.predicted for one in found])
    sd = np.array([_noise_sd(results, one) for one in found])
    in_sd = f", {(apart / sd).mean():+.2f} standard deviations between trainings of one config"
    in_sd = in_sd if np.isfinite(sd).all() else ""
    titles = {arm.name: f"{arm.chapter}: {arm.title}" if arm.chapter else arm.title for arm in results.arms}
    rows = tuple(
        (
            one.task,
            titles.get(one.arm, one.arm),
            f"{one.predicted:.2f}",
            ", ".join(f"{error:.2f}" for _, error in sorted(one.trained.items())),
            f"{difference:+.2f}",
            number_text(difference / of_noise),
        )
        for one, difference, of_noise in zip(found, apart.tolist(), sd.tolist(), strict=True)
    )
    return Section(
        title="As trained",
        blocks=(
            answer(
                f"{len(found)} of the best incumbents were trained, {n_trained} times in all. Their validation "
                f"error is {apart.mean():+.2f} points from the predicted mean on average{in_sd}."
            ),
            Table(
                caption="Validation errors of final incumbents, in percent: predicted means, and trainings with new "
                "seeds. A positive difference means that trainings are worse than predicted",
                columns=(
                    *("task", "found by", "predicted", "trained", "difference of means (points)"),
                    "difference (sd between trainings)",
                ),
                rows=rows,
                n_labels=2,
            ),
        ),
    )


def _noise_sd(results: Results, one: Incumbent) -> float:
    """Return the standard deviation between trainings of an incumbent; NaN if its release does not know it."""
    if not results.folder.tasks[one.task].n_refits:
        return float("nan")
    prediction = results.bench[one.task].predict(one.config, metrics=("valid_acc",))
    return float(prediction.noise_sd["valid_acc"])
