"""Ablate the choices of the models: feature groups, canonical cell, transform, model of the runtime.

python -m surrogate.ablation RUNS --split SPLIT [--metrics valid_acc] [--repeats 3] [--out FILE]

Training and validation configs are divided into five folds, `--repeats` times; test configs stay unseen. Each variant
is fitted and scored on the same folds, so differences to the shipped choice are paired; their mean and standard error
are given. `compare_runtime_models` compares two models of the cumulative runtime on the validation part: seconds per
epoch times the epoch, and a forest that is monotone in the epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, UnknownName
from jahs.models.bounds import BoundedTransform
from jahs.models.features import FEATURE_SETS, GROUPS, FeatureSet
from jahs.models.features.cells import CELL_FEATURES
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, LEARNED
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import Facts, Rows, assemble, assemble_answered, by_part, development_rows
from surrogate.judging.agreement import Scores, agreement, first_seed
from surrogate.models.folds import held_out_rows
from surrogate.models.model import ForestSettings, default_features, fit_surrogate
from workshop.command import run_command
from workshop.folders import write_json
from workshop.ranks import kendall_tau

ABLATION_FORMAT: Final = 1
_N_FOLDS: Final = 5

Fit: TypeAlias = Callable[[Rows], Callable[[NDArray[np.float32]], NDArray[np.float64]]]
"""From training rows to what answers for encoded rows."""


def variants(metric: str, of_task: Task, settings: ForestSettings) -> Iterator[tuple[str, int, Fit]]:
    """Yield name, number of columns and fit of every variant; the shipped one is the first."""
    own = default_features(metric)

    def fit(rows: Rows, *, features: FeatureSet, is_observed: bool = False) -> Any:  # Any: Surrogate.predict
        transform = BoundedTransform.fit(rows.y) if is_observed else None
        return fit_surrogate(metric, rows, of_task, settings=settings, features=features, transform=transform).predict

    yield "shipped", len(own.columns), partial(fit, features=own)
    compared = {"published": FEATURE_SETS["published"]}
    if metric in ACCURACIES:
        compared["accuracy_as_is"] = FEATURE_SETS["accuracy_as_is"]
        compared["paths, no signal"] = own.without("signal").with_group("paths").with_group("live").with_group("nodes")
    for name, features in compared.items():
        yield name, len(features.columns), partial(fit, features=features)
    for group, columns in GROUPS.items():
        if set(columns) < set(own.columns):
            left = own.without(group)
            yield f"without {group}", len(left.columns), partial(fit, features=left)
        elif group in CELL_FEATURES:
            more = own.with_group(group)
            yield f"with {group}", len(more.columns), partial(fit, features=more)
    yield "bounds as observed", len(own.columns), partial(fit, features=own, is_observed=True)


def ablate(
    metric: str, measured: Measurements, split: Split, *, settings: ForestSettings, repeats: int, seed: int
) -> list[Facts]:
    """Cross-validate every variant over five folds of the training and validation configs.

    Returns:
        For each, Kendall's tau on all rows and at the last epoch, means over folds; the difference to the shipped one's
        tau on all rows, and its standard error over the folds' configs.

    Raises:
        InvalidArgument: no repeats, or fewer configs than folds.
    """
    if repeats < 1:
        raise InvalidArgument(f"repeats={repeats} must be at least 1")
    rows = development_rows(metric, measured, split)
    held_out = [
        is_held for repeat in range(repeats) for is_held in held_out_rows(measured, rows, _N_FOLDS, seed=seed + repeat)
    ]
    outcomes, shipped = [], np.zeros(len(held_out))
    for name, n_columns, fit in variants(metric, measured.task, settings):
        scores = np.array([_taus(metric, rows, is_held, fit) for is_held in held_out])
        shipped = scores[:, 0] if name == "shipped" else shipped
        differences = scores[:, 0] - shipped
        outcomes.append(
            {
                "variant": name,
                "n_columns": n_columns,
                "tau": float(scores[:, 0].mean()),
                "tau_last": float(scores[:, 1].mean()),
                "difference": float(differences.mean()),
                "error": float(differences.std(ddof=1) / np.sqrt(_N_FOLDS)),  # a repeat brings no new configs
            }
        )
    return outcomes


def _taus(metric: str, rows: Rows, is_held: NDArray[np.bool_], fit: Fit) -> tuple[float, float]:
    """Kendall's tau on all rows of first seeds that were held out, and on those of the last epoch."""
    held = rows.take(is_held)
    held = held.take(first_seed(held))
    predicted = fit(rows.take(~is_held))(held.X)
    measured = held.y * held.epoch if metric == "runtime" else held.y
    is_last = held.epoch == held.epoch.max()
    return kendall_tau(measured, predicted), kendall_tau(measured[is_last], predicted[is_last])


def compare_runtime_models(
    times: Mapping[str, Rows], cumulative: Mapping[str, Rows], of_task: Task, *, settings: ForestSettings
) -> dict[str, Scores]:
    """Score both models of the cumulative runtime on every validation row of a first seed.

    Args:
        times: seconds per epoch, from `assemble`.
        cumulative: cumulative seconds, from `assemble_answered`.
    """
    valid = cumulative["valid"].take(first_seed(cumulative["valid"]))
    own = default_features("runtime")
    with_epoch = FeatureSet(name="epoch_time + epoch", columns=(*own.columns, "epoch"), is_canonical=False)
    by_epoch = fit_surrogate("runtime", times["train"], of_task, settings=settings)
    rising = fit_surrogate(
        "runtime", cumulative["train"], of_task, settings=settings, features=with_epoch, constraints={"epoch": 1}
    )
    rising = replace(rising, target="value")
    return {
        "seconds per epoch": agreement("runtime", valid.y, by_epoch.predict(valid.X)),
        "rising with the epoch": agreement("runtime", valid.y, rising.predict(valid.X)),
    }


def ablation_table(metric: str, outcomes: Sequence[Facts]) -> str:
    """Return the outcomes as Markdown."""
    lines = [
        f"| {metric} | columns | tau | tau, last epoch | difference | standard error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        "| {variant} | {n_columns} | {tau:.4f} | {tau_last:.4f} | {difference:+.4f} | {error:.4f} |".format(**outcome)
        for outcome in outcomes
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("ablation", __doc__, example="runs/ --split split.json --metrics valid_acc runtime")
    parser.add_argument("--metrics", nargs="+", default=["valid_acc"], help="default: valid_acc")
    parser.add_argument("--repeats", type=int, default=3, help="divisions into five folds (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first division (%(default)s)")
    parser.add_argument("--trees", type=int, default=300, help="in every forest (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of every forest (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for the outcomes")
    given = parser.parse_args(argv)

    def work() -> str:
        if unknown := [metric for metric in given.metrics if metric not in LEARNED]:
            raise UnknownName.of("metric", unknown[0], LEARNED)
        measured, split = read_with_split(given.runs, given.split)
        settings = ForestSettings(n_trees=given.trees, learning_rate=given.learning_rate)
        found = {
            metric: ablate(metric, measured, split, settings=settings, repeats=given.repeats, seed=given.seed)
            for metric in given.metrics
        }
        models: dict[str, Scores] = {}
        if "runtime" in given.metrics:
            times, cumulative = (by_part(f("runtime", measured), split) for f in (assemble, assemble_answered))
            models = compare_runtime_models(times, cumulative, measured.task, settings=settings)
        if given.out:
            facts = {"format": ABLATION_FORMAT, "split": split.digest}
            write_json(given.out, {**facts, "metrics": found, "runtime_models": models})
        tables = [ablation_table(metric, outcomes) + "\n" for metric, outcomes in found.items()]
        lines = [
            f"runtime at every epoch, {name}: R2 {scores['r2']:.4f}, tau {scores['tau']:.4f}"
            for name, scores in models.items()
        ]
        return "\n".join([*tables, *lines])

    return run_command("surrogate.ablation", work)


if __name__ == "__main__":
    sys.exit(main())
