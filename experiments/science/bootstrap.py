"""Do settings that were tuned on a part of the space, or on another task, transfer? Section 4.2 of NAS-Bench-101.

The declared part fixes one edge of the cell to "none", as NAS-Bench-Mini has fewer vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product
from typing import Any, Final, NamedTuple, cast

import numpy as np

from experiments.report.writing import table
from experiments.science.papers import OVER_SEEDS, beside_paper, compared
from experiments.science.subjects import Subject, answers
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, mean_interval
from jahs.optimizers import Baseline, make
from jahs.queries.views import View
from jahs.spaces.cell.operations import ZERO
from jahs.spaces.parameters import LARGEST
from surrogate.models.optima import search_with
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.ranks import kendall_tau
from workshop.resampling import N_RESAMPLES, percentile_interval

N_SEEDS: Final = 100
N_TRIALS: Final = 150
PART: Final = {"Op2": ZERO}  # the declared part of the space
SPACES: Final[Mapping[str, Mapping[str, object]]] = {"part": {**LARGEST, **PART}, "whole": dict(LARGEST)}
"""The fixed keys of both spaces."""

ARMS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {  # Any: settings
    "RS": ("random_search", {}),
    "NRE": ("evolution", {}),
    "RE": ("regularized_evolution", {}),
    "RE, 2 mutations": ("regularized_evolution", {"n_mutations": 2}),
    "RE, 3 mutations": ("regularized_evolution", {"n_mutations": 3}),
    "RE, tournament 2": ("regularized_evolution", {"tournament_size": 2}),
    "RE, tournament 10": ("regularized_evolution", {"tournament_size": 10}),
}
"""Optimiser and settings: random search, non-regularized and regularized evolution, and the tuned settings of it."""

TUNED: Final = tuple(name for name in ARMS if name.startswith("RE"))
# The first arms, in the paper's order: the worst first.
_ORDER: Final = ("random search", "non-regularized evolution", "regularized evolution")
_REASON: Final = "removing the oldest helps against lucky noisy results; here evaluations have no noise; not tested"
_METHOD: Final = f"""The part of the space has {", ".join(f"{key}={value}" for key, value in PART.items())}, no
    operation on that edge, so 3,125 cells with all hyperparameters; the whole has 15,625. Both are at full size. Each
    arm proposes {N_TRIALS} configs with {N_SEEDS} seeds, without training noise. Regularized evolution has a population
    of 20, one mutation and tournaments of 5 unless named. Intervals are over seeds; for the points lost and tau, the
    seeds that choose a setting and those that test it are resampled apart. The refits answer for the configs that were
    found on the released models."""

Ends = Mapping[str, Floats]
"""Best value of each search by space, (n_arms, n_seeds), on the released models; and by "SPACE, on the refits" the
refits' mean value of its config, NaN without refits."""


class TransferLoss(NamedTuple):
    """How well a setting that is chosen on one problem does on another."""

    chosen: str  # the arm of `TUNED` with the best mean where it was tuned
    best: str  # the arm with the best mean where it is tested
    loss: Interval  # mean of the best arm minus mean of the chosen arm, both where they are tested
    tau: Interval  # Kendall's tau of all arms' means on both problems


def measure_ends(subject: Subject, *, n_seeds: int, n_trials: int) -> Ends:
    """Return the final values of every arm on both spaces of a task, without training noise."""
    ends_by_space = {}
    for name, fixed in SPACES.items():
        view, configs, ends = View(subject.bench, fixed=fixed), [], []
        for (optimizer, settings), seed in product(ARMS.values(), range(n_seeds)):
            baseline = cast("Baseline[Any]", make(optimizer, view, seed=seed, **settings))  # Any: its settings
            visited, values = search_with(baseline, partial(answers, view), n=n_trials)
            configs.append(visited[int(np.argmax(values))])
            ends.append(max(values))
        on_refits = [answers(refit, configs) for refit in subject.refits] or [np.full(len(ends), np.nan)]
        ends_by_space[name] = np.array(ends).reshape(len(ARMS), n_seeds)
        ends_by_space[f"{name}, on the refits"] = np.mean(on_refits, axis=0).reshape(len(ARMS), n_seeds)
    return ends_by_space


def transferred(tuned: Floats, tested: Floats) -> TransferLoss:
    """Return how well the best arm of `TUNED` by `tuned` does by `tested`, both (n_arms, n_seeds).

    The seeds of both are resampled independently. Each resample chooses anew, so intervals include that uncertainty.
    """
    names, rng = list(ARMS), np.random.default_rng(0)
    indices = [names.index(name) for name in TUNED]

    def compare(source: Floats, target: Floats) -> tuple[int, int, float, float]:
        means = source.mean(axis=1), target.mean(axis=1)
        chosen, best = (indices[int(mean[indices].argmax())] for mean in means)
        return chosen, best, float(means[1][best] - means[1][chosen]), kendall_tau(*means)

    chosen, best, *values = compare(tuned, tested)
    n_seeds = (tuned.shape[1], tested.shape[1])
    picks = ([rng.integers(n, size=n) for n in n_seeds] for _ in range(N_RESAMPLES))
    drawn = np.array([compare(tuned[:, at], tested[:, other])[2:] for at, other in picks])
    loss, tau = (percentile_interval(value, drawn[:, i]) for i, value in enumerate(values))
    return TransferLoss(names[chosen], names[best], loss, tau)


def bootstrap_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; seeds are those of the searches."""
    by_task = {task.title: measure_ends(task, n_seeds=N_SEEDS, n_trials=N_TRIALS) for task in subjects}
    moves = {f"{title}, part to whole": transferred(ends["part"], ends["whole"]) for title, ends in by_task.items()}
    for (source, tuned), (target, tested) in permutations(by_task.items(), 2):
        moves[f"{source} to {target}"] = transferred(tuned["whole"], tested["whole"])
    orders = []
    for (title, ends), space, i in product(by_task.items(), SPACES, (1, 2)):
        quantity = f"{_ORDER[i]} minus {_ORDER[i - 1]}, on the {space} (points)"
        gain = mean_interval(ends[space][i] - ends[space][i - 1])
        orders.append(compared(quantity, title, "better", gain, why=_REASON))
    gained = "; ".join(f"{quantity} {ours} ({title})" for quantity, title, _, ours, *_ in orders if "whole" in quantity)
    n_best = sum(move.chosen == move.best for move in moves.values())
    most = max(move.loss.high for move in moves.values())
    transfers = table(
        "Settings of regularized evolution, chosen where they were tuned; points lost against the best where they are "
        f"tested; Kendall's tau of the means of all arms on both problems; 95 % intervals{OVER_SEEDS}",
        ("from and to", "chosen", "best there", "points lost", "tau"),
        [(title, *move) for title, move in moves.items()],
        n_labels=3,
    )
    blocks = (
        "Comparison with NAS-Bench-101",
        beside_paper("NAS-Bench-101", orders, more=OVER_SEEDS),
        transfers,
        Text(_METHOD),
    )
    return Document(
        title="Do tuned settings generalise?",
        subtitle=f"In {n_best} of {len(moves)} transfers, the setting of regularized evolution tuned on one problem is "
        f"the best one on the other, too; every 95 % interval of the points lost ends at or below {most:.2f}. In "
        f"NAS-Bench-101 settings keep their order, and from worst to best the optimisers are {', '.join(_ORDER)}, on a "
        f"part of the space and on the whole. Here: {gained}.",
        sections=sections_of([*blocks, *(b for task in subjects for b in _task_blocks(task, by_task[task.title]))]),
    )


def _task_blocks(subject: Subject, ends: Ends) -> Iterator[str | Block]:
    yield subject.title
    estimates = {f"{arm}, {space}": mean_interval(ends[space][i]) for i, arm in enumerate(ARMS) for space in SPACES}
    yield Figure(
        name=f"ends-{subject.slug}",
        caption=f"Validation accuracy after {N_TRIALS} evaluations on the part of the space and on the whole, mean and "
        f"95 % intervals{OVER_SEEDS}.",
        alt="; ".join(f"{title} {interval.value:.2f}" for title, interval in estimates.items()),
        drawing=draw_estimates(estimates, numbers=[*range(len(SPACES))] * len(ARMS), x_label="validation accuracy (%)"),
    )
    caption = f"Validation accuracy (%) after {N_TRIALS} evaluations, with 95 % intervals{OVER_SEEDS}"
    rows = [(arm, *(mean_interval(of[i]) for of in ends.values())) for i, arm in enumerate(ARMS)]
    yield table(caption, ("arm", *ends), rows)
