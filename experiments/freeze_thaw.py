"""How well the first epochs of a learning curve predict its last validation accuracy, on held-out configs.

    python -m experiments.freeze_thaw --docs --out docs/studies/freeze_thaw

Reads folders of runs with `split.json` and `search/params.json` beside them. The surrogate is fitted to the training
part of a split, with the settings of the last search. The validation part calibrates: each predictor's standard
deviation, and how far an observed residual moves the surrogate's prediction. The test part is only scored. A config
counts once, with its first seed, if that training has every epoch. Configs that were recorded after the split was made
are left out. The same inputs give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from experiments.report.writing import page_parser, run_page, table
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.runs import read_protocol
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import Task, caveats_of
from splits.final import final_beside
from splits.split import read_split
from surrogate.data.measurements import read_measurements
from surrogate.data.rows import assemble, by_part
from surrogate.judging.agreement import first_seed
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import read_params
from surrogate.models.model import fit_surrogate
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import new_panels
from workshop.pages.style import dash, series
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_estimates, interval_text

PREDICTORS: Final = ("last value", "last value plus mean gain", "power law", "surrogate", "surrogate, corrected")
MEASURES: Final[Mapping[str, str]] = {
    "likelihood": "Gaussian log likelihood per config (nats)",
    "mae": "mean absolute error (points)",
    "tau": "Kendall's τ",
}
"""Titles of the scores."""

_RUNS: Final = (Path("data/cifar10_mini/runs"), Path("data/fashion_mnist_mini/runs"))
_METRIC: Final = "valid_acc"
_FEWEST: Final = 10
_FEWEST_EPOCHS: Final = 3  # the power law has three parameters
_EXPONENTS: Final = np.geomspace(0.05, 4.0, 40)
_SHARES: Final = (1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4)

_ABOUT: Final = (
    "Each predictor sees the validation accuracy of the first epochs of one training and predicts the accuracy of the "
    "last epoch. **Last value** is the last observed accuracy; **plus mean gain** adds the mean gain of the training "
    "part from there to the last epoch. **Power law** is a + b t^-c, fitted to the observed epochs of this curve "
    "alone; it does not model the annealing of the learning rate, which makes accuracies rise late. **Surrogate** is "
    "fitted to the training part and sees no epoch of the curve. **Corrected** adds the surrogate's residual at the "
    "last observed epoch, times a factor chosen on the validation part. A prediction is a Gaussian; for each predictor "
    "and number of epochs, the standard deviation is estimated from validation errors. Scores are computed on the test "
    "part, with 95 % bootstrap intervals over configs."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """Recorded learning curves of one task, and what the surrogate predicts for them."""

    task: Task
    observed: Mapping[str, Floats]  # validation accuracies (%) by part, (n_configs, n_epochs)
    surrogate: Mapping[str, Floats]  # predictions of the surrogate fitted to the training part
    n_outside: int = 0  # recorded configs outside the split


class PredictorScores(NamedTuple):
    """One predictor after some epochs."""

    sd: float  # standard deviation of the Gaussian, estimated from the errors on the validation part, in points
    scores: Mapping[str, Interval]  # scores by measure


ByStage = Mapping[int, Mapping[str, PredictorScores]]  # scores by the number of observed epochs, then by predictor


def stages(n_epochs: int) -> list[int]:
    """Return the numbers of observed epochs: 1, 2, 3, and shares of a whole training."""
    return sorted({n for n in (1, 2, 3, *(round(share * n_epochs) for share in _SHARES)) if 0 < n < n_epochs})


def read_curves(runs: Path) -> Curves:
    """Read a folder of runs with `split.json` and `search/params.json` beside it, and fit the surrogate."""
    folder = runs.resolve().parent
    split, final = read_split(folder / "split.json"), final_beside(folder / "split.json")
    measured = read_measurements(runs, final=final)
    if split.protocol != measured.protocol:
        raise ProtocolMismatch(f"{folder / 'split.json'} has protocol {split.protocol}, not {measured.protocol}")
    rows = assemble(_METRIC, measured)
    is_inside = split.parts_of(rows.config_id) >= 0
    parts = by_part(rows.take(is_inside), split)
    settings = read_params(folder / "search" / "params.json").get(_METRIC, ForestSettings())
    model = fit_surrogate(_METRIC, parts["train"], measured.task, settings=settings)
    observed, predicted = {}, {}
    for part in SPLIT_PARTS:
        first = parts[part].take(first_seed(parts[part]))
        _, place, counts = np.unique(first.config_id, return_inverse=True, return_counts=True)
        whole = first.take(counts[place] == measured.task.max_epoch)  # curve by curve, those with every epoch
        observed[part] = whole.y.reshape(-1, measured.task.max_epoch)
        predicted[part] = np.asarray(model.predict(whole.X), dtype=np.float64).reshape(observed[part].shape)
        if len(observed[part]) < _FEWEST:
            raise InvalidArgument(f"{runs}: {len(observed[part])} complete curves in {part}, {_FEWEST} are needed")
    n_outside = rows.take(~is_inside).n_configs
    return Curves(task=measured.task, observed=observed, surrogate=predicted, n_outside=n_outside)


def power_law(curves: Floats, last: int) -> Floats:
    """Return a + b t^-c at epoch `last`, by least squares on the observed epochs 1, 2, ... of (n, n_observed).

    The exponent c is on a grid; predictions are clipped to 0 and 100.
    """
    times = np.arange(1, curves.shape[1] + 1, dtype=np.float64)
    least, predicted = np.full(len(curves), np.inf), np.zeros(len(curves))
    for exponent in _EXPONENTS:
        basis = np.stack([np.ones_like(times), times**-exponent], axis=1)  # (n_observed, 2)
        coefficients = np.linalg.lstsq(basis, curves.T, rcond=None)[0]
        squared = ((basis @ coefficients - curves.T) ** 2).sum(axis=0)
        at_last = coefficients[0] + coefficients[1] * float(last) ** -exponent
        predicted = np.where(squared < least, at_last, predicted)
        least = np.minimum(squared, least)
    return np.clip(predicted, 0.0, 100.0)


def predictions(curves: Curves, part: str, n_observed: int) -> dict[str, Floats]:
    """Return each predictor's prediction of the last epoch from the first `n_observed`; no power law for too few."""
    observed, model = curves.observed[part], curves.surrogate[part]
    last_value = observed[:, n_observed - 1]
    train = curves.observed["train"]
    predicted = {
        "last value": last_value,
        "last value plus mean gain": last_value + (train[:, -1] - train[:, n_observed - 1]).mean(),
    }
    if n_observed >= _FEWEST_EPOCHS:
        predicted["power law"] = power_law(observed[:, :n_observed], observed.shape[1])
    predicted["surrogate"] = model[:, -1]
    # The share of the surrogate's residual that remains at the last epoch, on the validation part.
    residuals = curves.observed["valid"] - curves.surrogate["valid"]
    before, after = residuals[:, n_observed - 1], residuals[:, -1]
    remaining = float(before @ after / (before @ before)) * (last_value - model[:, n_observed - 1])
    predicted["surrogate, corrected"] = np.clip(model[:, -1] + remaining, 0.0, 100.0)
    return predicted


def score(curves: Curves, *, n_resamples: int) -> ByStage:
    """Return the scores of every predictor at every stage on the test part."""
    truth = {part: curves.observed[part][:, -1] for part in ("valid", "test")}
    by_stage: dict[int, dict[str, PredictorScores]] = {}
    for n_observed in stages(curves.task.max_epoch):
        calibrating, judged = (predictions(curves, part, n_observed) for part in ("valid", "test"))
        by_stage[n_observed] = {}
        for name, predicted in judged.items():
            sd = float(np.sqrt(np.mean((calibrating[name] - truth["valid"]) ** 2)))
            scores = _scores(predicted, truth["test"], sd, n_resamples=n_resamples)
            by_stage[n_observed][name] = PredictorScores(sd, scores)
    return by_stage


def _scores(predicted: Floats, truth: Floats, sd: float, *, n_resamples: int) -> dict[str, Interval]:
    error = np.abs(predicted - truth)
    likelihood = -0.5 * (error / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)

    def measured(at: NDArray[np.int64]) -> Floats:
        return np.array([likelihood[at].mean(), error[at].mean(), kendall_tau(predicted[at], truth[at])])

    intervals = bootstrap_estimates(measured, len(truth), level=0.95, n_resamples=n_resamples)
    return dict(zip(MEASURES, intervals, strict=True))


def _finding(task: Task, by_stage: ByStage) -> str:
    """Return the sentence on a third of the epochs, and on when the last value alone is as good as the surrogate."""
    third = min(by_stage, key=lambda n: abs(n - task.max_epoch / 3))
    last, model, both = (by_stage[third][name].scores for name in ("last value", "surrogate", "surrogate, corrected"))
    worse = [n for n, of in by_stage.items() if of["last value"].scores["tau"].value < model["tau"].value]
    later = [n for n in by_stage if n > max(worse, default=0)]
    until = f"the last value's τ is lower than that at every tested epoch (up to {max(by_stage)})"
    if later:
        until = f"of the tested epochs, the last value's τ is as high from epoch {later[0]} on"
    return (
        f"On {task.title}, after {third} of {task.max_epoch} epochs, the last value ranks held-out configs with "
        f"Kendall's τ {interval_text(last['tau'])}, and the surrogate without any epoch with "
        f"{interval_text(model['tau'])}; {until}. Corrected by the observed epochs, the surrogate has τ "
        f"{interval_text(both['tau'])} and a mean absolute error of {interval_text(both['mae'])} instead of "
        f"{interval_text(model['mae'])} points."
    )


def _blocks(scored: Sequence[tuple[Curves, ByStage]]) -> Iterator[str | Block]:
    yield "Predictors of the last epoch"
    yield Figure(
        name="predictors",
        caption="Kendall's τ and mean absolute error of the predicted last validation accuracy, by the number of "
        "observed epochs, on held-out configs, with 95 % intervals.",
        alt="Kendall's tau rises and the error falls with the number of observed epochs, one curve per predictor.",
        drawing=_draw(scored),
    )
    yield Text(_ABOUT)
    for curves, by_stage in scored:
        yield curves.task.title
        n = {part: len(values) for part, values in curves.observed.items()}
        outside = f" {curves.n_outside} configs that are not in the split yet are left out." if curves.n_outside else ""
        yield Text(
            f"Scores are computed on {n['test']} test configs, and predictors are calibrated on {n['valid']} "
            f"validation configs. The surrogate is fitted to {n['train']} training configs with complete learning "
            f"curves, and to the recorded epochs of the others.{outside}"
        )
        rows = [
            (n_observed, name, *result.scores.values(), f"{result.sd:.2f}")
            for n_observed, by_predictor in by_stage.items()
            for name, result in by_predictor.items()
        ]
        caption = "Scores of the predicted validation accuracy at the last epoch, with 95 % intervals"
        head = ("observed epochs", "predictor", *MEASURES.values(), "standard deviation (points)")
        yield table(caption, head, rows, n_labels=2)


def _draw(scored: Sequence[tuple[Curves, ByStage]]) -> Drawing:
    drawing, axes = new_panels(2, len(scored), width=7.2, height=6.0)
    for panel, (measure, (curves, by_stage)) in zip(axes, product(("tau", "mae"), scored), strict=True):
        for number, name in enumerate(PREDICTORS):
            points = {n: by_name[name].scores[measure] for n, by_name in by_stage.items() if name in by_name}
            y, low, high = np.array([(point.value, point.low, point.high) for point in points.values()]).T
            x, color = list(points), series(number)
            panel.plot(x, y, color=color, linestyle=dash(number), marker="o", markersize=3, label=name)
            panel.fill_between(x, low, high, color=color, alpha=0.14, linewidth=0)
        x_label = f"observed epochs of {curves.task.max_epoch}"
        panel.set(title=curves.task.title, xlabel=x_label, ylabel=MEASURES[measure], ylim=(0, None))
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.2)
    return drawing


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of freeze-thaw: how well the first epochs of recorded trainings predict their last one."
    parser = page_parser("experiments.freeze_thaw", about)
    parser.add_argument(
        "--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs, each with ../search/params.json"
    )
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: %(default)s)")

    def make(given: argparse.Namespace) -> Document:
        curves = [read_curves(folder) for folder in given.runs]
        protocols = ", ".join(read_protocol(folder).digest for folder in given.runs)
        scored = [(of_task, score(of_task, n_resamples=given.resamples)) for of_task in curves]
        return Document(
            title="Freeze-thaw: predicting final accuracy from the first epochs",
            caveats=caveats_of([of_task.task for of_task in curves]),
            subtitle=" ".join(_finding(of_task.task, by_stage) for of_task, by_stage in scored),
            sections=sections_of(_blocks(scored)),
            facts=(commit_fact(), ("protocols", protocols), versions_fact()),
        )

    return run_page(parser, argv, make)


if __name__ == "__main__":
    sys.exit(main())
