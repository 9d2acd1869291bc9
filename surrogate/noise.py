"""Fit the noise between trainings, and measure whether its 90 % intervals hold 90 % of repeats that it has not seen.

python -m surrogate.noise RUNS --split SPLIT [--part test] [--out noise.json]

Predictions come from an ensemble over folds (NAS-Bench-301, section 4.3): each config is predicted by the model that
was fitted without it, a config outside of the folds by the mean of them all. Two spreads are fitted and measured:

- "seed": trainings of one config against each other, from the repeats; this is what a query with a seed draws. A repeat
  is held by the interval around the mean of its config's earlier trainings, widened as the mean of so few asks for.
- "outcome": one training against its prediction, the surrogate's error included; this is `NoiseModel.interval`.

Without --part the repeats of the train and valid parts are held out fold by fold, in configs; with it the model is
fitted on those parts and measured on another. The range beside a share is a 90 % interval that counts every config as
one observation, for rows of a config are much alike.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.chance import quantile
from jahs.errors import InvalidArgument, InvalidTable, JahsError
from jahs.metrics import ACCURACIES
from jahs.noise import Kind, NoiseModel
from jahs.ranks import kendall_tau
from jahs.schema import CONFIG_KEYS, SPLIT_PARTS
from jahs.spread import to_line
from jahs.tables import take
from jahs.tasks import Task
from splits.folds import k_folds
from splits.split import Split, read_split
from surrogate.dataset import Measurements, Rows, assemble, read_measurements
from surrogate.fit import read_params
from surrogate.folders import write_json
from surrogate.model import Settings, fit_surrogate
from surrogate.scores import first_seed
from surrogate.spreads import Deviations, fit_correlation, fit_spreads, fit_time_spread, reach

__all__ = [
    "NOISY",
    "Coverage",
    "Predicted",
    "Realism",
    "coverage",
    "cross_validated_coverage",
    "fit_noise",
    "fold_predictions",
    "main",
    "realism",
]

NOISY: Final = (*ACCURACIES, "runtime")
"""The metrics that differ between trainings of one config."""

_FEWEST: Final = 5
_LEVEL: Final = 0.9
_FOLDED: Final = ("train", "valid")
_SETTINGS: Final = Settings(n_trees=300, learning_rate=0.1)
_log = logging.getLogger(__name__)
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """Rows of a metric and what models that have not seen their configs predict; `runtime` in seconds per epoch."""

    rows: Rows
    mean: _Floats

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> Predicted:
        """Return some rows: positions or a mask."""
        return Predicted(rows=self.rows.take(rows), mean=self.mean[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many measurements the 90 % intervals hold.

    Attributes:
        metric, kind, epochs: of what; epochs are "all" or "last".
        n_configs, n_rows: how many there are.
        share: of the rows that are inside, each config with equal weight.
        low, high: 90 % interval of the share.
        width: median width of the intervals, in the metric's unit, or relative to the prediction for `runtime`.
    """

    metric: str
    kind: Kind
    epochs: str
    n_configs: int
    n_rows: int
    share: float
    low: float
    high: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Realism:
    """Two measured trainings of the repeated configs against two drawn ones, at the last epoch."""

    metric: str
    n_configs: int
    measured_tau: float
    drawn_tau: float
    measured_difference: float
    drawn_difference: float


def fold_predictions(
    measured: Measurements,
    split: Split,
    *,
    n_folds: int = 10,
    settings: Mapping[str, Settings] | None = None,
    seed: int = 0,
) -> dict[str, dict[str, Predicted]]:
    """Predict every accuracy and runtime by models that have not seen the config, for each part.

    The configs of the train and valid parts are divided into folds; a test config is predicted by all folds' models.

    Raises:
        InvalidTable, ProtocolMismatch: see `surrogate.dataset.assemble`.
        InvalidArgument: more folds than configs.
    """
    found: dict[str, dict[str, Predicted]] = {}
    for metric in NOISY:
        parts = assemble(metric, measured, split)
        rows = _joined([parts[part] for part in _FOLDED])
        configs = take(measured.configs, np.isin(measured.configs["config_id"], rows.config_id))
        columns = {key: configs[key] for key in (*CONFIG_KEYS, "config_id")}
        mean, of_test = np.empty(len(rows)), np.zeros(len(parts["test"]))
        for number, (_, held_out) in enumerate(k_folds(columns, n_folds, seed=seed), 1):
            is_out = np.isin(rows.config_id, configs["config_id"][held_out])
            chosen = (settings or {}).get(metric, _SETTINGS)
            fitted = fit_surrogate(metric, rows.take(~is_out), measured.task, settings=chosen)
            mean[is_out] = fitted.predict(rows.X[is_out])
            if len(of_test):
                of_test += fitted.predict(parts["test"].X) / n_folds
            _log.info("%s: fold %d/%d", metric, number, n_folds)
        every = Predicted(rows=rows, mean=_per_epoch(metric, rows, mean))
        side = split.parts_of(rows.config_id)
        found[metric] = {part: every.take(side == SPLIT_PARTS.index(part)) for part in _FOLDED}
        found[metric]["test"] = Predicted(rows=parts["test"], mean=_per_epoch(metric, parts["test"], of_test))
    return found


def fit_noise(predicted: Mapping[str, Predicted], of_task: Task) -> NoiseModel:
    """Fit both spreads and the correlation.

    Args:
        predicted: every metric of `NOISY`, with predictions by models that have not seen the configs.
        of_task: whose.

    Raises:
        InvalidTable: fewer than five configs have repeats.
    """
    between = {metric: seed_deviations(metric, predicted[metric]) for metric in NOISY}
    around = {metric: outcome_deviations(metric, predicted[metric]) for metric in NOISY}
    n_repeated = min(len(np.unique(between[metric].config_id)) for metric in ACCURACIES)
    if n_repeated < _FEWEST:
        raise InvalidTable(
            f"{n_repeated} configs were trained with more than one seed; noise needs {_FEWEST} at least: collect more"
        )
    seeds, outcomes = (
        fit_spreads({metric: of[metric] for metric in ACCURACIES}, of_task.max_epoch) for of in (between, around)
    )
    return NoiseModel(
        task=of_task.name,
        max_epoch=of_task.max_epoch,
        accuracies={name: {"seed": seeds[name], "outcome": outcomes[name]} for name in ACCURACIES},
        runtime={"seed": fit_time_spread(between["runtime"]), "outcome": fit_time_spread(around["runtime"])},
        correlation=fit_correlation({name: between[name] for name in ACCURACIES}, seeds, of_task.max_epoch),
        counts={
            "configs": len(np.unique(around["valid_acc"].config_id)),
            "repeated_configs": n_repeated,
        },
    )


def seed_deviations(metric: str, predicted: Predicted) -> Deviations:
    """Deviations of each repeat from the mean of the earlier ones, scaled to the deviation of one training."""
    rows = predicted.rows
    values = _values(metric, rows.y)
    order = np.lexsort((rows.seed, rows.epoch if metric != "runtime" else rows.seed * 0, rows.config_id))
    ids, epoch = rows.config_id[order], rows.epoch[order]
    same = (ids[1:] == ids[:-1]) & ((epoch[1:] == epoch[:-1]) | (metric == "runtime"))
    first = np.flatnonzero(np.append(True, ~same))[: len(order)]
    counts = np.diff(np.append(first, len(order)))
    place = np.arange(len(order)) - np.repeat(first, counts)
    total = np.cumsum(values[order])
    before = np.repeat(total[first] - values[order][first], counts)
    earlier = (total - values[order] - before)[place > 0]
    place, at = place[place > 0], order[place > 0]
    return Deviations(
        metric=metric,
        size=(values[at] - earlier / place) * np.sqrt(place / (place + 1)),
        predicted=predicted.mean[at],
        X=rows.X[at],
        unit=_units(rows.config_id[at], place),
        config_id=rows.config_id[at],
    )


def outcome_deviations(metric: str, predicted: Predicted) -> Deviations:
    """Deviations of each training from its prediction."""
    order = np.lexsort((predicted.rows.seed, predicted.rows.epoch, predicted.rows.config_id))
    predicted = predicted.take(order)
    rows = predicted.rows
    return Deviations(
        metric=metric,
        size=_values(metric, rows.y) - _values(metric, predicted.mean),
        predicted=predicted.mean,
        X=rows.X,
        unit=np.unique(rows.config_id, return_inverse=True)[1].reshape(-1).astype(np.int64),
        config_id=rows.config_id,
    )


def coverage(model: NoiseModel, predicted: Mapping[str, Predicted]) -> list[Coverage]:
    """Measure the shares of rows, of configs that the model has not seen, which its 90 % intervals hold."""
    return _summary([part for metric in NOISY for part in _held(model, metric, predicted[metric])])


def cross_validated_coverage(predicted: Mapping[str, Predicted], of_task: Task, *, n_folds: int = 5) -> list[Coverage]:
    """Measure `coverage` with every config held out once; five configs with repeats must remain."""
    repeated = _repeated(predicted)
    others = np.setdiff1d(np.unique(predicted["valid_acc"].rows.config_id), repeated)
    found = []
    for number in range(n_folds):
        held_out = np.concatenate([repeated[number::n_folds], others[number::n_folds]])
        model = fit_noise(_without(predicted, held_out, is_in=False), of_task)
        here = _without(predicted, held_out, is_in=True)
        found += [part for metric in NOISY for part in _held(model, metric, here[metric])]
    return _summary(found)


def realism(model: NoiseModel, predicted: Mapping[str, Predicted]) -> list[Realism]:
    """Compare seeds 0 and 1 of the repeated configs, as measured and as drawn around their predictions."""
    found = []
    for metric in NOISY:
        rows, mean = predicted[metric].rows, predicted[metric].mean
        is_last = (rows.epoch == model.max_epoch) & np.isin(rows.config_id, _repeated(predicted))
        first = is_last & first_seed(rows)
        second = is_last & ~first
        ids, at_first, at_second = np.intersect1d(rows.config_id[first], rows.config_id[second], return_indices=True)
        a, b = np.flatnonzero(first)[at_first], np.flatnonzero(second)[at_second]
        if len(ids) < 2:
            continue
        drawn = [model.draw({metric: mean[a]}, rows.X[a], ids, seed)[metric] for seed in (0, 1)]
        found.append(
            Realism(
                metric=metric,
                n_configs=len(ids),
                measured_tau=kendall_tau(rows.y[a], rows.y[b]),
                drawn_tau=kendall_tau(drawn[0], drawn[1]),
                measured_difference=_difference(metric, rows.y[a], rows.y[b]),
                drawn_difference=_difference(metric, drawn[0], drawn[1]),
            )
        )
    return found


def report(coverages: Sequence[Coverage], comparisons: Sequence[Realism]) -> str:
    """Both measurements as Markdown."""
    lines = [
        "| metric | around | epochs | configs | rows | inside 90 % | interval of that share | median width |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for c in coverages:
        around = {"seed": "earlier trainings", "outcome": "prediction"}[c.kind]
        width = f"{100 * c.width:.1f} %" if c.metric == "runtime" else f"{c.width:.2f} points"
        lines.append(
            f"| {c.metric} | {around} | {c.epochs} | {c.n_configs} | {c.n_rows} | {100 * c.share:.1f} % | "
            f"{100 * c.low:.0f} to {100 * c.high:.0f} % | {width} |"
        )
    lines += [
        "",
        "| metric, last epoch | configs | tau of two trainings | of two draws | their mean difference | of two draws |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in comparisons:
        factor, unit = (100, "%") if r.metric == "runtime" else (1, "points")
        lines.append(
            f"| {r.metric} | {r.n_configs} | {r.measured_tau:.3f} | {r.drawn_tau:.3f} | "
            f"{factor * r.measured_difference:.2f} {unit} | {factor * r.drawn_difference:.2f} {unit} |"
        )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    metric: str
    kind: Kind
    is_inside: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    width: _Floats
    config_id: NDArray[np.uint64]


def _held(model: NoiseModel, metric: str, predicted: Predicted) -> list[_Held]:
    """Which held-out rows are inside their intervals, for both kinds."""
    found = []
    kinds: dict[Kind, Deviations] = {
        "seed": seed_deviations(metric, predicted),
        "outcome": outcome_deviations(metric, predicted),
    }
    for kind, d in kinds.items():
        spread = model.runtime[kind] if metric == "runtime" else model.accuracies[metric][kind]
        sigma = model.runtime[kind].spread if metric == "runtime" else 0.0
        low, high = model.interval({metric: d.predicted}, d.X, level=_LEVEL, of=kind)[metric]
        if metric == "runtime":
            is_inside, width = np.abs(d.size) <= sigma * reach(spread, _LEVEL), (high - low) / d.predicted
        else:
            of_row = model.accuracies[metric][kind].of_rows(d.predicted, d.X)
            is_inside, width = np.abs(d.size) <= of_row * reach(spread, _LEVEL), high - low
        is_last = (d.X[:, -1] == model.max_epoch) | (metric == "runtime")
        found.append(
            _Held(metric=metric, kind=kind, is_inside=is_inside, is_last=is_last, width=width, config_id=d.config_id)
        )
    return found


def _summary(parts: Sequence[_Held]) -> list[Coverage]:
    found = []
    kinds: tuple[Kind, ...] = ("seed", "outcome")
    for kind in kinds:
        for metric in NOISY:
            of = [part for part in parts if (part.metric, part.kind) == (metric, kind)]
            ids, is_inside, is_last, width = (
                np.concatenate([getattr(part, name) for part in of])
                for name in ("config_id", "is_inside", "is_last", "width")
            )
            for epochs, is_in in (("all", np.ones(len(ids), np.bool_)), ("last", is_last)):
                if not is_in.any() or (metric == "runtime" and epochs == "all"):
                    continue
                _, place, counts = np.unique(ids[is_in], return_inverse=True, return_counts=True)
                share = float(np.mean(np.bincount(place.reshape(-1), weights=is_inside[is_in]) / counts))
                low, high = _share_interval(share, len(counts))
                found.append(
                    Coverage(
                        metric=metric,
                        kind=kind,
                        epochs=epochs,
                        n_configs=len(counts),
                        n_rows=int(is_in.sum()),
                        share=share,
                        low=low,
                        high=high,
                        width=float(np.median(width[is_in])),
                    )
                )
    return found


def _share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 90 % interval of a share of n."""
    z = quantile(0.95)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _values(metric: str, y: _Floats) -> _Floats:
    return np.log(y) if metric == "runtime" else to_line(np.clip(y, 0.0, 100.0))


def _per_epoch(metric: str, rows: Rows, mean: _Floats) -> _Floats:
    return mean / rows.epoch if metric == "runtime" else mean


def _difference(metric: str, a: _Floats, b: _Floats) -> float:
    return float(np.mean(np.abs(np.log(a / b) if metric == "runtime" else a - b)))


def _units(config_id: NDArray[np.uint64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    of_config = np.unique(config_id, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return of_config * (int(place.max(initial=0)) + 1) + place


def _repeated(predicted: Mapping[str, Predicted]) -> NDArray[np.uint64]:
    """The configs with more than one seed, in order."""
    rows = predicted["valid_acc"].rows
    return np.unique(rows.config_id[~first_seed(rows)])


def _without(predicted: Mapping[str, Predicted], ids: NDArray[np.uint64], *, is_in: bool) -> dict[str, Predicted]:
    return {metric: p.take(np.isin(p.rows.config_id, ids) == is_in) for metric, p in predicted.items()}


def _joined(parts: Sequence[Rows]) -> Rows:
    return Rows(
        X=np.concatenate([rows.X for rows in parts]),
        y=np.concatenate([rows.y for rows in parts]),
        config_id=np.concatenate([rows.config_id for rows in parts]),
        seed=np.concatenate([rows.seed for rows in parts]),
    )


def join_predicted(parts: Sequence[Predicted]) -> Predicted:
    """Put the rows of several parts together."""
    return Predicted(rows=_joined([part.rows for part in parts]), mean=np.concatenate([part.mean for part in parts]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m surrogate.noise",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m surrogate.noise runs/ --split split.json --out noise.json",
    )
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of its configs")
    parser.add_argument("--part", choices=["test"], help="measure on this part, once, instead of fold by fold")
    parser.add_argument("--folds", type=int, default=10, help="of the ensemble that predicts (%(default)s)")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for the model, fitted on train and valid")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    try:
        measured = read_measurements(given.runs)
        settings = read_params(given.params) if given.params else None
        parts = fold_predictions(
            measured, read_split(given.split), n_folds=given.folds, settings=settings, seed=given.seed
        )
        folded = {metric: join_predicted([of[part] for part in _FOLDED]) for metric, of in parts.items()}
        model = fit_noise(folded, measured.task)
        held_out = {metric: of["test"] for metric, of in parts.items()} if given.part else folded
        if given.part and not len(_repeated(held_out)):
            raise InvalidArgument("part=test has no repeats; leave --part out")
        found = coverage(model, held_out) if given.part else cross_validated_coverage(folded, measured.task)
        compared = realism(model, held_out)
        if given.out:
            write_json(given.out, model.to_dict())
    except JahsError as err:
        sys.stderr.write(f"surrogate.noise: {err}\n")
        return 2
    if given.json:
        content = {"coverage": [asdict(c) for c in found], "realism": [asdict(r) for r in compared]}
        sys.stdout.write(json.dumps(content, indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write(report(found, compared) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
