"""Measure the quality of a release where optimisers search, and write the figures for the card.

python -m surrogate.figures RUNS --split SPLIT --release RELEASE --out FIGURES [--read-final]

Without --read-final, only the ordinary test part is read. With it, the final test set is read as well, and the reading
is counted (`splits.final`). Figures without enough data have no value. The agreement at the top is measured twice: for
fits to train and valid with the settings of the release, each without one fold of the configs (all sizes of a config
are in the same fold), and for the refits that ship, which were fitted to bootstrap samples with fewer trees. The best
configs of a search are usually trained later: --proposed compares them with their predictions and adds them to FIGURES.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.tables import take
from jahs.queries.benchmark import Benchmark
from jahs.release import Release, read_release
from jahs.release.models import REFITS
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from splits.final import UNIFORM, FinalTest, final_beside, n_reads
from splits.kinship import kin
from splits.split import Split
from surrogate.card.figures import figures_of, write_figures
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, digest_measurements, read_final_measurements, read_with_split
from surrogate.data.rows import Facts, Rows, assemble, assemble_repeats, by_part, join_rows, uniform_configs
from surrogate.judging.agreement import ceiling, last_and_first
from surrogate.judging.quality import rounded
from surrogate.judging.top import (
    FEWEST,
    best_tenth,
    bootstrapped,
    figure,
    full_rows,
    least_difference,
    leave_sources_out,
    not_measured,
    overlap,
    search_gap,
    size_correlations,
    top_quarter,
)
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import held_out_rows, without_sizes
from surrogate.models.model import Surrogate, fit_surrogate
from surrogate.models.optima import MAIN
from surrogate.packing import release_answers
from surrogate.propose import settings_of
from surrogate.top_fits import read_fits
from workshop.command import run_command
from workshop.folders import check_file, commit
from workshop.measured import rows_of
from workshop.ranks import kendall_tau
from workshop.repeats import FEWEST_PAIRS, pairs_of_seeds

_N_FOLDS: Final = 8
_N_SAMPLE: Final = 20_000
_N_ENDS: Final = 10
_SEED: Final = 0  # of the folds, and of the sample that refits are compared on


def figures(
    measured: Measurements,
    split: Split,
    release: Release,
    *,
    members: FinalTest | None,
    final: Measurements | None,
) -> Facts:
    """Return every figure of a release: on the ordinary test part, on the final test set, and without a test set.

    Args:
        release: made from train and valid of this split, or of one that it extends: no config has moved since.
        members: the final test set, if there is one.
        final: its measurements, if they are read.

    Raises:
        ProtocolMismatch: the release has another protocol or split.
    """
    _check(release, measured, split)
    rows = assemble(MAIN, measured)
    parts, settings = by_part(rows, split), settings_of(release)
    fitted = fit_surrogate(MAIN, parts["train"], measured.task, settings=settings)
    final_facts = None
    if members is not None and final is not None:
        final_rows = assemble(MAIN, final)
        final_facts = {
            **_part_facts(release, final_rows, final_rows, final),
            "n_configs": final_rows.n_configs,
            "seeds": _seed_facts(members, final),
        }
    release_facts = {"protocol": measured.protocol, "release": release.sha256, "answers_as": sorted(release.answers_as)}
    facts: Facts = rounded(
        {
            **release_facts,
            "measurements": digest_measurements(measured),
            "split": split.digest,
            "ordinary": {
                **_part_facts(release, parts["test"], rows, measured),
                "uniform": _on_uniform(measured, parts["test"], fitted),
            },
            "final": final_facts,
            "final_counts": None if members is None else members.counts,
            "search": proposed_gap(release, measured),
            **_fold_facts(measured, join_rows([parts["train"], parts["valid"]]), rows, settings),
            "shipped_refits": _shipped_facts(release),
            "sources": leave_sources_out(measured, parts, fitted),
            "seed": _SEED,
            "commit": commit(),
        }
    )
    return facts


def _check(release: Release, measured: Measurements, split: Split) -> None:
    splits = [digest for digest in (split.extends, split.digest) if digest]
    if release.has("table.npz"):
        splits.append(split.of(release.table.configs["config_id"]).digest)
    wanted = {"protocol": [measured.protocol], "split": splits}
    if faults := [
        f"its {name} must be {digests[-1]}, got {release.facts.get(name)}"
        for name, digests in wanted.items()
        if release.facts.get(name) not in digests
    ]:
        advice = "give the split and the runs that it was made from, or these after they were extended"
        raise ProtocolMismatch("\n".join([f"{release.path} was made from other data; {advice}", *faults]))


def _part_facts(release: Release, test: Rows, all_rows: Rows, measured: Measurements) -> Facts:
    last = measured.task.max_epoch
    test, repeats = full_rows(test, epoch=last), full_rows(all_rows, epoch=last)
    predicted, repeats_predicted = (release_answers(release, MAIN, rows.X) for rows in (test, repeats))
    return {
        **best_tenth(test, predicted, repeats, repeats_predicted),
        "top_quarter": top_quarter(test, predicted, repeats),
    }


def _seed_facts(members: FinalTest, final: Measurements) -> dict[str, Facts]:
    """Return the agreement of two trainings of the uniform configs of the final test set, by metric."""
    is_uniform = np.array(members.groups) == UNIFORM
    runs = take(final.runs, np.isin(final.runs["config_id"], members.config_ids[is_uniform]))
    return {
        metric: not_measured(f"{n} configs with two seeds; {FEWEST_PAIRS} are needed")
        if tau is None
        else figure(tau.value, interval=(tau.low, tau.high), n=n)
        for metric, pairs in pairs_of_seeds(runs).items()
        for n, tau in (pairs.repeats(),)
    }


def _on_uniform(measured: Measurements, test: Rows, fitted: Surrogate) -> Facts:
    """Return tau over the whole space at the last epoch, as a share of its ceiling, of a model of the training part.

    Both are of uniform configs alone: those of the test part, and those that were repeated whatever their results.
    """
    repeats, uniform = assemble_repeats(MAIN, measured), uniform_configs(measured)
    top = ceiling(MAIN, repeats.take((repeats.epoch == measured.task.max_epoch) & np.isin(repeats.config_id, uniform)))
    test = test.take(last_and_first(test))
    test = test.take(np.isin(test.config_id, uniform))
    if not top["tau"] or len(test) < FEWEST:
        return not_measured(f"{len(test)} uniform test configs, {top['n']} repeated ones; more are needed")
    predicted, ceiling_tau = fitted.predict(test.X), float(top["tau"])
    return bootstrapped(lambda at: kendall_tau(test.y[at], predicted[at]) / ceiling_tau, len(test), len(test))[0]


def proposed_gap(release: Release, measured: Measurements) -> Facts:
    """Return the mean of measured minus predicted accuracy over the best configs that this release proposed."""
    configs = measured.configs
    is_best = (configs["source"] == "best") & np.isin(configs["release"], sorted(release.answers_as))
    rows = assemble(MAIN, measured)
    rows = rows.take(np.isin(rows.config_id, configs["config_id"][is_best]) & (rows.epoch == measured.task.max_epoch))
    if not len(rows):
        return not_measured("no config that this release proposed is trained; propose and train `best`")
    if release.has("table.npz") and np.isin(rows.config_id, release.table.configs["config_id"]).any():
        raise MissingData(f"{release.path} was fitted to configs that it proposed; name the release that proposed them")
    ids, first = np.unique(rows.config_id, return_index=True)
    predicted = release_answers(release, MAIN, rows.X[first])
    order = np.lexsort((ids, -predicted))[:_N_ENDS]
    trained = [rows.y[rows.config_id == ids[i]] for i in order]
    has_two = np.array([len(values) > 1 for values in trained])
    return search_gap([values for values, two in zip(trained, has_two, strict=True) if two], predicted[order][has_two])


def _shipped_facts(release: Release) -> dict[str, Facts]:
    """Return the overlap of the refits that ship, and the least difference whose sign they agree on."""
    if not release.has(REFITS):
        return dict.fromkeys(("overlap", "tau", "difference"), not_measured("the release has no refits"))
    columns, n = space(LARGEST).sample_columns(_N_SAMPLE, seed=_SEED), release.refits.n_refits
    predicted, *refits = (
        Benchmark(release.task.name, release=release.path, refit=k).query_many(columns, metrics=(MAIN,))[MAIN]
        for k in (None, *range(n))
    )
    best = _top_tenth(predicted)
    return {**overlap(refits), "difference": least_difference(predicted[best], np.stack(refits)[:, best])}


def _top_tenth(predicted: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of the predicted best tenth."""
    return np.argsort(-predicted, kind="stable")[: len(predicted) // 10]


def _fold_facts(measured: Measurements, fitted_on: Rows, all_rows: Rows, settings: ForestSettings) -> dict[str, Facts]:
    """Return the overlap of fits that each leave one fold out, and figures of their out-of-fold predictions."""
    last = measured.task.max_epoch
    last_rows = all_rows.take(last_and_first(all_rows))
    predicted = np.full(len(last_rows), np.nan)
    X = encode(space(LARGEST).sample_columns(_N_SAMPLE, seed=_SEED), last)
    is_fit = np.isin(all_rows.config_id, fitted_on.config_id)
    sample_predicted = []
    for is_out in held_out_rows(measured, all_rows, _N_FOLDS, seed=_SEED, has_sizes=False):
        model = fit_surrogate(MAIN, all_rows.take(is_fit & ~is_out), measured.task, settings=settings)
        sample_predicted.append(model.predict(X))
        is_new = np.isin(last_rows.config_id, all_rows.config_id[is_out])
        predicted[is_new] = model.predict(last_rows.X[is_new])
    bases = kin(without_sizes(rows_of(measured.configs, last_rows.config_id)))  # equal if sizes alone differ
    full = full_rows(last_rows, epoch=last)
    full_predicted = predicted[np.isin(last_rows.config_id, full.config_id)]
    best = _top_tenth(full_predicted)
    return {
        "refits": overlap(sample_predicted),
        "sizes": size_correlations(bases, last_rows, predicted),
        "trained": {
            name: least_difference(full_predicted[best], full.y[None, best], n_runs=n_runs)
            for name, n_runs in (("one_run", 1), ("ten_runs", 10))
        },
    }


def _with_kept(facts: Facts, path: Path, release: Release) -> Facts:
    """Return figures with the parts that were not measured now, if the file has them for the same release."""
    with suppress(MissingData, ProtocolMismatch):
        before = figures_of(path, release)
        return {**facts, **{name: before.get(name) for name in ("final", "fits") if facts[name] is None}}
    return facts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    example = "runs/ --split split.json --release release/ --out figures.json"
    parser = runs_parser("figures", __doc__, example=example)
    parser.add_argument("--release", type=Path, required=True, help="a release that was made from this split")
    parser.add_argument("--out", type=Path, required=True, help="a file for the figures, which surrogate.card shows")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--read-final", action="store_true", help="read the final test set, too; this is counted")
    about = "measure the best configs of a search alone, and keep all other figures in --out"
    parts.add_argument("--proposed", action="store_true", help=about)
    parser.add_argument("--fits", type=Path, help="the result file of surrogate.top_fits, for the card")
    given = parser.parse_args(argv)

    def work() -> str:
        measured, split = read_with_split(given.runs, given.split)
        release = read_release(given.release)
        done = f"{given.out}: python -m surrogate.card {given.release} --figures {given.out} --out CARD"
        if given.proposed:
            if given.fits:
                raise InvalidArgument("--fits is not used with --proposed; leave it out")
            kept, gap = figures_of(given.out, release), rounded(proposed_gap(release, measured))
            if gap["value"] is None and kept["search"]["value"] is not None:
                raise MissingData(f"the best of a search are not measured: {gap['missing']}")
            write_figures(given.out, {**kept, "search": {**gap, "measurements": digest_measurements(measured)}})
            return done
        # Every fault of the arguments is found before the final test set is read, because that is counted.
        _check(release, measured, split)
        settings_of(release)
        fits = None if given.fits is None else read_fits(given.fits)
        check_file(given.out)
        members, final = final_beside(given.split), None
        if given.read_final:
            what_for = {"command": "surrogate.figures", "release": release.sha256, "commit": commit()}
            final = read_final_measurements(given.runs, given.split, what_for=what_for)
        facts = figures(measured, split, release, members=members, final=final)
        facts["n_reads"] = n_reads(given.split)
        facts["fits"] = fits
        write_figures(given.out, _with_kept(facts, given.out, release))
        return done

    return run_command("surrogate.figures", work)


if __name__ == "__main__":
    sys.exit(main())
