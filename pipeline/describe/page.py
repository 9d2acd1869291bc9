"""The page: a document of tables and figures about a folder of runs.

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.summaries import number_text
from jahs.files.tables import take
from jahs.schema import SIZE_KEYS
from jahs.tasks.definitions import RESOLUTIONS, Task, caveats_of
from jahs.tasks.metrics import METRICS
from pipeline.describe import cell_plots, plots
from pipeline.describe.measured import FEWEST, MeasuredRuns, epoch_agreement, seed_noise, value_agreement
from workshop.measured import TIMES, halves_of_visits
from workshop.numbered import FIDELITY_GROUPS, N_GROUPS
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.ranks import kendall_tau, spearman
from workshop.real_landscape import as_good_as
from workshop.resampling import bootstrap_estimates

_Floats = NDArray[np.float64]

_TRAINING: Final = (
    ("loss", "loss"),
    ("batch_size", "batch size, images"),
    ("momentum", "momentum"),
    ("nesterov", "Nesterov's momentum"),
    ("schedule", "learning rate schedule"),
    ("weight_decay", "weight decay applies to"),
    ("clipping", "gradient clipping"),
)

_ABOUT_COST: Final = """A run diverges at the first loss that is NaN or infinite. It ends there and is kept.
    Core-seconds are CPU time on one core for training and evaluation, without loading the images."""

_NO_PROFILE: Final = """There is no quiet profile (`latency`, `step_time_s`) yet. `python -m pipeline.profile` measures
    it on an idle machine."""

_ABOUT_CURVES: Final = """Validation accuracy by epoch. Line: median of a fidelity group. Band: interquartile range. A
    config with several seeds counts once here and below, with its first finished seed."""

_ABOUT_EFFECTS: Final = """Validation accuracy at the last epoch by the value of each parameter, over all other
    parameters. Tick: median. Bar: interquartile range. Line: 10 % to 90 % quantile. Values with fewer than three
    configs are left out."""

_ABOUT_VALUES: Final = """**N, W and Resolution.** A config is trained at one value of each, so its ranks at two values
    cannot be compared directly. Instead, an additive model of validation accuracy (operations, rates up to the third
    power, activation, augmentation and fidelity group) is fitted to the configs of each value, and the models rank the
    same 2,000 random configs. Kendall's tau between two rankings says whether the same choices are good at both values.
    An additive model has no interactions, so tau does not show how much the ranks of individual configs change. With
    few configs, tau is biased downward. The diagonal shows this bias: tau between models of two random halves of one
    value's configs."""

_ABOUT_NOISE: Final = """Two trainings of one config with different seeds, at the last epoch: Kendall's tau over the
    repeated configs and the mean absolute difference. With three seeds, the three pairs are averaged. Runtime also
    contains interference from other work on the machine. Parameters and multiply-adds are computed and have no noise;
    for `latency` see the quiet profile."""

_ABOUT_DEPTH: Final = """Validation accuracy at the last epoch by cell depth: the largest number of convolutions on a
    path from input to output without a zero operation, over all sizes and hyperparameters. Line: median. Depths with
    fewer than five configs are left out."""

_ABOUT_MAP: Final = """Cells on a map (t-SNE of the six operations, one-hot; cells with similar operations are near one
    another): how many configs have them, their mean validation accuracy at the last epoch over all sizes and
    hyperparameters, and where they come from if there are several sources."""

_FEWEST_TO_RANK: Final = 8
_N_RESAMPLES: Final = 200
_FEWEST_AT_FULL_SIZE: Final = 10

_ABOUT_LANDSCAPE: Final = """Validation accuracy at the last epoch of {n:,} uniform configs, one training each, against
    JAHS-Bench-201's surrogate of CIFAR-10 at three of its 200 epochs. A task that ranks configs as full training does
    agrees most with epoch 200; one that trains too briefly agrees more with an earlier epoch."""

_COMMANDS: Final = """`python -m pipeline.pilot --runs data/{task}/runs --landscape CIFAR10{cells} --save` computes
    these figures of recorded trainings, and `python -m surrogate.landscape_check {task} --landscape CIFAR10{cells}`
    those of a release. CIFAR10 is the authors' pre-release surrogate as `jahs import` writes it{csv}. The rho of 0.86
    to 0.88 between two tasks of JAHS-Bench-201 is not computed here."""

_CSV: Final = """; CSV has NAS-Bench-201's accuracies by the index of the cell, in the columns index,
    cifar10_test_200_epochs and cifar10_valid_12_epochs"""


def describe(measured: MeasuredRuns) -> Document:
    """Return the page about a folder of runs."""
    n_configs, n_runs = _count(measured.n_configs, "config"), _count(len(measured.last["seed"]), "training")
    parts = (_protocol, _counts, _landscape, _groups, _profile, _results, _cells, _agreement, _noise)
    return Document(
        title=f"What was measured: {measured.task.title}",
        caveats=caveats_of([measured.task]),
        subtitle=f"{n_configs} of the joint space, {n_runs}. After every epoch, a run records its CPU time and the "
        "accuracy and loss on the training, validation and test sets. Uniform config number i is a pure function of "
        f"i and belongs to fidelity group i mod {N_GROUPS}; configs of other sources are mostly at full size. A "
        "release was fitted to the runs recorded when it was made, which may be fewer; its quality card has their "
        "number.",
        sections=sections_of(chain.from_iterable(part(measured) for part in parts)),
        facts=(
            ("command", "`python -m pipeline.describe RUNS --out docs/data`"),
            ("protocol digest", f"`{measured.protocol.digest}`"),
        ),
    )


def _protocol(measured: MeasuredRuns) -> Iterator[str | Block]:
    task, training = measured.task, measured.protocol.facts.get("training", {})
    sides = ", ".join(f"{task.image_side(r)} at Resolution {r:g}" for r in RESOLUTIONS)
    per_epoch = "" if task.epoch_images is None else f" ({task.epoch_images:,} an epoch, a new random subset each time)"
    yield "Protocol"
    yield _facts(
        ("task", f"`{task.name}`"),
        ("images", f"{task.n_train:,} training{per_epoch}, {task.n_valid:,} validation, {task.n_test:,} test"),
        ("image side, pixels", sides),
        ("channels, classes", f"{task.n_channels}, {task.n_classes}"),
        ("epochs", str(task.max_epoch)),
        ("initial learning rate", _rate_words(task)),
        ("augmentation", f"flips{', random crops' * task.random_crop}; TrivialAugment if the config has it"),
        *((label, _words(training[key])) for key, label in _TRAINING if key in training),
        ("source of the images", task.citation),
    )


def _rate_words(task: Task) -> str:
    if task.learning_rate_factor == task.learning_rate_power == 1:
        return "`LearningRate`"
    decay = "; weights decay by `LearningRate` · `WeightDecay` a step" if task.keeps_decay else ""
    rate = f"{task.learning_rate_factor:g} · `LearningRate`^{task.learning_rate_power:g}"
    return f"{rate}: {task.trained_rate(0.1):.3g} for 0.1{decay}"


def _counts(measured: MeasuredRuns) -> Iterator[str | Block]:
    last, seconds = measured.last, measured.seconds
    n_runs, n_diverged = len(last["seed"]), int((last["status"] == "diverged").sum())
    seeds = Counter(Counter(last["config_id"].tolist()).values())
    with_seeds = ", ".join(f"{count:,} with {_count(n, 'seed')}" for n, count in sorted(seeds.items()))
    rows = [
        ("configs", f"{measured.n_configs:,}: {with_seeds}"),
        ("configs with a finished run", f"{len(measured.final):,}"),
        ("runs", f"{n_runs:,}"),
        ("measured epochs", f"{len(measured.runs['epoch']):,}"),
        ("diverged runs", f"{n_diverged:,}, {100 * n_diverged / n_runs:.1f} % of all"),
    ]
    if measured.n_final:
        rows.append(("runs of the final test set", f"{measured.n_final:,}; they are in no other figure of this page"))
    if np.isfinite(seconds).any():
        rows.append(("cost", f"{np.nansum(seconds) / 3600:.1f} core-hours"))
    yield "How much"
    yield _facts(*rows)
    one_machine = f""" CPU seconds on different processors are not comparable. Below, and in the surrogates, runtimes
        are those on {measured.machine}."""
    yield Text(_ABOUT_COST + (one_machine if measured.machine else ""))
    machine_of_run = np.column_stack([last[key] for key in ("machine", "device", "torch_version")])
    hardware = []
    for facts in sorted({*map(tuple, machine_of_run.tolist())}):
        cost = seconds[(machine_of_run == facts).all(axis=1)]
        known = cost[np.isfinite(cost)]
        spent = (f"{known.mean():.1f}", f"{known.max():.1f}") if len(known) else ("–", "–")
        hardware.append((*facts, f"{len(cost):,}", *spent))
    yield _table(("processor", "device", "torch", "runs", "mean core-s per run", "most"), hardware, n_labels=3)


def _landscape(measured: MeasuredRuns) -> Iterator[str | Block]:
    """Compare the task's ranks with the real benchmark's; yield nothing without a saved comparison."""
    landscape = measured.landscape
    if landscape is None:
        return
    yield "Does it rank configs as the real benchmark does?"
    yield Text(_ABOUT_LANDSCAPE.format(n=landscape["n_configs"]))
    keys: tuple[str, ...] = ("tau", "tau_within_groups", "rho_full_size")
    if landscape["n_full_size"] < _FEWEST_AT_FULL_SIZE:
        keys = keys[:2]
    rows = [
        (f"{epoch} of 200", _interval(agreement), *(number_text(agreement[key], 3) for key in keys))
        for epoch, agreement in sorted(landscape["epochs"].items(), key=lambda item: -int(item[0]))
    ]
    names = ("Kendall's tau", "tau within groups", f"Spearman at full size, {landscape['n_full_size']} configs")
    yield _table(("real epoch", "Spearman (95 % interval)", *names[: len(keys)]), rows)
    if curve := landscape.get("curve"):
        yield from _curve(curve)
    effect = landscape["resolution"]
    yield Text(
        f"Resolution 1 instead of 0.25 gains {number_text(effect['ours'], 1)} points here and "
        f"{number_text(effect['real'], 1)} points on the real landscape."
    )
    if cells := landscape.get("cells"):
        epochs = " and ".join(f"{_interval(cells[epoch])} after {epoch} epochs" for epoch in ("200", "12"))
        yield Text(
            f"{cells['n_cells']} cells of NAS-Bench-201 were trained at full size with the default hyperparameters. "
            f"Spearman's rho with their published accuracies is {epochs}."
        )
    more = {"cells": " --cells CSV", "csv": _CSV} if cells else {"cells": "", "csv": ""}
    yield Text(_COMMANDS.format(task=measured.task.name, **more))


def _curve(curve: Sequence[Mapping[str, Any]]) -> Iterator[Block]:  # Any: JSON
    """Show how well the real benchmark itself agrees with its last epoch when it is stopped early."""
    best = max(curve, key=lambda at: at["ours"] or -1.0)
    epoch, last = as_good_as(curve), curve[-1]
    rho = {at["epoch"]: number_text(at["real"], 3) for at in curve}
    of_task = f"epoch {last['epoch']} ({number_text(last['ours'], 3)})"
    compared = (
        f"The task agrees with {of_task} as well as epoch {epoch} of the real landscape itself does ({rho[epoch]})"
        if epoch
        else f"The task agrees less with {of_task} than early epochs of the real landscape itself do"
    )
    yield Text(
        f"{compared}, and most with epoch {best['epoch']} ({number_text(best['ours'], 3)}). The real landscape "
        "consists of predictions without training noise, the task of single trainings."
    )
    yield Figure(
        name="real-epochs",
        caption="Spearman's rho with each epoch of the real landscape, and of that epoch with the last one.",
        alt=f"With epoch {last['epoch']}: {number_text(last['ours'], 2)}",
        drawing=plots.agreement_by_epoch(curve),
    )


def _interval(agreement: Mapping[str, float | None]) -> str:
    rho, low, high = (number_text(agreement[key], 3) for key in ("rho", "rho_low", "rho_high"))
    return f"{rho} ({low} to {high})"


def _groups(measured: MeasuredRuns) -> Iterator[str | Block]:
    n_configs = Counter(measured.group_of_any.values())
    group_of_run = np.array([measured.group_of_any[i] for i in measured.last["config_id"].tolist()])
    rows = []
    for number, (n, w, resolution) in enumerate(FIDELITY_GROUPS):
        final = measured.final[measured.group == number]
        seconds = measured.seconds[measured.is_timed & (group_of_run == number)]
        diverged = take(measured.last, group_of_run == number)["status"] == "diverged"
        middle, best = (float(np.median(final)), float(final.max())) if len(final) else (math.nan, math.nan)
        mean_s = seconds.mean() if len(seconds) else math.nan
        counts = (str(n_configs[number]), str(int(diverged.sum())))
        rows.append((str(n), str(w), f"{resolution:g}", *counts, *(number_text(x, 1) for x in (mean_s, middle, best))))
    yield "Fidelity groups"
    accuracies = ("median valid_acc at the last epoch, %", "best valid_acc at the last epoch, %")
    head = ("N", "W", "Resolution", "configs", "diverged runs", "mean core-s per run", *accuracies)
    yield _table(head, rows, n_labels=0)


def _profile(measured: MeasuredRuns) -> Iterator[str | Block]:
    profile = measured.profile
    yield "The quiet profile"
    if not len(profile["config_id"]):
        yield Text(_NO_PROFILE)
        return
    machines, versions = (", ".join(sorted(set(profile[key].tolist()))) for key in ("machine", "torch_version"))
    n_repeats = int(profile["n_repeats"].min())
    configs = _count(len(profile["config_id"]), "config")
    yield Text(
        f"CPU time of {configs} on an otherwise idle {machines}, torch {versions}; the minimum of {n_repeats} repeats, "
        "in visits far apart."
    )
    rows = []
    batch = measured.task.batch_size
    descriptions = {"latency": "evaluation of 256 images", "step_time_s": f"training step of {batch} images"}
    for name, what in descriptions.items():
        quantiles = np.quantile(profile[name].astype(np.float64) * 1e3, [0, 0.5, 1])
        rows.append((f"`{name}`", what, *(f"{value:.2f}" for value in quantiles)))
    yield _table(("metric", "one batch", "minimum, ms", "median, ms", "maximum, ms"), rows, n_labels=2)
    even, odd = halves_of_visits(measured.visits)
    if len(even["config_id"]) < 2:
        return
    yield Text("Reliability: even visits compared with odd ones. Values from all visits are more reliable.")
    rows = []
    for name in TIMES:
        a, b = even[name].astype(np.float64), odd[name].astype(np.float64)
        difference = 100 * float(np.median(np.abs(np.log(a / b))))
        rows.append((f"`{name}`", _count(len(a), "config"), f"{kendall_tau(a, b):.3f}", f"{difference:.1f} %"))
    yield _table(("metric", "over", "Kendall's tau", "median difference"), rows, n_labels=2)


def _results(measured: MeasuredRuns) -> Iterator[str | Block]:
    about_work = "Validation accuracy at the last epoch against multiply-adds; each point is a config."
    for title, name, caption, alt, draw in (
        ("Learning curves", "curves", _ABOUT_CURVES, "Validation accuracy by epoch in every fidelity group",
         plots.learning_curves),
        ("Accuracies at the last epoch", "accuracies", "Cumulative share of configs by accuracy at the last epoch.",
         "Share of configs up to each accuracy", plots.distributions),
        ("What each parameter does", "effects", _ABOUT_EFFECTS, "Validation accuracy by the value of each parameter",
         plots.marginal_effects),
        ("Accuracy against work", "work", about_work, "Validation accuracy against multiply-adds",
         plots.accuracy_against_work),
    ):  # fmt: skip
        yield title
        yield Figure(name=name, caption=caption, alt=alt, drawing=draw(measured))


def _cells(measured: MeasuredRuns) -> Iterator[str | Block]:
    yield "Cells and sources"
    test = measured.curves["test_acc"][:, -1]
    best = measured.final >= np.quantile(measured.final, 0.9)
    if best.sum() >= _FEWEST_TO_RANK:
        cuts = ((measured.final, test), (measured.final[best], test[best]))
        tau, tau_of_best = (_tau_interval(*cut) for cut in cuts)
        yield Text(
            f"Validation and test accuracy at the last epoch have a Kendall's tau of {tau}, and of {tau_of_best} among "
            f"the best tenth by validation accuracy ({int(best.sum())} configs). NAS-Bench-301 has 0.852 over all."
        )
    if len(sources := cell_plots.by_source(measured)) > 1:
        yield Figure(
            name="sources",
            caption="Cumulative share of configs by validation accuracy at the last epoch and by source of the config.",
            alt=f"Share of configs up to each accuracy, from {', '.join(sources)}",
            drawing=cell_plots.accuracy_by_source(measured),
        )
    yield Figure(
        name="depth",
        caption=_ABOUT_DEPTH,
        alt="Violins of validation accuracy by the depth of the cell",
        drawing=cell_plots.accuracy_by_depth(measured),
    )
    if cell_plots.n_cells(measured) >= cell_plots.FEWEST_CELLS:
        yield Figure(
            name="map",
            caption=_ABOUT_MAP,
            alt="A map of cells: density, mean accuracy and sources",
            drawing=cell_plots.map_of_cells(measured),
        )


def _tau_interval(a: _Floats, b: _Floats) -> str:
    (tau,) = bootstrap_estimates(lambda at: kendall_tau(a[at], b[at]), len(a), level=0.9, n_resamples=_N_RESAMPLES)
    return f"{tau.value:.3f} (90 % interval {tau.low:.3f} to {tau.high:.3f})"


def _agreement(measured: MeasuredRuns) -> Iterator[str | Block]:
    yield "Do cheap trainings rank configs as expensive ones do?"
    yield Figure(
        name="epochs",
        caption="**Epochs.** Kendall's tau between validation accuracy at an epoch and at the last one: over all "
        "configs, and within fidelity groups of at least four configs (weighted by their numbers of pairs).",
        alt="Kendall's tau between each epoch and the last",
        drawing=plots.epochs_against_last(*epoch_agreement(measured)),
    )
    yield Text(_ABOUT_VALUES)
    taus = {key: value_agreement(measured, key) for key in SIZE_KEYS}
    known = {key: values for key, values in taus.items() if values is not None}
    if len(known) < len(taus):
        yield Text(f"This needs {FEWEST} configs with a finished run at every value; there are too few yet.")
        return
    yield Figure(
        name="fidelities",
        caption="Kendall's tau between the rankings of two values' models.",
        alt="Kendall's tau between values of N, W and Resolution",
        drawing=plots.values_against_values(known),
    )


def _noise(measured: MeasuredRuns) -> Iterator[str | Block]:
    yield "Noise between trainings"
    noises = seed_noise(measured)
    if not noises:
        yield Text("No config has two finished runs, so the noise is not known yet.")
        return
    yield Text(_ABOUT_NOISE)
    rows = []
    for noise in noises:
        unit = "%" if noise.metric == "runtime" else {"%": "points"}.get(METRICS[noise.metric].unit, "nat")
        difference = f"{noise.mean_difference:.{3 if unit == 'nat' else 2}f} {unit}"
        rows.append((f"`{noise.metric}`", str(noise.n_configs), number_text(noise.tau, 3), difference))
    yield _table(("metric", "configs", "tau between seeds", "mean absolute difference"), rows)
    yield Figure(
        name="seeds",
        caption="Each accuracy at the last epoch, in two trainings of one config.",
        alt="Accuracy with seed 1 against accuracy with seed 0",
        drawing=plots.seed_against_seed(measured),
    )
    mean, sd = cell_plots.seed_spread(measured)
    if len(mean) >= _FEWEST_TO_RANK:
        yield Figure(
            name="noise",
            caption="Standard deviation of validation accuracy between the seeds of a config, by their mean accuracy "
            f"at the last epoch; Spearman's rank correlation is {spearman(mean, sd):.2f}.",
            alt="Standard deviation between seeds against accuracy",
            drawing=cell_plots.noise_by_accuracy(measured),
        )


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, n_labels: int = 1) -> Table:
    return Table(caption="", columns=columns, rows=tuple(rows), n_labels=n_labels)


def _facts(*rows: tuple[str, str]) -> Table:
    return _table(("what", "value"), rows, n_labels=2)


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
