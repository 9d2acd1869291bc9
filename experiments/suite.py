"""Choose and freeze the problems of a named suite: `python -m experiments.suite --out jahs/seasons/suites`.

Over 300 lines: the rule, the problems that it chooses and the page that shows both change together.

Five optimisers run on every candidate with a few seeds, and are ordered by mean rank. `_RULE` says which candidates are
chosen. A suite that exists keeps its problems: only its budgets and reference scores are made anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy
from matplotlib.figure import Figure as Drawing

from experiments.report.writing import check_target, write_document
from jahs.comparison.benches import mean_runtime, open_benchmark, release_of
from jahs.comparison.claims import by_mean
from jahs.comparison.logs import Floats, trial_log
from jahs.comparison.ranks import mean_ranks
from jahs.comparison.standings import guess_of, steps_of
from jahs.comparison.terms import Rules, ViewChoice, open_rules
from jahs.errors import CorruptFile, InvalidArgument, refuse
from jahs.files.atomic import make_folder
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.optimizers import make
from jahs.release import EMBEDDED
from workshop.command import add_workers, new_parser, run_command
from workshop.folders import commit_fact, versions_fact, write_text
from workshop.jobs import Where, in_processes
from workshop.pages.document import Block, Document, Figure, Table, Text, answer, led_by_answer, sections_of
from workshop.pages.style import LIGHT

ARMS: Final = ("random_search", "evolution", "successive_halving", "hyperband", "asha")
"""Optimisers whose orders are compared. Evolution is regularized evolution, with several objectives NSGA-II."""

BUDGETS: Final = (20, 100)
"""Budgets in mean full evaluations. Optimisers do not know the budget, so one run has the results of both."""

_N_BASELINE: Final = 20  # seeds of random search
_VIEWS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{f"{search}-epoch": (search, ("epoch",)) for search in ("all", "nas", "hpo", "sizes")},
    **{f"all-{name.lower()}": ("all", (name,)) for name in ("N", "W", "Resolution")},
    "all-diagonal": ("all", ("epoch", "N", "W", "Resolution")),
    "nas-diagonal": ("nas", ("epoch", "N", "W", "Resolution")),
    "hpo-diagonal": ("hpo", ("epoch", "N", "W", "Resolution")),
}
_COSTS: Final = {"acc": (), "latency": ("latency",), "macs": ("n_macs",)}
_SEVERAL: Final = ("all-epoch", "all-resolution", "all-diagonal", "nas-diagonal")

_RULE: Final = (
    "Candidates are views of both tasks, with one or several fidelities, one or several objectives, and two budgets. "
    "Strata are the combinations of task, one or several fidelities, one or several objectives, and budget; they take "
    "turns. From its stratum, the candidate is chosen whose ranking of optimisers differs most from those already "
    "chosen: its largest rank correlation with them is the smallest. Ties go to the candidate with the clearest "
    "ranking. Rankings are by mean rank over seeds. No other criterion is used. Later releases keep the problems."
)
_CHOSEN_ON: Final[Mapping[str, str]] = {"jahs-20": "cifar10_mini 1.3.0 and fashion_mnist_mini 0.1.2"}
"""The releases on which the problems of a suite were chosen, if these are not the ones of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A problem that may be chosen."""

    id: str
    task: str
    rules: Rules

    @property
    def stratum(self) -> tuple[object, ...]:
        """Task, whether there are several fidelities, whether there are several objectives, and the budget."""
        rules = self.rules
        return self.task, len(rules.view.fidelities) > 1, len(rules.objectives) > 1, rules.n_evaluations


def candidates(tasks: Sequence[str]) -> list[Candidate]:
    """Return every candidate; candidates that differ only in their budget are adjacent."""
    problems = []
    for task, (view, (search, fidelities)), (cost, more) in product(tasks, _VIEWS.items(), _COSTS.items()):
        if more and view not in _SEVERAL:
            continue
        part = "reference" if search in {"nas", "hpo"} else "default"
        choice = ViewChoice(search=search, fidelities=fidelities, fixed_part=part)  # type: ignore[arg-type]  # _VIEWS
        for n_evaluations in BUDGETS:
            rules = Rules(view=choice, objectives=("valid_acc", *more), n_evaluations=n_evaluations)
            short = "-".join((task.removesuffix("_mini").replace("_", "-"), view, cost, str(n_evaluations)))
            problems.append(Candidate(id=short, task=task, rules=rules))
    return problems


def orders(every: Sequence[Candidate], *, n_seeds: int, workers: int) -> tuple[Floats, Floats]:
    """Return the results of all arms, (n_candidates, n_arms, n_seeds), and random search's, (n_candidates, n_more).

    They are mean errors or missing hypervolumes (%), a guess if there is no result.
    """
    largest = [candidate for candidate in every if candidate.rules.n_evaluations == max(BUDGETS)]
    runs = [(arm, seed) for arm in ARMS for seed in range(_N_BASELINE if arm == "random_search" else n_seeds)]
    calls = [{"candidate": candidate, "arm": arm, "seed": seed} for candidate in largest for arm, seed in runs]
    outcomes = np.reshape(in_processes(_run, calls, workers=workers), (len(largest), len(runs), len(BUDGETS)))
    results = outcomes.transpose(0, 2, 1).reshape(len(every), len(runs))  # budgets of one problem are adjacent
    final = [results[:, [runs.index((arm, seed)) for seed in range(n_seeds)]] for arm in ARMS]
    return np.stack(final, axis=1), results[:, :_N_BASELINE]


def _run(*, candidate: Candidate, arm: str, seed: int) -> tuple[float, ...]:
    """Return the result of one run at the end of each budget."""
    terms = open_rules(candidate.id, candidate.rules, candidate.task, None)
    names = candidate.rules.objectives
    evolution = "regularized_evolution" if len(names) == 1 else "nsga2"
    optimizer = make(evolution if arm == "evolution" else arm, terms.view, seed=seed, objectives=names)
    trials = terms.simulation(seed).run(optimizer)
    full, incumbents = by_mean(trial_log({"view": {"fidelities": dict(terms.view.full)}}, trials), terms.view)
    steps = steps_of(full, incumbents, terms)
    at = np.array(BUDGETS) / candidate.rules.n_evaluations * terms.budget_s
    return tuple(np.nan_to_num(steps.at(at), nan=guess_of(terms)).tolist())


def correlations(results: Floats) -> Floats:
    """Return Spearman's rank correlations between the orders of the arms, (n_candidates, n_candidates).

    They are NaN for a candidate whose arms all have the same mean rank.
    """
    ranks = np.stack([mean_ranks(values) for values in results])  # (n_candidates, n_arms)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.corrcoef(scipy.stats.rankdata(ranks, axis=1)))


def choose(every: Sequence[Candidate], results: Floats, *, n: int) -> list[int]:
    """Return the numbers of n candidates in the order of the rule; strata take turns, so that all have a share."""
    similar = np.nan_to_num(correlations(results), nan=1.0)  # an undefined order equals all, so it is chosen last
    ranks = np.stack([mean_ranks(values) for values in results])
    clear = ranks.std(axis=1)  # spread of the mean ranks
    strata = sorted({candidate.stratum for candidate in every}, key=str)
    chosen: list[int] = []
    while len(chosen) < min(n, len(every)):
        stratum = strata[len(chosen) % len(strata)]
        remaining = [i for i, candidate in enumerate(every) if candidate.stratum == stratum and i not in chosen]
        remaining = remaining or [i for i in range(len(every)) if i not in chosen]
        closest = [max((similar[i, j] for j in chosen), default=0.0) for i in remaining]
        chosen.append(min(zip(closest, (-clear[i] for i in remaining), remaining, strict=True))[2])
    return chosen


def kept(path: Path, every: Sequence[Candidate]) -> list[int] | None:
    """Return the numbers of the candidates that are the problems of a suite's file; None if there is no file."""
    if not path.exists():
        return None
    number = {candidate.id: i for i, candidate in enumerate(every)}
    try:
        names = [str(problem["id"]) for problem in read_sealed(path)["problems"]]
    except (KeyError, TypeError) as err:
        raise CorruptFile(f"{path} is not a suite: {err!r}; remove it to choose problems anew") from err
    if missing := ", ".join(name for name in names if name not in number):
        raise InvalidArgument(f"{path} has problems that are not candidates: {missing}; remove it to choose anew")
    return [number[name] for name in names]


def frozen(chosen: Sequence[Candidate], baseline: Floats, best_seen: Floats) -> dict[str, Any]:  # Any: JSON
    """Return the content of a suite's file."""
    problems = []
    for candidate, errors, seen in zip(chosen, baseline, best_seen.tolist(), strict=True):
        bench = open_benchmark(candidate.task, None)
        best = 0.0
        if len(candidate.rules.objectives) == 1:
            view = open_rules(candidate.id, candidate.rules, candidate.task, None).view
            best = min(seen, 100.0 - bench.best(view=view).value)
        problems.append(
            {
                "id": candidate.id,
                "task": candidate.task,
                "view": asdict(candidate.rules.view),
                "objectives": list(candidate.rules.objectives),
                "n_evaluations": candidate.rules.n_evaluations,
                "budget_s": mean_runtime(bench) * candidate.rules.n_evaluations,
                "best": round(best, 4),
                "random_search": round(float(errors.mean()), 4),
                "random_search_se": round(float(errors.std(ddof=1) / np.sqrt(len(errors))), 4),
                "n_seeds": len(errors),
            }
        )
    releases = {task: release_of(open_benchmark(task, None)) for task in sorted({c.task for c in chosen})}
    return {
        "problems": problems,
        "releases": {task: [str(release.facts.get("version")), release.sha256] for task, release in releases.items()},
    }


def _blocks(
    name: str, problems: Sequence[Mapping[str, Any]], *, chosen: Sequence[int], results: Floats
) -> Iterator[str | Block]:  # Any: JSON
    """Yield the blocks of the page.

    Args:
        problems: the chosen ones, as in the suite's file.
        chosen: numbers of the chosen candidates.
        results: results of all candidates, (n_candidates, n_arms, n_seeds).
    """
    similar = correlations(results)
    chosen_similar = similar[np.ix_(chosen, chosen)]
    closest, among_all = ((matrix - 2 * np.eye(len(matrix))).max(axis=1) for matrix in (chosen_similar, similar))
    off_diagonal, all_pairs = (matrix[~np.eye(len(matrix), dtype=bool)] for matrix in (chosen_similar, similar))
    n_seeds = results.shape[2]
    half = n_seeds // 2
    halves = [correlations(np.stack([r[:, :half], r[:, half : 2 * half]]))[0, 1] for r in results] if half else []
    finite = [rho for rho in halves if np.isfinite(rho)]
    yield "Rankings of optimisers"
    yield answer(
        f"{name} has {len(chosen)} of {len(results)} candidates. The rankings of optimisers on two problems "
        f"correlate at {off_diagonal.mean():.2f} on average (all candidates: {all_pairs.mean():.2f}); a problem and "
        f"its most similar one, at {closest.mean():.2f} (all candidates: {among_all.mean():.2f})."
    )
    yield Figure(
        name=f"{name}-correlations",
        caption="Spearman's rank correlation between the optimisers' rankings on each pair of problems. Discs are "
        "positive, circles negative; larger is stronger. If all problems had the same ranking, all discs would be "
        "large.",
        alt=f"Matrix of rank correlations between the rankings of optimisers on {len(chosen)} problems.",
        drawing=_drawing(chosen_similar, [problem["id"] for problem in problems]),
    )
    chosen_on = f" Those of {name} were chosen on {_CHOSEN_ON.get(name)}; this page ranks optimisers on its season."
    yield Text(_RULE + chosen_on if name in _CHOSEN_ON else _RULE)
    yield Text(
        f"The rankings by two halves of the {n_seeds} seeds correlate at {np.mean(finite or np.nan):.2f} on average "
        f"over the {len(finite)} candidates on which the optimisers do not all tie in either half, so part of these "
        "differences is chance: a ranking on one problem requires more seeds than this choice."
    )
    yield "Problems"
    yield Table(
        caption="Frozen problems. Best known and random search's result (mean ± standard error): mean validation error "
        "(%), or missing share of the front's hypervolume (%). Mean ranks: 1 is best; evolution is regularized "
        "evolution, or NSGA-II with several objectives",
        columns=(
            *("problem", "objectives", "searched", "fidelities", "budget (full evaluations)"),
            *("best known", "random search"),
            *(f"rank: {arm.replace('_', ' ')}" for arm in ARMS),
        ),
        rows=tuple(
            (
                *(problem["id"], ", ".join(problem["objectives"]), problem["view"]["search"]),
                *(", ".join(problem["view"]["fidelities"]), str(problem["n_evaluations"]), f"{problem['best']:.2f}"),
                f"{problem['random_search']:.2f} ± {problem['random_search_se']:.2f}",
                *(f"{rank:.1f}" for rank in mean_ranks(results[i])),
            )
            for problem, i in zip(problems, chosen, strict=True)
        ),
        n_labels=4,
    )


def _drawing(values: Floats, names: Sequence[str]) -> Drawing:
    """Return a matrix of discs; their area is the correlation, circles are negative."""
    n = len(values)
    drawing = Drawing(figsize=(8.0, 5.6))
    axes = drawing.add_axes((0.34, 0.02, 0.64, 0.92))
    for (i, j), value in np.ndenumerate(values):
        face = LIGHT["s0"] if value > 0 else "none"
        axes.scatter([j], [i], s=[190 * abs(value)], facecolors=face, edgecolors=LIGHT["s0"], linewidths=0.8)
    axes.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6))
    axes.set_yticks(range(n), [f"{name}  {i}" for i, name in enumerate(names, 1)], fontsize=7.5)
    axes.set_xticks(range(n), [str(i) for i in range(1, n + 1)], fontsize=7.5)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return drawing


def _write_page(target: Path, name: str, content: Mapping[str, Any], rows: Sequence[int], results: Floats) -> Path:
    releases = sorted(content["releases"].items())
    document = Document(
        title=f"The suite {name}",
        subtitle="Problems on which to test an optimiser, and how they were chosen. Season: "
        f"{', '.join(f'{task} {version}' for task, (version, _) in releases)}.",
        sections=sections_of(_blocks(name, content["problems"], chosen=rows, results=results)),
        facts=(
            ("command", "python -m experiments.suite --out jahs/seasons/suites --page docs/studies/suite"),
            commit_fact(),
            ("releases", ", ".join(f"{task}: {version} ({sha[:16]})" for task, (version, sha) in releases)),
            ("seeds", f"0 to {results.shape[2] - 1}"),
            versions_fact(),
        ),
    )
    return write_document(led_by_answer(document), target, is_for_docs=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Choose and freeze the problems of a suite."
    parser = new_parser("experiments.suite", about, example="--out jahs/seasons/suites")
    parser.add_argument("--out", type=Path, required=True, help="folder of the suite's file")
    parser.add_argument("--page", type=Path, help="folder of its page, such as docs/studies/suite")
    parser.add_argument("--n", type=int, default=20, help="number of problems, 2 or more (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=4, help="seeds of each, 2 or more (default: %(default)s)")
    add_workers(parser)
    given = parser.parse_args(argv)

    def work() -> object:
        all_candidates = candidates(sorted(EMBEDDED))
        limits = {"n": (given.n, len(all_candidates)), "seeds": (given.seeds, _N_BASELINE)}
        faults = [f"{k}={value} must be in 2..{most}" for k, (value, most) in limits.items() if not 2 <= value <= most]
        refuse(*faults, *Where(workers=given.workers).faults())
        make_folder(given.out)
        if given.page:
            check_target(given.page)
        path = given.out / f"jahs-{given.n}.json"
        problems = kept(path, all_candidates)  # refuse a bad file before any run
        results, baseline = orders(all_candidates, n_seeds=given.seeds, workers=given.workers)
        rows = sorted(problems or choose(all_candidates, results, n=given.n), key=lambda i: all_candidates[i].id)
        seen = np.minimum(results.min(axis=(1, 2)), baseline.min(axis=1))[rows]
        content = frozen([all_candidates[i] for i in rows], baseline[rows], seen)
        write_text(path, sealed_text(content))
        summary = {"suite": str(path), "problems": len(rows), "candidates": len(all_candidates)}
        if given.page:
            summary["page"] = str(_write_page(given.page, path.stem, content, rows, results))
        return summary

    return run_command("experiments.suite", work)


if __name__ == "__main__":
    sys.exit(main())
