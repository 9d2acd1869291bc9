"""Draw what a task's space looks like: which keys decide, how far neighbours are alike, how steep it is at the top.

    python -m experiments.landscape --task fashion_mnist_mini --out out/landscape

Everything is asked of a release's surrogates, so it is their landscape. The page says how good they are, and how much
its numbers change with surrogates that are fitted to other nine tenths of the recorded configs.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jahs
from experiments.analysis.landscape_measures import Landscape, measure_landscape, with_errors_of_fit
from experiments.benches import open_benchmark, release_facts
from experiments.refits import refits
from experiments.report.build import check_target, write_document, written
from experiments.report.landscape_page import landscape_document
from jahs.errors import MissingData
from workshop.command import new_parser, run_command
from workshop.folders import commit, package_versions

__all__ = ["LandscapeSettings", "draw_landscape", "main"]

_log = logging.getLogger(__name__)
_N_FOLDS: Final = 10
_N_REFITTED: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapeSettings:
    """What `draw_landscape` does; one field per flag.

    Attributes:
        task: of the benchmark.
        metric: whose landscape.
        n: configs in each of the two samples that shares are estimated from.
        seed: of everything that is drawn.
        release: folder of a release, or of one per task; None: where `jahs` finds it.
        out: folder of the page, see `experiments.report.build.check_target`.
        docs: write Markdown with SVG figures alone.
    """

    task: str
    metric: str
    n: int
    seed: int
    release: Path | None
    out: Path
    docs: bool


def draw_landscape(settings: LandscapeSettings) -> Path:
    """Measure the landscape and write its page, which is returned.

    Raises:
        JahsError: bad settings, or no release.
    """
    target = check_target(settings.out)
    bench = open_benchmark(settings.task, settings.release)
    found = measure_landscape(bench, settings.metric, n=settings.n, seed=settings.seed)
    refitted = list(_refitted(bench, settings))
    facts = release_facts(bench)
    document = landscape_document(
        with_errors_of_fit(found, refitted),
        bench.task,
        cautions=(*_quality(bench, settings.metric), *_fit(bench, settings.metric, len(refitted))),
        facts=(
            ("command", shlex.join(_command(settings))),
            ("commit", str(commit())),
            ("release", f"{settings.task}: {facts.version} ({facts.source}, {facts.sha256[:16]})"),
            ("versions", ", ".join(f"{name} {version}" for name, version in package_versions().items())),
        ),
    )
    return write_document(document, target, is_for_docs=settings.docs)


def _refitted(bench: jahs.Benchmark, settings: LandscapeSettings) -> Iterator[Landscape]:
    """The same landscape by surrogates that leave out a tenth of the recorded configs each; none of exact metrics."""
    if bench.metrics[settings.metric].kind == "exact":
        return
    try:
        models = list(refits(bench, settings.metric, n_folds=_N_FOLDS, seed=settings.seed))
    except MissingData as err:
        _log.info("intervals leave out the error of the fit: %s", err)
        return
    for i, model in enumerate(models, start=1):
        yield measure_landscape(model, settings.metric, n=min(settings.n, _N_REFITTED), seed=settings.seed)
        _log.info("%d/%d surrogates that leave out a tenth", i, len(models))


def _quality(bench: jahs.Benchmark, metric: str) -> Iterator[str]:
    """How good the models are that were asked."""
    if bench.metrics[metric].kind == "exact":
        yield f"{metric} is computed from the config, so nothing here is a guess."
        return
    try:
        facts = bench.quality()["metrics"][metric]
    except (MissingData, KeyError):
        yield "A surrogate's landscape; how good this one is, its release does not say."
        return
    cuts = facts["refitted_test"]
    last, best = (cuts[name]["model"] if name in cuts else None for name in ("last epoch", "best tenth"))
    last = last or cuts["all"]["model"]
    among = f", and τ {best['tau']:.2f} among the best tenth" if best is not None else ""
    yield (
        f"A surrogate's landscape, smoother than that of trainings: on {facts['test']['n_configs']} configs that it "
        f"never saw, at the last epoch, it reaches Kendall's τ {last['tau']:.2f} and R² {last['r2']:.2f}{among}."
    )


def _fit(bench: jahs.Benchmark, metric: str, n_refitted: int) -> Iterator[str]:
    """What the intervals hold."""
    if n_refitted:
        yield (
            "Intervals hold 95 % of what other random configs would give and, by a jackknife over tenths of the "
            "recorded configs, other trainings to fit the surrogate to."
        )
    elif bench.metrics[metric].kind != "exact":
        yield "Intervals are of the draw of configs alone: what other trainings to fit to would change is not in them."


def _command(settings: LandscapeSettings) -> list[str]:
    return [
        *("python", "-m", "experiments.landscape", "--task", settings.task, "--metric", settings.metric),
        *("--n", str(settings.n), "--seed", str(settings.seed), "--out", "DIR"),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    settings = _parse(argv)
    return run_command("experiments.landscape", lambda: written(draw_landscape(settings)))


def _parse(argv: Sequence[str] | None) -> LandscapeSettings:
    about = "Draw which keys decide, how far neighbours are alike, and how steep the space is at the top."
    parser = new_parser("experiments.landscape", about, example="--task fashion_mnist_mini --out out/landscape")
    parser.add_argument("--task", default="fashion_mnist_mini", help="of the benchmark (default: %(default)s)")
    parser.add_argument("--metric", default="valid_acc", help="whose landscape (default: %(default)s)")
    parser.add_argument("--n", type=int, default=8192, help="configs in each of two samples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: %(default)s)")
    parser.add_argument("--release", type=Path, help="folder of a release, or of one per task (default: found by jahs)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page: new, empty, or that of a page")
    parser.add_argument("--docs", action="store_true", help="write Markdown with SVG figures alone, as in docs/studies")
    return LandscapeSettings(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
