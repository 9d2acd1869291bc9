"""The content of a release's quality.json, which `surrogate.card` renders.

Scores are for the test part. The scored models were fitted to the training part; those that ship were fitted again, to
training and validation part, and their scores on the same test rows are given as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.runs import sorted_runs
from jahs.schema import SPLIT_PARTS
from jahs.tasks.metrics import METRICS
from splits.split import Split
from surrogate.data.measurements import Measurements, trained_configs
from surrogate.data.rows import (
    FEWEST,
    GROUP_VALUES,
    Facts,
    Rows,
    configs_by_group,
    diverged_runs,
    group_numbers,
    unselected_repeats,
)
from surrogate.judging.agreement import MAIN_CUTS, agreement, last_and_first, score_model, score_surrogate
from surrogate.judging.curve import curve, predictions, sizes_for
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate
from workshop.measured import last_rows

FULL_SIZE: Final = 2000  # number of collected configs that the requirements are for
REQUIRED: Final = (
    ("valid_acc", "tau", "last epoch", 0.92),
    ("runtime", "tau", "last epoch", 0.97),
    ("latency", "tau", "all", 0.90),
    ("valid_acc", "r2", "all", 0.95),
)
"""Metric, score, cut and required value: for tau a share of the noise ceiling, for R2 the value itself."""

_FEWEST_TO_JUDGE: Final = 20
_TRAIN_SHARE: Final = 0.7
_DIGITS: Final = 6
_QUANTILES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_MOST_POINTS: Final = 1000


def data_facts(measured: Measurements, split: Split) -> Facts:
    """Return the counts of measurements, and their division into parts and fidelity groups."""
    configs, runs = trained_configs(measured), last_rows(sorted_runs(measured.runs))
    parts = split.parts_of(configs["config_id"])
    n_seeds = np.unique(runs["config_id"], return_counts=True)[1]
    groups = []
    for values in GROUP_VALUES:
        is_in = np.logical_and.reduce([configs[key] == value for key, value in values.items()])
        counts = np.bincount(parts[is_in], minlength=len(SPLIT_PARTS)).tolist()
        groups.append({**values, **dict(zip(SPLIT_PARTS, counts, strict=True))})
    return {
        "configs": len(parts),
        "parts": split.counts,
        "runs": len(runs["seed"]),
        "repeated_configs": int((n_seeds > 1).sum()),
        "unselected_repeats": None if (unselected := unselected_repeats(measured)) is None else len(unselected),
        "rows": len(measured.runs["epoch"]),
        "profiled_configs": len(measured.profile["latency"]),
        "max_epoch": measured.task.max_epoch,
        "diverged_runs": diverged_runs(measured, split),
        "machines": dict(sorted(Counter(runs["machine"].tolist()).items())),
        "timing_machine": measured.timing_machine,
        "profile_machine": measured.profile_machine,
        "groups": groups,
        "small_groups": sum(group["train"] < FEWEST for group in groups),
        "fewest": FEWEST,
    }


def metric_facts(
    fitted: Surrogate, refitted: Surrogate, answered: Mapping[str, Rows], repeats: Rows, *, seed: int
) -> Facts:
    """Return the features, settings, sizes and test scores of one metric's models.

    Args:
        fitted: the model of the training part.
        refitted: the model of training and validation part, which ships.
        answered: rows that answers are compared with, from `assemble_answered`, by part.
        repeats: rows that noise ceilings come from, from `assemble_repeats`.
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
        facts["test"] = score_surrogate(fitted, test, repeats, seed=seed) | _plot_data(fitted, test)
        scored = score_model(fitted.metric, test, refitted.predict(test.X))
        facts["refitted_test"] = {name: {"model": scored[name]} for name in MAIN_CUTS if name in scored}
    return facts


def compared_facts(fitted: Surrogate, test: Rows) -> Facts:
    """Return the test scores of a model of a metric that is otherwise computed exactly."""
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
    """Return the trials and the choice of the search for a metric's settings; None if there was no search.

    `is_of_this_split`: whether the search had the split, measurements and features of the release.

    Args:
        history: as `surrogate.tune` wrote it.
        of_data: `surrogate.tune.data_of` for the release.

    Raises:
        CorruptFile: the history is damaged, or chose other settings.
    """
    try:
        summary = history["metrics"].get(metric) if history else None
        if summary is None:
            return None
        chosen = ForestSettings.from_dict(summary["chosen"]["settings"])
    except (KeyError, TypeError, AttributeError, InvalidArgument) as err:
        raise CorruptFile(f"history.json lacks what a search records: {err!r}; tune again") from err
    if chosen != replace(settings, n_distilled=chosen.n_distilled):  # a search does not choose n_distilled
        raise CorruptFile(
            f"{metric}: params.json differs from the settings chosen in history.json; tune again, or remove "
            "history.json"
        )
    return {**summary, "is_of_this_split": all(history.get(key) == value for key, value in of_data.items())}


def curve_facts(
    model: Surrogate, measured: Measurements, parts: Mapping[str, Rows], *, n_seeds: int, workers: int
) -> Facts | None:
    """Return validation scores by the number of training configs, extrapolated to the full size if that is larger."""
    sizes, seeds = sizes_for(parts["train"].n_configs), range(n_seeds)
    if not sizes or not n_seeds or not len(parts["valid"]):
        return None
    points = curve(model, measured, parts, sizes, seeds=seeds, workers=workers)
    full_size = round(_TRAIN_SHARE * FULL_SIZE)
    extrapolated, reasons = predictions(points, full_size)
    if sizes[-1] >= full_size:
        for score in ("tau", "r2"):
            extrapolated.pop(score, None)
            reasons[score] = f"{sizes[-1]:,} training configs reach the {full_size:,} that the requirements assume"
    return {"points": points, "predictions": extrapolated, "not_predicted": reasons}


def requirements(metrics: Mapping[str, Facts], *, n_configs: Mapping[str, int]) -> list[Facts]:
    """Return the requirements for the full size and whether they are met; `is_met` is None with too few data.

    The requirement for tau is a share of its noise ceiling, or of 1 if no config was repeated; for R2 it is the value
    itself. The noise ceiling of R2 is halfway between 1 and R2 between two seeds, since a prediction has no noise.
    Fewer than 20 test configs, or a ceiling from fewer than 20 repeated configs, are too few.

    Args:
        metrics: `metric_facts` of each metric.
        n_configs: the number of configs with a measurement, by metric.
    """
    entries = []
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
        entries.append(entry)
    return entries


def rounded(content: Any) -> Any:  # Any: JSON
    """Return the content with floats rounded to six significant digits, and None for NaN and infinity."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    if isinstance(content, float):
        return float(f"{content:.{_DIGITS}g}") if math.isfinite(content) else None
    return content


def _plot_data(fitted: Surrogate, test: Rows) -> Facts:
    """Return the data of plots: measured and predicted values at the last epoch, and quantiles of errors by group."""
    last = test.take(last_and_first(test))
    predicted, groups = fitted.predict(last.X), group_numbers(last.X)
    error = predicted - last.y
    if METRICS[fitted.metric].unit == "s":
        error = error / last.y
    residuals = []
    for group in np.unique(groups).tolist():
        errors = error[groups == group]
        residuals.append({"group": group, "n": len(errors), "quantiles": np.quantile(errors, _QUANTILES).tolist()})
    thinned = slice(None, None, math.ceil(len(last) / _MOST_POINTS) or 1)
    points: list[Sequence[float]] = list(zip(*(v[thinned].tolist() for v in (last.y, predicted, groups)), strict=True))
    return {"points": points, "residuals": residuals, "is_relative": METRICS[fitted.metric].unit == "s"}
