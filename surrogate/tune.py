"""Search each metric's settings with NePS, and choose the smallest forest that is practically as good as the best.

Many settings of validation or test accuracy reach practically the highest tau over all configs, but differ among the
best, where optimisers end. Of these settings, those with the highest tau in the top quarter of the validation configs
are chosen. Training accuracy is no objective: its forest may be smaller.

python -m surrogate.tune RUNS --split SPLIT --out DIR [--metrics ...] [--evaluations 20] [--workers 4]

DIR holds a folder for each metric (see `surrogate.models.search`), `history.json` with every evaluation, and
`params.json` with the chosen settings, which `surrogate.release --params` reads. Stop the command and give it again to
continue the searches. Metrics that were searched there before, on the same measurements and split, stay in both files.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.comparison.summaries import number_text
from jahs.errors import CorruptFile, InvalidArgument, refuse
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.models.features import FEATURES_VERSION
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES, LEARNED
from jahs.tasks.own import recorded_as
from splits.split import Split
from surrogate.command import add_distilled, add_fewest, integer_faults, runs_parser
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import FEWEST, Facts, Rows, training_rows
from surrogate.judging.agreement import agreement, top_tau
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, Taught, default_features, distil, fit_surrogate
from surrogate.models.search import Range, alone, evaluated, search
from workshop.command import add_workers, run_command
from workshop.folders import write_text, writing
from workshop.jobs import in_processes
from workshop.ranks import kendall_tau

FORESTS: Final[Mapping[str, Range]] = {
    "max_depth": Range(1, 8, 6, is_integer=True),  # the paper's ends at 15; deeper forests are too large to ship
    "min_child_weight": Range(1, 10, 1, is_integer=True),
    "colsample_bytree": Range(0.001, 1.0, 1.0),  # XGBoost refuses 0; one column is drawn at least
    "learning_rate": Range(0.01, 0.07, 0.05, is_log=True),  # decision 21 says why not more
    "colsample_bylevel": Range(0.001, 1.0, 1.0),
    "sigmoid_k": Range(0.01, 2.0, 1.0, is_log=True),
}
"""The paper's search space, but for the depth and the learning rate."""

_OPTIMIZER: Final = "pibo"  # Bayesian optimisation with priors, as in the paper
_TOLERANCE: Final = 0.002  # the most validation tau that other settings or a smaller forest may lose against the best
_TOLERANCE_TRAIN: Final = 0.005  # the same of training accuracy
_TOLERANCE_R2: Final = 0.01
_TOLERANCE_TOP: Final = 0.005
_OBJECTIVES: Final = ("valid_acc", "test_acc")
_TREES: Final = (50, 100, 150, 200, 300, 400, 500)
_DEPTHS: Final = (4, 5, 6, 8, 10)

_log = logging.getLogger(__name__)


def tune_all(
    measured: Measurements,
    split: Split,
    out: Path,
    *,
    metrics: Sequence[str] = LEARNED,
    evaluations: int = 20,
    workers: int = 4,
    n_trees: int = 500,
    distilled: int = 0,
    fewest: int = FEWEST,
) -> dict[str, Any]:
    """Search every metric, choose the smallest good forest, write history.json and params.json.

    Its arguments are flags, which `--help` explains.

    Returns:
        The history by metric, as `search_metric` returns it, with metrics that were searched in `out` before.

    Raises:
        InvalidArgument: a number is out of range, or a search is running in `out`.
        UnknownName: a metric does not exist.
        ProtocolMismatch: `out` holds a search of other rows.
        CorruptFile: its history cannot be read.
    """
    numbers = {"evaluations": evaluations, "workers": workers, "distilled": distilled, "fewest": fewest}
    refuse(*integer_faults(numbers, evaluations=1, workers=1, distilled=0, fewest=0))
    parts = training_rows(metrics, measured, split, fewest=fewest)
    for metric, rows in parts.items():
        if not len(rows["valid"]):
            raise InvalidArgument(f"{metric}: the validation part has no rows")
    data, calls = data_of(measured, split), []
    for metric, rows in parts.items():
        if n_done := len(evaluated(out / metric)):
            _log.info("%s: going on after %d/%d evaluations", metric, n_done, evaluations)
        facts = what_is_searched(metric, measured, split, n_trees=n_trees, distilled=distilled)
        options = {"of_task": measured.task, "evaluations": evaluations}
        calls.append({"folder": out / metric, "parts": rows, "facts": facts, **options})
    with writing(out), alone(out):
        earlier = read_history(out / "history.json")
        is_same = bool(earlier) and all(earlier.get(key) == value for key, value in data.items())
        history: Facts = dict(earlier["metrics"]) if is_same else {}
        history |= zip(parts, in_processes(search_metric, calls, workers=workers), strict=True)
        write_text(out / "history.json", sealed_text({**data, "metrics": history}))
        chosen = {metric: summary["chosen"]["settings"] for metric, summary in history.items()}
        write_text(out / "params.json", sealed_text({"metrics": chosen}))
    return history


def search_metric(folder: Path, facts: Facts, parts: Mapping[str, Rows], of_task: Task, *, evaluations: int) -> Facts:
    """Search one metric's settings, and return its part of the history; `facts` come from `what_is_searched`."""
    metric = facts["metric"]
    default = ForestSettings(n_trees=facts["n_trees"], n_distilled=facts["n_distilled"])
    taught = distil(metric, parts["train"], of_task, default.n_distilled) if default.n_distilled else None

    def score(point: Mapping[str, Any]) -> float:  # Any: NePS's values
        return validation_tau(metric, of_task, parts, settings_of(point, default), taught)

    options: dict[str, Any] = {"evaluations": evaluations, "optimizer": _OPTIMIZER}  # Any: arguments
    records = search(folder, FORESTS, score, facts=facts, parts=parts, **options)
    history = [
        {key: record[key] for key in ("number", "tau", "seconds")}
        | {"settings": asdict(settings_of(record["point"], default))}
        for record in records
    ]
    best = max(history, key=lambda entry: -1.0 if entry["tau"] is None else entry["tau"], default=None)
    default_tau = validation_tau(metric, of_task, parts, default, taught)
    # If tau is undefined, as for two rows, there is no score to choose by.
    is_better = best is not None and best["tau"] is not None and best["tau"] > default_tau
    if best is not None and is_better and metric in _OBJECTIVES:
        near = [entry for entry in history if (entry["tau"] or -1.0) >= best["tau"] - _TOLERANCE]
        for entry in near:
            settings = ForestSettings.from_dict(entry["settings"])
            fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings, taught=taught)
            entry["tau_top"] = last_top_tau(of_task, parts["valid"], fitted)
        best = max(near, key=lambda entry: (entry["tau_top"], entry["tau"]))
    settings = ForestSettings.from_dict(best["settings"]) if best is not None and is_better else default
    measured_sizes = sizes(metric, of_task, parts, settings, taught)
    return {
        "evaluations": history,
        "default_tau": None if math.isnan(default_tau) else default_tau,
        "beats_default": is_better,
        "n_valid_configs": parts["valid"].n_configs,
        "sizes": measured_sizes,
        "chosen": smallest(measured_sizes, tolerance=_TOLERANCE_TRAIN if metric == "train_acc" else _TOLERANCE),
        "optimizer": _OPTIMIZER,
    }


def validation_tau(
    metric: str, of_task: Task, parts: Mapping[str, Rows], settings: ForestSettings, taught: Taught | None = None
) -> float:
    """Fit on the training rows; return Kendall's tau on all validation rows."""
    fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings, taught=taught)
    valid = parts["valid"]
    return kendall_tau(fitted.measured(valid), fitted.predict(valid.X))


def last_top_tau(of_task: Task, valid: Rows, fitted: Surrogate, *, n_trees: int = 0) -> float:
    """Return the tau of the top quarter of the validation rows of the last epoch, 0 where it is undefined."""
    last = valid.take(valid.epoch == of_task.max_epoch)
    return float(np.nan_to_num(top_tau(last.y, fitted.predict(last.X, n_trees=n_trees)))) if len(last) else 0.0


def sizes(
    metric: str, of_task: Task, parts: Mapping[str, Rows], best: ForestSettings, taught: Taught | None = None
) -> list[Facts]:
    """Measure forests of the best settings' depth and of smaller ones, each cut short at several numbers of trees.

    Returns:
        Settings, nodes, and validation tau and R2 of each, None where they are not defined, and the tau at the top.
    """
    forests = []
    valid = parts["valid"]
    for depth in sorted({best.max_depth, *(depth for depth in _DEPTHS if depth < best.max_depth)}):
        settings = replace(best, max_depth=depth)
        fitted = fit_surrogate(metric, parts["train"], of_task, settings=settings, taught=taught)
        nodes = [text.count("\n") for text in fitted.booster.get_dump()]
        for n_trees in sorted({best.n_trees, *(n for n in _TREES if n < best.n_trees)}):
            scores = agreement(metric, fitted.measured(valid), fitted.predict(valid.X, n_trees=n_trees))
            cut = asdict(replace(settings, n_trees=n_trees))
            found = {"tau": scores["tau"], "r2": scores["r2"]}
            if metric in _OBJECTIVES:
                found["tau_top"] = last_top_tau(of_task, valid, fitted, n_trees=n_trees)
            forests.append({"settings": cut, "n_nodes": sum(nodes[:n_trees]), **found})
    return forests


def smallest(found: Sequence[Facts], *, tolerance: float = _TOLERANCE) -> Facts:
    """Return the forest with the fewest nodes and practically the best scores; the largest if tau is undefined.

    Tau alone is not enough: a few trees with a small learning rate may rank well and still be far from the values. So
    it is the smallest forest whose R2 is within 0.01 of the best, whose tau is within `tolerance` of the best of these,
    and whose tau at the top, if known, is within 0.005 of the best of those.
    """
    known = [size for size in found if None not in (size["tau"], size["r2"])]
    if not known:
        return max(found, key=lambda size: size["n_nodes"])
    least_r2 = max(size["r2"] for size in known) - _TOLERANCE_R2
    near = [size for size in known if size["r2"] >= least_r2]
    least_tau = max(size["tau"] for size in near) - tolerance
    near = [size for size in near if size["tau"] >= least_tau]
    least_top = max(size.get("tau_top", 0.0) for size in near) - _TOLERANCE_TOP
    near = [size for size in near if size.get("tau_top", 0.0) >= least_top]
    return min(near, key=lambda size: (size["n_nodes"], -size["tau"]))


def settings_of(proposed: Mapping[str, Any], default: ForestSettings) -> ForestSettings:  # Any: NePS's values
    """Return `default` with the settings of a point of the search space."""
    return replace(
        default,
        max_depth=int(proposed["max_depth"]),
        min_child_weight=int(proposed["min_child_weight"]),
        colsample_bytree=float(proposed["colsample_bytree"]),
        colsample_bylevel=float(proposed["colsample_bylevel"]),
        learning_rate=float(proposed["learning_rate"]),
        slope=float(proposed["sigmoid_k"]),
    )


def read_history(path: Path) -> dict[str, Any]:  # Any: JSON
    """Read the history of searches; empty if there is no such file."""
    if not path.is_file():
        return {}
    history = read_sealed(path)
    if not isinstance(history.get("metrics"), dict):
        raise CorruptFile(
            f"{path} is not the history of a search: 'metrics' must be an object; tune again, or remove the file"
        )
    return history


def data_of(measured: Measurements, split: Split) -> dict[str, object]:
    """Return the facts that identify the data of a search; its settings may be worse for other data."""
    return {
        "task": measured.task.name,
        "protocol": measured.protocol,
        "split": split.digest,
        "measurements": digest_measurements(measured),
        "features": FEATURES_VERSION,
    }


def what_is_searched(metric: str, measured: Measurements, split: Split, *, n_trees: int, distilled: int) -> Facts:
    """Return the facts that identify a metric's search, without its rows; see `surrogate.models.search`."""
    default = ForestSettings(n_trees=n_trees, n_distilled=distilled if metric in ACCURACIES else 0)
    return {
        "metric": metric,
        "task": recorded_as(measured.task),
        "protocol": measured.protocol,
        "split": split.digest,
        "features": [*default_features(metric).columns, FEATURES_VERSION],
        "optimizer": _OPTIMIZER,
        "n_trees": default.n_trees,
        "n_distilled": default.n_distilled,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = runs_parser("tune", __doc__, example="runs/ --split split.json --out tuned/ --workers 2")
    parser.add_argument("--out", type=Path, required=True, help="a folder, new or of a search to continue")
    parser.add_argument("--metrics", nargs="+", default=list(LEARNED), help="default: every learned metric")
    parser.add_argument("--evaluations", type=int, default=20, help="evaluations for each metric (%(default)s)")
    add_workers(parser, default=4)
    parser.add_argument("--trees", dest="n_trees", type=int, default=500, help="trees in every forest (%(default)s)")
    add_distilled(parser, default=0)
    add_fewest(parser)
    given = vars(parser.parse_args(argv))
    runs, split, out = (given.pop(name) for name in ("runs", "split", "out"))

    def work() -> str:
        return tuning_text(tune_all(*read_with_split(runs, split), out, **given))

    return run_command("surrogate.tune", work)


def tuning_text(found: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the chosen settings as text, one line per metric."""
    lines = []
    for metric, summary in found.items():
        chosen, default = summary["chosen"], summary["default_tau"]
        lines.append(
            f"{metric}: validation tau {number_text(chosen['tau'], 4)} with {chosen['settings']['n_trees']} trees of "
            f"depth {chosen['settings']['max_depth']}; the default has {number_text(default, 4)}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
