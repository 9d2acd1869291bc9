"""Draw the landscape of a task: effects of keys, similarity of neighbours, and mutants of the best configs.

    python -m experiments.landscape --task fashion_mnist_mini --out out/landscape

The landscape is that of a release's surrogates. The page states their quality, and its intervals include the
variation between the release's refits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import jahs
from experiments.analysis.landscape_measures import Landscape, measure_landscape, with_errors_of_fit
from experiments.report.build import page_parser, run_page
from experiments.report.landscape_page import landscape_document
from jahs.comparison.benches import open_benchmark, release_of
from jahs.errors import MissingData
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Document

_COMMAND: Final = "experiments.landscape"
_N_REFITTED: Final = 2048
_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Draw the landscape of a task: effects of keys, similarity of neighbours, mutants of the best configs."
    parser = page_parser(_COMMAND, about, example="--task fashion_mnist_mini")
    parser.add_argument("--task", default="fashion_mnist_mini", help="task of the benchmark (default: %(default)s)")
    parser.add_argument("--metric", default="valid_acc", help="metric (default: %(default)s)")
    parser.add_argument("--n", type=int, default=8192, help="configs in each of two samples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws (default: %(default)s)")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    given = parser.parse_args(argv)
    flags = ("--task", given.task, "--metric", given.metric, "--n", str(given.n), "--seed", str(given.seed))

    def make() -> Document:
        return _document(open_benchmark(given.task, given.release), given.metric, n=given.n, seed=given.seed)

    return run_page(_COMMAND, given, make, *flags)


def _document(bench: jahs.Benchmark, metric: str, *, n: int, seed: int) -> Document:
    found = measure_landscape(bench, metric, n=n, seed=seed)
    refitted = list(_refitted(bench, metric, n=min(n, _N_REFITTED), seed=seed))
    release = release_of(bench)
    origin = f"{release.facts.get('version')} ({release.facts.get('source')}, {release.sha256[:16]})"
    return landscape_document(
        with_errors_of_fit(found, refitted),
        bench.task,
        cautions=(*_quality(bench, metric), *_fit(bench, metric, len(refitted))),
        facts=(commit_fact(), ("release", f"{bench.task.name}: {origin}"), versions_fact()),
    )


def _refitted(bench: jahs.Benchmark, metric: str, *, n: int, seed: int) -> Iterator[Landscape]:
    """Yield the landscape of each refit of the release; none for a metric without refits."""
    release = release_of(bench)
    try:
        refits = release.refits
    except MissingData as err:
        _log.info("intervals do not include the error of the fit: %s", err)
        return
    for k in range(refits.n_refits if metric in refits.metrics else 0):
        model = jahs.Benchmark(bench.task.name, release=release.path, refit=k)
        yield measure_landscape(model, metric, n=n, seed=seed)
        _log.info("%d/%d refits", k + 1, refits.n_refits)


def _quality(bench: jahs.Benchmark, metric: str) -> Iterator[str]:
    """Describe the quality of the surrogates."""
    if bench.metrics[metric].kind == "exact":
        yield f"{metric} is computed from the config, so all numbers are exact."
        return
    try:
        facts = bench.quality()["metrics"][metric]
    except (MissingData, KeyError):
        yield "This is the landscape of a surrogate, whose release does not state its quality."
        return
    cuts = facts["refitted_test"]
    last, best = (cuts[name]["model"] if name in cuts else None for name in ("last epoch", "best tenth"))
    last = last or cuts["all"]["model"]
    among = f", and τ {best['tau']:.2f} among the best tenth" if best is not None else ""
    yield (
        "This is the landscape of a surrogate, which is smoother than that of trainings. On "
        f"{facts['test']['n_configs']} held-out configs at the last epoch, it has "
        f"Kendall's τ {last['tau']:.2f} and R² {last['r2']:.2f}{among}."
    )


def _fit(bench: jahs.Benchmark, metric: str, n_refitted: int) -> Iterator[str]:
    """Describe the intervals."""
    if n_refitted:
        yield (
            f"The 95 % intervals cover the random draw of configs and, by {n_refitted} refits to resampled configs, "
            "the choice of trainings that the surrogate was fitted to."
        )
    elif bench.metrics[metric].kind != "exact":
        yield "The 95 % intervals cover the random draw of configs, but not the choice of trainings that were fitted."


if __name__ == "__main__":
    sys.exit(main())
