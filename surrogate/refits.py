"""Add refits to a release: models fitted again to resampled configs, from which `bench.predict` has its model error.

python -m surrogate.refits RUNS --split SPLIT --release RELEASE

`surrogate.release` writes them into every release that it makes. This command adds them to an older release, from the
runs, the split and the settings of that release. No answer changes. So the third part of the release's number moves,
and the manifest names the one that it replaces as a release with the same answers.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from jahs.errors import MissingData
from jahs.models.forest import Forest
from jahs.models.noise import NoiseModel
from jahs.release.manifest import Manifest, read_manifest
from jahs.release.models import Models
from jahs.release.refits import Refits
from jahs.release.writing import extend_release
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.command import add_workers, runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import Rows, join_rows, training_rows
from surrogate.judging.quality import Facts, rounded
from surrogate.judging.uncertainty import uncertainty_facts
from surrogate.models.fitting import fit_each
from surrogate.models.model import ForestSettings, Surrogate
from surrogate.models.refits import N_REFITS, fit_refits, pack_refits, refit_settings, refit_share
from surrogate.numbering import number_facts, read_made_from
from workshop.command import run_command

__all__ = ["N_REFITS", "add_refits", "main", "refits_of"]

_log = logging.getLogger(__name__)
_UNSCALED: Final = "there is no noise model, so intervals cannot be calibrated"


def refits_of(
    parts: Mapping[str, Mapping[str, Rows]],
    fitted: Mapping[str, Surrogate],
    models: Models,
    noise: Mapping[str, Any] | None,  # Any: JSON
    *,
    seed: int,
    n_refits: int = N_REFITS,
    workers: int = 1,
) -> tuple[Refits, list[Forest], Facts]:
    """Return the refits of a release, their forests, and facts about them for its quality.json.

    Args:
        parts: the rows of each metric by part of the split; those of accuracies are used.
        fitted: the models of the training part.
        models: those that ship.
        noise: `NoiseModel.to_dict()`; without it nothing is calibrated.
        seed: of the resampling.
        n_refits: how many.
        workers: processes.
    """
    of_task, settings = _task_and_settings(fitted)
    shipped = {metric: join_rows([of["train"], of["valid"]]) for metric, of in parts.items() if metric in ACCURACIES}
    share = refit_share(shipped, of_task, settings, n_refits=n_refits)
    how: dict[str, Any] = {"share": share, "seed": seed, "n_refits": n_refits, "workers": workers}
    _log.info("refits: %d of each of %s, with %.0f %% of the trees", n_refits, ", ".join(shipped), 100 * share)
    packs, forests = pack_refits(fit_refits(shipped, of_task, settings, **how), models)
    quality: Facts = {"n_refits": n_refits, "share": share, "metrics": {}}
    if noise is None:
        quality["reason"] = _UNSCALED
    else:
        model = NoiseModel.from_dict(noise)
        training = {metric: parts[metric]["train"] for metric in shipped}
        for metric, refits in fit_refits(training, of_task, settings, **how).items():
            quality["metrics"][metric] = uncertainty_facts(fitted[metric], refits, parts[metric], model)
    facts = {
        "seed": seed,
        "share": share,
        "settings": {m: asdict(refit_settings(settings[m], refit=0, share=share)) for m in shipped},
    }
    scales = {metric: quality["metrics"].get(metric, {}).get("scale", 1.0) for metric in shipped}
    return Refits(n_refits=n_refits, packs=packs, scales=scales, facts=facts), forests, quality


def _task_and_settings(fitted: Mapping[str, Surrogate]) -> tuple[Task, dict[str, ForestSettings]]:
    (of_task,) = {model.task for model in fitted.values()}
    return of_task, {metric: model.settings for metric, model in fitted.items()}


def add_refits(
    measured: Measurements, split: Split, release: Path, *, n_refits: int = N_REFITS, workers: int = 1
) -> Manifest:
    """Write refits into a release that was made from these runs and this split; its models keep their bytes.

    Settings and seed are those that the release was made with, as its quality.json and its manifest say.

    Returns:
        The manifest, as it is now.

    Raises:
        ProtocolMismatch: the release was made from other runs or another split.
        MissingData: the release has no quality.json, or no model of an accuracy.
    """
    found = read_made_from(release, measured, split)
    metrics = [metric for metric in ACCURACIES if metric in found.models.metrics]
    if found.quality is None or not metrics:
        raise MissingData(f"{release} has no {'model of an accuracy' if found.quality else 'quality.json'}")
    settings = {m: ForestSettings.from_dict(found.quality["metrics"][m]["settings"]) for m in metrics}
    parts = training_rows(metrics, measured, split, fewest=0)
    fitted = fit_each({m: of["train"] for m, of in parts.items()}, measured.task, settings, workers=workers)
    noise = None if found.noise is None else found.noise.to_dict()
    refits, forests, facts = refits_of(
        parts, fitted, found.models, noise, seed=int(found.facts.get("seed", 0)), n_refits=n_refits, workers=workers
    )
    quality = {**found.quality, "uncertainty": rounded(facts)}
    extend_release(found, {}, more_facts=_number_facts, refits=refits, refit_forests=forests, quality=quality)
    return read_manifest(release)


def _number_facts(old: Manifest, new: Manifest) -> dict[str, Any]:  # Any: JSON
    return {"same_answers": [], **number_facts(old, new)}  # those of the old manifest may no longer hold


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("refits", __doc__, example="runs/ --split split.json --release release/")
    parser.add_argument("--release", type=Path, required=True, help="the release; refits in it are replaced")
    parser.add_argument("--refits", type=int, default=N_REFITS, help="how many of each accuracy (%(default)s)")
    add_workers(parser, 1)
    given = parser.parse_args(argv)

    def work() -> object:
        measured, split = read_with_split(given.runs, given.split)
        now = add_refits(measured, split, given.release, n_refits=given.refits, workers=given.workers)
        sizes = {name: size for name, (size, _) in now.files.items() if name.startswith("refits")}
        return {"sha256": now.sha256, "version": now.facts["version"], "bytes": sizes}

    return run_command("surrogate.refits", work)


if __name__ == "__main__":
    sys.exit(main())
