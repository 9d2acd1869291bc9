"""Whether a study's findings carry over to the real landscape: an imported release, on which the same arms were run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from experiments.analysis.carried import VERDICTS, Carried, carry_over
from experiments.folder import read_folder
from experiments.packs import is_pack
from experiments.report.comparison import comparison_of, groups
from experiments.report.results import Results, read_results
from experiments.study import Arm, Study
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Pair, compare_groups
from jahs.comparison.summaries import FEWEST_SEEDS, interval_text, number_text
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Table, Text, answer

_GUESSED: Final = 100.0  # the error of a run without a result
_FEWEST_ARMS: Final = 2
_STAGES: Final = (0.1, 0.2, 0.5, 1.0)  # shares of the budget


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """One group of arms on a task and on the real landscape, after each share of the budget; tests use the last."""

    task: str
    is_control: bool
    group: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, int]
    found: tuple[Carried, ...]

    @property
    def title(self) -> str:
        return f"{self.task}, without noise" if self.is_control else self.task


def read_means(path: Path, study: Study) -> Results:
    """Read the pack of the same study without training noise; its models need not be there.

    Raises:
        InvalidArgument: it is not a pack, or contains training noise.
        ProtocolMismatch: it belongs to another study, or declares an arm differently.
    """
    if not path.is_dir():
        raise MissingData(f"{path} does not exist; python -m experiments.pack makes it")
    if not is_pack(path):
        raise InvalidArgument(f"{path} is not a pack; python -m experiments.pack {path} makes one")
    other = read_folder(path).study
    if other.noise != "mean":
        raise InvalidArgument(f"{path} has noise={other.noise}; run the study with --noise mean")
    if study.name != other.name:
        raise ProtocolMismatch(f"{path} belongs to the study {other.name}, not {study.name}")
    found = read_results(path, bench={})
    as_here = replace(other, noise=study.noise)
    declared, names = {arm.name for arm in study.arms}, sorted({arm for _, arm in found.by_arm})
    if wrong := [n for n in names if n not in declared or as_here.digest_of(n) != study.digest_of(n)]:
        raise ProtocolMismatch(
            f"{path}: the declaration of {', '.join(wrong)} differs from this study's; run the study again on "
            "that release"
        )
    return found


def carried_blocks(results: Results, there: Results | None, without: Results | None) -> Iterator[str | Block]:
    """Yield the findings that carry over from each task to the real landscape, or why this is unknown.

    Args:
        results: results of a study with one objective on releases.
        there: the same study on an imported release (`read_means`), or None.
        without: the same study on its own tasks, without noise, or None.

    Raises:
        InvalidArgument: `there` has several tasks.
    """
    yield "Transfer to JAHS-Bench-201"
    if there is None:
        yield Text(
            "Not compared: no runs on the real landscape were given. `python -m experiments.run "
            f"{results.study.name} --release CIFAR10 --noise mean --out DIR` runs the study on an imported release of "
            "JAHS-Bench-201's CIFAR-10, `experiments.pack` packs it, and `experiments.report --real PACK` adds it here."
        )
        return
    if len(there.folder.tasks) != 1:
        tasks = ", ".join(there.folder.tasks)
        raise InvalidArgument(f"{there.folder.path} has {tasks}; give the pack of one imported release")
    every = _compare(results, there, without)
    if not every:
        yield Text(
            f"Not compared: no chapter has two arms with {FEWEST_SEEDS} seeds on a task and on the real "
            "landscape; run more seeds."
        )
        return
    yield from _answers(every)
    yield _budgets(every)
    yield _orders(every)
    yield from _findings(every)
    yield _about(there, every)


def _errors(results: Results, task: str, arms: Sequence[Arm], times: Floats) -> Floats:
    """Return the errors of the seeds that all arms have finished, (n_arms, n_seeds, n_times)."""
    return np.nan_to_num(results.errors(task, arms, results.seeds(task, arms), times), nan=_GUESSED)


def _compare(results: Results, there: Results, without: Results | None) -> list[_Compared]:
    """Compare the arms of every group that ran on the real landscape; Holm's correction is over each landscape."""
    times = np.array([share * results.study.n_evaluations for share in _STAGES])
    (real_task,) = there.folder.tasks
    parts: list[tuple[str, bool, str, tuple[Arm, ...], Floats, Floats, tuple[Pair, ...]]] = []
    for task in results.tasks:
        for title, every in groups(results, task):
            on_both = [i for i, arm in enumerate(every) if (real_task, arm.name) in there.by_arm]
            arms = tuple(every[i] for i in on_both)
            if len(arms) < _FEWEST_ARMS or (comparison := comparison_of(results, task, every)) is None:
                continue
            on_real = _errors(there, real_task, arms, times)
            if on_real.shape[1] < FEWEST_SEEDS:
                continue
            tested = _among(comparison.pairs, on_both)
            here = _errors(results, task, arms, times)
            parts.append((task, False, title, arms, here, on_real, tested))
            control = here[:, :0] if without is None else _errors(without, task, arms, times)
            if control.shape[1] >= FEWEST_SEEDS:
                parts.append((task, True, title, arms, control, on_real, ()))
    tests = iter(compare_groups([(here[..., -1], None) for *_, here, _, tested in parts if not tested]))
    real = {tuple(arm.name for arm in arms): on_real[..., -1] for *_, arms, _, on_real, _ in parts}
    real_tests = dict(zip(real, compare_groups([(values, None) for values in real.values()]), strict=True))
    found = []
    for task, is_control, title, arms, here, on_real, tested in parts:
        pairs = tested or next(tests).pairs
        pairs_there = real_tests[tuple(arm.name for arm in arms)].pairs
        stages = (carry_over(here[..., i], on_real[..., i], pairs, pairs_there) for i in range(len(times)))
        n_seeds = here.shape[1], on_real.shape[1]
        each = _Compared(task=task, is_control=is_control, group=title, arms=arms, seeds=n_seeds, found=tuple(stages))
        found.append(each)
    return found


def _among(pairs: Sequence[Pair], arms: Sequence[int]) -> tuple[Pair, ...]:
    """Return the pairs of these arms alone, numbered by their places in `arms`."""
    place = {arm: i for i, arm in enumerate(arms)}
    kept = (pair for pair in pairs if pair.one in place and pair.other in place)
    return tuple(replace(pair, one=place[pair.one], other=place[pair.other]) for pair in kept)


def _answers(every: Sequence[_Compared]) -> Iterator[Block]:
    for task in dict.fromkeys(each.task for each in every):
        own, controls = ([e for e in every if e.task == task and e.is_control == flag] for flag in (False, True))
        count = {verdict: sum(each.found[-1].count(verdict) for each in own) for verdict in VERDICTS}
        n = sum(count.values()) - count["only there"]
        n_hold = sum(each.found[-1].n_hold or 0 for each in own)
        taus, without = ("; ".join(f"{each.group} {_tau(each.found[-1])}" for each in of) for of in (own, controls))
        yield answer(
            f"Kendall's τ between the orders on {TASKS[task].title} and on the real landscape: {taus}."
            + (f" Without training noise on the task: {without}." if controls else "")
            + f" Pairs of arms with a significant difference on the task: {n} ({n_hold} hold on its refits). On the "
            f"real landscape, {count['carries over'] + count['same sign']} of them keep their sign, "
            f"{count['carries over']} significantly, and {count['reversed']} are significantly reversed. Pairs with a "
            f"significant difference on the real landscape alone: {count['only there']}."
        )


def _tau(found: Carried) -> str:
    return f"{interval_text(found.tau)}, split-half {number_text(found.split_half)}"


def _budgets(every: Sequence[_Compared]) -> Table:
    """Return the agreement after shares of the budget."""
    return Table(
        caption="Kendall's τ between the orders by mean validation error on a task and on the real landscape after "
        "shares of the budget, with 95 % bootstrap intervals over the seeds of both, extended to the estimate. "
        "Split-half is the τ between the orders by two halves of the seeds, geometric mean of both landscapes; the τ "
        "of all seeds may exceed it",
        columns=("task", "arms", *(f"{100 * share:g} % of the budget" for share in _STAGES)),
        rows=tuple((each.title, each.group, *map(_tau, each.found)) for each in every),
        n_labels=2,
    )


def _orders(every: Sequence[_Compared]) -> Table:
    return Table(
        caption="Number of pairs of arms by their tests on the task and on the real landscape, at the end of the "
        "budget: a pair is significant by its signed-rank test with Holm's correction on either. Separately, how many "
        "of those that are significant on the task hold on its refits",
        columns=("task", "arms", "number of arms", "seeds", *VERDICTS.values(), "hold on refits of the task"),
        rows=tuple(
            (
                *(each.title, each.group, str(len(each.arms)), f"{each.seeds[0]} and {each.seeds[1]}"),
                *(str(each.found[-1].count(verdict)) for verdict in VERDICTS),
                "–" if (n_hold := each.found[-1].n_hold) is None else str(n_hold),
            )
            for each in every
        ),
        n_labels=2,
    )


def _findings(every: Sequence[_Compared]) -> Iterator[Block]:
    rows = tuple(
        (
            *(each.task, each.group, each.arms[one.one].title, each.arms[one.other].title, VERDICTS[one.verdict]),
            *("–" if one.holds is None else "yes" if one.holds else "no", f"{one.here:+.2f}", f"{one.there:+.2f}"),
        )
        for each in every
        if not each.is_control
        for one in sorted(each.found[-1].findings, key=lambda found: [*VERDICTS].index(found.verdict))
    )
    if rows:
        yield Table(
            caption="Every pair with a significant difference on a task or on the real landscape, finding by finding. "
            "The first arm is the better one on the landscape where the difference is significant, on this task if on "
            "both",
            columns=(
                *("task", "arms", "better arm", "other arm", "finding", "holds on refits of the task"),
                *("mean difference on this task (points)", "on the real landscape (points)"),
            ),
            rows=rows,
            n_labels=6,
            is_folded=True,
        )


def _about(there: Results, every: Sequence[_Compared]) -> Text:
    ((task, facts),) = there.folder.tasks.items()
    commands = "; ".join(f"`{made.get('command')} --release CIFAR10`" for made in there.folder.made_with)
    names = {arm.name for each in every for arm in each.arms}
    runs = [one.incumbents.values for (_, arm), found in there.by_arm.items() if arm in names for one in found]
    finals = [values[-1] for values in runs if len(values)]
    n_bound = sum(value <= 0 for value in finals)
    bound = (
        f" {n_bound} of its {len(finals)} runs end at a predicted error of 0 %, which no training reaches: late in the "
        "budget, optimisers exploit the errors of the model, so the orders early in the budget say more."
    )
    return Text(
        f"The real landscape is a release of `{task}` with all its {TASKS[task].max_epoch} epochs: "
        f"{facts.version} ({facts.source}, {facts.release[:16]}). It has no noise model, so its optimisers see means, "
        "clipped to 0 and 100 %. It is used for orders and differences, never for its optimum; arms without runs there "
        "are left out."
        f"{bound * bool(n_bound)} Pairs are tested there by the same signed-rank test, with Holm's correction over "
        f"their own number. {commands}"
    )
