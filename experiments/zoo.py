"""Write the page that compares model families, in seconds, from the files of `surrogate.zoo` (`make zoo` writes both).

python -m experiments.zoo --out out/zoo
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.report.writing import page_parser, run_page, table
from experiments.science.papers import beside_paper, same_sign
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, number_text, value_text
from jahs.errors import InvalidArgument
from jahs.tasks.definitions import Task, caveats_of, task
from surrogate.data.rows import Facts
from surrogate.judging.agreement import agreement
from surrogate.models.zoo import FAMILIES, METRIC
from surrogate.zoo import N_FOLDS, read_zoo
from workshop.folders import commit_fact, versions_text
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.ranks import spearman
from workshop.resampling import bootstrap_estimates, interval_text

_FILES: Final = (Path("data/fashion_mnist_mini/zoo.json"), Path("data/cifar10_mini/zoo.json"))

PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "lightgbm": (0.892, 0.816),
    "xgboost": (0.832, 0.817),
    "gin": (0.832, 0.778),
    "ngboost": (0.810, 0.759),
    "nu_svr": (0.709, 0.677),
    "random_forest": (0.679, 0.683),
    "svr": (0.675, 0.660),
}
"""Test R2 and sparse tau of NAS-Bench-301, table 3, in its order."""

_PAPER_FINDS: Final = "NAS-Bench-301's best are LightGBM (R² 0.892, sparse τ 0.816) and XGBoost (0.832, 0.817)."
_METHOD: Final = """The paper has about 60,000 architectures that differ in their cells alone. Here are far fewer
    configs, which also differ in hyperparameters and sizes. All families but GIN, a graph network, read the features of
    the released model, which were chosen for XGBoost; GIN reads the cell as a graph and the other keys as they are.
    Fits use the last epoch alone, so they take seconds; the released model is fitted to all epochs. Settings were drawn
    by NePS's random search from the paper's spaces (NGBoost: its authors' code), with at most 1,000 trees."""
_SPACES: Final = """GIN's space is narrower than the paper's, because larger networks take too long on one core: at
    most 64 hidden units (paper: 256), 6 layers (10) and a dropout of 0.5 (1, where nothing is learned). Defaults are
    those of the paper's table 5 except XGBoost's learning rate (0.0824, not 0.00824, which needs ten times the trees),
    GIN's layers (4, not 8), learning rate (0.005, not 0.0777, which its range excludes) and loss (the sum of both, not
    one), and C, coef0, degree and tolerance of both SVRs, with kernel, gamma and shrinking of the epsilon-SVR."""
_SCORES: Final = {"r2": "R²", "tau": "τ", "sparse_tau": "sparse τ"}
_SPARSE: Final = 2  # place of the sparse tau among the scores
_COMPARED: Final = {"R²": 0, "sparse τ": _SPARSE}  # the scores of `PAPER` in its order, and their places
_BASE: Final = "xgboost"
_CUTS: Final = ("all", "full size", "best tenth")
_FULL_SIZE: Final = 26  # number of the fidelity group
_FEWEST: Final = 8


class ModelScores(NamedTuple):
    """The scores of models on one cut of a part; NaN where a score is not defined."""

    n: int  # configs
    scores: Mapping[str, Sequence[Interval]]  # R2, tau and sparse tau of each model, with 90 % intervals over configs
    differences: Mapping[str, Sequence[Interval]]  # the same scores minus XGBoost's
    order: Interval  # Spearman's rank correlation of the families' sparse tau with the paper's


def score_zoo(part: Facts, answers: Mapping[str, Sequence[float]], cut: str, *, n_resamples: int) -> ModelScores | None:
    """Score answers for one part of a result file on a cut; None where it has fewer than eight configs.

    Configs are resampled for all models together, so differences are paired.
    """
    y, group = np.array(part["measured"]), np.array(part["group"])
    is_any = np.ones(len(y), np.bool_)
    chosen = {"all": is_any, "full size": group == _FULL_SIZE, "best tenth": y >= np.quantile(y, 0.9)}[cut]
    if (n := int(chosen.sum())) < _FEWEST:
        return None
    y, predicted = y[chosen], np.array(list(answers.values()))[:, chosen]
    base, families = list(answers).index(_BASE), [i for i, name in enumerate(answers) if name in PAPER]
    theirs = np.array([PAPER[name][1] for name in answers if name in PAPER])

    def with_differences(at: NDArray[np.int64]) -> Floats:
        by_model = [agreement(METRIC, y[at], model[at]) for model in predicted]
        values = np.array([[scores[name] for name in _SCORES] for scores in by_model], np.float64)  # None becomes NaN
        order = spearman(values[families, _SPARSE], theirs)
        return np.append(np.stack([values, values - values[base]]), order)

    *intervals, order = bootstrap_estimates(with_differences, n, level=0.9, n_resamples=n_resamples)
    halves = np.array(intervals).reshape(2, len(answers), -1).tolist()
    scores, differences = (dict(zip(answers, half, strict=True)) for half in halves)
    return ModelScores(n, scores, differences, order)


class _Result(NamedTuple):
    """The result file of one task, and the scores of its validation and test part by cut."""

    task: Task
    zoo: Facts
    valid: Mapping[str, ModelScores | None]
    test: Mapping[str, ModelScores | None]


def _document(paths: Sequence[Path], *, n_resamples: int) -> Document:
    files = {str(path): read_zoo(path) for path in paths}
    if lacking := [path for path, zoo in files.items() if _BASE not in zoo["families"]]:
        raise InvalidArgument(f"{', '.join(lacking)}: no XGBoost, which all others are compared with; fit it first")
    results, facts = [], [commit_fact()]
    for path, zoo in files.items():
        scores = {}
        for part in ("valid", "test"):
            answers = {name: m["predicted"][part] for name, m in _models(zoo).items() if part in m["predicted"]}
            scores[part] = {cut: score_zoo(zoo["parts"][part], answers, cut, n_resamples=n_resamples) for cut in _CUTS}
        results.append(_Result(task(zoo["task"]), zoo, **scores))
        versions = versions_text(zoo["versions"])
        facts.append((path, f"split {zoo['split']}, measurements {zoo['measurements']}, fitted with {versions}"))
    return Document(
        title=f"Model families for {METRIC}",
        caveats=caveats_of([result.task for result in results]),
        subtitle=" ".join([*map(_finding, results), _PAPER_FINDS]),
        sections=sections_of(_blocks(results)),
        facts=tuple(facts),
    )


def _models(zoo: Facts) -> dict[str, Facts]:
    """Return every family and, as "<family> x 10", its ensemble."""
    return {**zoo["families"], **{f"{name} x {N_FOLDS}": model for name, model in zoo["ensembles"].items()}}


def _title(name: str) -> str:
    family, *ensemble = name.split(" x ")
    return f"{FAMILIES[family].title}{', ensemble' if ensemble else ''}"


def _finding(result: _Result) -> str:
    if (scored := result.test["all"]) is None:
        return f"{result.task.title} has too few test configs."
    leads = {name: scored.differences[name][_SPARSE] for name in result.zoo["families"]}
    better, worse = [name for name in leads if leads[name].low > 0], [name for name in leads if leads[name].high < 0]
    best = max(leads, key=lambda name: scored.scores[name][_SPARSE].value)
    r2, _, sparse = scored.scores[best]
    return (
        f"On {result.task.title}, {_title(best)} scores highest by sparse τ, {interval_text(sparse, 3)} at R² "
        f"{interval_text(r2, 3)}, on {scored.n} test configs. By the 90 % intervals of the differences in sparse τ, "
        f"better than XGBoost: {_listed(better)}; worse: {_listed(worse)}."
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = map(_title, names) if names else ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def _blocks(results: Sequence[_Result]) -> Iterator[str | Block]:
    yield "Comparison with NAS-Bench-301"
    tested = [(result, scored) for result in results if (scored := result.test["all"]) is not None]
    estimates, numbers = dict[str, Interval](), list[int]()
    for name, (_, theirs) in PAPER.items():
        by_source = {"NAS-Bench-301": Interval(value=theirs, low=theirs, high=theirs)}
        by_source |= {of.task.title: found.scores[name][_SPARSE] for of, found in tested if name in found.scores}
        estimates |= {f"{_title(name)}, {source}": interval for source, interval in by_source.items()}
        numbers += range(len(by_source))
    yield Figure(
        name="families",
        caption="Sparse τ on the test part, with 90 % intervals over configs; NAS-Bench-301: table 3. The levels of "
        "different data do not compare, the rankings do.",
        alt="; ".join(f"{title}: {interval.value:.2f}" for title, interval in estimates.items()),
        drawing=draw_estimates(estimates, numbers=numbers, x_label="sparse τ on the test part"),
    )
    yield _absolute(tested)
    yield _beside(tested)
    for result, scored in tested:
        yield Text(
            f"Spearman's rank correlation of the families' sparse τ with the paper's is {interval_text(scored.order)} "
            f"on {result.task.title} ({len(result.zoo['families'])} families; 90 % interval over configs)."
        )
        if missing := [name for name in PAPER if name not in result.zoo["families"]]:
            yield Text(f"Not fitted yet on {result.task.title}: {_listed(missing)}; `make zoo` resumes.")
    yield Text(_METHOD)
    yield Text(_SPACES)
    for result in results:
        yield from _task_blocks(result)


def _task_blocks(result: _Result) -> Iterator[str | Block]:
    zoo, fitted = result.zoo, result.zoo["n_fitted"]
    luck = [best_tau_sd([drawn["tau"] for drawn in model["evaluations"]]) for model in zoo["families"].values()]
    yield f"Scores on {result.task.title}"
    yield Text(
        f"{fitted['rows']:,} trainings of {fitted['configs']:,} configs were fitted. "
        f"{zoo['evaluations']} settings a family, and its default, were compared by τ on the validation part, whose "
        f"scores are therefore optimistic; the test part chose nothing. An ensemble is the mean of {N_FOLDS} models, "
        "each without one fold of training and validation part; the three families with the highest validation τ have "
        "one. Intervals do not contain the luck of the search: other draws of settings would change a family's best "
        f"validation τ by {min(luck):.3f} to {max(luck):.3f} (standard deviation)."
    )
    for cut, scored in result.test.items():
        if scored is not None:
            yield _scores_table(scored, result.valid[cut], cut)
    times = [
        (_title(name), f"{model['fit_s']:.1f}", f"{model['one_ms']:.2f}", f"{model['each_us']:.1f}")
        for name, model in _models(zoo).items()
    ]
    head = ("family", "fit (s)", "one config (ms)", "each of 1,000 configs (µs)")
    yield table("CPU times on one core, features included", head, times)
    rows = []
    for name, model in zoo["families"].items():
        settings = ", ".join(f"{key}={value_text(value)}" for key, value in model["point"].items())
        rows.append((_title(name), settings, *(number_text(of["tau"], 3) for of in (model, model["evaluations"][0]))))
    caption = "The settings chosen by τ over all trainings of the validation part"
    caption += " (the tables above have one training of each config)"
    yield table(caption, ("family", "settings", "τ", "default's τ"), rows, n_labels=2, is_folded=True)


def best_tau_sd(taus: Sequence[float | None]) -> float:
    """Return the standard deviation of the best of the first τ and a resample of the others; undefined ones are -1."""
    default, *drawn = (-1.0 if tau is None else tau for tau in taus)
    best = np.maximum(np.sort(drawn), default)
    shares = np.diff((np.arange(len(best) + 1) / len(best)) ** len(best))  # of the resamples that have this best
    return float(np.sqrt(shares @ (best - shares @ best) ** 2))


def _absolute(tested: Sequence[tuple[_Result, ModelScores]]) -> Table:
    """Return the scores of every family, the paper's and ours."""
    sources = ("NAS-Bench-301", *(result.task.title for result, _ in tested))
    rows = []
    for name, theirs in PAPER.items():
        rows.append([_title(name)])
        for value, place in zip(theirs, _COMPARED.values(), strict=True):
            found = [scored.scores[name][place] if name in scored.scores else None for _, scored in tested]
            rows[-1] += [f"{value:.3f}", *("–" if score is None else interval_text(score, 3) for score in found)]
    head = ("family", *(f"{score}, {source}" for score, source in product(_COMPARED, sources)))
    return table("Test scores of NAS-Bench-301 (table 3) and ours, with 90 % intervals over configs", head, rows)


def _beside(tested: Sequence[tuple[_Result, ModelScores]]) -> Table:
    """Return the differences to XGBoost, the paper's and ours."""
    rows = []
    for name, (k, (score, place)), (result, scored) in product(PAPER, enumerate(_COMPARED.items()), tested):
        if name == _BASE or name not in scored.differences:
            continue
        theirs, base, ours = PAPER[name][k], PAPER[_BASE][k], scored.differences[name][place]
        quantity = f"{score} of {_title(name)} minus XGBoost's"
        paper = f"{theirs:.3f} - {base:.3f} = {theirs - base:+.3f}"
        same = same_sign(ours, round(theirs - base, 2))  # differences below 0.005 have no sign
        why = _why(name, theirs - base, ours)
        rows.append((quantity, result.task.title, paper, interval_text(ours, 3, sign="+"), same, why))
    more = " over configs; test scores. A dash: the paper sees no difference."
    return beside_paper("NAS-Bench-301", rows, level=90, more=more)


def _why(name: str, paper: float, ours: Interval) -> str:
    """Return why our difference from XGBoost deviates from the paper's, as far as is known."""
    if ours.low <= paper <= ours.high:
        return "the interval holds the paper's difference"
    if abs(ours.value) < abs(paper):
        return "closer to XGBoost than in the paper, cause not tested"
    cause = "probably as there are fewer configs and it reads no features; " if name == "gin" else "cause "
    return f"further from XGBoost than in the paper, {cause}not tested"


def _scores_table(scored: ModelScores, valid: ModelScores | None, cut: str) -> Table:
    rows, titles = [], _SCORES.values()
    for name in sorted(scored.scores, key=lambda name: -scored.scores[name][_SPARSE].value):
        difference = scored.differences[name][_SPARSE]
        on_valid = valid.scores.get(name) if valid else None
        texts = [interval_text(score, 3) for score in on_valid] if on_valid else ["–"] * len(_SCORES)
        texts += [interval_text(score, 3) for score in scored.scores[name]]
        lead = "–" if name == _BASE else f"{difference.low:+.3f} to {difference.high:+.3f}"
        rows.append((_title(name), *texts, lead))
    return table(
        f"{cut.capitalize()}: {scored.n} test configs at the last epoch, with 90 % intervals over configs, "
        f"beside {valid.n if valid else 'too few'} validation configs",
        ("family", *(f"validation {score}" for score in titles), *titles, "sparse τ minus XGBoost's"),
        rows,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = page_parser("experiments.zoo", "Write the page that compares model families.")
    parser.add_argument("--results", type=Path, nargs="+", default=_FILES, help="files of surrogate.zoo")
    parser.add_argument("--resamples", type=int, default=200, help="bootstrap resamples (default: %(default)s)")
    return run_page(parser, argv, lambda given: _document(given.results, n_resamples=given.resamples))


if __name__ == "__main__":
    sys.exit(main())
