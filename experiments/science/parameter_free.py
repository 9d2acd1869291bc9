"""Does the surrogate see what operations without parameters cost? NAS-Bench-301's study of them (appendix D.6).

In the cells of test configs, a rising share of operations is replaced by one of them, and the release predicts the
accuracy. Recorded configs that have many are compared with the predictions.
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
from experiments.science.papers import beside_paper, compared, table
from experiments.science.subjects import MAIN, Subject, answers
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.files.tables import take
from jahs.schema import CONFIG_KEYS, OPS, SPLIT_PARTS
from jahs.spaces.cell.operations import IDENTITY, POOL, ZERO
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.columns import Columns
from splits.split import Split, read_split
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
_estimates: Final = partial(bootstrap_estimates, level=0.9, n_resamples=400)
_interval: Final = partial(interval_text, digits=1, sign="+")
_WHY: Final = """NAS-Bench-301 replaces operations of one kind of cell in networks of 8 cells with two kinds, trained
    for 100 epochs at fixed hyperparameters. Here all cells of a network are one cell, sizes and hyperparameters are
    those of random configs, and training is short, which favours what trains fast."""


class Study(NamedTuple):
    """The results of one task."""

    subject: Subject
    changes: dict[str, list[Interval]]  # change of the predicted accuracy, by operation and number replaced
    measured: Floats  # accuracy of each recorded test config at the last epoch
    predicted: Floats  # the same, predicted
    ops: Cells  # their cells, (n, 6)
    cells: dict[str, Floats]  # by operation, predictions for a cell of it alone, other keys of the test configs, (n,)
    recorded: dict[str, Floats]  # by operation, accuracies of recorded configs of any part whose cell has it alone


def with_fewer_parameters(ops: Cells, operation: int, n: int, order: Cells) -> Cells:
    """Return cells, (n_cells, 6), with the first `n` edges of each row's order set to an operation."""
    return np.where(np.argsort(order, axis=1) < n, operation, ops)


def replaced(models: Sequence[jahs.Benchmark], configs: Columns) -> dict[str, Floats]:
    """Return each model's predictions by operation and number of replaced edges, (n_models, 7, n_configs).

    The edges are drawn `N_REPEATS` times and predictions averaged; a larger set of edges contains the smaller ones.
    """
    ops = ops_of(configs)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(_N_OPS), (N_REPEATS, len(ops), 1)), axis=2)

    def mean(model: jahs.Benchmark, operation: int, n: int) -> Floats:
        cells = (with_fewer_parameters(ops, operation, n, order) for order in orders)
        return np.asarray(np.mean([answers(model, {**configs, **cell_columns(variant)}) for variant in cells], axis=0))

    return {
        name: np.array([[mean(model, operation, n) for n in range(_N_OPS + 1)] for model in models])
        for name, operation in FREE.items()
    }


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
    tests: Columns = {key: configs[key][is_test] for key in CONFIG_KEYS}
    predictions = replaced(subject.models, tests)
    ops = ops_of(configs)
    return Study(
        subject=subject,
        changes={name: changes_of(values) for name, values in predictions.items()},
        measured=means[is_test],
        predicted=answers(subject.bench, tests),
        ops=ops[is_test],
        cells={name: values[0, -1] for name, values in predictions.items()},
        recorded={name: means[(ops == code).all(axis=1)] for name, code in FREE.items()},
    )


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
    rows = []
    for (replacement, name, n, paper, sign), study in product(claims, studies):
        quantity = f"change of the predicted accuracy by {replacement} ({n} of {_N_OPS} operations, points)"
        rows.append(compared(quantity, study.subject.title, paper, study.changes[name][n], sign=sign, show=_interval))
    more = (
        " over configs and refits. NAS-Bench-301 shows figures and gives no numbers; its cells have no zeros. "
        "“Inconclusive”: the interval covers 0, or the release's value is on the other side of 0."
    )
    beside = beside_paper("NAS-Bench-301", rows, level=90, more=more)
    blocks = (block for study in studies for block in _blocks(study))
    return Document(
        title="Operations without parameters",
        subtitle=" ".join(map(_finding, studies)),
        sections=sections_of(["Comparison with NAS-Bench-301", beside, Text(_WHY), *blocks]),
    )


def _finding(study: Study) -> str:
    order = sorted(FREE, key=lambda name: study.changes[name][-1].value)
    changes = ", ".join(f"{_interval(study.changes[name][-1])} points with {name} alone" for name in order)
    praised = 100 * float((study.cells["identity"] > study.predicted).mean())
    known = len(study.recorded["identity"])
    return (
        f"On {study.subject.title}, replacing all operations of a cell changes the predicted accuracy by {changes} "
        f"(90 % intervals over configs and refits), and replacing one of six by an identity by "
        f"{_interval(study.changes['identity'][1])}. A cell of identities alone is predicted to be better than "
        f"the config's own cell for {praised:.0f} % of the test configs; {known or 'no'} such "
        f"cell{'s were' if known > 1 else ' was'} trained."
    )


def _blocks(study: Study) -> Iterator[str | Block]:
    title = study.subject.title
    yield f"Replaced operations on {title}, predicted"
    curves = interval_curves(study.changes, np.arange(_N_OPS + 1) / _N_OPS)
    yield Figure(
        name=f"replaced-{study.subject.bench.task.name}",
        caption=f"Change of the predicted {MAIN} at the last epoch as operations of {len(study.measured)} test "
        f"configs are replaced, mean over configs and {N_REPEATS} draws of edges, with 90 % intervals over configs and "
        "refits. No such config was trained for this figure.",
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
        known = study.recorded[name]
        trained = f"{known.mean():.1f} ({len(known)} configs)" if len(known) else "not recorded"
        praised = f"{100 * float((values > study.predicted).mean()):.0f} %"
        rows.append((f"{name} alone", f"{values.mean():.1f}", f"{values.max():.1f}", praised, trained))
    yield table(
        f"{MAIN} at the last epoch, %. Test configs have {study.measured.mean():.1f} on average and "
        f"{study.measured.max():.1f} at best.",
        ("cell", "predicted, mean", "predicted, best", "praised", "trained, any part"),
        rows,
    )
    yield Text(
        "The cell of each row has one operation alone, with the other keys of the test configs. It is praised where "
        "the prediction is higher than that for the config's own cell; a cell of zeros cannot be better than chance."
    )


def _recorded_table(study: Study) -> Table:
    n_free = np.isin(study.ops, list(FREE.values())).sum(axis=1)
    cuts = {f"{n} of {_N_OPS} without parameters": n_free == n for n in range(_N_OPS + 1)}
    cuts["no path from input to output"] = ~live_paths(study.ops).any(axis=1)

    def shown(trained: Floats, predicted: Floats) -> tuple[str, ...]:
        if len(trained) < _FEWEST:
            return "–", "–", "–"
        (bias,) = _estimates(lambda at: (predicted - trained)[at].mean(), len(trained))
        return f"{trained.mean():.1f}", f"{predicted.mean():.1f}", _interval(bias)

    rows = [(cut, is_in.sum(), *shown(study.measured[is_in], study.predicted[is_in])) for cut, is_in in cuts.items()]
    head = ("cells", "configs", "trained", "predicted", "bias, points")
    return table(f"{MAIN} at the last epoch, %, of test configs", head, rows)
