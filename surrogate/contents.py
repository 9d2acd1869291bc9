"""How a release is made, its models, their scores, and the parts of the release that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from jahs.errors import UnknownName, refuse
from jahs.models.forest import Forest
from jahs.models.noise import NoiseModel
from jahs.release.models import FAMILIES, Models, Refits
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.command import integer_faults
from surrogate.data.measurements import Measurements
from surrogate.data.rows import (
    EXACT,
    FEWEST,
    Facts,
    Rows,
    assemble,
    assemble_answered,
    assemble_repeats,
    by_part,
    join_rows,
)
from surrogate.judging.agreement import MAIN_CUTS, score_model
from surrogate.judging.noise import noise_of
from surrogate.judging.quality import compared_facts, curve_facts, metric_facts
from surrogate.judging.uncertainty import uncertainty_facts
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import fit_each
from surrogate.models.lightgbm import as_xgboost, fit_lightgbm, predict_lightgbm
from surrogate.models.model import Surrogate
from surrogate.models.refits import N_REFITS, fit_refits, pack_refits, refit_settings, refit_share
from surrogate.packing import pack_models, recorded_table
from surrogate.timing import times_of

_UNSCALED: Final = "there is no noise model, so intervals cannot be calibrated"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """How a release is made: one field per flag of `surrogate.release`, which its `--help` explains.

    The history of the search is beside `params`; without `params`, settings are the default ones.
    """

    params: Path | None = None
    fewest: int = FEWEST
    seed: int = 0
    curve_seeds: int = 2
    distilled: int | None = None
    n_refits: int = N_REFITS
    families: Sequence[str] = ()
    rates: int = 0
    workers: int = 2

    def check(self) -> None:
        """Refuse numbers that are out of range and families that do not exist, every fault at once."""
        least = dict.fromkeys(("seed", "curve_seeds", "n_refits", "rates", "fewest"), 0) | {"workers": 1}
        if self.distilled is not None:
            least["distilled"] = 0
        faults = integer_faults({name: getattr(self, name) for name in least}, **least)
        one = [name for name, n in (("refits", self.n_refits), ("rates", self.rates)) if n == 1]
        faults += [f"{name}=1 must be 0 or at least 2" for name in one]
        faults += [str(UnknownName.of("family", name, FAMILIES)) for name in self.families if name not in FAMILIES]
        refuse(*faults)

    def command(self) -> str:
        """Return the command line of these settings, with placeholders for folders and files."""
        flags = {
            "curve-seeds": self.curve_seeds,
            "distilled": self.distilled,
            "families": " ".join(self.families) or None,
            "fewest": self.fewest,
            "rates": self.rates or None,
            "refits": self.n_refits,
            "seed": self.seed,
        }
        params = ["--params PARAMS"] if self.params else []
        options = [f"--{name} {value}" for name, value in flags.items() if value is not None]
        return " ".join(["python -m surrogate.release RUNS --split SPLIT", *params, *options, "--out RELEASE"])


@dataclass(frozen=True, slots=True)
class FittedModels:
    """The models of a release."""

    measured: Measurements
    split: Split
    parts: Mapping[str, Mapping[str, Rows]]  # the rows of each metric by part of the split
    scored: Mapping[str, Surrogate]  # models fitted to the training part, which the test part scores
    shipped: Mapping[str, Surrogate]  # models fitted to the training and the validation part

    def accuracy_parts(self) -> dict[str, Mapping[str, Rows]]:
        """Return the rows of the accuracies, which alone have refits and models of other families."""
        return {metric: rows for metric, rows in self.parts.items() if metric in ACCURACIES}


def fit_models(
    measured: Measurements,
    split: Split,
    parts: Mapping[str, Mapping[str, Rows]],
    params: Mapping[str, ForestSettings],
    *,
    workers: int,
) -> FittedModels:
    """Fit the models of these rows."""
    times = times_of(measured, split)
    scored, shipped = (
        fit_each(_training(parts, *more), measured.task, params, times=times, workers=workers)
        for more in ((), ("valid",))
    )
    return FittedModels(measured, split, parts, scored, shipped)


def score_models(models: FittedModels, searches: Mapping[str, Facts | None], settings: ReleaseSettings) -> Facts:
    """Return the facts of each metric: scores, the search for its settings, and its learning curve."""
    by_metric: Facts = {}
    for metric, model in models.scored.items():
        _log.info("%s: scoring", metric)
        answered = by_part(assemble_answered(metric, models.measured), models.split)
        repeats = assemble_repeats(metric, models.measured)
        facts = metric_facts(model, models.shipped[metric], answered, repeats, seed=settings.seed)
        facts["search"] = searches[metric]
        facts["learning_curve"] = curve_facts(
            model, models.measured, models.parts[metric], n_seeds=settings.curve_seeds, workers=settings.workers
        )
        by_metric[metric] = facts
    return by_metric


def contents_of(models: FittedModels, settings: ReleaseSettings) -> tuple[dict[str, Any], Facts]:  # Any: see Parts
    """Return models, noise, table, refits and other families for `fill_release`, and their facts for quality.json."""
    seed, workers, quality = settings.seed, settings.workers, Facts()
    noise, quality["noise"] = noise_of(models.measured, models.split, models.scored, seed=seed, workers=workers)
    packed, forests = pack_models(models.shipped)
    table = recorded_table(models.measured)
    parts: dict[str, Any] = {"models": packed, "forests": forests, "noise": noise, "table": table}
    if settings.n_refits:
        refits, refit_forests, quality["uncertainty"] = refits_of(models, packed, noise, settings)
        parts |= {"refits": refits, "refit_forests": refit_forests}
    if "lightgbm" in settings.families:
        family, quality["lightgbm"] = _lightgbm_of(models)
        parts["families"] = {"lightgbm": family}
    return parts, quality


def refits_of(
    models: FittedModels,
    packed: Models,
    noise: Mapping[str, Any] | None,  # Any: JSON
    settings: ReleaseSettings,
) -> tuple[Refits, list[Forest], Facts]:
    """Return the refits of a release, their forests, and facts about them for its quality.json.

    Without a noise model, the scales of the refits are not calibrated.
    """
    parts, n_refits, fitted = models.accuracy_parts(), settings.n_refits, models.scored
    shipped = _training(parts, "valid")
    share = refit_share(shipped, fitted, n_refits=n_refits, workers=settings.workers)
    options: dict[str, Any] = {"share": share, "seed": settings.seed, "n_refits": n_refits, "workers": settings.workers}
    _log.info("refits: %d of each of %s, with %.0f %% of the trees", n_refits, ", ".join(shipped), 100 * share)
    packs, forests = pack_refits(fit_refits(shipped, fitted, **options), packed)
    quality: Facts = {"n_refits": n_refits, "share": share, "metrics": {}}
    if noise is None:
        quality["reason"] = _UNSCALED
    else:
        model = NoiseModel.from_dict(noise)
        for metric, refits in fit_refits(_training(parts), fitted, **options).items():
            quality["metrics"][metric] = uncertainty_facts(fitted[metric], refits, parts[metric], model)
    facts = {
        "seed": settings.seed,
        "share": share,
        "settings": {m: asdict(refit_settings(fitted[m].settings, refit=0, share=share)) for m in shipped},
    }
    scales = {metric: quality["metrics"].get(metric, {}).get("scale", 1.0) for metric in shipped}
    return Refits(n_refits=n_refits, packs=packs, scales=scales, facts=facts), forests, quality


def _lightgbm_of(models: FittedModels) -> tuple[tuple[Models, list[Forest]], Facts]:
    """Return LightGBM's models of the accuracies with their forests, as a release has them, and their test scores."""
    boosters, quality, parts = {}, {}, models.accuracy_parts()
    for metric, training in _training(parts, "valid").items():
        _log.info("%s: fitting LightGBM", metric)
        boosters[metric] = fit_lightgbm(training, models.shipped[metric])
        if len(test := parts[metric]["test"]):
            scored = models.scored[metric]
            predicted = predict_lightgbm(fit_lightgbm(parts[metric]["train"], scored), test.X, scored)
            scores = score_model(metric, test, predicted)
            quality[metric] = {name: scores[name] for name in MAIN_CUTS if name in scores}
    shipped = {metric: models.shipped[metric] for metric in boosters}
    return pack_models(shipped, "lightgbm", lambda metric: as_xgboost(boosters[metric])), {"test": quality}


def compare_exact(measured: Measurements, split: Split, *, workers: int) -> Facts:
    """Return the scores of models of the exact metrics, for comparison only."""
    parts = {metric: by_part(assemble(metric, measured), split) for metric in EXACT}
    fitted = fit_each(_training(parts), measured.task, {}, workers=workers)
    return {metric: compared_facts(model, parts[metric]["test"]) for metric, model in fitted.items()}


def _training(parts: Mapping[str, Mapping[str, Rows]], *more: str) -> dict[str, Rows]:
    return {metric: join_rows([rows[part] for part in ("train", *more)]) for metric, rows in parts.items()}
