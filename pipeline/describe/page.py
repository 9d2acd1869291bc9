"""The page itself: Markdown with tables, and the plots beside it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from jahs.files.runs import TIMES, halves_of_visits
from jahs.files.tables import take
from jahs.tasks.definitions import RESOLUTIONS, caveats_of
from jahs.tasks.metrics import METRICS
from pipeline.describe import plots
from pipeline.describe.agreement import FEWEST, FIDELITIES, epoch_agreement, value_agreement
from pipeline.describe.drawing import shown
from pipeline.describe.measured import Measured, seed_noise
from pipeline.describe.untrained import random_overlap, untrained_agreement
from pipeline.sampling import FIDELITY_GROUPS, N_GROUPS
from workshop.pages.markdown import caveat_text, table_text
from workshop.ranks import kendall_tau

__all__ = ["describe"]

_AddPlot = Callable[[str, str, str], str]
_TRAINING: Final = (
    ("loss", "loss"),
    ("batch_size", "images in a batch"),
    ("momentum", "momentum"),
    ("nesterov", "Nesterov's momentum"),
    ("schedule", "learning rate"),
    ("weight_decay", "weight decay of"),
    ("clipping", "gradient clipping"),
)


_ABOUT_COST: Final = """A run diverges at the first loss that is not a number or infinite; it ends there and is kept.
    Core-seconds are CPU time of one core, training and evaluation together, without loading the images."""

_NO_PROFILE: Final = """The quiet profile (`latency`, `step_time_s`) is not there yet: `python -m pipeline.profile`
    measures it on a machine that does nothing else."""

_ABOUT_CURVES: Final = """The median of each fidelity group as a line, the middle half of its configs as a band. A
    config with several seeds counts once here and below, with its first seed that finished."""

_ABOUT_EFFECTS: Final = """Validation accuracy at the last epoch over all configs with a value, whatever their other
    parameters: the median as a red tick, the middle half as a bar, the middle 80 % as a line. Values with fewer than
    three configs are left out."""

_ABOUT_WORK: Final = """Each point is a config at the last epoch. No config beats one of the front in accuracy and
    multiply-adds at once."""

_ABOUT_EPOCHS: Final = """**Epochs.** Kendall's tau between the validation accuracies of the same configs at an epoch
    and at the last one: over all configs, and within fidelity groups (averaged by numbers of pairs; groups of four
    configs or more)."""

_ABOUT_VALUES: Final = """**N, W and Resolution.** A config is trained at one value of each only, so its places at two
    values cannot be compared. What can be: an additive model of validation accuracy (operations, rates up to the third
    power, activation, augmentation, and the fidelity group) is fitted to the configs of each value, and the models
    order the same 2,000 random configs. Tau between two orders says whether the same choices are good at both values.
    It cannot say how far single configs change places, since an additive model knows no interactions. Few configs make
    it too small: the diagonal shows by how much, as tau between models of two random halves of the configs of one
    value, each with half as much to learn from."""

_ABOUT_NOISE: Final = """Two trainings of one config with different seeds, at the last epoch: Kendall's tau over the
    repeated configs, and the mean absolute difference of the two. With three seeds the three pairs are averaged. The
    time of a run also carries what else its machine did. Parameters and multiply-adds are computed, so they have no
    noise; how far `latency` can be trusted stands with the quiet profile."""

_ABOUT_UNTRAINED: Final = """Scores of networks before the first step of training (`python -m pipeline.proxies`), with
    the weights that seed 0 starts from, against the validation accuracy at the last epoch. Beside them what is known
    for nothing, and the accuracy after one epoch. More is taken to be better; what is not a number is last."""

_ABOUT_OVERLAP: Final = """Rank-biased overlap looks at the top: 90 % of its weight lie on the best tenth. Within groups
    are means over the 27 fidelity groups, averaged by numbers of pairs: N, W and Resolution are given there, and only
    cell, rates, activation and augmentation differ."""


def describe(measured: Measured) -> dict[str, str]:
    """Return every file of the page by its path: `<task>.md`, and its plots in `<task>/`."""
    name = measured.task.name
    files: dict[str, str] = {}

    def add_plot(title: str, alt: str, content: str) -> str:
        files[f"{name}/{title}.svg"] = content
        return f"![{alt}]({name}/{title}.svg)"

    sections = [
        _head(measured),
        _protocol(measured),
        _counts(measured),
        _groups(measured),
        _profile(measured),
        _results(measured, add_plot),
        _agreement(measured, add_plot),
        *_untrained(measured),
        _noise(measured, add_plot),
    ]
    files[f"{name}.md"] = "\n\n".join(sections) + "\n"
    return files


def _head(measured: Measured) -> str:
    n_configs, n_runs = _count(measured.n_configs, "config"), _count(len(measured.last["seed"]), "training")
    caveats = "".join(f"{caveat_text(caveat)}\n\n" for caveat in caveats_of([measured.task]))
    return f"# What was measured: {measured.task.title}\n\n{caveats}" + _prose(
        f"""{n_configs} of the joint space, {n_runs} from the first epoch to the last, each with accuracy and loss of
        training, validation and testing and the CPU time after every epoch. Config number i is a pure function of i and
        belongs to fidelity group i mod {N_GROUPS}, so the groups grow alike. A release is fitted to what was recorded
        when it was made, which may be less: its card says how much.""",
        """`python -m pipeline.describe RUNS --out docs/data` writes this page: the same bytes for the same runs and the
        same packages.""",
    )


def _protocol(measured: Measured) -> str:
    task, training = measured.task, measured.protocol.facts.get("training", {})
    sides = ", ".join(f"{task.image_side(r)} at Resolution {r:g}" for r in RESOLUTIONS)
    rows = [
        ("task", f"`{task.name}`"),
        ("images", f"{task.n_train:,} to train, {task.n_valid:,} to validate, {task.n_test:,} to test"),
        ("image side, pixels", sides),
        ("channels, classes", f"{task.n_channels}, {task.n_classes}"),
        ("epochs", str(task.max_epoch)),
        *((label, _words(training[key])) for key, label in _TRAINING if key in training),
        ("protocol digest", f"`{measured.protocol.digest}`"),
        ("images from", task.citation),
    ]
    return "## Protocol\n\n" + table_text(("what", "value"), rows)


def _counts(measured: Measured) -> str:
    last = measured.last
    n_runs, n_diverged = len(last["seed"]), int((last["status"] == "diverged").sum())
    trained = Counter(last["config_id"].tolist())
    seeds = Counter(trained.values())
    with_seeds = ", ".join(f"{count:,} with {_count(n, 'seed')}" for n, count in sorted(seeds.items()))
    seconds = measured.seconds
    rows = [
        ("configs", f"{measured.n_configs:,}: {with_seeds}"),
        ("configs with a finished run", f"{len(measured.final):,}"),
        ("runs", f"{n_runs:,}"),
        ("measured epochs", f"{len(measured.runs['epoch']):,}"),
        ("diverged runs", f"{n_diverged:,}, {100 * n_diverged / n_runs:.1f} % of all"),
    ]
    if np.isfinite(seconds).any():
        rows.append(("cost", f"{np.nansum(seconds) / 3600:.1f} core-hours"))
    machine_of_run = np.column_stack([last[key] for key in ("machine", "device", "torch_version")])
    hardware = []
    for facts in sorted({*map(tuple, machine_of_run.tolist())}):
        cost = seconds[(machine_of_run == facts).all(axis=1)]
        is_known = np.isfinite(cost).any()
        spent = [shown(f(cost), 1) for f in (np.nanmean, np.nanmax)] if is_known else ["–", "–"]
        hardware.append((*facts, f"{len(cost):,}", *spent))
    return "\n\n".join(
        [
            "## How much",
            table_text(("what", "how much"), rows),
            _prose(_ABOUT_COST + _about_runtimes(measured)),
            table_text(("processor", "device", "torch", "runs", "core-s per run", "most"), hardware),
        ]
    )


def _about_runtimes(measured: Measured) -> str:
    if measured.machine is None:
        return ""
    return f""" One processor's seconds do not compare with another's: from here on, and in surrogates, runtimes are
        those of the runs on {measured.machine}."""


def _groups(measured: Measured) -> str:
    of_any = Counter(measured.group_of_any.values())
    group_of_run = np.array([measured.group_of_any[i] for i in measured.last["config_id"].tolist()])
    rows = []
    for number, (n, w, resolution) in enumerate(FIDELITY_GROUPS):
        final = measured.final[measured.group == number]
        seconds = measured.seconds[measured.is_timed & (group_of_run == number)]
        diverged = take(measured.last, group_of_run == number)["status"] == "diverged"
        middle, best = (np.median(final), final.max()) if len(final) else (np.nan, np.nan)
        mean_s = seconds.mean() if len(seconds) else np.nan
        count = of_any[number]
        numbers = (str(n), str(w), f"{resolution:g}", str(count), str(int(diverged.sum())))
        rows.append((*numbers, shown(mean_s, 1), shown(float(middle), 1), shown(float(best), 1)))
    head = ("N", "W", "Resolution", "configs", "diverged runs", "core-s per run", "median valid_acc", "best valid_acc")
    return "## Fidelity groups\n\n" + table_text(head, rows)


def _profile(measured: Measured) -> str:
    profile = measured.profile
    if not len(profile["config_id"]):
        return "## The quiet profile\n\n" + _prose(_NO_PROFILE)
    rows = []
    for name, what in (("latency", "evaluating a batch of 256"), ("step_time_s", "training on a batch of 256")):
        low, middle, high = np.quantile(profile[name].astype(np.float64) * 1e3, [0, 0.5, 1])
        rows.append((f"`{name}`", what, f"{low:.2f}", f"{middle:.2f}", f"{high:.2f}"))
    machines, versions = (", ".join(sorted(set(profile[key].tolist()))) for key in ("machine", "torch_version"))
    repeats = int(profile["n_repeats"].min())
    about = f"""CPU time of {_count(len(profile["config_id"]), "config")} on an otherwise idle {machines}, torch
        {versions}; the least of {repeats} repeats, in visits far apart."""
    head = ("metric", "of", "least, ms", "median, ms", "most, ms")
    return "\n\n".join(["## The quiet profile", _prose(about), table_text(head, rows), *_visits(measured)])


def _visits(measured: Measured) -> list[str]:
    """How well two halves of the visits agree; nothing where there are no two."""
    even, odd = halves_of_visits(measured.visits)
    if len(even["config_id"]) < 2:
        return []
    rows = []
    for name in TIMES:
        a, b = even[name].astype(np.float64), odd[name].astype(np.float64)
        difference = 100 * float(np.median(np.abs(np.log(a / b))))
        rows.append((f"`{name}`", _count(len(a), "config"), f"{kendall_tau(a, b):.3f}", f"{difference:.1f} %"))
    about = """How far these times can be trusted: the least of the even and the least of the odd visits. All visits
        together are better than either half."""
    return [_prose(about), table_text(("metric", "of", "Kendall's tau", "median difference"), rows)]


def _results(measured: Measured, add_plot: _AddPlot) -> str:
    parts = [
        "## Learning curves",
        _prose(_ABOUT_CURVES),
        add_plot("curves", "Validation accuracy by epoch in every fidelity group", plots.learning_curves(measured)),
        "## Accuracies at the last epoch",
        add_plot("accuracies", "Share of configs up to each accuracy", plots.distributions(measured)),
        "## What each parameter does",
        _prose(_ABOUT_EFFECTS),
        add_plot("effects", "Validation accuracy by the value of each parameter", plots.marginal_effects(measured)),
        "## Accuracy against work",
        _prose(_ABOUT_WORK),
        add_plot("work", "Validation accuracy against multiply-adds", plots.accuracy_against_work(measured)),
    ]
    return "\n\n".join(parts)


def _agreement(measured: Measured, add_plot: _AddPlot) -> str:
    agreement = epoch_agreement(measured)
    parts = [
        "## Do cheap trainings order configs as expensive ones do?",
        _prose(_ABOUT_EPOCHS),
        add_plot("epochs", "Kendall's tau between each epoch and the last", plots.epochs_against_last(agreement)),
        _prose(_ABOUT_VALUES),
    ]
    found = {key: value_agreement(measured, key) for key in FIDELITIES}
    known = {key: values for key, values in found.items() if values is not None}
    if len(known) < len(found):
        parts.append(f"Every value needs {FEWEST} configs with a finished run for that; there are too few yet.")
    else:
        alt = "Kendall's tau between values of N, W and Resolution"
        parts.append(add_plot("fidelities", alt, plots.values_against_values(known)))
    return "\n\n".join(parts)


def _untrained(measured: Measured) -> list[str]:
    """How well untrained networks are ordered; nothing where none has been scored."""
    found = untrained_agreement(measured)
    if not found:
        return []
    rows = [
        (name, str(o.n_known), shown(o.tau), shown(o.spearman), shown(o.overlap), shown(o.tau_within))
        for name, o in found.items()
    ]
    head = ("score", "configs", "Kendall's tau", "Spearman", "rank-biased overlap", "tau within groups")
    about = f"Random orders have an overlap of {random_overlap(measured):.2f}."
    return [
        "## Orders without training",
        _prose(_ABOUT_UNTRAINED, _ABOUT_OVERLAP + " " + about),
        table_text(head, rows),
    ]


def _noise(measured: Measured, add_plot: _AddPlot) -> str:
    found = seed_noise(measured)
    if not found:
        return "## Noise between trainings\n\nNo config has two finished runs, so nothing is known about it yet."
    rows = []
    for noise in found:
        unit = "%" if noise.metric == "runtime" else {"%": "points"}.get(METRICS[noise.metric].unit, "nat")
        difference = f"{noise.mean_difference:.{3 if unit == 'nat' else 2}f} {unit}"
        rows.append((f"`{noise.metric}`", str(noise.n_configs), shown(noise.tau), difference))
    return "\n\n".join(
        [
            "## Noise between trainings",
            _prose(_ABOUT_NOISE),
            table_text(("metric", "configs", "tau between seeds", "mean absolute difference"), rows),
            add_plot("seeds", "Accuracy with seed 1 against accuracy with seed 0", plots.seed_against_seed(measured)),
        ]
    )


def _prose(*paragraphs: str) -> str:
    """Break paragraphs into lines."""
    return "\n\n".join(
        textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False, break_long_words=False)
        for text in paragraphs
    )


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
