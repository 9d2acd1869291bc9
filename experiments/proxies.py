"""Write the page of the zero-cost proxies: how well they order configs, above all at the top, and their uses.

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.

    python -m experiments.proxies --out out/proxies

`pipeline.proxies` scores the configs of folders of runs, and `experiments.nasbench201` cells of NAS-Bench-201. The page
shows whatever has been scored so far.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_orders import PAPER, SHARES, last_where_missing, summary, with_references
from experiments.analysis.proxy_uses import N_SCORED, SIZES, ScoredTask, gains_of_features, halvings, read_scored
from experiments.report.writing import page_parser, run_page
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text
from jahs.errors import InvalidArgument
from jahs.files.sealed_json import read_sealed
from jahs.tasks.definitions import caveats_of
from splits.kinship import fidelity_groups, group_name
from workshop.exhaustive import at_full_size
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, Figure, Table, Text, answer, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.pages.html import anchor
from workshop.ranks import benchmark_weight, choose_p, kendall_tau, spearman, webber_weight
from workshop.real_landscape import N_CELLS
from workshop.resampling import interval_text

_RUNS: Final = (Path("data/fashion_mnist_mini/runs"), Path("data/cifar10_mini/runs"))
_CELLS_FILE: Final = Path("data/nasbench201/agreement.json")

_Summary = Mapping[str, Mapping[str, Mapping[str, float | None]]]
_Cells = Mapping[str, Any]  # Any: JSON, the saved comparison of NAS-Bench-201

_FEWEST: Final = 20
_CELLS: Final = "cells"
_TOLERANCE: Final = 0.08
_BEST: Final = SHARES[0]
_FEWEST_IN_GROUP: Final = 10
_CERTAIN: Final = 0.95

_ABOUT: Final = f"""A missing score ranks last; `ntk` ranks the largest condition number first, like the other
    proxies, and "ntk, least first" the smallest. Overlaps are rank-biased (RBO). **Webber** is that of Webber, Moffat
    and Zobel (2010), truncated and divided by its maximum; **benchmark** is the normalised RBO of the zero-cost
    benchmark (its equation 5), whose weight of depth d is p^(d-1) d instead of p^(d-1). For both, p is chosen so that
    the best {", ".join(f"{100 * s:g} %" for s in SHARES)} have 90 % of Webber's weight (their equation 21, not the
    benchmark's equation 4). Webber's truncated form is the one shown times 1 - p^n, and the extrapolated form p^n more.
    Brackets: 95 % bootstrap interval over configs of the mean over seeds. ±: standard deviation over seeds, which draw
    weights and batch."""

_ABOUT_ORDERS: Final = f"""Whether rho and an overlap order the proxies differently beyond the noise of the configs
    drawn is tested with pairs of bootstrap resamples. Within-overlap tau: between the orders by the overlap on both
    resamples. Cross-measure tau: between the order by rho on one and by the overlap on the other. The orders differ
    beyond noise if the within-overlap tau is larger for at least {100 * _CERTAIN:g} % of the pairs."""

_ABOUT_USES: Final = f"""Accuracy models are forests on the features of the release's models, for the last epoch,
    fitted and scored in ten-fold cross-validation without the configs of the test part. The difference is tau with
    proxies minus tau without, ± its standard error over folds. Sizes:
    {", ".join(f"{n:,}" for n in SIZES)} training configs, where there are so many."""

_ABOUT_HALVING: Final = f"""Successive halving (eta 3) over recorded trainings, 500 repetitions. Plain halving starts
    with {N_SCORED // 3} random configs. With a zeroth rung, a proxy scores {N_SCORED} configs with one seed, and the
    best third of them start; fewer are scored and started if the total cost, scoring included, would exceed that of
    plain halving. Standard errors are over repetitions, which draw from the same recorded configs. They leave out the
    choice of these configs, which matters several times as much where few were timed."""

_ABOUT_NTK: Final = """`ntk` differs because of BatchNorm. On 234 cells of this sample, rho is -0.32 (-0.43 to -0.20) in
    evaluation mode, in which an untrained network does not normalise; the paper's -0.25 is in this interval. On 60 of
    them, rho is -0.71 with BatchNorm in training mode, as here. Batches of 16 or 64 images (-0.58 and -0.67), Kaiming's
    initialisation (-0.67), and networks of N=1 and W=4 (-0.72) do not explain the difference
    (`python -m tests.benchmarks.proxy_variants ntk ACCURACIES CIFAR10`; for evaluation mode alone, append `240 "32
    images, evaluation mode"`; cells without a score are left out)."""

_ABOUT_ZEN: Final = """`zen` differs because of BatchNorm, too. Here, as in its paper, it adds the logarithms of the
    batch variances. The authors' code reads the running variances, which after two passes are still near their start
    of 1: on 234 cells of this sample, rho is 0.36 with these, 0.45 with batch variances, and 0.62 with nothing added
    (`python -m tests.benchmarks.proxy_variants zen ACCURACIES CIFAR10 240`)."""


class _DataSet(NamedTuple):
    """One data set with the agreement of every score, by slice."""

    title: str
    n: int
    measures: _Summary
    orders: Sequence[Mapping[str, Any]]  # Any: JSON, see `ProxyAgreement`


def _document(runs: Sequence[Path], saved: Path, *, n_resamples: int) -> Document:
    if n_resamples < 0:
        raise InvalidArgument(f"resamples={n_resamples} must be at least 0")
    tasks = [read_scored(folder) for folder in runs]
    cells = read_sealed(saved) if saved.exists() else None
    enough = cells if cells is not None and cells["n_sample"] >= _FEWEST else None
    scorers = {version for task in tasks for version in task.versions}
    scorers |= {version for key in ("torch", "machine") for version in (cells or {}).get(key, ())}
    shown = [task for task in tasks if len(task.accuracy) >= _FEWEST]
    data_sets = [_data_set(task.task.title, task, np.ones(len(task.accuracy), np.bool_), n_resamples) for task in shown]
    if cells is not None:
        data_sets = [_DataSet(cells["title"], cells["n_sample"], cells["sample"], cells["orders"]), *data_sets]
    sections = [
        *_counts(tasks, cells),
        *_orders_section(data_sets),
        *(_paper(enough) if enough else []),
        *([Text(_ABOUT_NTK), Text(_ABOUT_ZEN)] if saved == _CELLS_FILE and cells else []),
        *(_paper_overlaps(enough) if enough else []),
        *(block for data in data_sets for block in _agreement(data)),
        *(block for task in shown for block in _slices(task, n_resamples)),
        *_features(shown),
        *_halving(shown),
        *_seconds(tasks, cells),
    ]
    return Document(
        title="Zero-cost proxies",
        caveats=caveats_of([task.task for task in tasks]),
        subtitle=" ".join(_findings(data_sets, enough)) or f"No data set has {_FEWEST} scored configs yet.",
        sections=sections_of(sections),
        facts=(commit_fact(), ("scored with torch, on", ", ".join(sorted(scorers))), versions_fact()),
    )


def _data_set(title: str, task: ScoredTask, mask: NDArray[np.bool_], n_resamples: int) -> _DataSet:
    scores = {name: values[:, mask] for name, values in {**with_references(task.scores), **task.baselines}.items()}
    return _DataSet(title, int(mask.sum()), *summary(scores, task.accuracy[mask, -1], n_resamples=n_resamples))


def _counts(tasks: Sequence[ScoredTask], cells: _Cells | None) -> Iterator[str | Block]:
    yield "What has been scored"
    rows = []
    if cells is not None:
        missing = sum(cells["n_missing"].values())
        rows.append((cells["title"], str(cells["n_scored"]), f"{N_CELLS:,}", str(cells["n_seeds"]), str(missing)))
    for task in tasks:
        n_seeds = len(next(iter(task.scores.values())))
        missing = sum(int(np.isnan(values).sum()) for values in task.scores.values())
        rows.append((task.task.title, f"{len(task.accuracy):,}", f"{task.n_recorded:,}", str(n_seeds), str(missing)))
    columns = ("data set", "scored configs", "recorded configs", "seeds", "missing scores")
    yield Table(caption="", columns=columns, rows=tuple(rows))
    yield Text("A data set with fewer than 20 scored configs is left out below.")


def _findings(data_sets: Sequence[_DataSet], cells: _Cells | None) -> Iterator[str]:
    if cells is not None:
        differences = (_value(cells["sample"], name, "spearman") - paper.rho for name, paper in PAPER.items())
        n_inside = sum(abs(difference) <= _TOLERANCE for difference in differences)
        yield (
            f"On {cells['n_sample']} cells of NAS-Bench-201, the rank correlation with accuracy is within {_TOLERANCE} "
            f"of the zero-cost benchmark's for {n_inside} of {len(PAPER)} proxies."
        )
    top = [
        f"{interval_text(_interval(row, 'tau'))} on {data.title} "
        f"({_best_text(row['best_by_rho'], row['best_by_overlap'])})"
        for data in data_sets
        for row in data.orders
        if (row["form"], row["share"]) == ("benchmark", _BEST)
    ]
    if top:
        shown = [f"{data.title} (top {', '.join(shares)})" for data in data_sets if (shares := _shown_at(data))]
        yield (
            "The main claim of the zero-cost benchmark is that Spearman's rho and rank-biased overlap (RBO) rank the "
            "proxies differently at the top. The difference exceeds the sampling noise of the configs on "
            f"{', '.join(shown) or 'none of the data sets'}. Kendall's tau (1: the "
            "same ranking) between the rankings of 13 proxies by rho and by its normalised RBO (equation 5) at the top "
            f"{100 * _BEST:g} % is {'; '.join(top)}."
        )


def _shown_at(data: _DataSet) -> list[str]:
    """Return the shares of the best at which the orders by rho and by the benchmark's overlap differ beyond noise."""
    orders = [row for row in data.orders if row["form"] == "benchmark" and row["apart"] is not None]
    return [f"{100 * row['share']:g} %" for row in orders if row["apart"] >= _CERTAIN]


def _best_text(by_rho: str, by_overlap: str) -> str:
    if by_rho == by_overlap:
        return f"best by both: {by_rho}"
    return f"best by rho: {by_rho}; by normalised RBO: {by_overlap}"


def _orders_section(data_sets: Sequence[_DataSet]) -> Iterator[str | Block]:
    yield "Do Spearman and rank-biased overlap agree on the best proxy?"
    rows = [
        (
            *(data.title, f"{row['form']}, top {100 * row['share']:g} %", interval_text(_interval(row, "tau"))),
            *(number_text(row[name]) for name in ("again", "crossed", "apart")),
            *(row["best_by_rho"], row["best_by_overlap"]),
        )
        for data in data_sets
        for row in data.orders
    ]
    if not rows:
        return
    yield Text(_ABOUT)
    yield Text(_ABOUT_ORDERS)
    columns = (
        *("data set", "overlap", "tau with the ranking by rho", "within-overlap tau", "cross-measure tau"),
        *("P(within-overlap > cross-measure)", "best by rho", "best by this overlap"),
    )
    yield Table(caption="Rankings of the 13 proxies", columns=columns, rows=tuple(rows), n_labels=2)
    weights = []
    for data, share in product(data_sets, SHARES):
        p, depth = choose_p(data.n, top_share=share), max(2, round(share * data.n))
        shares = (webber_weight(depth, p), benchmark_weight(depth, p), p**data.n)
        weights.append((data.title, f"{100 * share:g} %", f"{p:.5f}", *(f"{weight:.3f}" for weight in shares)))
    yield Table(
        caption="The p of each overlap, and the share of the weight that the top has",
        columns=(
            *("data set", "top", "p"),
            *("weight, Webber's equation 21", "weight, the benchmark's equation 4", "p^n"),
        ),
        rows=tuple(weights),
        n_labels=2,
        is_folded=True,
    )


def _paper(cells: _Cells) -> Iterator[str | Block]:
    yield "NAS-Bench-201 compared with the zero-cost benchmark"
    rows = []
    for name, paper in PAPER.items():
        overall, top = cells["sample"][name]["spearman"], cells["best"][name]["spearman"]
        difference = number_text(_value(cells["sample"], name, "spearman") - paper.rho)
        rows.append((name, _estimate(overall), f"{paper.rho:.2f}", difference, _estimate(top), f"{paper.rho_top:.2f}"))
    yield Table(
        caption="Spearman's rho with CIFAR-10 test accuracy after 200 epochs: over "
        f"{cells['n_sample']} cells stratified by accuracy, and over the {cells['n_top']} scored cells of the true "
        "top 1 % of all 15,625 cells. The paper's columns are over the whole space",
        columns=("proxy", "all cells", "paper", "difference", "top 1 %", "paper, top 1 %"),
        rows=tuple(rows),
    )


def _paper_overlaps(cells: _Cells) -> Iterator[str | Block]:
    """Show the overlaps of the paper's figure 3 beside ours, and those of the number of parameters over all cells."""
    yield "The benchmark's overlaps on NAS-Bench-201 compared with its figure 3"
    measures = [f"benchmark_{share:g}" for share in SHARES]
    heads = [f"top {100 * share:g} %" for share in SHARES]
    theirs = [paper.overlap for paper in PAPER.values()]
    rho = kendall_tau([paper.rho for paper in PAPER.values()], theirs)
    ours = [[_value(cells["sample"], name, measure) for name in PAPER] for measure in measures]
    taus = ", ".join(f"{kendall_tau(theirs, row):.2f} ({head})" for row, head in zip(ours, heads, strict=True))
    whole = cells["parameters"]
    rbo = {
        order: ", ".join(f"{100 * whole[f'{share:g}'][order]:.1f}" for share in SHARES)
        for order in ("largest first", "smallest first", "random order")
    }
    yield answer(
        f"Figure 3 is not reproduced. In it, the order of 12 proxies by RBO has tau {rho:.2f} with their order by rho, "
        f"and with the order by our overlaps {taus}."
    )
    shares, others = ", ".join(f"{100 * share:g}" for share in SHARES), sorted(theirs)[2:]
    yield Text(
        "The paper finds that `params` and `synflow` collapse under RBO and that `ntk` is among the best; we find the "
        "opposite. Our sample does not explain the result for the number of parameters: over all "
        f"{N_CELLS:,} cells, its overlap for the top {shares} % is {rbo['largest first']} %, against "
        f"{rbo['random order']} % for a random order and {rbo['smallest first']} % with the smallest network first; "
        f"the paper reports {PAPER['parameters'].overlap:.2f}. Except for its two lowest, the paper's values are "
        f"nearly equal ({others[0]:.2f} to {others[-1]:.2f}) whatever rho is. The paper does not state its p."
    )
    rows = [
        (
            name,
            f"{PAPER[name].overlap:.2f}" if name in PAPER else "–",
            *(number_text(100 * _value(cells["sample"], name, measure), 1) for measure in measures),
        )
        for name in [*PAPER, "random order"]
    ]
    yield Table(
        caption=f"Normalised RBO in percent: the paper's figure 3 over all cells, p not given; ours over "
        f"{cells['n_sample']} cells stratified by accuracy",
        columns=("proxy", "paper", *heads),
        rows=tuple(rows),
    )


def _agreement(data: _DataSet) -> Iterator[str | Block]:
    """Show every measure of every score on a data set; for a random order, only overlaps."""
    yield f"Agreement with accuracy: {data.title}"
    rhos = {name: _interval(measures["spearman"]) for name, measures in data.measures.items()}
    order = sorted(rhos, key=lambda name: -np.nan_to_num(rhos[name].value, nan=-9))
    estimates = {name: rhos[name] for name in order if math.isfinite(rhos[name].low)}
    if estimates:
        yield Figure(
            name=f"spearman-{anchor(data.title)}",
            caption=f"Spearman's rho between score and accuracy, {data.n} configs, with 95 % intervals.",
            alt="; ".join(f"{name} {rho.value:.2f}" for name, rho in estimates.items()),
            drawing=draw_estimates(estimates, x_label="Spearman's rho"),
        )
    tops = {f"{share:g}": f"top {100 * share:g} %" for share in SHARES}
    ranks = {"spearman": "Spearman", "kendall": "Kendall's tau"}
    ranks |= {f"spearman_top_{share}": f"Spearman, {top}" for share, top in tops.items()}
    yield _table(data, order, ranks, "Rank correlations, over all configs and within the true top")
    overlaps = {f"{form}_{share}": f"{form}, {top}" for form in ("Webber", "benchmark") for share, top in tops.items()}
    overlaps = {measure.lower(): head for measure, head in overlaps.items()}
    yield _table(data, order, overlaps, "Rank-biased overlap, also of a random order")
    taus = {f"kendall_top_{share}": f"tau, {top}" for share, top in tops.items()}
    yield _table(data, order, taus, "Kendall's tau within the true top", is_folded=True)


def _table(
    data: _DataSet, order: Sequence[str], heads: Mapping[str, str], caption: str, *, is_folded: bool = False
) -> Table:
    rows = tuple((name, *(_estimate(data.measures[name][measure]) for measure in heads)) for name in order)
    return Table(caption=caption, columns=("score", *heads.values()), rows=rows, is_folded=is_folded)


def _slices(task: ScoredTask, n_resamples: int) -> Iterator[str | Block]:
    """Show cells with default hyperparameters, fidelity groups and epochs of a task."""
    title = task.task.title
    is_cell = task.configs["source"] == _CELLS
    yield f"Slices: {title}"
    if int(is_cell.sum()) >= _FEWEST:
        cells = _data_set(f"{title}, cells only", task, is_cell, n_resamples)
        heads = {"spearman": "Spearman", "kendall": "Kendall's tau"}
        heads |= {f"benchmark_{share:g}": f"benchmark, top {100 * share:g} %" for share in SHARES[1:]}
        yield _table(cells, [*cells.measures], heads, f"{cells.n} cells at full size with default hyperparameters")
    else:
        yield Text(f"Too few cells with default hyperparameters to compare: {int(is_cell.sum())} are scored.")
    last = task.accuracy.shape[1]
    epochs = sorted({1, max(1, round(last / 9)), max(1, round(last / 3)), last})
    members = {g: np.flatnonzero(task.group == g) for g in np.unique(task.group)}
    groups = {g: found for g, found in members.items() if len(found) >= _FEWEST_IN_GROUP}
    rows, group_rows = [], []
    for name, values in {**task.scores, **task.baselines}.items():
        scores = last_where_missing(values)
        by_epoch = [_mean_rho(scores, task.accuracy[:, epoch - 1]) for epoch in epochs]
        within = [_mean_rho(scores[:, found], task.accuracy[found, -1]) for found in groups.values()]
        weights = [*map(len, groups.values())]
        mean = float(np.average(np.nan_to_num(within), weights=weights)) if groups else math.nan
        rows.append((name, *(number_text(rho, 3) for rho in by_epoch), number_text(mean, 3)))
        group_rows.append((name, *(number_text(rho) for rho in within)))
    yield Table(
        caption="Spearman's rho with validation accuracy by epoch, and its mean within fidelity groups at the last "
        "epoch, mean over seeds",
        columns=("score", *(f"epoch {epoch}" for epoch in epochs), "within groups"),
        rows=tuple(rows),
    )
    if groups:
        names = [group_name(row) for row in fidelity_groups(task.configs)[1]]
        yield Table(
            caption=f"Spearman's rho at the last epoch by fidelity group of at least {_FEWEST_IN_GROUP} configs",
            columns=("score", *(names[g] for g in groups)),
            rows=tuple(group_rows),
            is_folded=True,
        )


def _features(tasks: Sequence[ScoredTask]) -> Iterator[str | Block]:
    yield "Proxies as features of accuracy models"
    helped, rows = [], []
    gains = [(task.task.title, gain) for task in tasks for gain in gains_of_features(task)]
    for title, (n, *taus, difference, error) in gains:
        if _is_beyond(difference, error):
            helped.append(f"{title} with {n:,} configs")
        texts = (number_text(tau, 3) for tau in taus)
        rows.append((title, f"{n:,}", *texts, f"{difference:+.3f} ± {error:.3f}"))
    if rows:
        yield answer(f"Proxies raise tau by more than two standard errors on {_list(helped)}.")
    yield Text(_ABOUT_USES)
    columns = ("task", "training configs", "tau without", "tau with proxies", "difference")
    yield Table(caption="Kendall's tau of held-out predictions", columns=columns, rows=tuple(rows), n_labels=2)
    if not rows:
        yield Text("No task has enough scored configs yet.")


def _halving(tasks: Sequence[ScoredTask]) -> Iterator[str | Block]:
    yield "A proxy as the zeroth rung of successive halving"
    yield Text(_ABOUT_HALVING)
    for task in tasks:
        if not (results := halvings(task)):
            yield Text(f"{task.task.title}: too few scored configs were timed on one processor yet.")
            continue
        better = [name for name, result in results.items() if _is_beyond(result.gain, result.gain_error)]
        worse = [name for name, result in results.items() if _is_beyond(-result.gain, result.gain_error)]
        yield answer(
            f"{task.task.title}, {int(np.isfinite(task.runtime_s).all(axis=1).sum())} timed configs: by more than two "
            f"standard errors, a zeroth rung is better than plain halving with {_list(better)}, and worse with "
            f"{_list(worse)}."
        )
        rows = []
        for name, result in results.items():
            costs = f"{result.regret:.2f} ± {result.error:.2f}", f"{result.cost:.2f}", f"{result.scoring:.3f}"
            gain = f"{result.gain:+.2f} ± {result.gain_error:.2f}"
            rows.append(("plain halving", *costs, "–") if name == "plain" else (name, *costs, gain))
        yield Table(
            caption=f"{task.task.title}: regret of validation accuracy at the last epoch in points, ± its standard "
            "error; costs in mean full trainings",
            columns=("zeroth rung", "final regret", "total cost", "scoring cost", "gain over plain halving (points)"),
            rows=tuple(rows),
        )


def _is_beyond(gain: float, error: float) -> bool:
    return gain > 2 * error > 0


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _seconds(tasks: Sequence[ScoredTask], cells: _Cells | None) -> Iterator[str | Block]:
    yield "CPU seconds"
    data_sets: dict[str, Mapping[str, float | None]] = {} if cells is None else {cells["title"]: cells["cpu_s"]}
    data_sets |= {
        task.task.title: {name: float(seconds.mean()) for name, seconds in task.cpu_s.items()}
        for task in tasks
        if len(task.accuracy)
    }
    if data_sets:
        names = list(next(iter(data_sets.values())))
        yield Table(
            caption="Mean CPU seconds of one proxy for one config and seed, 64 images, if computed alone; passes that "
            "several proxies share are computed only once",
            columns=("proxy", *data_sets),
            rows=tuple((name, *(number_text(by_proxy[name], 4) for by_proxy in data_sets.values())) for name in names),
        )
    for task in tasks:
        if len(task.versions) > 1:
            yield Text(f"{task.task.title} was scored on several machines ({'; '.join(sorted(task.versions))}).")
        is_full = at_full_size(task.configs)
        if is_full.any():
            most = np.sum([*task.cpu_s.values()], axis=0)[is_full].max()
            yield Text(
                f"{task.task.title}, full size: all {len(task.cpu_s)} proxies of a config and seed take at most "
                f"{most:.1f} CPU seconds if none shares a pass."
            )


def _mean_rho(scores: Floats, truth: Floats) -> float:
    rhos = [rho for seed_scores in scores if math.isfinite(rho := spearman(seed_scores, truth))]
    return float(np.mean(rhos)) if rhos else math.nan


def _interval(measure: Mapping[str, Any], value: str = "mean") -> Interval:  # Any: JSON
    """Return an estimate with its interval, where null is NaN."""
    estimate, low, high = (math.nan if measure[name] is None else measure[name] for name in (value, "low", "high"))
    return Interval(value=estimate, low=low, high=high)


def _value(measures: _Summary, name: str, measure: str) -> float:
    return _interval(measures[name][measure]).value


def _estimate(measure: Mapping[str, float | None]) -> str:
    if measure["mean"] is None:
        return "–"
    interval = "" if measure["low"] is None else f" [{measure['low']:.2f}, {measure['high']:.2f}]"
    return f"{measure['mean']:.3f}{interval}" + ("" if measure["sd"] is None else f" ± {measure['sd']:.3f}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of the zero-cost proxies from whatever has been scored so far."
    parser = page_parser("experiments.proxies", about)
    parser.add_argument("--runs", type=Path, nargs="+", default=_RUNS, help="folders of runs with scores")
    parser.add_argument(
        "--cells", type=Path, default=_CELLS_FILE, help="comparison of NAS-Bench-201 (default: %(default)s)"
    )
    parser.add_argument("--resamples", type=int, default=200, help="bootstrap resamples (default: %(default)s)")
    return run_page(parser, argv, lambda given: _document(given.runs, given.cells, n_resamples=given.resamples))


if __name__ == "__main__":
    sys.exit(main())
