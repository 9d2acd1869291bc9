"""Does the surrogate see what operations without parameters cost? NAS-Bench-301's study of them (appendix D.6).

In the cells of test configs, a rising share of operations is replaced by one of them, and the release predicts the
accuracy. Recorded configs that have many are compared with predictions of models that were not fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import jahs
from experiments.report.writing import table
from experiments.science.papers import beside_lightgbm, beside_paper, compared
from experiments.science.subjects import MAIN, Subject, answers
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text
from jahs.errors import InvalidArgument
from jahs.files.tables import take
from jahs.schema import CONFIG_KEYS, OPS, SPLIT_PARTS
from jahs.spaces.cell.operations import IDENTITY, POOL, ZERO
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.columns import Columns, config_ids
from splits.split import Split, read_split
from surrogate.models.refits import weights_of
from workshop.exhaustive import cell_columns, ops_of
from workshop.measured import rows_of
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curves
from workshop.resampling import bootstrap_estimates, interval_text

Cells = NDArray[np.int64]  # operations, (n_cells, 6)
FREE: Final[Mapping[str, int]] = {"identity": IDENTITY, "zero": ZERO, "pooling": POOL}
N_REPEATS: Final = 4
_N_OPS: Final = len(OPS)
_FEWEST: Final = 3
_COMPARED: Final = ("trained", "predicted", "bias, points")
_NONE: Final = "–"
_estimates: Final = partial(bootstrap_estimates, level=0.9, n_resamples=400)
_interval: Final = partial(interval_text, digits=1, sign="+")
_WHY: Final = """NAS-Bench-301 replaces operations of one kind of cell in networks of 8 cells with two kinds, trained
    for 100 epochs at fixed hyperparameters. Here all cells of a network are one cell, sizes and hyperparameters are
    those of random configs, and training is short, which favours what trains fast."""


class Replaced(NamedTuple):
    """What becomes of configs when operations of their cells are replaced."""

    values: dict[str, Floats]  # accuracies by operation, (n_models, 7 numbers of replaced edges, n_configs)
    n_measured: int  # number of changes that are measured, not predicted
    n: int  # number of replaced cells that differ from the original one


class Study(NamedTuple):
    """The results of one task."""

    subject: Subject
    changes: dict[str, list[Interval]]  # change of the predicted accuracy, by operation and number replaced
    on_lightgbm: dict[str, Floats]  # the same by LightGBM's models, (7,); empty if the release has none
    trained: str  # how many of the replaced configs were trained
    measured: Floats  # accuracy of each recorded test config at the last epoch
    predicted: Floats  # the same, predicted
    ops: Cells  # their cells, (n, 6)
    cells: dict[str, Floats]  # by operation, predictions for a cell of it alone, other keys of the test configs, (n,)
    recorded: dict[str, Floats]  # by operation, of recorded configs of any part whose cell has it alone: measured and
    # predicted accuracy, (2, n); predicted by the refits that were not fitted to the config, NaN where all were


def with_fewer_parameters(ops: Cells, operation: int, n: int, order: Cells) -> Cells:
    """Return cells, (n_cells, 6), with the first `n` edges of each row's order set to an operation."""
    return np.where(np.argsort(order, axis=1) < n, operation, ops)


def replaced(models: Sequence[jahs.Benchmark], configs: Columns, known: Mapping[int, float]) -> Replaced:
    """Return each model's predictions with replaced edges; the change is measured where `known` has both configs.

    The edges are drawn `N_REPEATS` times and predictions averaged; a larger set of edges contains the smaller ones.

    Args:
        models: the released models and the refits.
        configs: columns of configs.
        known: measured accuracies by `config_id`.
    """

    def measured(columns: Columns) -> Floats:
        return np.array([known.get(number, np.nan) for number in config_ids(columns).tolist()])

    ops, own, before = ops_of(configs), [answers(model, configs) for model in models], measured(configs)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(_N_OPS), (N_REPEATS, len(ops), 1)), axis=2)
    is_measured = list[NDArray[np.bool_]]()  # of cells that differ

    def mean(operation: int, n: int) -> Floats:
        draws = []
        for cells in (with_fewer_parameters(ops, operation, n, order) for order in orders):
            variants: Columns = {**configs, **cell_columns(cells)}
            change = measured(variants) - before
            predicted = [answers(model, variants) for model in models]
            draws.append(np.where(np.isnan(change), predicted, own + change))
            is_measured.append(np.isfinite(change)[(cells != ops).any(axis=1)])
        return np.asarray(np.mean(draws, axis=0))

    values = {name: np.stack([mean(code, n) for n in range(_N_OPS + 1)], axis=1) for name, code in FREE.items()}
    return Replaced(values, sum(int(of.sum()) for of in is_measured), sum(map(len, is_measured)))


def held_out_answers(subject: Subject, split: Split, configs: Columns) -> Floats:
    """Return the mean prediction of the refits that were not fitted to each config; NaN where all refits were.

    Their bootstrap samples are drawn again. Where the release does not say from which seed, or was fitted to other
    configs than those that it records outside of the test part, every refit counts as fitted to all of these.
    """
    release, refits = release_of(subject.bench), subject.refits
    fitted = np.unique(release.table.runs["config_id"][np.isfinite(release.table.runs[MAIN])])
    fitted = fitted[split.parts_of(fitted) != SPLIT_PARTS.index("test")]
    seed, n_fitted = release.refits.facts.get("seed"), release.models.counts.get(MAIN, {}).get("configs")
    samples = [fitted] * len(refits)
    if seed is not None and n_fitted == len(fitted):
        samples = [fitted[weights_of(fitted, refit=k, seed=seed) > 0] for k in range(len(refits))]
    is_fitted = [np.isin(config_ids(configs), sample) for sample in samples]
    predicted = np.ma.masked_array([answers(refit, configs) for refit in refits], is_fitted)
    return np.asarray(predicted.mean(axis=0).filled(np.nan))


def study_of(subject: Subject, split: Split) -> Study:
    """Measure one task."""
    recorded, epoch = release_of(subject.bench).table, subject.bench.max_epoch
    runs = take(recorded.runs, (recorded.runs["epoch"] == epoch) & np.isfinite(recorded.runs[MAIN]))
    ids, place, counts = np.unique(runs["config_id"], return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=runs[MAIN].astype(np.float64)) / counts
    configs = rows_of(recorded.configs, ids)
    is_test = split.parts_of(ids) == SPLIT_PARTS.index("test")
    if not is_test.any():
        raise InvalidArgument(f"no config of the test part is recorded at epoch {epoch}; give the task's split")
    if not subject.refits:
        raise InvalidArgument("the release has no refits, from which the intervals are computed; choose one that has")
    columns: Columns = {key: configs[key] for key in CONFIG_KEYS}
    tests = take(columns, is_test)
    n_models, others = len(subject.models), [other.bench for other in subject.on_lightgbm]
    found = replaced([*subject.models, *others], tests, dict(zip(ids.tolist(), means.tolist(), strict=True)))
    ops, pairs = ops_of(configs), np.stack([means, held_out_answers(subject, split, columns)])
    return Study(
        subject=subject,
        changes={name: changes_of(values[:n_models]) for name, values in found.values.items()},
        on_lightgbm={
            name: (by_lightgbm - by_lightgbm[0]).mean(axis=1)
            for name, values in found.values.items()
            for by_lightgbm in values[n_models:]
        },
        trained=_trained_text(found),
        measured=means[is_test],
        predicted=answers(subject.bench, tests),
        ops=ops[is_test],
        cells={name: values[0, -1] for name, values in found.values.items()},
        recorded={name: pairs[:, (ops == code).all(axis=1)] for name, code in FREE.items()},
    )


def _trained_text(found: Replaced) -> str:
    if not found.n_measured:
        return "No such config was trained for this figure."
    return f"{found.n_measured} of {found.n:,} replaced configs were trained; their changes are the measured ones."


def changes_of(values: Floats) -> list[Interval]:
    """Return the mean change to no replacement by number replaced, with intervals over configs and refits."""
    change = values - values[:, :1]
    refits, n = cycle(change[1:]), values.shape[2]  # each resample is of the next refit
    spread = _estimates(lambda at: next(refits)[:, at].mean(axis=1), n)
    means = change[0].mean(axis=1).tolist()
    return [replace(interval, value=value) for interval, value in zip(spread, means, strict=True)]


def parameter_free_page(subjects: Sequence[Subject]) -> Document:
    """Return the page."""
    studies = []
    for subject in subjects:
        if subject.data is None:
            raise InvalidArgument("parameter_free needs the split of a task; add --data data, with TASK/split.json")
        studies.append(study_of(subject, read_split(subject.data / subject.bench.task.name / "split.json")))
    claims = (
        ("many identities", "identity", _N_OPS, "falls", -1),
        ("many poolings", "pooling", _N_OPS, "falls", -1),
        ("two identities", "identity", 2, "rises", 1),
    )
    rows, others = [], []
    for (replacement, name, n, paper, sign), study in product(claims, studies):
        quantity = f"change of the predicted accuracy by {replacement} ({n} of {_N_OPS} operations, points)"
        rows.append(compared(quantity, study.subject.title, paper, study.changes[name][n], sign=sign, show=_interval))
        if study.on_lightgbm:
            others.append((quantity, study.subject.title, paper, number_text(study.on_lightgbm[name][n], 1, sign="+")))
    more = (
        " over configs and refits. NAS-Bench-301 shows figures and gives no numbers; its cells have no zeros. "
        "“Inconclusive”: the interval covers 0, or the release's value is on the other side of 0."
    )
    beside = beside_paper("NAS-Bench-301", rows, level=90, more=more), *beside_lightgbm(rows, others)
    blocks = (block for study in studies for block in _blocks(study))
    return Document(
        title="Operations without parameters",
        subtitle=" ".join(map(_finding, studies)),
        sections=sections_of(["Comparison with NAS-Bench-301", *beside, Text(_WHY), *blocks]),
    )


def _finding(study: Study) -> str:
    order = sorted(FREE, key=lambda name: study.changes[name][-1].value)
    changes = ", ".join(f"{_interval(study.changes[name][-1])} points with {name} alone" for name in order)
    praised = 100 * float((study.cells["identity"] > study.predicted).mean())
    known, (*_, bias) = study.recorded["identity"].shape[1], _compared_texts(*study.recorded["identity"])
    trained = f"{known or 'no'} such cell{'s were' if known > 1 else ' was'} trained"
    if bias != _NONE:
        trained += f", and the bias of refits that were not fitted to them is {bias} points"
    return (
        f"On {study.subject.title}, replacing all operations of a cell changes the predicted accuracy by {changes} "
        f"(90 % intervals over configs and refits), and replacing one of six by an identity by "
        f"{_interval(study.changes['identity'][1])}. A cell of identities alone is predicted to be better than "
        f"the config's own cell for {praised:.0f} % of the test configs; {trained}."
    )


def _blocks(study: Study) -> Iterator[str | Block]:
    title = study.subject.title
    yield f"Replaced operations on {title}, predicted"
    curves = interval_curves(study.changes, np.arange(_N_OPS + 1) / _N_OPS)
    yield Figure(
        name=f"replaced-{study.subject.bench.task.name}",
        caption=f"Change of the predicted {MAIN} at the last epoch as operations of {len(study.measured)} test "
        f"configs are replaced, mean over configs and {N_REPEATS} draws of edges, with 90 % intervals over configs and "
        f"refits. {study.trained}",
        alt="; ".join(f"{name} alone: {values[-1].value:+.1f} points" for name, values in study.changes.items()),
        drawing=draw_curves(curves, x_label="share of replaced operations", y_label="change of accuracy, points"),
    )
    head = ("operation", *(f"{n} of {_N_OPS}" for n in range(1, _N_OPS + 1)))
    changes = [(name, *map(_interval, values[1:])) for name, values in study.changes.items()]
    yield table("Change of the predicted accuracy, points", head, changes)
    yield f"Recorded cells on {title}, trained and predicted"
    yield Text(
        "No model was fitted to these configs. The bias is predicted minus trained, with a 90 % interval over them."
    )
    yield _recorded_table(study)
    yield f"Cells that no model must praise on {title}"
    rows = []
    for name, values in study.cells.items():
        praised = f"{100 * float((values > study.predicted).mean()):.0f} %"
        n, *known = _compared_texts(*study.recorded[name])
        n = n if study.recorded[name].size else "not recorded"
        rows.append((f"{name} alone", f"{values.mean():.1f}", f"{values.max():.1f}", praised, n, *known))
    yield table(
        f"{MAIN} at the last epoch, %. Test configs have {study.measured.mean():.1f} on average and "
        f"{study.measured.max():.1f} at best.",
        ("cell", "predicted, mean", "predicted, best", "praised", "recorded configs", *_COMPARED),
        rows,
    )
    yield Text(
        "The cell of each row has one operation alone. The mean and best prediction are the release's, with the other "
        "keys of the test configs. The cell is praised where the prediction is higher than that for the config's own "
        "cell; a cell of zeros cannot be better than chance. Recorded configs with such a cell are of any part, so the "
        "release was fitted to some of them. They are predicted by the mean of the refits whose bootstrap samples do "
        "not contain them; those that are in all samples are left out."
    )


def _recorded_table(study: Study) -> Table:
    n_free = np.isin(study.ops, list(FREE.values())).sum(axis=1)
    cuts = {f"{n} of {_N_OPS} without parameters": n_free == n for n in range(_N_OPS + 1)}
    cuts["no path from input to output"] = ~live_paths(study.ops).any(axis=1)

    rows = [(cut, *_compared_texts(study.measured[is_in], study.predicted[is_in])) for cut, is_in in cuts.items()]
    return table(f"{MAIN} at the last epoch, %, of test configs", ("cells", "configs", *_COMPARED), rows)


def _compared_texts(measured: Floats, predicted: Floats) -> tuple[str, ...]:
    """Return how many configs have a prediction and, for three or more, the columns `_COMPARED` of these."""
    is_predicted = np.isfinite(predicted)
    trained, predicted = measured[is_predicted], predicted[is_predicted]
    n = str(len(trained)) if is_predicted.all() else f"{len(trained)} of {len(measured)}"
    if len(trained) < _FEWEST:
        return n, *[_NONE] * len(_COMPARED)
    (bias,) = _estimates(lambda at: (predicted - trained)[at].mean(), len(trained))
    return n, f"{trained.mean():.1f}", f"{predicted.mean():.1f}", _interval(bias)
