"""What a release holds besides its models, as far as the measurements allow.

These are the training noise and the reference points, each the content of a file, or None, with what quality.json says
about it, including the reason for None; and the reference config, a fact of the manifest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import numpy as np

from jahs.errors import InvalidArgument, InvalidTable
from jahs.files.runs import is_timed
from jahs.queries.benchmark import Benchmark
from jahs.queries.references import build_references
from jahs.queries.views import SIZES
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config
from splits.split import Split
from surrogate.coverage import coverage, realism
from surrogate.dataset import Measurements, assemble, unmeasured
from surrogate.model import Settings
from surrogate.noise import cross_validated_coverage, fit_noise
from surrogate.predicted import NOISY, Predicted, fold_predictions, join_predicted
from surrogate.scores import first_seed

__all__ = ["noise_of", "reference_config", "references_of"]

Facts: TypeAlias = dict[str, Any]
"""JSON."""

_MOST_FOLDS: Final = 10
_N_REFERENCE_CONFIGS: Final = 20_000
_QUANTILE: Final = 0.9


def noise_of(
    measured: Measurements, split: Split, settings: Mapping[str, Settings], *, seed: int
) -> tuple[Facts | None, Facts]:
    """The model of the noise between trainings, from training and validation part.

    Its facts say which share of repeats its 90 % intervals hold, of configs that were held out: fold by fold, and of
    the test part where that has repeats.
    """
    if missing := sorted(set(NOISY) & unmeasured(measured, split).keys()):
        return None, {"reason": f"there are no measurements of {', '.join(missing)}"}
    timed = measured.runs["config_id"][is_timed(measured.runs, measured.timing_machine)]  # no metric has fewer configs
    n_configs = int(np.isin(split.parts_of(np.unique(timed)), (0, 1)).sum())
    try:
        n_folds = min(_MOST_FOLDS, n_configs)
        parts = fold_predictions(measured, split, n_folds=n_folds, settings=settings, seed=seed)
        folded = {metric: join_predicted([of["train"], of["valid"]]) for metric, of in parts.items()}
        model = fit_noise(folded, measured.task)
    except (InvalidTable, InvalidArgument) as err:
        return None, {"reason": str(err)}
    facts: Facts = {"counts": dict(model.counts)}
    facts["realism"] = [asdict(found) for found in realism(model, folded)]
    try:
        facts["folds"] = [asdict(found) for found in cross_validated_coverage(folded, measured.task)]
    except InvalidTable as err:
        facts["folds"], facts["not_held_out"] = [], str(err)
    test = {metric: of["test"] for metric, of in parts.items()}
    facts["test"] = [asdict(found) for found in coverage(model, test)] if _has_repeats(test) else []
    return model.to_dict(), facts


def references_of(release: Path, task: str, *, seed: int) -> tuple[Facts | None, Facts]:
    """Pareto fronts and reference points of a release that has its models already."""
    bench = Benchmark(task, release=release)
    try:
        found = build_references(bench, n_configs=_N_REFERENCE_CONFIGS, seed=seed)
    except InvalidArgument as err:
        return None, {"reason": str(err)}
    fronts = [{"metrics": list(names), "configs": len(found.front(names).F)} for names in found.combinations]
    return found.to_dict(), {"fronts": fronts}


def reference_config(measured: Measurements, split: Split) -> Config | None:
    """Return the validation config at the 0.9 quantile of validation accuracy, at full size; None if there is none.

    The validation configs that were trained to the last epoch are sorted by the mean of their validation accuracies
    there, ties by config id. The one at the quantile (nearest rank) is taken, so it is good, but not the best known.
    """
    recorded = assemble("valid_acc", measured, split)["valid"]
    last = recorded.take(recorded.epoch == measured.task.max_epoch)
    if not len(last):
        return None
    ids, place, counts = np.unique(last.config_id, return_inverse=True, return_counts=True)
    order = np.lexsort((ids, np.bincount(place, weights=last.y) / counts))
    chosen = ids[order[math.ceil(_QUANTILE * len(ids)) - 1]]
    is_chosen = measured.configs["config_id"] == chosen
    (config,) = rows({name: values[is_chosen] for name, values in measured.configs.items()})
    return cast("Config", {**config, **SIZES})


def _has_repeats(predicted: Mapping[str, Predicted]) -> bool:
    rows = predicted["valid_acc"].rows
    return bool((~first_seed(rows)).any())
