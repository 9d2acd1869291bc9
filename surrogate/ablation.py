"""What each choice is worth on the validation part: feature groups, canonical cell, transform, model of the runtime.

python -m surrogate.ablation RUNS --split SPLIT [--metrics valid_acc] [--repeats 3] [--out FILE]

Each variant is fitted on the same subsets of the training configs, so a difference to the shipped choice is paired: its
mean and standard error stand beside it. `compare_runtime_models` sets side by side the two
models of the cumulative runtime: seconds per epoch times the epoch, and a forest that may only rise with the epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.bounds import BoundedTransform
from jahs.errors import InvalidArgument, UnknownName
from jahs.features import FEATURE_SETS, GROUPS, FeatureSet
from jahs.metrics import ACCURACIES, LEARNED
from jahs.ranks import kendall_tau
from jahs.tasks import Task
from splits.split import read_split
from surrogate.command import answer, new_parser
from surrogate.dataset import Rows, assemble, assemble_cumulative, read_measurements
from surrogate.folders import write_json
from surrogate.model import Settings, default_features, fit_surrogate
from surrogate.scores import Scores, agreement, first_seed

__all__ = ["ABLATION_FORMAT", "Outcome", "ablate", "ablation_table", "compare_runtime_models", "main", "variants"]

ABLATION_FORMAT: Final = 1
_SHARE: Final = 0.8  # of the training configs in each subset

Fit: TypeAlias = Callable[[Rows], Callable[[NDArray[np.float32]], NDArray[np.float64]]]
"""From training rows to what answers for encoded rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A variant's Kendall tau on all validation rows and at the last epoch, and its difference to the shipped one."""

    variant: str
    n_columns: int
    tau: float
    tau_last: float
    difference: float
    error: float


def variants(metric: str, of_task: Task, settings: Settings) -> Iterator[tuple[str, int, Fit]]:
    """Yield name, number of columns and fit of every variant; the shipped one is the first."""
    own = default_features(metric)

    def fit(rows: Rows, *, features: FeatureSet, is_observed: bool = False) -> Any:  # Any: Surrogate.predict
        transform = BoundedTransform.fit(rows.y) if is_observed else None
        return fit_surrogate(metric, rows, of_task, settings=settings, features=features, transform=transform).predict

    yield "shipped", len(own.columns), partial(fit, features=own)
    compared = ("published", "accuracy_as_is") if metric in ACCURACIES else ("published",)
    for name in compared:
        yield name, len(FEATURE_SETS[name].columns), partial(fit, features=FEATURE_SETS[name])
    for group in GROUPS:
        left = own.without(group) if set(GROUPS[group]) < set(own.columns) else None
        if left is not None:
            yield f"without {group}", len(left.columns), partial(fit, features=left)
    yield "bounds as observed", len(own.columns), partial(fit, features=own, is_observed=True)


def ablate(
    metric: str, parts: Mapping[str, Rows], of_task: Task, *, settings: Settings, repeats: int, seed: int
) -> list[Outcome]:
    """Fit every variant on `repeats` subsets of the training configs and score it on the validation rows.

    Raises:
        InvalidArgument: fewer than two repeats, or no rows to score on.
    """
    if repeats < 2 or not len(parts["valid"]):
        raise InvalidArgument(f"repeats={repeats} must be at least 2, and the validation part must have rows")
    train, valid = parts["train"], parts["valid"]
    ids = np.unique(train.config_id)
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(ids)[: max(1, round(_SHARE * len(ids)))] for _ in range(repeats)]
    subsets = [train.take(np.isin(train.config_id, some)) for some in chosen]
    measured = valid.y * valid.epoch if metric == "runtime" else valid.y
    is_last = valid.epoch == valid.epoch.max()
    outcomes, shipped = [], np.zeros(repeats)
    for name, n_columns, fit in variants(metric, of_task, settings):
        predicted = [fit(rows)(valid.X) for rows in subsets]
        taus = np.array([kendall_tau(measured, values) for values in predicted])
        last = np.array([kendall_tau(measured[is_last], values[is_last]) for values in predicted])
        shipped = taus if name == "shipped" else shipped
        outcomes.append(
            Outcome(
                variant=name,
                n_columns=n_columns,
                tau=float(taus.mean()),
                tau_last=float(last.mean()),
                difference=float((taus - shipped).mean()),
                error=float((taus - shipped).std(ddof=1) / np.sqrt(repeats)),
            )
        )
    return outcomes


def compare_runtime_models(
    times: Mapping[str, Rows], cumulative: Mapping[str, Rows], of_task: Task, *, settings: Settings
) -> dict[str, Scores]:
    """Score both models of the cumulative runtime on every validation row of a first seed.

    Args:
        times: seconds per epoch, from `assemble`.
        cumulative: from `assemble_cumulative`.
        of_task: whose rows they are.
        settings: of both forests.
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


def ablation_table(metric: str, outcomes: Sequence[Outcome]) -> str:
    """The outcomes as Markdown."""
    lines = [
        f"| {metric} | columns | tau | tau, last epoch | difference | standard error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {o.variant} | {o.n_columns} | {o.tau:.4f} | {o.tau_last:.4f} | {o.difference:+.4f} | {o.error:.4f} |"
        for o in outcomes
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = new_parser("ablation", __doc__, example="runs/ --split split.json --metrics valid_acc runtime")
    parser.add_argument("--metrics", nargs="+", default=["valid_acc"], help="default: valid_acc")
    parser.add_argument("--repeats", type=int, default=3, help="subsets of the training configs (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the subsets (%(default)s)")
    parser.add_argument("--trees", type=int, default=300, help="in every forest (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of every forest (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for the outcomes")
    given = parser.parse_args(argv)

    def work() -> str:
        if unknown := [metric for metric in given.metrics if metric not in LEARNED]:
            raise UnknownName.of("metric", unknown[0], LEARNED)
        measured, split = read_measurements(given.runs), read_split(given.split)
        settings = Settings(n_trees=given.trees, learning_rate=given.learning_rate)
        found = {
            metric: ablate(
                metric, assemble(metric, measured, split), measured.task,
                settings=settings, repeats=given.repeats, seed=given.seed,
            )
            for metric in given.metrics
        }  # fmt: skip
        models: dict[str, Scores] = {}
        if "runtime" in given.metrics:
            cumulative = assemble_cumulative(measured, split)
            times = assemble("runtime", measured, split)
            models = compare_runtime_models(times, cumulative, measured.task, settings=settings)
        if given.out:
            content = {metric: [asdict(outcome) for outcome in outcomes] for metric, outcomes in found.items()}
            write_json(
                given.out,
                {"format": ABLATION_FORMAT, "split": split.digest, "metrics": content, "runtime_models": models},
            )
        tables = [ablation_table(metric, outcomes) + "\n" for metric, outcomes in found.items()]
        return "\n".join(
            [
                *tables,
                *(
                    f"runtime at every epoch, {name}: R2 {scores['r2']:.4f}, tau {scores['tau']:.4f}"
                    for name, scores in models.items()
                ),
            ]
        )

    return answer("ablation", work)


if __name__ == "__main__":
    sys.exit(main())
