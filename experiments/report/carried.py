"""Whether a study's findings carry over to the real landscape: an imported release, on which the same arms were run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from experiments.analysis.carried import VERDICTS, OrderAgreement, carry_over
from experiments.analysis.critical_differences import compare_groups
from experiments.folder import read_folder
from experiments.imported import open_for_study
from experiments.packs import is_pack
from experiments.report.comparison import comparison_of, curve, groups, worst_of
from experiments.report.results import Results, read_results
from experiments.study import Arm, Study
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Pair
from jahs.comparison.steps import on_grid
from jahs.comparison.summaries import FEWEST_SEEDS, number_text
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Table, Text, answer
from workshop.resampling import interval_text

_FRONTS: Final = (
    " Its front and reference point are those that `jahs import --with-front` finds; trade-offs with multiply-adds and "
    "runtime are not compared, because none were published for it."
)
_STAGES: Final = (0.1, 0.2, 0.5, 1.0)  # shares of the budget


@dataclass(frozen=True, slots=True)
class _GroupTransfer:
    """One group of arms on a task and on the real landscape, after each share of the budget; tests use the last."""

    task: str
    is_control: bool
    group: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, int]
    stages: tuple[OrderAgreement, ...]

    @property
    def has_several(self) -> bool:
        """Whether the arms have several objectives, as all arms of a study or none have."""
        return len(self.arms[0].objectives) > 1

    @property
    def title(self) -> str:
        return f"{self.task}, without noise" if self.is_control else self.task


def read_means(path: Path, study: Study, landscape: Path | None = None) -> Results:
    """Read the pack of the same study without training noise.

    Its models need not be there, except with several objectives, which are queried from `landscape`, its release.
    """
    if not path.is_dir():
        raise MissingData(f"{path} does not exist; python -m experiments.pack makes it")
    if not is_pack(path):
        raise InvalidArgument(f"{path} is not a pack; python -m experiments.pack {path} makes one")
    folder = read_folder(path)
    packed = folder.study
    if packed.noise != "mean":
        raise InvalidArgument(f"{path} has noise={packed.noise}; run the study with --noise mean")
    if study.name != packed.name:
        raise ProtocolMismatch(f"{path} belongs to the study {packed.name}, not {study.name}")
    tasks = folder.tasks if study.combinations else ()
    results = read_results(path, bench={task: open_for_study(task, landscape) for task in tasks})
    if wrong := study.differing(replace(packed, noise=study.noise), sorted({arm for _, arm in results.by_arm})):
        raise ProtocolMismatch(
            f"{path}: the declaration of {', '.join(wrong)} differs from this study's; run the study again on "
            "that release"
        )
    return results


def carried_blocks(results: Results, there: Results | None, without: Results | None) -> Iterator[str | Block]:
    """Yield the findings that carry over from each task to the real landscape, or why this is unknown.

    Args:
        results: results of a study on releases.
        there: the same study on an imported release (`read_means`), or None.
        without: the same study on its own tasks, without noise, or None.
    """
    yield "Transfer to JAHS-Bench-201"
    if there is None:
        yield Text(
            "Not compared: no runs on the real landscape were given. `python -m experiments.run "
            f"{results.study.name} --release CIFAR10 --noise mean --out DIR` runs the study on an imported release of "
            "JAHS-Bench-201's CIFAR-10, `experiments.pack` packs it, and `experiments.report --real PACK"
            f"{' --landscape CIFAR10' * bool(results.study.combinations)}` adds it here."
        )
        return
    if len(there.folder.tasks) != 1:
        tasks = ", ".join(there.folder.tasks)
        raise InvalidArgument(f"{there.folder.path} has {tasks}; give the pack of one imported release")
    parts = _compare(results, there, without)
    if not parts:
        yield Text(
            f"Not compared: no chapter has two arms with {FEWEST_SEEDS} seeds on a task and on the real "
            "landscape; run more seeds."
        )
        return
    yield from _answers(parts)
    yield _budgets(parts)
    yield _orders(parts)
    yield from _findings(parts)
    yield _about(there, parts)


def _values(results: Results, task: str, arms: Sequence[Arm], times: Floats) -> Floats:
    """Return the results of the seeds that all arms have finished, minimised, (n_arms, n_seeds, n_times)."""
    seeds, (worst,) = results.seeds(task, arms), {worst_of(arm) for arm in arms}
    runs = [[curve(results, task, arm, result) for result in results.of(task, arm, seeds)] for arm in arms]
    return np.stack([np.nan_to_num(on_grid(of_arm, times), nan=worst) for of_arm in runs])


def _compare(results: Results, real_results: Results, control_results: Results | None) -> list[_GroupTransfer]:
    """Compare the arms of every group that ran on the real landscape; Holm's correction is over each landscape."""
    times = np.array([share * results.study.n_evaluations for share in _STAGES])
    (real_task,) = real_results.folder.tasks
    parts = []
    for task in results.tasks:
        for title, group in groups(results, task):
            on_both = [i for i, arm in enumerate(group) if (real_task, arm.name) in real_results.by_arm]
            arms = tuple(group[i] for i in on_both)
            if len(arms) < 2 or (comparison := comparison_of(results, task, group)) is None:
                continue
            on_real = _values(real_results, real_task, arms, times)
            if on_real.shape[1] < FEWEST_SEEDS:
                continue
            known_pairs = _among(comparison.pairs, on_both)
            on_task = _values(results, task, arms, times)
            parts.append((task, False, title, arms, on_task, on_real, known_pairs))
            if control_results and (control := _values(control_results, task, arms, times)).shape[1] >= FEWEST_SEEDS:
                parts.append((task, True, title, arms, control, on_real, ()))
    tests = iter(compare_groups([(on_task[..., -1], None) for *_, on_task, _, known_pairs in parts if not known_pairs]))
    real = {arms: on_real[..., -1] for *_, arms, _, on_real, _ in parts}
    real_tests = dict(zip(real, compare_groups([(values, None) for values in real.values()]), strict=True))
    compared = []
    for task, is_control, title, arms, on_task, on_real, known_pairs in parts:
        pairs, real_pairs = known_pairs or next(tests).pairs, real_tests[arms].pairs
        stages = tuple(carry_over(on_task[..., i], on_real[..., i], pairs, real_pairs) for i in range(len(times)))
        seeds = on_task.shape[1], on_real.shape[1]
        compared.append(_GroupTransfer(task, is_control, title, arms, seeds, stages))
    return compared


def _among(pairs: Sequence[Pair], arms: Sequence[int]) -> tuple[Pair, ...]:
    """Return the pairs of these arms alone, numbered by their places in `arms`."""
    place = {arm: i for i, arm in enumerate(arms)}
    chosen = (pair for pair in pairs if pair.one in place and pair.other in place)
    return tuple(replace(pair, one=place[pair.one], other=place[pair.other]) for pair in chosen)


def _answers(parts: Sequence[_GroupTransfer]) -> Iterator[Block]:
    for task in dict.fromkeys(part.task for part in parts):
        noisy, controls = ([p for p in parts if p.task == task and p.is_control == flag] for flag in (False, True))
        count = {verdict: sum(part.stages[-1].count(verdict) for part in noisy) for verdict in VERDICTS}
        n = sum(count.values()) - count["only there"]
        n_holds = [each for part in noisy if (each := part.stages[-1].n_hold) is not None]
        hold = f" ({sum(n_holds)} hold on its refits)" if n_holds else ""
        taus, control_taus = ("; ".join(f"{p.group} {_tau(p.stages[-1])}" for p in side) for side in (noisy, controls))
        yield answer(
            f"Kendall's τ between the rankings on {TASKS[task].title} and on the real landscape: {taus}."
            + (f" Without training noise on the task: {control_taus}." if controls else "")
            + f" Pairs of arms with a significant difference on the task: {n}{hold}. Of these, "
            f"{count['carries over'] + count['same sign']} have the same sign on the real landscape "
            f"({count['carries over']} significantly), and {count['reversed']} are significantly reversed. Pairs with "
            f"a significant difference on the real landscape alone: {count['only there']}."
        )


def _tau(carried: OrderAgreement) -> str:
    return f"{interval_text(carried.tau)}, split-half {number_text(carried.split_half)}"


def _budgets(parts: Sequence[_GroupTransfer]) -> Table:
    quantity = "share of the front's hypervolume" if parts[0].has_several else "validation error"
    return Table(
        caption=f"Kendall's τ between the rankings by mean {quantity} on a task and on the real landscape after "
        "shares of the budget, with 95 % bootstrap intervals over the seeds of both, extended to the estimate. "
        "Split-half is the τ between the rankings by two halves of the seeds, geometric mean of both landscapes; the τ "
        "of all seeds may exceed it",
        columns=("task", "arms", *(f"{100 * share:g} % of the budget" for share in _STAGES)),
        rows=tuple((part.title, part.group, *map(_tau, part.stages)) for part in parts),
        n_labels=2,
    )


def _orders(parts: Sequence[_GroupTransfer]) -> Table:
    return Table(
        caption="Number of pairs of arms by their tests on the task and on the real landscape, at the end of the "
        "budget: a pair is significant by its signed-rank test with Holm's correction on either. Separately, how many "
        "of those that are significant on the task hold on its refits",
        columns=("task", "arms", "number of arms", "seeds", *VERDICTS.values(), "hold on refits of the task"),
        rows=tuple(
            (
                *(part.title, part.group, str(len(part.arms)), f"{part.seeds[0]} and {part.seeds[1]}"),
                *(str(part.stages[-1].count(verdict)) for verdict in VERDICTS),
                number_text(part.stages[-1].n_hold, 0),
            )
            for part in parts
        ),
        n_labels=2,
    )


def _findings(parts: Sequence[_GroupTransfer]) -> Iterator[Block]:
    unit, digits = ("minus share of hypervolume", 3) if parts[0].has_several else ("points", 2)
    rows = tuple(
        (
            *(part.task, part.group, part.arms[pair.one].title, part.arms[pair.other].title, VERDICTS[pair.verdict]),
            "–" if pair.holds is None else "yes" if pair.holds else "no",
            *(f"{difference:+.{digits}f}" for difference in (pair.here, pair.there)),
        )
        for part in parts
        if not part.is_control
        for pair in sorted(part.stages[-1].findings, key=lambda pair: [*VERDICTS].index(pair.verdict))
    )
    if rows:
        yield Table(
            caption="Every pair with a significant difference on a task or on the real landscape. The first arm is the "
            "better one by the signed-rank test on the landscape where the difference is significant, on this task if "
            "on both",
            columns=(
                *("task", "arms", "better arm", "other arm", "finding", "holds on refits of the task"),
                *(f"mean difference on this task ({unit})", f"on the real landscape ({unit})"),
            ),
            rows=rows,
            n_labels=6,
            is_folded=True,
        )


def _about(real: Results, parts: Sequence[_GroupTransfer]) -> Text:
    ((task, facts),) = real.folder.tasks.items()
    commands = "; ".join(dict.fromkeys(f"`{made.get('command')} --release CIFAR10`" for made in real.folder.made_with))
    names = {arm.name for part in parts for arm in part.arms}
    runs = [r.incumbents.values for (_, arm), results in real.by_arm.items() if arm in names for r in results]
    finals = [values[-1] for values in runs if len(values)]
    has_several = parts[0].has_several
    n_bound = 0 if has_several else sum(value <= 0 for value in finals)
    bound = (
        f" {n_bound} of its {len(finals)} runs end at a predicted error of 0 %, which no training reaches: late in the "
        "budget, optimisers exploit the errors of the model, so the rankings early in the budget say more."
    )
    return Text(
        f"The real landscape is a release of `{task}` with all its {TASKS[task].max_epoch} epochs: "
        f"{facts.version} ({facts.source}, {facts.release[:16]}). It has no noise model, so its optimisers see means, "
        "clipped to 0 and 100 %. It is used for rankings and differences, never for its optimum; arms without runs "
        "there are left out."
        f"{bound * bool(n_bound)}{_FRONTS * has_several} Pairs are tested there by the same signed-rank test, with "
        f"Holm's correction over their own number. {commands}"
    )
