"""Show the quality of a release: as Markdown, or as one HTML page with plots that needs no network.

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from jahs.errors import CorruptFile, MissingData
from jahs.release import Release
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import caveats_of
from jahs.tasks.metrics import METRICS
from surrogate.card.cells import amount_text, score_text, table_of
from surrogate.card.figures import figures_blocks, verdict_blocks
from surrogate.card.noise import noise_blocks, uncertainty_blocks
from surrogate.card.plots import plots_of
from surrogate.data.rows import Facts
from surrogate.judging.quality import FULL_SIZE
from workshop.folders import write_text, writing
from workshop.pages.document import Block, Document, Table, Text, sections_of
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown

_ORDER: Final = ("valid_acc", "test_acc", "train_acc", "runtime", "latency")
_PROVENANCE: Final = ("protocol", "measurements", "split", "seed", "commit", "command")


def card(release: Release, figures: Facts | None = None) -> Document:
    """Return the card of a release, made from its quality.json and manifest, and of what `surrogate.figures` measured.

    Raises:
        MissingData: the release has no quality.json.
        UnknownFormat, CorruptFile: its quality.json was written by another version, or lacks something.
    """
    quality = release.quality
    if quality is None:
        raise MissingData(f"{release.path} has no quality.json; python -m surrogate.release writes it")
    try:
        return Document(
            title=f"Quality of the surrogates of {release.task.name}",
            caveats=caveats_of([release.task]),
            subtitle=_subtitle(release, quality),
            sections=sections_of(
                chain(
                    verdict_blocks(figures),
                    _opening(quality),
                    figures_blocks(figures),
                    _metrics(quality),
                    _closing(release, quality),
                )
            ),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as err:
        raise CorruptFile(f"{release.path / 'quality.json'} lacks a value of the card: {err!r}; release again") from err


def write_card(release: Release, out: Path, figures: Facts | None = None) -> tuple[Path, Path]:
    """Write quality.md and quality.html into a folder, made if it does not exist."""
    page = card(release, figures)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    paths = out / "quality.md", out / "quality.html"
    write_text(paths[0], to_markdown(page, has_figures=False))
    write_text(paths[1], to_html(page, {figure.name: svg_text(figure) for figure in page.figures}))
    return paths


def _subtitle(release: Release, quality: Facts) -> str:
    data = quality["data"]
    parts = ", ".join(f"{data['parts'][part]} {part}" for part in SPLIT_PARTS)
    return (
        f"**{data['configs']} configs** ({parts}) of {release.task.title} were trained: {data['runs']} runs of up to "
        f"{data['max_epoch']} epochs. {data['repeated_configs']} configs have more than one seed. "
        f"Of the runs, {sum(data['diverged_runs'].values())} diverged. Runtime and "
        "latency were measured on other numbers of configs, which the tables show. All scores are for the first "
        "seed of each test config. The models that are scored were fitted to the training configs. The release ships "
        "models that were fitted again, to training and validation configs."
    )


def _opening(quality: Facts) -> Iterator[str | Block]:
    if warnings := [*_warnings(quality)]:
        yield "Warnings"
        yield from (Text(line) for line in warnings)
    yield "At a glance"
    heads = (
        "metric", "training configs", "test configs", "R2, all epochs", "R2, last epoch", "tau, last epoch",
        "90 % interval of tau", "noise ceiling of tau", "tau within fidelity groups", "MAE, last epoch",
        "tau, shipped model",
    )  # fmt: skip
    yield table_of(heads, [_glance(metric, facts) for metric, facts in _metric_facts(quality)])
    yield Text(
        "Tau is Kendall's rank correlation of predictions and measurements, for one run of each test config. Its noise "
        "ceiling is tau between two runs of the same config with different seeds; for latency, tau between two halves "
        "of the visits to each config. A model can exceed the ceiling, because its predictions have no noise. The last "
        "column is for the model that ships, on the same test configs. Scores between seeds use "
        f"{_repeats(quality['data'])}, of every part; for latency, the two halves of the visits to each profiled "
        "config."
    )
    yield f"Requirements at {FULL_SIZE:,} configs"
    yield table_of(
        ("metric", "score", "test rows", "test configs", "value", "noise ceiling", "reached", "required", "verdict"),
        [_required(entry) for entry in quality["requirements"]],
    )
    yield Text(
        "The requirement for tau is a share of its noise ceiling; for R2 it is the value itself. The noise ceiling of "
        "R2 is halfway between 1 and R2 between two runs, since a perfect prediction has no noise of its own."
    )


def _repeats(data: Facts) -> str:
    """Return which configs give the scores between seeds of accuracies; releases up to 1.7.0 and 1.5.0 use all."""
    if n := data.get("unselected_repeats"):
        return f"the {n} configs that were repeated whatever their results"
    return "all repeated configs (those that were repeated because they are good differ less, which lowers the ceiling)"


def _warnings(quality: Facts) -> Iterator[str]:
    data = quality["data"]
    if data["configs"] < FULL_SIZE:
        yield (
            f"{data['configs']} configs, not the {FULL_SIZE:,} that the requirements are for. With so few test configs "
            "the scores are uncertain; see the intervals."
        )
    by_counts: dict[tuple[int, ...], list[str]] = {}
    for metric, facts in _metric_facts(quality):
        by_counts.setdefault(tuple(facts["train_by_group"]), []).append(metric)
    for counts, metrics in by_counts.items():
        if n_small := sum(n < data["fewest"] for n in counts):
            yield (
                f"{', '.join(metrics)}: {n_small} of {len(counts)} fidelity groups have fewer than {data['fewest']} "
                f"training configs, {counts.count(0)} have none. Predictions there are extrapolated from other groups."
            )
    for metric, reason in quality["missing"].items():
        yield f"There is no model of {metric}: {reason}."
    searches = [(metric, facts["search"]) for metric, facts in _metric_facts(quality)]
    untuned = [metric for metric, search in searches if search is None]
    tuned = [(metric, search) for metric, search in searches if search is not None]
    for names, text in (
        (untuned, "Default settings, not tuned"),
        ([m for m, s in tuned if not s["beats_default"]], "Default settings, because the search found no better ones"),
        ([m for m, s in tuned if not s["is_of_this_split"]], "Settings from a search on other data"),
    ):
        if names:
            yield f"{text}: {', '.join(names)}."


def _glance(metric: str, facts: Facts) -> list[str]:
    test, n_training = facts["test"], str(facts["fitted_on"]["configs"])
    if test is None:
        return [metric, n_training, "0", *["–"] * 8]
    last = test["cuts"].get("last epoch", test["cuts"]["all"])
    shipped = facts["refitted_test"].get("last epoch", facts["refitted_test"]["all"])
    interval = test["tau_interval"]
    return [
        metric,
        n_training,
        str(test["n_configs"]),
        score_text(test["cuts"]["all"]["model"]["r2"]),
        score_text(last["model"]["r2"]),
        score_text(last["model"]["tau"]),
        "–" if interval is None else f"{score_text(interval[0])} to {score_text(interval[1])}",
        score_text(last["ceiling"]["tau"]),
        score_text(test["tau_within_groups"]),
        amount_text(last["model"]["mae"], metric),
        score_text(shipped["model"]["tau"]),
    ]


def _required(entry: Facts) -> list[str]:
    score = "tau / noise ceiling" if entry["score"] == "tau" else "R2"
    values = [score_text(entry[key]) for key in ("value", "ceiling", "reached")]
    required = f"{entry['required']:.2f}"
    return [entry["metric"], score, entry["cut"], str(entry["n_configs"]), *values, required, _verdict(entry)]


def _verdict(entry: Facts) -> str:
    if entry["is_met"] is None:
        return "too few data"
    if entry["is_met"]:
        return "reached"
    missed = "**not reached**" if entry["is_due"] else "not reached yet"
    is_beyond = entry["score"] == "r2" and entry["ceiling"] is not None and entry["ceiling"] < entry["required"]
    return f"{missed}; the noise ceiling is lower, too" if is_beyond else missed


def _metric_facts(quality: Facts) -> list[tuple[str, Facts]]:
    return sorted(quality["metrics"].items(), key=lambda item: _ORDER.index(item[0]))


def _metrics(quality: Facts) -> Iterator[str | Block]:
    for metric, facts in _metric_facts(quality):
        yield metric
        yield Text(f"{METRICS[metric].description} {_model_text(facts)}")
        yield from plots_of(metric, facts)
        for name, to_text in (("search", _search_text), ("learning_curve", _curve_text)):
            if facts[name] is not None:
                yield to_text(facts[name])
        if facts["test"] is not None:
            cuts = facts["test"]["cuts"]
            groups = [name for name in cuts if name.startswith("N=")]
            yield _cuts_table(metric, cuts, sorted(cuts.keys() - set(groups), key=_cut_order), "Scores by epochs")
            yield _cuts_table(metric, cuts, groups, "Scores by fidelity group, last epoch")


def _model_text(facts: Facts) -> str:
    settings, counts = facts["settings"], facts["refitted_on"]
    return (
        f"The shipped model is a forest of {settings['n_trees']} trees of depth {settings['max_depth']} "
        f"({facts['nodes']:,} nodes), learning rate {settings['learning_rate']:.3g}, with "
        f"{facts['features']['columns']} features (set “{facts['features']['name']}”). It was fitted to "
        f"{counts['rows']:,} rows of {counts['configs']:,} configs"
        + (
            f", and to the predictions of a teacher for {drawn:,} drawn configs (distillation)."
            if (drawn := settings.get("n_distilled", 0))
            else "."
        )
    )


def _search_text(search: Facts) -> Text:
    chosen, largest = search["chosen"], max(search["sizes"], key=lambda size: size["n_nodes"])
    verdict = "beats" if search["beats_default"] else "does not beat"
    taus = [score_text(tau) for tau in (search["default_tau"], largest["tau"])]
    other = "" if search["is_of_this_split"] else " on other data"
    return Text(
        f"Search for settings{other}: {len(search['evaluations'])} evaluations on {search['n_valid_configs']} "
        f"validation configs. The best {verdict} the default settings (tau {taus[0]}). Of forests with up to "
        f"{largest['n_nodes']:,} nodes (tau {taus[1]}), the smallest with practically the same score "
        f"was chosen: {chosen['settings']['n_trees']} trees of depth {chosen['settings']['max_depth']}, tau "
        f"{score_text(chosen['tau'])}."
    )


def _curve_text(curve: Facts) -> Text:
    sizes = sorted({point["n_configs"] for point in curve["points"]})
    predictions = sorted(curve["predictions"].items(), key=lambda item: (item[0] != "tau", item[0] != "r2"))
    lines = [
        f" A power law, fitted to {'the smaller' if name.startswith('check') else 'these'} sizes, predicts "
        f"{'tau' if name.startswith('check') else name} {score_text(p['value'])} ({100 * p['level']:.0f} % interval "
        f"{score_text(p['low'])} to {score_text(p['high'])}) at {p['n_configs']:,} configs."
        for name, p in predictions
    ]
    reasons = {name: reason for name, reason in curve["not_predicted"].items() if not name.startswith("check")}
    for reason in dict.fromkeys(reasons.values()):
        names = " and ".join(name for name in reasons if reasons[name] == reason)
        lines.append(f" Not extrapolated: {names}, as {reason}.")
    return Text(
        f"Learning curve: {len(curve['points'])} fits to {sizes[0]:,} to {sizes[-1]:,} training configs, scored on the "
        f"validation configs.{''.join(lines)}"
    )


def _cut_order(name: str) -> tuple[int, int]:
    first = re.match(r"epochs (\d+)", name)
    return (3, int(first[1])) if first else (("all", "last epoch", "best tenth").index(name), 0)


def _cut_title(cut: str) -> str:
    """Return the name of a cut as the card has it."""
    return {"best tenth": "measured best tenth", "epochs 1-1": "epoch 1"}.get(cut, cut)


def _cuts_table(metric: str, cuts: Facts, names: Iterable[str], title: str) -> Table:
    heads = (
        "test rows", "number of rows", "R2", "tau", "tau between seeds", "sparse tau", "sparse tau between seeds",
        "RMSE", "RMSE between seeds", "MAE", "bias", "rows with two seeds",
    )  # fmt: skip
    rows = []
    for name in names:
        model, ceiling = cuts[name]["model"], cuts[name]["ceiling"]
        scores = [model["r2"], model["tau"], ceiling["tau"], model["sparse_tau"], ceiling["sparse_tau"]]
        errors = [amount_text(value, metric) for value in (model["rmse"], ceiling["rmse"], model["mae"])]
        bias = amount_text(model["bias"], metric, is_signed=True)
        rows.append([_cut_title(name), f"{model['n']:,}", *map(score_text, scores), *errors, bias, f"{ceiling['n']:,}"])
    return table_of(heads, rows, title=title)


def _closing(release: Release, quality: Facts) -> Iterator[str | Block]:
    yield "Parameters and multiply-adds"
    yield Text(
        "The release computes both exactly from the config. For comparison, this is how well models would predict "
        "them, fitted as in JAHS-Bench-201; the release does not contain these models."
    )
    rows = []
    for metric, scores in quality["compared"].items():
        error = scores["relative_error"]
        shares = ["–", "–"] if error is None else [f"{100 * error[key]:.2f} %" for key in ("mean", "most")]
        rows.append([metric, str(scores["n"]), score_text(scores["r2"]), score_text(scores["tau"]), *shares])
    yield table_of(("metric", "test configs", "R2", "tau", "mean relative error", "largest relative error"), rows)
    yield "Noise between trainings"
    yield from noise_blocks(quality["noise"])
    if (uncertainty := quality.get("uncertainty")) is not None:
        yield "Error of the models"
        yield from uncertainty_blocks(uncertainty)
    if (lightgbm := quality.get("lightgbm")) is not None:
        yield "A second family of models"
        yield from _families(quality["metrics"], lightgbm["test"])
    references = quality["references"]
    yield "Pareto fronts and reference points"
    if "reason" in references:
        yield Text(f"No front could be computed: {references['reason']}.")
    else:
        fronts = "; ".join(
            f"{', '.join(front['metrics'])} ({front['configs']} configs)" for front in references["fronts"]
        )
        yield Text(f"The best known Pareto fronts, each with a fixed reference point for the hypervolume: {fronts}.")
    yield from _data(quality["data"])
    yield from _provenance(release)


def _families(xgboost: Facts, lightgbm: Facts) -> Iterator[Block]:
    """Show test scores of both families, fitted to the training configs."""
    yield Text(
        '`Benchmark(model="lightgbm")` answers accuracies with LightGBM instead of XGBoost. A conclusion that holds '
        "for one family only is about the models. Models fitted to the training configs are scored on the test configs."
    )
    rows = []
    for metric in (name for name in _ORDER if name in lightgbm and xgboost[name]["test"] is not None):
        for cut, scores in sorted(lightgbm[metric].items(), key=lambda item: _cut_order(item[0])):
            models = (xgboost[metric]["test"]["cuts"][cut]["model"], scores)
            cells = [text for model in models for text in (score_text(model["tau"]), amount_text(model["mae"], metric))]
            rows.append([metric, _cut_title(cut), f"{scores['n']:,}", *cells])
    yield table_of(
        ("metric", "test rows", "number of rows", "tau, XGBoost", "MAE, XGBoost", "tau, LightGBM", "MAE, LightGBM"),
        rows,
    )


def _data(data: Facts) -> Iterator[str | Block]:
    yield "Configs and machines"
    heads = ("N", "W", "Resolution", *SPLIT_PARTS)
    rows = [[f"{group[key]:g}" for key in heads] for group in data["groups"]]
    yield table_of(heads, rows, title="Configs in each fidelity group")
    rows = [[name, str(n)] for name, n in data["machines"].items()]
    yield table_of(("machine", "runs"), rows, title="Machines that trained")
    if (timed_on := data["timing_machine"]) is not None:
        latencies = f", latencies on {data['profile_machine']}" if data["profile_machine"] else ""
        yield Text(
            "Accuracies come from all machines. Times on different processors are not comparable: runtimes were "
            f"measured on {timed_on}{latencies}."
        )


def _provenance(release: Release) -> Iterator[str | Block]:
    facts = release.manifest.facts
    yield "Provenance"
    yield Text(
        "RUNS and SPLIT are the recorded runs and their split at this commit; later runs are not in this release."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts.get("versions", {}).items()))
    titles = {"version": "release", **{name: name for name in _PROVENANCE}}
    rows = [[title, f"`{facts[name]}`"] for name, title in titles.items() if facts.get(name) is not None]
    yield table_of(("fact", "value"), [*rows, ["versions", versions]])
