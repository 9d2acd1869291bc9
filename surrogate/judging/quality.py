"""What is measured about the models of a release: the content of its quality.json, which `surrogate.card` renders.

Every score is on the test part and of models that were fitted on the training part alone. The release ships models that
were fitted again, on training and validation part together; their scores on the same test rows stand beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeAlias

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument
from jahs.schema import SPLIT_PARTS
from jahs.tasks.metrics import METRICS
from splits.split import Split
from surrogate.data.measurements import Measurements, trained_configs
from surrogate.data.rows import FEWEST, GROUP_VALUES, Rows, configs_by_group, diverged_runs, group_numbers
from surrogate.judging.agreement import agreement, first_seed, score_rows, score_surrogate
from surrogate.judging.curve import curve, predictions, sizes_for
from surrogate.models.model import ForestSettings, Surrogate

__all__ = [
    "FULL_SIZE",
    "QUALITY_FORMAT",
    "REQUIRED",
    "compared_facts",
    "curve_facts",
    "data_facts",
    "metric_facts",
    "requirements",
    "rounded",
    "search_facts",
]

QUALITY_FORMAT: Final = 1

FULL_SIZE: Final = 2000
"""Configs of the collection that the requirements are for."""

REQUIRED: Final = (
    ("valid_acc", "tau", "last epoch", 0.92),
    ("runtime", "tau", "last epoch", 0.97),
    ("latency", "tau", "all", 0.90),
    ("valid_acc", "r2", "all", 0.95),
)
"""Metric, score, cut and the least value: of tau a share of the noise ceiling, of R2 the value itself."""

_FEWEST_TO_JUDGE: Final = 20
_TRAIN_SHARE: Final = 0.7
_DIGITS: Final = 6
_REFITTED: Final = ("all", "last epoch", "best tenth")
_QUANTILES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_MOST_POINTS: Final = 1000

Facts: TypeAlias = dict[str, Any]
"""JSON."""


def data_facts(measured: Measurements, split: Split) -> Facts:
    """How much was measured, and how it is divided over parts and fidelity groups."""
    configs, runs = trained_configs(measured), measured.runs
    parts = split.parts_of(configs["config_id"])
    pairs = np.unique(np.column_stack([runs["config_id"], runs["seed"].astype(np.uint64)]), axis=0)
    n_seeds = np.unique(pairs[:, 0], return_counts=True)[1]
    groups = []
    for values in GROUP_VALUES:
        is_in = np.logical_and.reduce([configs[key] == value for key, value in values.items()])
        counts = np.bincount(parts[is_in], minlength=len(SPLIT_PARTS)).tolist()
        groups.append({**values, **dict(zip(SPLIT_PARTS, counts, strict=True))})
    machines = runs["machine"][np.append(True, runs["epoch"][1:] <= runs["epoch"][:-1])]
    return {
        "configs": len(parts),
        "parts": split.counts,
        "runs": len(pairs),
        "repeated_configs": int((n_seeds > 1).sum()),
        "rows": len(runs["epoch"]),
        "profiled_configs": len(measured.profile["latency"]),
        "max_epoch": measured.task.max_epoch,
        "diverged_runs": diverged_runs(measured, split),
        "machines": {name: int((machines == name).sum()) for name in sorted(set(machines.tolist()))},
        "timing_machine": measured.timing_machine,
        "profile_machine": measured.profile_machine,
        "groups": groups,
        "small_groups": sum(group["train"] < FEWEST for group in groups),
        "fewest": FEWEST,
    }


def metric_facts(
    fitted: Surrogate, refitted: Surrogate, answered: Mapping[str, Rows], repeats: Rows, *, seed: int
) -> Facts:
    """What one metric's models read, how they were grown, of how many configs, and how they do on the test part.

    Args:
        fitted: on the training part.
        refitted: on training and validation part, which is what ships.
        answered: what answers are compared with, see `surrogate.data.rows.assemble_answered`.
        repeats: what the ceilings come from, see `surrogate.data.rows.assemble_repeats`.
        seed: of the bootstrap.
    """
    facts: Facts = {
        "features": {"name": fitted.features.name, "columns": len(fitted.features.columns)},
        "settings": asdict(fitted.settings),
        "nodes": sum(text.count("\n") for text in refitted.booster.get_dump()),
        "fitted_on": fitted.counts,
        "refitted_on": refitted.counts,
        "train_by_group": configs_by_group(answered["train"]).tolist(),
        "test": None,
        "refitted_test": None,
    }
    test = answered["test"]
    if len(test):
        facts["test"] = score_surrogate(fitted, test, repeats, seed=seed) | _pictures(fitted, test)
        scored = score_rows(fitted.metric, test, refitted.predict(test.X), test.take(np.zeros(len(test), np.bool_)))
        facts["refitted_test"] = {name: {"model": scored[name]["model"]} for name in _REFITTED if name in scored}
    return facts


def compared_facts(fitted: Surrogate, test: Rows) -> Facts:
    """How a model of something that is computed exactly does against the exact values of the test part."""
    predicted = fitted.predict(test.X)
    relative = np.abs(predicted / test.y - 1)
    return {
        **agreement(fitted.metric, test.y, predicted),
        "relative_error": {"mean": float(relative.mean()), "most": float(relative.max())} if len(test) else None,
        "features": {"name": fitted.features.name, "columns": len(fitted.features.columns)},
    }


def search_facts(
    history: Mapping[str, Any],  # Any: JSON
    metric: str,
    *,
    of_data: Mapping[str, object],
    settings: ForestSettings,
) -> Facts | None:
    """What the search for a metric's settings tried and chose, or None; `surrogate.tune` wrote the history.

    `is_of_this_split` says whether it was a search of this split, of the same measurements with the same features.

    Args:
        history: what was read.
        metric: whose.
        of_data: what `surrogate.tune.data_of` says of the data of the release.
        settings: those of the release.

    Raises:
        CorruptFile: it is no history of these settings.
    """
    if not history:
        return None
    try:
        summary = history["metrics"].get(metric)
        if summary is None:
            return None
        chosen = ForestSettings.from_dict(summary["chosen"]["settings"])
    except (KeyError, TypeError, AttributeError, InvalidArgument) as err:
        raise CorruptFile(f"history.json is no history of a search: {err!r}; tune again") from err
    if chosen != settings:
        raise CorruptFile(
            f"{metric}: params.json has not what the search in history.json chose; tune again, or remove history.json"
        )
    return {**summary, "is_of_this_split": all(history.get(key) == value for key, value in of_data.items())}


def curve_facts(
    metric: str,
    measured: Measurements,
    parts: Mapping[str, Rows],
    settings: ForestSettings,
    *,
    n_seeds: int,
    workers: int,
) -> Facts | None:
    """How the scores on the validation part grow with the training configs, and what the full size would give.

    Where the training configs are as many as those of the full size, the curve has been there and predicts nothing.
    """
    sizes, seeds = sizes_for(parts["train"].n_configs), range(n_seeds)
    if not sizes or not n_seeds or not len(parts["valid"]):
        return None
    points = curve(metric, measured, parts, sizes, seeds=seeds, settings=settings, workers=workers)
    full_size = round(_TRAIN_SHARE * FULL_SIZE)
    found, reasons = predictions(points, full_size)
    if sizes[-1] >= full_size:
        for score in ("tau", "r2"):
            found.pop(score, None)
            reasons[score] = f"there are {sizes[-1]:,} training configs, and {full_size:,} are the full size"
    return {
        "points": [asdict(point) for point in points],
        "predictions": {name: asdict(prediction) for name, prediction in found.items()},
        "not_predicted": reasons,
    }


def requirements(metrics: Mapping[str, Facts], *, n_configs: Mapping[str, int]) -> list[Facts]:
    """What is required of the full collection, and what was reached; `is_met` is None where it cannot be said.

    Tau is required as a share of its ceiling. Where nothing was repeated no ceiling is known and the share is of 1,
    which no ceiling exceeds. R2 is required as it is. Its noise ceiling is half way
    from the R2 between two seeds to 1, since a model that knows every mean has noise on one side only.

    Nothing can be said of fewer than 20 test configs, nor by a ceiling of fewer repeated ones.

    Args:
        metrics: what `metric_facts` says of each.
        n_configs: how many each metric was measured of.
    """
    found = []
    for metric, score, cut, least in REQUIRED:
        entry: Facts = {"metric": metric, "score": score, "cut": cut, "required": least}
        entry |= {"n_configs": 0, "value": None, "ceiling": None}
        entry["is_due"] = n_configs.get(metric, 0) >= FULL_SIZE
        n_repeated = _FEWEST_TO_JUDGE  # where no ceiling is known, it limits nothing
        test = metrics.get(metric, {}).get("test")
        if test and cut in test["cuts"]:
            scores = test["cuts"][cut]
            entry["n_configs"], entry["value"] = test["n_configs"], scores["model"][score]
            between_seeds = scores["ceiling"][score]
            n_between = test["cuts"].get("last epoch", scores)["ceiling"]["n"]  # where a config counts once
            if between_seeds is not None and score == "tau":
                entry["ceiling"], n_repeated = between_seeds, n_between
            elif between_seeds is not None and n_between >= _FEWEST_TO_JUDGE:
                entry["ceiling"] = (1 + between_seeds) / 2
        value = entry["value"]
        share_of = (entry["ceiling"] or 1.0) if score == "tau" else 1.0
        entry["reached"] = value / share_of if value is not None else None
        is_known = value is not None and min(entry["n_configs"], n_repeated) >= _FEWEST_TO_JUDGE
        entry["is_met"] = entry["reached"] >= least if is_known else None
        found.append(entry)
    return found


def rounded(content: Any) -> Any:  # Any: JSON
    """The same content with floats of six significant digits, and None for what is no number."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    if isinstance(content, float):
        return float(f"{content:.{_DIGITS}g}") if math.isfinite(content) else None
    return content


def _pictures(fitted: Surrogate, test: Rows) -> Facts:
    """What plots show: measured and predicted values at the last epoch, and the errors of every fidelity group."""
    last = test.take((test.epoch == test.epoch.max()) & first_seed(test))
    predicted, groups = fitted.predict(last.X), group_numbers(last.X)
    error = predicted - last.y
    if METRICS[fitted.metric].unit == "s":
        error = error / last.y
    residuals = [
        {"group": group, "n": int((groups == group).sum()), "quantiles": _quantiles(error[groups == group])}
        for group in np.unique(groups).tolist()
    ]
    shown = slice(None, None, math.ceil(len(last) / _MOST_POINTS) or 1)
    points: list[Sequence[float]] = list(zip(*(v[shown].tolist() for v in (last.y, predicted, groups)), strict=True))
    return {"points": points, "residuals": residuals, "is_relative": METRICS[fitted.metric].unit == "s"}


def _quantiles(values: np.ndarray) -> list[float]:
    return [float(value) for value in np.quantile(values, _QUANTILES)]
