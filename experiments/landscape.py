"""Draw the landscape of a task: effects of keys, similarity of neighbours, and mutants of the best configs.

    python -m experiments.landscape --task cifar10_mini --out out/landscape

The page describes the surrogates of a release. Its intervals include the variation between the refits.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import jahs
from experiments.analysis.landscape_measures import (
    N_BEST,
    N_RANDOM,
    SCALES,
    Landscape,
    Variance,
    measure_landscape,
    with_errors_of_fit,
)
from experiments.report.writing import page_parser, run_page
from jahs.comparison.benches import open_benchmark, refits_of, release_of
from jahs.comparison.summaries import Interval
from jahs.errors import MissingData
from jahs.tasks.definitions import DEFAULT_TASK, caveats_of
from jahs.tasks.metrics import ACCURACIES
from workshop.command import add_release
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, Figure, Table, Text, answer, led_by_answer, sections_of
from workshop.pages.drawing import draw_curves, draw_estimates, interval_curves
from workshop.resampling import interval_text

_N_REFITTED: Final = 2048
_log = logging.getLogger(__name__)


def _document(bench: jahs.Benchmark, metric: str, *, n: int, seed: int) -> Document:
    landscapes = [measure_landscape(bench, metric, n=n, seed=seed)]
    for refit in (refits := refits_of(bench, metric)):
        landscapes.append(measure_landscape(refit, metric, n=min(n, _N_REFITTED), seed=seed))
        _log.info("%d/%d refits", len(landscapes) - 1, len(refits))
    landscape = with_errors_of_fit(landscapes[0], landscapes[1:])
    also = f" and, by {len(refits)} refits to resampled configs," if refits else ", but not"
    covered = f" The 95 % intervals cover the random draw of configs{also} the choice of trainings that were fitted."
    covered *= landscape.metric.kind != "exact"  # no trainings were fitted
    release = release_of(bench)
    origin = f"{release.facts.get('version')} ({release.facts.get('source')}, {release.sha256[:16]})"
    document = Document(
        title=f"The landscape of {metric} on {bench.task.title}",
        caveats=caveats_of([bench.task]),
        subtitle=f"This page shows which keys determine {metric}, alone and in interaction, how similar neighbouring "
        f"configs are, and how many changes a good config tolerates. {_quality(bench, metric)}{covered}",
        sections=sections_of([*_deciding(landscape), *_keys(landscape), *_walking(landscape), *_changing(landscape)]),
        facts=(commit_fact(), ("release", f"{bench.task.name}: {origin}"), versions_fact()),
    )
    return led_by_answer(document)


def _quality(bench: jahs.Benchmark, metric: str) -> str:
    if bench.metrics[metric].kind == "exact":
        return f"{metric} is computed from the config, so all numbers are exact."
    try:
        facts = bench.quality()["metrics"][metric]
    except (MissingData, KeyError):
        return "This is the landscape of a surrogate, whose release does not state its quality."
    cuts = facts["refitted_test"]
    last = cuts.get("last epoch", cuts["all"])["model"]
    among = f", and τ {cuts['best tenth']['model']['tau']:.2f} among the best tenth" if "best tenth" in cuts else ""
    return (
        "This is the landscape of a surrogate, which is smoother than that of trainings. On "
        f"{facts['test']['n_configs']} held-out configs at the last epoch, it has "
        f"Kendall's τ {last['tau']:.2f} and R² {last['r2']:.2f}{among}."
    )


def _deciding(landscape: Landscape) -> Iterator[str | Block]:
    whole, largest, smallest = landscape.variances
    yield "Main effects and interactions"
    better = largest.shares.get("better half")  # its last share is that of all groups together
    aside = f" ({_percent([*better.values()][-1])} of the improvement over the median)" if better else ""
    yield answer(
        f"Shares of the variance of ranks. Among the {_of_ranks(largest)}{aside}. Among the {_of_ranks(smallest)}."
    )
    for variance in (largest, smallest) if len(largest.epochs) > 1 else ():
        curves = interval_curves(variance.by_epoch, variance.epochs)
        yield Figure(
            name=f"epochs-{variance.part.name}",
            caption=f"Shares of the variance of ranks among the {variance.part.title} at each epoch, with 95 % "
            "intervals.",
            alt="; ".join(
                f"{name}: {shares[0].value:.2f} after the first epoch, {shares[-1].value:.2f} after the last"
                for name, shares in variance.by_epoch.items()
            ),
            drawing=draw_curves(curves, x_label="epoch", y_label="share of the variance", y_limits=(-0.05, 1.0)),
        )
    failed = ", whose variance is dominated by failed configs" * (landscape.metric.name in ACCURACIES)
    yield Text(
        "The tables decompose the variance over random configs at the last epoch into main effects of groups of keys "
        "and their interactions (Sobol indices, with 95 % intervals). Three quantities are decomposed: the rank of a "
        f"config; its value{failed}; and its improvement over the median (0 in the worse half), which shows what "
        "matters among good configs."
    )
    yield _shares_table("Shares of the variance among the largest and the smallest networks", (largest, smallest))
    yield _shares_table("Shares of the variance in the whole space", (whole,))


def _of_ranks(variance: Variance) -> str:
    *_, interaction = variance.shares["rank"].values()
    parts = [f"{group} {_percent(variance.shares['rank'][group])}" for group in variance.part.groups]
    return f"{variance.part.title}: {', '.join(parts)}, interaction {_percent(interaction)}"


def _shares_table(caption: str, variances: Sequence[Variance]) -> Table:
    names = tuple(variances[0].by_epoch)
    rows = tuple(
        (variance.part.title, SCALES[scale], *(interval_text(shares[name]) for name in names))
        for variance in variances
        for scale, shares in variance.shares.items()
    )
    return Table(caption=caption, columns=("networks", "quantity", *names), rows=rows, n_labels=2)


def _keys(landscape: Landscape) -> Iterator[str | Block]:
    yield "Effects of single keys"
    whole, largest, smallest = landscape.variances
    for variance in (largest, smallest):
        totals = dict(sorted(variance.total.items(), key=lambda effect: -effect[1].value))
        groups = {key: i for i, keys in enumerate(variance.part.groups.values()) for key in keys}
        yield Figure(
            name=f"keys-{variance.part.name}",
            caption=f"Total effect of each key (main effect and all interactions) on the rank among the "
            f"{variance.part.title} at the last epoch. Keys of one group have the same colour.",
            alt="; ".join(f"{key} {total.value:.2f}" for key, total in totals.items()),
            drawing=draw_estimates(totals, numbers=[groups[key] for key in totals], x_label="share of the variance"),
        )
    heads = [f"{variance.part.title}: {kind}" for variance in landscape.variances for kind in ("main", "total")]
    columns = [effects for variance in landscape.variances for effects in (variance.main, variance.total)]
    yield Table(
        caption="Main and total effect of each key as shares of the variance of ranks at the last epoch. Total effects "
        "count an interaction once for each of its keys, so their sum may exceed one",
        columns=("key", *heads),
        rows=tuple((key, *(interval_text(of[key]) if key in of else "–" for of in columns)) for key in whole.main),
        is_folded=True,
    )


def _walking(landscape: Landscape) -> Iterator[str | Block]:
    first = ", ".join(f"{correlations[0].value:.2f} ({title})" for title, correlations in landscape.walks.items())
    yield "Similarity of neighbours"
    yield answer(f"The ranks of neighbouring configs (one move apart) have a correlation of {first}.")
    curves = interval_curves(landscape.walks, range(1, len(landscape.walks["all keys"]) + 1), has_markers=False)
    yield Figure(
        name="walks",
        caption="Random-walk autocorrelation of ranks among the largest networks, as in NAS-Bench-101, which "
        "correlates accuracies. A move is one of `jahs.Space.neighbors`. If only one group moves, the other is fixed "
        "at random values, whose effect is subtracted.",
        alt=_alt_by_steps(landscape.walks, "move"),
        drawing=draw_curves(curves, x_label="moves", y_label="correlation of ranks", y_limits=(-0.25, 1.02)),
    )


def _changing(landscape: Landscape) -> Iterator[str | Block]:
    first = ", ".join(f"{_percent(shares[0])} ({title})" for title, shares in landscape.mutants.items())
    worst, best = landscape.top
    doubt = " Where the error of the surrogate is larger than this range, the figure shows the surrogate's own shape."
    doubt *= landscape.metric.kind == "learned"
    yield "Mutants of the best configs"
    yield answer(f"Share of the best configs that stay among the best 1 % after one key is changed: {first}.")
    yield Text(f"The best 1 % have values between {worst:.4g} and {best:.4g} {landscape.metric.unit}.{doubt}")
    curves = interval_curves(landscape.mutants, range(1, len(landscape.mutants["all keys"]) + 1))
    yield Figure(
        name="mutants",
        caption=f"Share of mutants of the best {N_BEST} configs that are among the best 1 % of {N_RANDOM:,} random "
        "configs, by the number of changed keys. A choice changes to any other, a float by up to half a decade. For a "
        f"random config, the share is {100 * landscape.share_of_top:.2g} %.",
        alt=_alt_by_steps(landscape.mutants, "key"),
        drawing=draw_curves(curves, x_label="changed keys", y_label="share among the best 1 %", y_limits=(-0.02, 1.0)),
    )


def _alt_by_steps(shown: Mapping[str, Sequence[Interval]], step: str) -> str:
    """Describe a figure with a curve for each title over 1, 2, ... steps."""
    ends = ((title, found[0].value, found[-1].value, len(found)) for title, found in shown.items())
    return "; ".join(f"{title}: {first:.2f} after one {step}, {last:.2f} after {n}" for title, first, last, n in ends)


def _percent(share: Interval) -> str:
    share = share.within(0.0, 1.0)
    return f"{100 * share.value:.0f} % [{100 * share.low:.0f} to {100 * share.high:.0f}]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Draw the landscape of a task: effects of keys, similarity of neighbours, mutants of the best configs."
    parser = page_parser("experiments.landscape", about, example="--task cifar10_mini")
    parser.add_argument("--task", default=DEFAULT_TASK, help="task of the benchmark (default: %(default)s)")
    parser.add_argument("--metric", default="valid_acc", help="metric (default: %(default)s)")
    parser.add_argument("--n", type=int, default=8192, help="configs in each of two samples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws (default: %(default)s)")
    add_release(parser)

    def make(given: argparse.Namespace) -> Document:
        return _document(open_benchmark(given.task, given.release), given.metric, n=given.n, seed=given.seed)

    return run_page(parser, argv, make)


if __name__ == "__main__":
    sys.exit(main())
