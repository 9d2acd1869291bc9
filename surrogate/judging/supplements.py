"""What a release holds besides its models, as far as the measurements allow: training noise, and reference points.

Each function gives the content of a file, or None, and what quality.json says about it, the reason for None included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from jahs.errors import InvalidArgument, InvalidTable
from jahs.queries.benchmark import Benchmark
from jahs.queries.references import build_references
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import unmeasured
from surrogate.judging.coverage import coverage, realism
from surrogate.judging.predicted import NOISY, Predicted, fold_predictions, join_predicted
from surrogate.judging.scores import first_seed
from surrogate.models.model import Settings
from surrogate.noise import cross_validated_coverage, fit_noise

__all__ = ["noise_of", "references_of"]

Facts: TypeAlias = dict[str, Any]
"""JSON."""

_MOST_FOLDS: Final = 10
_N_REFERENCE_CONFIGS: Final = 20_000


def noise_of(
    measured: Measurements, split: Split, settings: Mapping[str, Settings], *, seed: int
) -> tuple[Facts | None, Facts]:
    """The model of the noise between trainings, from training and validation part.

    Its facts say which share of repeats its 90 % intervals hold, of configs that were held out: fold by fold, and of
    the test part where that has repeats.
    """
    if missing := sorted(set(NOISY) & unmeasured(measured, split).keys()):
        return None, {"reason": f"there are no measurements of {', '.join(missing)}"}
    timed = np.unique(measured.timed_runs["config_id"])  # no metric has fewer configs
    n_configs = int(np.isin(split.parts_of(timed), (0, 1)).sum())
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


def _has_repeats(predicted: Mapping[str, Predicted]) -> bool:
    rows = predicted["valid_acc"].rows
    return bool((~first_seed(rows)).any())
