"""Does the surrogate know the mean of a config better than one training of it? NAS-Bench-301's study of noise.

python -m surrogate.noise_study RUNS --split SPLIT --params PARAMS --release RELEASE --out docs/studies/noise

The study uses the configs with three trainings, at the last epoch. One training serves as the entry of a table, and the
mean of the other two as the truth, in three rotations. The entry is compared with the predictions of a surrogate and of
an ensemble of refits, fitted to growing numbers of other configs, and finally also to these, each with one training.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.files.atomic import make_folder
from jahs.release import Release, read_release
from jahs.spaces.seeds import read_seed
from jahs.tasks.definitions import caveats_of
from jahs.tasks.metrics import ACCURACIES
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, check_release, read_with_split
from surrogate.data.rows import Rows, assemble, assemble_repeats
from surrogate.judging.agreement import first_seed
from surrogate.judging.spread_fit import points_of_an_image
from surrogate.judging.uncertainty import uncertain_of
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import read_params
from surrogate.models.model import fit_surrogate
from surrogate.models.refits import N_REFITS, fit_refits
from workshop.command import add_workers, run_command
from workshop.folders import commit_fact, versions_fact, write_text
from workshop.pages.document import Block, Document, Table, Text, sections_of
from workshop.pages.markdown import to_markdown
from workshop.resampling import bootstrap_estimates, interval_text

_N_SEEDS: Final = 3
_SIZES: Final = (250, 500, 1000)
_N_RESAMPLES: Final = 1000
_LEAST_TRAINED: Final = 50  # percent, as in NAS-Bench-301
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RotationErrors:
    """Errors in predicting the mean of two trainings, in points, by rotation of the entry: (3, n_configs)."""

    n_fitted: int  # configs that surrogate and ensemble were fitted to
    is_seen: bool  # whether the judged configs are among them, each with the training that is the table's entry
    # table, surrogate, ensemble: absolute errors.
    table: _Floats
    surrogate: _Floats
    ensemble: _Floats
    own_sd: _Floats  # standard deviation of the three trainings, at least one image in points; (n_configs,)
    sd: _Floats  # standard deviation of one training, as the ensemble and the noise model predict it
    # Kullback-Leibler divergence KL(fitted || predicted) of normal distributions; the first is fitted to the three
    # trainings.
    divergence: _Floats
    is_better: NDArray[np.bool_]  # mask of the better half of the configs by their means, (n_configs,)
    least: _Floats  # minimum of the three trainings, (n_configs,)


def repeated(rows: Rows) -> tuple[NDArray[np.uint64], _Floats, NDArray[np.int64], Rows]:
    """Return the configs with three trainings at the last epoch, values and seeds of these, (n, 3), and a row of each.

    A training that diverged before has earlier epochs alone and does not count.
    """
    last = rows.take(rows.epoch == rows.epoch.max())
    ids, first, counts = np.unique(last.config_id, return_index=True, return_counts=True)
    chosen = first[counts >= _N_SEEDS]
    if len(chosen) < 2:
        raise InvalidArgument(f"{len(chosen)} configs have {_N_SEEDS} trainings; the study needs 2; collect repeats")
    of_each = chosen[:, None] + np.arange(_N_SEEDS)
    return ids[counts >= _N_SEEDS], last.y[of_each], last.seed[of_each], last.take(chosen)


def noise_study(
    measured: Measurements, metric: str, release: Release, *, settings: ForestSettings, seed: int = 0, workers: int = 1
) -> list[RotationErrors]:
    """Return the errors for every number of other configs, and finally for fits that include the judged configs."""
    seed, rows = read_seed(seed), assemble(metric, measured)
    ids, values, seeds, judged = repeated(assemble_repeats(metric, measured))  # none was chosen by its first training
    is_judged = np.isin(rows.config_id, ids)
    is_once = ~is_judged & first_seed(rows)
    others = np.unique(rows.config_id[is_once])
    if not len(others):
        raise InvalidArgument(f"every config has {_N_SEEDS} trainings, so none is left to fit; collect more configs")
    scale = release.refits.scales.get(metric, 1.0)
    image = points_of_an_image(measured.task, metric)
    options: dict[str, Any] = {"share": 1.0, "seed": seed, "n_refits": N_REFITS, "workers": workers}  # Any: arguments

    def answers(is_in: NDArray[np.bool_]) -> _Floats:
        """Return the answers of surrogate and ensemble, and the sd of one training around the ensemble, (3, n)."""
        training = rows.take(is_in)
        fitted = fit_surrogate(metric, training, release.task, settings=settings)
        refits = fit_refits({metric: training}, {metric: fitted}, **options)[metric]
        uncertain = uncertain_of(fitted, refits, judged, release.noise, scale=scale)
        return np.stack([uncertain.mean[0], uncertain.refits[0].mean(axis=1), uncertain.total_sd[0]])

    shuffled = np.random.default_rng(seed).permutation(others)
    unseen = []
    for size in [*(n for n in _SIZES if n < len(others)), len(others)]:
        found = answers(is_once & np.isin(rows.config_id, shuffled[:size]))
        unseen.append(judge(values, *found, n_fitted=size, is_seen=False, image=image))
    predictions = []
    for entry in range(_N_SEEDS):
        is_entry = is_judged.copy()
        is_entry[is_entry] = rows.seed[is_entry] == seeds[np.searchsorted(ids, rows.config_id[is_entry]), entry]
        predictions.append(answers(is_once | is_entry))
    by_entry = np.stack(predictions, axis=1)  # (3 answers, 3 entries, n)
    return [*unseen, judge(values, *by_entry, n_fitted=len(others) + len(ids), is_seen=True, image=image)]


def judge(
    values: _Floats, surrogate: _Floats, ensemble: _Floats, sd: _Floats, *, n_fitted: int, is_seen: bool, image: float
) -> RotationErrors:
    """Return the errors of predictions, (n,) or (3, n) by entry; `values` are each config's trainings, (n, 3)."""
    truth = np.stack([np.delete(values, entry, axis=1).mean(axis=1) for entry in range(_N_SEEDS)])
    own_sd, mean = np.maximum(values.std(axis=1, ddof=1), image), values.mean(axis=1)
    return RotationErrors(
        n_fitted=n_fitted,
        is_seen=is_seen,
        table=np.abs(values.T - truth),
        surrogate=np.abs(surrogate - truth),
        ensemble=np.abs(ensemble - truth),
        own_sd=own_sd,
        sd=sd,
        divergence=np.log(sd / own_sd) + (own_sd**2 + (mean - ensemble) ** 2) / (2 * sd**2) - 0.5,
        is_better=mean >= np.median(mean),
        least=values.min(axis=1),
    )


def _mean(values: _Floats, *, seed: int) -> Interval:
    """Return a mean over configs with its 90 % bootstrap interval."""
    (interval,) = bootstrap_estimates(
        lambda at: values[at].mean(), len(values), level=0.9, n_resamples=_N_RESAMPLES, seed=seed
    )
    return interval


def _finding(judged: Sequence[RotationErrors], metric: str, *, seed: int) -> str:
    *_, unseen, seen = judged
    table, surrogate = seen.table.mean(axis=0), seen.surrogate.mean(axis=0)
    seen_gap = _mean(table - surrogate, seed=seed)
    unseen_gap = _mean(unseen.table.mean(axis=0) - unseen.surrogate.mean(axis=0), seed=seed)
    link = "as" if unseen_gap.low <= 0 <= unseen_gap.high else "than"
    return (
        f"On configs that it has not seen, the surrogate is {_distance(unseen_gap)} the mean of two trainings "
        f"{link} a third training is: {_crossing(judged[:-1])}. One training is {table.mean():.2f} points of {metric} "
        f"from that mean. Fitted to one training of each, too ({seen.n_fitted:,} configs in all), the surrogate "
        f"is {_distance(seen_gap)} that mean: {surrogate.mean():.2f} points (difference {seen_gap.value:+.2f}, 90 % "
        f"interval {seen_gap.low:+.2f} to {seen_gap.high:+.2f})."
    )


def _distance(difference: Interval) -> str:
    """Compare distances to the truth, from the interval of the entry's error minus the surrogate's."""
    return "farther from" if difference.high < 0 else "nearer to" if difference.low > 0 else "about as far from"


def _crossing(unseen: Sequence[RotationErrors]) -> str:
    """Say how many other configs a surrogate needs to be as good as one training, by a power law in their number."""
    sizes = [judged.n_fitted for judged in unseen]
    errors = [judged.surrogate.mean() for judged in unseen]
    table = unseen[0].table.mean()
    text = f"{errors[-1]:.2f} points with {sizes[-1]:,} other configs"
    slope, intercept = np.polyfit(np.log(sizes), np.log(errors), 1) if len(sizes) > 1 else (0.0, 0.0)
    if slope >= 0 or errors[-1] <= table:
        return text
    n = float(np.exp((np.log(table) - intercept) / slope))
    return f"{text}, and by a power law it would need about {float(f'{n:.1e}'):,.0f}"


def _blocks(judged: Sequence[RotationErrors], metric: str, *, seed: int) -> Iterator[str | Block]:
    yield "By the number of configs"
    heads: tuple[str, ...] = (
        "fitted to", "cut", "configs", "table entry", "surrogate", "ensemble", "table minus surrogate (90 % interval)",
    )  # fmt: skip
    rows = []
    for fit in judged:
        for cut, is_in in (("all", np.ones_like(fit.is_better)), ("better half", fit.is_better)):
            errors = [values.mean(axis=0)[is_in] for values in (fit.table, fit.surrogate, fit.ensemble)]
            difference = interval_text(_mean(errors[0] - errors[1], seed=seed), sign="+")
            fitted_to = f"{fit.n_fitted:,} configs, {'these among them' if fit.is_seen else 'others'}"
            rows.append((fitted_to, cut, str(is_in.sum()), *(f"{error.mean():.2f}" for error in errors), difference))
    yield Table(caption=f"MAE to the mean of the other trainings, points of {metric}", columns=heads, rows=tuple(rows))
    yield Text(
        "Every config was fitted with one training. A positive difference favours the surrogate. The intervals "
        "resample configs; the three rotations are averaged. The better half is chosen by the mean of all "
        f"three trainings. The ensemble is the mean of {N_REFITS} refits to resampled configs."
    )
    yield "By rotation"
    heads = (
        "entry", "table entry", "surrogate", "ensemble", "mean sd of three trainings", "mean predicted sd",
        "mean KL divergence", "median KL divergence",
    )  # fmt: skip
    rows = []
    seen = judged[-1]
    for entry in range(_N_SEEDS):
        others = ", ".join(str(k) for k in range(_N_SEEDS) if k != entry)
        columns = (seen.table[entry], seen.surrogate[entry], seen.ensemble[entry], seen.own_sd, seen.sd[entry])
        divergence = seen.divergence[entry]
        means = [f"{values.mean():.2f}" for values in (*columns, divergence)]
        rows.append((f"{entry}, against the mean of {others}", *means, f"{np.median(divergence):.2f}"))
    yield Table(caption="MAE and predicted sd in points", columns=heads, rows=tuple(rows))
    yield Text(
        "The predicted sd is the `total_sd` of `bench.predict`: model and noise, with the scale and the noise model of "
        "the release, which was fitted to all trainings. The KL divergence is KL(fitted || predicted), where the "
        "fitted distribution is a normal with the mean and the sd of the three trainings; the sd is at least that "
        "of one image."
    )
    yield "Comparison with NAS-Bench-301"
    is_trained = seen.least >= _LEAST_TRAINED
    table, surrogate = (errors[:, is_trained] / 100 for errors in (seen.table, seen.surrogate))
    counts = f"without such configs ({is_trained.sum()} of {len(is_trained)} are left)"
    without = f"{table.mean():.3e} and {surrogate.mean():.3e} {counts}, and " if len(table.T) else ""
    yield Text(
        "NAS-Bench-301 (table 1, figure 1) reports an MAE of 4.534e-3 for a table's entry and 3.446e-3 for its "
        "surrogate, as fractions of 1; its surrogate is better from about 21,500 trainings on. It is a graph network "
        f"on NAS-Bench-101, without architectures that one training leaves below {_LEAST_TRAINED} %. In the same unit, "
        f"ours are {without}{seen.table.mean() / 100:.3e} and {seen.surrogate.mean() / 100:.3e} with all configs, with "
        f"{seen.n_fitted:,} trainings. NAS-Bench-101 varies cells alone, our space also rates and sizes."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    example = "runs/ --split split.json --params params.json --release release/ --out docs/studies/noise"
    parser = runs_parser("noise_study", __doc__, example=example)
    parser.add_argument("--params", type=Path, required=True, help="settings that surrogate.tune found (params.json)")
    parser.add_argument("--release", type=Path, required=True, help="release with the noise model and scale to judge")
    parser.add_argument("--metric", choices=ACCURACIES, default="valid_acc", help="an accuracy (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of subsets, resampling and intervals (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="a folder for report.md")
    add_workers(parser, default=1)
    given = parser.parse_args(argv)

    def work() -> str:
        measured, _ = read_with_split(given.runs, given.split)
        release = read_release(given.release)
        check_release(release, measured)
        settings = read_params(given.params).get(given.metric, ForestSettings())
        make_folder(given.out)
        judged = noise_study(measured, given.metric, release, settings=settings, seed=given.seed, workers=given.workers)
        options = ["--metric", given.metric, "--seed", str(given.seed)]
        placeholders = ["RUNS", "--split", "SPLIT", "--params", "PARAMS", "--release", "RELEASE"]
        page = Document(
            title=f"One training or the surrogate: noise of {release.task.title}",
            subtitle=_finding(judged, given.metric, seed=given.seed),
            sections=sections_of(_blocks(judged, given.metric, seed=given.seed)),
            caveats=caveats_of([release.task]),
            facts=(
                ("command", shlex.join(["python", "-m", "surrogate.noise_study", *placeholders, *options])),
                commit_fact(),
                ("release", f"{release.task.name}: {release.facts.get('version')}, {release.sha256[:16]}"),
                versions_fact(),
            ),
        )
        write_text(given.out / "report.md", to_markdown(page))
        return str(given.out / "report.md")

    return run_command("surrogate.noise_study", work)


if __name__ == "__main__":
    sys.exit(main())
