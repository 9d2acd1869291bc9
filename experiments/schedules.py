"""How well short trainings predict full ones: annealed trainings, and the starts of full trainings.

Over 300 lines: it is one study, from the recorded trainings to the text of its page.

    python -m experiments.schedules --docs --out docs/studies/schedules

A budget of some epochs has two meanings. In NAS-Bench-101 it is a training of its own, whose schedule ends there:
annealed. In JAHS-Bench-201, and in the releases of this project, it is the start of the full training: continued. Here
the same configs were trained both ways. A config counts if all its trainings finished; its first seed counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.report.writing import page_parser, run_page, table
from experiments.science.papers import beside_paper, compared
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.runs import read_configs, read_protocol, read_runs
from jahs.files.tables import Table as Rows
from jahs.files.tables import take
from jahs.tasks.definitions import PROSE, Task, caveats_of
from jahs.tasks.own import task_facts
from pipeline.protocol import recorded_task
from pipeline.sampling import group_positions
from workshop.folders import commit_fact, versions_fact
from workshop.measured import last_rows, rows_of, without_final
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curves
from workshop.ranks import kendall_tau_within, spearman
from workshop.resampling import bootstrap_estimates, interval_text

KINDS: Final = ("continued", "annealed")
MEASURES: Final = ("Spearman", "Spearman, best quarter", "Spearman, best tenth", "Kendall's τ within fidelity groups")
SEARCHES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "successive halving": ((27, 0),),
    "Hyperband": ((27, 0), (12, 1), (6, 2), (4, 3)),
}
"""Brackets of each search: how many configs start, and the rung of their first budget, at most the last one."""

_ETA: Final = 3
_SHARES: Final = (1.0, 0.25, 0.1)
_FEWEST: Final = 30
_N_DRAWS: Final = 400
_MOST_TRAININGS: Final = 200
_FREE: Final = ("name", "max_epoch", *PROSE)  # facts that may differ

_WHOLE: Final = Path("data/cifar10_mini/runs")
_SHORT: Final = tuple(Path(f"data/candidates/annealed{n}/runs") for n in (1, 3, 9))

_ABOUT: Final = (
    "**Continued**: validation accuracy after the first epochs of the full training, whose learning rate is still "
    "high there. **Annealed**: validation accuracy at the end of a training of its own whose cosine schedule ends "
    "after so many epochs; nothing else differs. Both are compared with the validation accuracy at the end of the "
    "full training. A continued training is the start of the very training that it is compared with; an annealed one "
    "is a separate training with its own noise. Intervals are 95 % bootstrap intervals over configs, those of "
    "differences are paired. The best quarter and tenth are those of the full training; a fidelity group has one N, W "
    "and Resolution."
)
_ABOUT_SEARCHES: Final = (
    "Each search draws configs of this sample with replacement, trains a third of those of a rung with the next "
    "budget, and returns the config with the best validation accuracy after the full training. It is judged by this "
    "config's test accuracy. A continued training costs only the epochs that are added; an annealed one starts anew "
    "with each budget. **Random search needs** so many full trainings to find as good a config on average; the "
    "speed-up is that number divided by the cost; differences are paired. Every full training counts the same."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trainings:
    """The same configs, trained with every budget."""

    task: Task
    budgets: tuple[int, ...]  # epochs of each budget, the full training last
    valid: Mapping[str, Floats]  # validation accuracies (%) by kind, (n_configs, n_budgets), the last column shared
    test: Floats  # test accuracies (%) of the full trainings
    groups: NDArray[np.int64]  # numbers of the fidelity groups
    n_left_out: int = 0  # configs in all folders of which a training did not finish


class SearchCost(NamedTuple):
    """A search with one kind of budget."""

    cost: float  # its cost in full trainings
    reached: Interval  # mean test accuracy (%) of the config that it returns
    needed: Interval  # full trainings that random search needs to find as good a config
    speed_up: Interval  # `needed` divided by the cost
    gain: Interval  # the speed-up minus the one with continued budgets, paired


def read_trainings(whole: Path, short: Sequence[Path]) -> Trainings:
    """Read a folder of full trainings, and folders of annealed ones of the same configs, one for each budget.

    Their protocols may differ in name and number of epochs only, and must differ in the latter.
    """
    task = recorded_task(read_protocol(whole).facts)
    folders = {_budget_of(folder, task): folder for folder in short}
    if len(folders) < len(short) or max(folders) >= task.max_epoch:
        raise ProtocolMismatch(
            f"{', '.join(map(str, short))} must have different budgets below {task.max_epoch} epochs"
        )
    budgets = (*sorted(folders), task.max_epoch)
    configs = read_configs(whole)
    runs = _first_seeds(without_final(read_runs(whole), configs)[0])
    last = {task.max_epoch: last_rows(runs), **{n: last_rows(_first_seeds(read_runs(folders[n]))) for n in folders}}
    finished = (take(rows, (rows["status"] == "finished") & (rows["epoch"] == n)) for n, rows in last.items())
    shared, ids = (reduce(np.intersect1d, [rows["config_id"] for rows in of]) for of in (last.values(), finished))
    if len(ids) < _FEWEST:
        raise InvalidArgument(f"{len(ids)} configs finished with every budget; {_FEWEST} are needed")
    by_budget = {n: rows_of(take(runs, runs["epoch"] == n), ids) for n in budgets}
    end = by_budget[task.max_epoch]["valid_acc"].astype(np.float64)
    continued = [by_budget[n]["valid_acc"] for n in budgets[:-1]]
    annealed = [rows_of(last[n], ids)["valid_acc"] for n in budgets[:-1]]
    return Trainings(
        task=task,
        budgets=budgets,
        valid={kind: np.stack([*start, end], axis=1) for kind, start in zip(KINDS, (continued, annealed), strict=True)},
        test=by_budget[task.max_epoch]["test_acc"].astype(np.float64),
        groups=group_positions(rows_of(configs, ids)),
        n_left_out=len(shared) - len(ids),
    )


def _budget_of(folder: Path, whole: Task) -> int:
    """Return the number of epochs of annealed trainings; only that and the name of their task may differ."""
    task = recorded_task(read_protocol(folder).facts)
    facts, whole_facts = task_facts(task), task_facts(whole)
    if differing := [key for key in facts if key not in _FREE and facts[key] != whole_facts[key]]:
        raise ProtocolMismatch(f"{folder} differs from the whole trainings in {', '.join(differing)}")
    return int(task.max_epoch)


def _first_seeds(runs: Rows) -> Rows:
    return take(runs, runs["seed"] == 0)


def correlations(of: Trainings, *, n_resamples: int) -> dict[tuple[int, str, str], Interval]:
    """Return the agreement with the full training by budget, kind and measure; "gain" is annealed - continued."""

    def measured(at: NDArray[np.int64]) -> Floats:
        both = [
            [_measures(of.valid[kind][at, place], of.valid[kind][at, -1], of.groups[at]) for kind in KINDS]
            for place in range(len(of.budgets) - 1)
        ]
        return np.concatenate([both, np.diff(both, axis=1)], axis=1)  # (n_budgets, n_kinds + 1, n_measures)

    keys = product(of.budgets[:-1], (*KINDS, "gain"), MEASURES)
    estimates = bootstrap_estimates(measured, len(of.test), level=0.95, n_resamples=n_resamples)
    return dict(zip(keys, estimates, strict=True))


def _measures(early: Floats, end: Floats, groups: NDArray[np.int64]) -> Floats:
    order = np.argsort(-end, kind="stable")
    tops = [order[: max(3, round(share * len(end)))] for share in _SHARES]
    return np.array([*(spearman(early[top], end[top]) for top in tops), kendall_tau_within(early, end, groups)])


def search(of: Trainings, *, n_resamples: int) -> dict[tuple[str, str], SearchCost]:
    """Return what each search costs and reaches, by search and kind of budget."""
    pairs = [*product(SEARCHES, KINDS)]
    costs = np.array([cost(SEARCHES[name], of.budgets, kind) for name, kind in pairs])
    continued = [pairs.index((name, KINDS[0])) for name, _ in pairs]

    def measured(at: NDArray[np.int64]) -> Floats:
        test, whole = of.test[at], of.valid["continued"][at, -1]
        reached = np.array([_reach(of.valid[kind][at], test, SEARCHES[name]) for name, kind in pairs])
        needed = _trainings_for(reached, whole, test)
        speed_ups = needed / costs
        return np.stack([reached, needed, speed_ups, speed_ups - speed_ups[continued]], axis=1)

    estimates = np.array(bootstrap_estimates(measured, len(of.test), level=0.95, n_resamples=n_resamples))
    rows = zip(pairs, costs.tolist(), estimates.reshape(len(pairs), -1).tolist(), strict=True)
    return {pair: SearchCost(total, *intervals) for pair, total, intervals in rows}


def cost(brackets: Sequence[tuple[int, int]], budgets: Sequence[int], kind: str) -> float:
    """Return the cost of a search in full trainings.

    Example:
        >>> cost([(27, 0)], (1, 3, 9, 27), "continued"), cost([(27, 0)], (1, 3, 9, 27), "annealed")
        (3.0, 4.0)
    """
    epochs = 0
    for n_configs, first in brackets:
        trained, alive = 0, n_configs
        for budget in budgets[min(first, len(budgets) - 1) :]:
            epochs += alive * (budget - (trained if kind == "continued" else 0))
            trained, alive = budget, max(1, alive // _ETA)
    return epochs / budgets[-1]


def _reach(valid: Floats, test: Floats, brackets: Sequence[tuple[int, int]]) -> float:
    """Return the mean test accuracy of the config that a search returns."""
    rng, ends = np.random.default_rng(0), []
    for n_configs, first in brackets:
        alive = rng.integers(len(test), size=(_N_DRAWS, n_configs))
        for rung in range(first, valid.shape[1] - 1):
            order = np.argsort(-valid[alive, rung], axis=1, kind="stable")
            alive = np.take_along_axis(alive, order[:, : max(1, alive.shape[1] // _ETA)], axis=1)
        ends.append(alive)
    trained = np.concatenate(ends, axis=1)
    best = valid[trained, -1].argmax(axis=1)
    return float(test[trained[np.arange(_N_DRAWS), best]].mean())


def _trainings_for(reached: Floats, whole: Floats, test: Floats) -> Floats:
    """Return how many draws with replacement random search needs for each mean test accuracy."""
    order = np.argsort(whole, kind="stable")
    n = np.geomspace(1.0, _MOST_TRAININGS, 400)
    below = (np.arange(len(test) + 1) / len(test)) ** n[:, None]  # probability that the best is among the worst i
    means = np.maximum.accumulate(np.diff(below, axis=1) @ test[order])
    return np.interp(reached, means, n)


def schedules_page(of: Trainings, *, n_resamples: int, facts: tuple[tuple[str, str], ...] = ()) -> Document:
    """Return the page."""
    agreements, searched = correlations(of, n_resamples=n_resamples), search(of, n_resamples=n_resamples)
    third = of.budgets[-2]
    speed_ups = "; ".join(
        f"{name} {interval_text(searched[name, 'annealed'].speed_up)} and "
        f"{interval_text(searched[name, 'continued'].speed_up)} "
        f"(difference {interval_text(searched[name, 'annealed'].gain, sign='+')})"
        for name in SEARCHES
    )
    continued, annealed, gain = (agreements[third, kind, "Spearman"] for kind in (*KINDS, "gain"))
    return Document(
        title="Annealed budgets and continued trainings",
        caveats=caveats_of([of.task]),
        subtitle=f"On {of.task.title}, trainings that are annealed within {third} epochs order {len(of.test)} configs "
        f"like full trainings of {of.budgets[-1]} epochs, with a Spearman correlation of {interval_text(annealed)}; "
        f"the first {third} epochs of the full trainings reach {interval_text(continued)} (difference "
        f"{interval_text(gain, sign='+')}). Speed-ups over random search with annealed budgets, which are trained from "
        f"the start, and with continued ones: {speed_ups}.",
        sections=sections_of(_blocks(of, agreements, searched)),
        facts=facts,
    )


def _blocks(
    of: Trainings, agreements: Mapping[tuple[int, str, str], Interval], searched: Mapping[tuple[str, str], SearchCost]
) -> Iterator[str | Block]:
    yield "Rank correlation with full training"
    budgets = of.budgets[:-1]
    shown = {kind: [agreements[budget, kind, "Spearman"] for budget in budgets] for kind in KINDS}
    yield Figure(
        name="spearman",
        caption="Spearman correlation between validation accuracy after some epochs and after full training, with "
        "95 % intervals.",
        alt="; ".join(f"{kind}: {', '.join(map(interval_text, rhos))}" for kind, rhos in shown.items()),
        drawing=draw_curves(
            interval_curves(shown, budgets), x_label="epochs", y_label="Spearman correlation", x_scale="log"
        ),
    )
    left_out = f" {of.n_left_out} more have a training that diverged." if of.n_left_out else ""
    yield Text(f"{_ABOUT} {len(of.test)} uniform configs of all sizes have every training.{left_out}")
    rows = []
    for budget, measure in product(budgets, MEASURES):
        both = (agreements[budget, kind, measure] for kind in KINDS)
        rows.append((budget, measure, *both, interval_text(agreements[budget, "gain", measure], sign="+")))
    caption = "Rank correlation between validation accuracy after some epochs and after full training"
    yield table(caption, ("epochs", "measure", *KINDS, "annealed - continued"), rows, n_labels=2)
    yield "Searches with both kinds of budgets"
    yield Text(_ABOUT_SEARCHES)
    found = []
    for pair, (total, *intervals, gain) in searched.items():
        difference = interval_text(gain, sign="+") if pair[1] == "annealed" else "–"
        found.append((*pair, f"{total:.2f}", *intervals, difference))
    caption = "Cost in full trainings, test accuracy (%) of the returned config, and speed-up over random search"
    head = ("search", "budgets", "cost", "test accuracy", "random search needs", "speed-up", "difference")
    yield table(caption, head, found, n_labels=2)
    yield "Comparison with NAS-Bench-101"
    top = agreements[of.budgets[-2], "annealed", "Spearman, best tenth"]
    share = "a third" if 3 * of.budgets[-2] == of.budgets[-1] else f"{of.budgets[-2]} of {of.budgets[-1]}"
    quantity = f"Spearman correlation of {share} of the epochs with all, annealed, best tenth"
    paper = "0.365 (36 of 108 epochs, supplement, figure 7)"
    why = "too few configs in the best tenth for a narrow interval; the cause was not tested"
    yield beside_paper("NAS-Bench-101", [compared(quantity, of.task.title, paper, top, why=why)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of schedules: how well annealed and continued short trainings predict full ones."
    parser = page_parser("experiments.schedules", about)
    parser.add_argument("--whole", type=Path, default=_WHOLE, help="folder of full trainings (default: %(default)s)")
    parser.add_argument("--short", type=Path, nargs="+", default=_SHORT, help="folders of annealed trainings")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: %(default)s)")

    def make(given: argparse.Namespace) -> Document:
        protocols = ", ".join(read_protocol(folder).digest for folder in (given.whole, *given.short))
        facts = (commit_fact(), ("protocols", protocols), versions_fact())
        return schedules_page(read_trainings(given.whole, given.short), n_resamples=given.resamples, facts=facts)

    return run_page(parser, argv, make)


if __name__ == "__main__":
    sys.exit(main())
