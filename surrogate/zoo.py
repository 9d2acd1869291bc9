"""Tune, fit and score model families beside the one that ships, on the same rows, features and split.

python -m surrogate.zoo RUNS --split SPLIT --searches DIR --out zoo.json [--families xgboost gin] [--evaluations 20]

Each family is tuned with NePS's random search by Kendall's tau on the validation part, at the last epoch. The best
setting is fitted to the training part and predicts the validation and test parts; the test part influences no choice.
The three families with the highest tau also predict the test part with ensembles over ten folds of training and
validation part. The result file holds every prediction, for `experiments.zoo`, and is written after each family: start
the command again to continue. Configs recorded after the split was made are left out.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Final

import numpy as np

from jahs.comparison.summaries import number_text
from jahs.errors import CorruptFile, UnknownName, refuse
from jahs.files.sealed_json import read_sealed, sealed_text
from splits.recorded import hex_id
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_of_split
from surrogate.data.rows import Facts, Rows, assemble, by_part, group_numbers, join_rows
from surrogate.judging.agreement import first_seed
from surrogate.models.fitting import held_out_rows
from surrogate.models.search import Point, default_point, search
from surrogate.models.zoo import FAMILIES, METRIC, Predict, fit_family
from surrogate.tune import data_of
from workshop.command import run_command
from workshop.folders import check_file, package_versions, write_text
from workshop.ranks import kendall_tau
from workshop.real_landscape import known

N_FOLDS: Final = 10
N_BEST: Final = 3
_OPTIMIZER: Final = "random_search"  # Bayesian optimisation takes longer for a proposal than most families for a fit
_HELD_OUT: Final = ("valid", "test")
_N_SINGLE: Final = 20
_N_BATCH: Final = 1000
_DIGITS: Final = 4
_log = logging.getLogger(__name__)


def score_families(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    searches: Path,
    families: Sequence[str] = tuple(FAMILIES),
    evaluations: int = 20,
) -> Facts:
    """Tune and score families, write `out` after each, and return its content.

    Args:
        out: the result file; families that it has for the same data and evaluations are kept.
        searches: a folder for searches to work in; ProtocolMismatch if it holds other searches.
        evaluations: evaluations of each family's search, besides the default setting.
    """
    import torch

    if unknown := [name for name in families if name not in FAMILIES]:
        raise UnknownName.of("family", unknown[0], FAMILIES)
    rows = assemble(METRIC, measured)
    parts = by_part(rows.take(rows.epoch == measured.task.max_epoch), split)
    faults = [f"the {name} part has no rows at the last epoch" for name, part in parts.items() if not len(part)]
    faults += [f"evaluations={evaluations} must be at least 1"] if evaluations < 1 else []
    refuse(*faults)
    torch.set_num_threads(1)
    results = _earlier_results(out, {**data_of(measured, split), "evaluations": evaluations}, parts)
    found = results["families"]
    for name in (name for name in families if name not in found):
        point, history = _search(searches / name, name, parts, measured, results, evaluations=evaluations)
        fit = partial(fit_family, name, point, parts["train"], parts["valid"], measured.task)
        found[name] = {**_scored(fit, parts, _HELD_OUT), "point": point, "evaluations": history}
        write_text(out, sealed_text(results))
        _log.info("%s: validation tau %s", name, number_text(found[name]["tau"], 4))
    best = best_families(results)
    ensembles = results["ensembles"] = {name: model for name, model in results["ensembles"].items() if name in best}
    for name in (name for name in best if name not in ensembles):
        fit = partial(_fit_ensemble, name, found[name]["point"], parts, measured)
        ensembles[name] = _scored(fit, parts, ["test"])
        write_text(out, sealed_text(results))
        _log.info("%s: ensemble of %d folds", name, N_FOLDS)
    return results


def best_families(found: Facts) -> list[str]:
    """Return the families with the highest validation tau, the best first."""
    return sorted(found["families"], key=lambda name: _tau_of(found["families"][name]), reverse=True)[:N_BEST]


def _tau_of(scored: Facts) -> float:
    """Return the validation tau; an undefined one counts as -1."""
    return -1.0 if scored["tau"] is None else float(scored["tau"])


def read_zoo(path: Path) -> Facts:
    """Read a result file."""
    results = read_sealed(path)
    if not all(isinstance(results.get(key), dict) for key in ("families", "ensembles", "parts")):
        raise CorruptFile(f"{path} holds no families, ensembles and parts; write it with python -m surrogate.zoo")
    return results


def _earlier_results(out: Path, data: Mapping[str, object], parts: Mapping[str, Rows]) -> Facts:
    """Return the content of `out` if it has results for the same data; otherwise the content of a new file."""
    if out.exists() and (results := read_zoo(out)).items() >= data.items():
        return results
    described = {}
    for name in _HELD_OUT:
        rows = parts[name].take(first_seed(parts[name]))
        described[name] = {
            "config_id": [hex_id(int(i)) for i in rows.config_id],
            "group": group_numbers(rows.X).tolist(),
            "measured": np.round(rows.y, _DIGITS).tolist(),
        }
    n_fitted = {"rows": len(parts["train"]), "configs": parts["train"].n_configs}
    versions = package_versions("lightgbm", "ngboost", "torch")
    return {**data, "n_fitted": n_fitted, "parts": described, "families": {}, "ensembles": {}, "versions": versions}


def _search(
    folder: Path, name: str, parts: Mapping[str, Rows], measured: Measurements, data: Facts, *, evaluations: int
) -> tuple[Point, list[Facts]]:
    """Return the best point and the history of all evaluations, which starts with the default point."""
    space = FAMILIES[name].space

    def score(point: Point) -> float:
        predicted = fit_family(name, point, parts["train"], parts["valid"], measured.task)(parts["valid"].X)
        return kendall_tau(parts["valid"].y, predicted)

    facts = {**{key: data[key] for key in ("task", "protocol", "split", "features")}, "family": name}
    records = search(folder, space, score, facts=facts, parts=parts, evaluations=evaluations, optimizer=_OPTIMIZER)
    history: list[Facts] = [{"number": 0, "point": (default := default_point(space)), "tau": known(score(default))}]
    history += [{key: record[key] for key in history[0]} for record in records[:evaluations]]
    return max(history, key=_tau_of)["point"], history


def _fit_ensemble(name: str, point: Point, parts: Mapping[str, Rows], measured: Measurements) -> Predict:
    """Return the mean prediction of ten models; each is fitted without one fold of training and validation part."""
    rows = join_rows([parts["train"], parts["valid"]])
    models = [
        fit_family(name, point, rows.take(~is_out), rows.take(is_out), measured.task, seed=seed)
        for seed, is_out in enumerate(held_out_rows(measured, rows, N_FOLDS, seed=0))
    ]
    return lambda X: np.asarray(np.mean([model(X) for model in models], axis=0))


def _scored(fit: Callable[[], Predict], parts: Mapping[str, Rows], held_out: Sequence[str]) -> Facts:
    """Return a model's predictions for parts, its tau on the validation part if that is one, and CPU times: of the fit,
    of a single config (the median), and of each config in a batch of 1,000."""
    started = time.process_time()
    predict = fit()
    fit_s = time.process_time() - started
    seconds = partial(timeit, timer=time.process_time, number=1)
    answers = {name: predict(parts[name].take(first_seed(parts[name])).X) for name in held_out}
    X = parts["test"].X  # the answers before were the warm-up of the timed ones
    single_s = [seconds(partial(predict, X[[i % len(X)]])) for i in range(_N_SINGLE)]
    batch_s = seconds(partial(predict, X[np.arange(_N_BATCH) % len(X)]))
    valid = parts["valid"]
    return {
        "fit_s": round(fit_s, 2),
        "one_ms": round(1e3 * float(np.median(single_s)), 3),
        "each_us": round(1e6 * batch_s / _N_BATCH, 2),
        "predicted": {name: np.round(values, _DIGITS).astype(float).tolist() for name, values in answers.items()},
        **({"tau": known(kendall_tau(valid.y, predict(valid.X)))} if "valid" in held_out else {}),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = runs_parser("zoo", __doc__, example="runs/ --split split.json --searches build/zoo --out zoo.json")
    parser.add_argument("--searches", type=Path, required=True, help="a folder for searches to work in")
    parser.add_argument("--out", type=Path, required=True, help="the result file; its results for these data are kept")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), help="default: all")
    parser.add_argument("--evaluations", type=int, default=20, help="per family (%(default)s)")
    given = vars(parser.parse_args(argv))
    runs, split, out = (given.pop(name) for name in ("runs", "split", "out"))

    def work() -> str:
        check_file(out)
        families = score_families(*read_of_split(runs, split), out, **given)["families"]
        return "\n".join(f"{name}: validation tau {number_text(found['tau'], 4)}" for name, found in families.items())

    return run_command("surrogate.zoo", work)


if __name__ == "__main__":
    sys.exit(main())
