"""Show the quality of a release: as Markdown, and as one HTML page with plots that needs no network.

python -m surrogate.card RELEASE            # Markdown, on the terminal
python -m surrogate.card RELEASE --out DIR  # DIR/quality.md and DIR/quality.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import matplotlib as mpl

from jahs.errors import CorruptFile, MissingData, UnknownFormat
from jahs.release import Release, read_release
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import caveats_of
from jahs.tasks.metrics import METRICS
from surrogate.card.plots import plots_of
from surrogate.judging.quality import FULL_SIZE, QUALITY_FORMAT
from workshop.command import new_parser, run_command
from workshop.folders import write_text, writing
from workshop.pages.document import Block, Document, Table, Text, sections_of
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown
from workshop.pages.style import style

__all__ = ["card", "main", "write_card"]

Facts: TypeAlias = Mapping[str, Any]
"""JSON."""

_CUTS: Final = ("all", "last epoch", "best tenth")
_ORDER: Final = ("valid_acc", "test_acc", "train_acc", "runtime", "latency")
_SCORES: Final = (
    "rows", "R2", "tau", "ceiling of tau", "sparse tau", "its ceiling", "RMSE", "ceiling", "MAE", "bias",
    "rows of the ceilings",
)  # fmt: skip


def card(release: Release) -> Document:
    """The card of a release, from its quality.json and manifest.

    Raises:
        MissingData: the release has no quality.json.
        UnknownFormat, CorruptFile: it was written by another version, or is not one.
    """
    quality = release.quality
    if quality is None:
        raise MissingData(f"{release.path} has no quality.json; python -m surrogate.release writes releases that have")
    if not isinstance(quality, dict) or quality.get("format") != QUALITY_FORMAT:
        found = quality.get("format") if isinstance(quality, dict) else None
        raise UnknownFormat(
            f"{release.path / 'quality.json'}: format {found!r}; this version reads format {QUALITY_FORMAT}"
        )
    try:
        with mpl.rc_context(dict(style())):
            return Document(
                title=f"Quality of the surrogates of {release.task.name}",
                caveats=caveats_of([release.task]),
                subtitle=_subtitle(release, quality),
                sections=sections_of(chain(_opening(quality), _metrics(quality), _closing(release, quality))),
            )
    except (KeyError, TypeError, AttributeError, IndexError) as err:
        raise CorruptFile(f"{release.path / 'quality.json'} lacks what a card shows: {err!r}; release again") from err


def write_card(release: Release, out: Path) -> tuple[Path, Path]:
    """Write quality.md and quality.html into a folder, made if it does not exist.

    Raises:
        InvalidArgument: it cannot be written.
    """
    found = card(release)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    paths = out / "quality.md", out / "quality.html"
    write_text(paths[0], to_markdown(found, has_figures=False))
    write_text(paths[1], to_html(found, {figure.name: svg_text(figure) for figure in found.figures}))
    return paths


def _subtitle(release: Release, quality: Facts) -> str:
    data, task = quality["data"], release.task
    parts = ", ".join(f"{data['parts'][part]} {part}" for part in SPLIT_PARTS)
    return (
        f"**{data['configs']} configs** ({parts}) of {task.title} were trained: {data['runs']} trainings of up to "
        f"{data['max_epoch']} epochs, {data['repeated_configs']} configs with more than one seed, "
        f"{sum(data['diverged_runs'].values())} trainings that diverged. Runtime is fitted to those that were timed, "
        "latency to those that were profiled, which can be fewer or more: see each metric's training configs. Scores "
        "are on the test configs, by models that were fitted on the training configs alone; a config counts with its "
        "first seed. What ships is fitted on training and validation configs together."
    )


def _opening(quality: Facts) -> Iterator[str | Block]:
    if warnings := [*_warnings(quality)]:
        yield "Beware"
        yield from (Text(line) for line in warnings)
    yield "At a glance"
    yield _table(
        (
            "metric",
            "training configs",
            "test configs",
            "R2, all epochs",
            "R2",
            "tau",
            "90 % interval",
            "ceiling",
            "tau within groups",
            "MAE",
            "tau, as shipped",
        ),
        [_glance(metric, facts) for metric, facts in _of_metrics(quality)],
    )
    yield Text(
        "But for the first R2, scores are of the last epoch. The ceiling is Kendall's tau between two trainings of the "
        "same config with different seeds, from all repeated configs in rows of the same kind; of latency it is that "
        "between two halves of the visits to each config, less than all visits together can give. A model that knew "
        "every mean could exceed it, since it has noise on one side only. “As shipped” is the model that was fitted "
        "again, on the same test configs."
    )
    yield f"What is required at {FULL_SIZE:,} configs"
    yield _table(
        ("metric", "score", "cut", "test configs", "value", "ceiling", "reached", "required", ""),
        [_required(entry) for entry in quality["requirements"]],
    )
    yield Text(
        "Tau is required as a share of its ceiling, R2 as it is. The ceiling of R2 is what a model that knew every "
        "mean could expect: half way from R2 between two trainings to 1."
    )


def _warnings(quality: Facts) -> Iterator[str]:
    data = quality["data"]
    if data["configs"] < FULL_SIZE:
        yield (
            f"{data['configs']} configs, not the {FULL_SIZE:,} that the requirements are for. Scores of so few test "
            "configs are coarse; look at the intervals."
        )
    of_trained = [group["train"] for group in data["groups"]]  # an older quality.json has no others
    by_counts: dict[tuple[int, ...], list[str]] = {}
    for metric, facts in _of_metrics(quality):
        by_counts.setdefault(tuple(facts.get("train_by_group", of_trained)), []).append(metric)
    for counts, metrics in by_counts.items():
        if n_small := sum(n < data["fewest"] for n in counts):
            yield (
                f"{', '.join(metrics)}: {n_small} of {len(counts)} fidelity groups have fewer than {data['fewest']} "
                f"training configs, {counts.count(0)} have none. Answers there are carried over from other groups."
            )
    for metric, reason in quality["missing"].items():
        yield f"there is no model of {metric}: {reason}."
    searches = [(metric, facts["search"]) for metric, facts in _of_metrics(quality)]
    if names := [metric for metric, search in searches if search is None]:
        yield f"not tuned, with default settings: {', '.join(names)}."
    if names := [metric for metric, search in searches if search is not None and not search["beats_default"]]:
        yield f"the search found nothing better than the default settings, which ship, cut to size: {', '.join(names)}."
    if names := [metric for metric, search in searches if search is not None and not search["is_of_this_split"]]:
        yield f"settings searched on older data: {', '.join(names)}."


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
        _score(test["cuts"]["all"]["model"]["r2"]),
        _score(last["model"]["r2"]),
        _score(last["model"]["tau"]),
        "–" if interval is None else f"{_score(interval[0])} to {_score(interval[1])}",
        _score(last["ceiling"]["tau"]),
        _score(test["tau_within_groups"]),
        _amount(last["model"]["mae"], metric),
        _score(shipped["model"]["tau"]),
    ]


def _required(entry: Facts) -> list[str]:
    is_share = entry["score"] == "tau"
    return [
        entry["metric"],
        f"{entry['score']} by ceiling" if is_share else entry["score"],
        entry["cut"],
        str(entry["n_configs"]),
        _score(entry["value"]),
        "none known" if entry["ceiling"] is None else _score(entry["ceiling"]),
        _score(entry["reached"]),
        f"{entry['required']:.2f}",
        _mark(entry),
    ]


def _mark(entry: Facts) -> str:
    if entry["is_met"] is None:
        return "cannot be said yet"
    if entry["is_met"]:
        return "reached"
    missed = "**not reached**" if entry["is_due"] else "not reached yet"
    is_beyond = entry["score"] == "r2" and entry["ceiling"] is not None and entry["ceiling"] < entry["required"]
    return f"{missed}; even the ceiling is lower" if is_beyond else missed


def _of_metrics(quality: Facts) -> list[tuple[str, Facts]]:
    return sorted(quality["metrics"].items(), key=lambda item: _ORDER.index(item[0]))


def _metrics(quality: Facts) -> Iterator[str | Block]:
    for metric, facts in _of_metrics(quality):
        yield metric
        yield Text(f"{METRICS[metric].description} {_made(facts)}")
        yield from plots_of(metric, facts)
        yield from _search(facts["search"])
        yield from _curve(facts["learning_curve"])
        if facts["test"] is not None:
            cuts = facts["test"]["cuts"]
            groups = [name for name in cuts if name.startswith("N=")]
            heads = ("cut", *_SCORES)
            rows = [_cut(metric, name, cut) for name, cut in cuts.items() if name not in groups]
            yield _table(heads, rows, title="Scores by cut")
            yield _table(heads, [_cut(metric, name, cuts[name]) for name in groups], title="Scores by fidelity group")


def _made(facts: Facts) -> str:
    settings, counts = facts["settings"], facts["refitted_on"]
    return (
        f"A forest of {settings['n_trees']} trees of depth {settings['max_depth']} ({facts['nodes']:,} nodes) over "
        f"{facts['features']['columns']} columns (“{facts['features']['name']}”), learning rate "
        f"{settings['learning_rate']:.3g}, fitted to {counts['rows']:,} rows of {counts['configs']:,} configs."
    )


def _search(found: Facts | None) -> Iterator[str | Block]:
    if found is None:
        return
    chosen, largest = found["chosen"], max(found["sizes"], key=lambda size: size["n_nodes"])
    verdict = "beats" if found["beats_default"] else "does not beat"
    yield Text(
        f"Search: {len(found['evaluations'])} evaluations on {found['n_valid_configs']} validation configs. The best "
        f"{verdict} the default's tau of {_score(found['default_tau'])}. Of its forests up to {largest['n_nodes']:,} "
        f"nodes (tau {_score(largest['tau'])}) the smallest that does as well ships: "
        f"{chosen['settings']['n_trees']} trees of depth {chosen['settings']['max_depth']}, tau "
        f"{_score(chosen['tau'])}."
    )


def _curve(found: Facts | None) -> Iterator[str | Block]:
    if found is None:
        return
    sizes = sorted({point["n_configs"] for point in found["points"]})
    known = sorted(
        found["predictions"].items(), key=lambda item: ("tau", "r2").index(item[0]) if len(item[0]) < 4 else 9
    )
    lines = [
        f"{name}: {_score(p['value'])} extrapolated by a power law to {p['n_configs']:,}, {100 * p['level']:.0f} % "
        f"interval {_score(p['low'])} to {_score(p['high'])}"
        for name, p in known
    ]
    lines += [f"{name}: not predicted, {reason}" for name, reason in found["not_predicted"].items()]
    yield Text(
        f"Learning curve: {len(found['points'])} fits to {sizes[0]:,} to {sizes[-1]:,} training configs, scored on the "
        f"validation configs; {'; '.join(lines)}."
    )


def _cut(metric: str, name: str, cut: Facts) -> list[str]:
    model, top = cut["model"], cut["ceiling"]
    return [
        name,
        str(model["n"]),
        _score(model["r2"]),
        _score(model["tau"]),
        _score(top["tau"]),
        _score(model["sparse_tau"]),
        _score(top["sparse_tau"]),
        _amount(model["rmse"], metric),
        _amount(top["rmse"], metric),
        _amount(model["mae"], metric),
        _amount(model["bias"], metric, is_signed=True),
        str(top["n"]),
    ]


def _closing(release: Release, quality: Facts) -> Iterator[str | Block]:
    yield "What is computed, not learned"
    yield Text(
        "Parameters and multiply-adds are exact functions of the config. Models of them, fitted as JAHS-Bench-201 does "
        "it and used nowhere, show what learning them would cost."
    )
    rows = []
    for metric, found in quality["compared"].items():
        error = found["relative_error"]
        shares = ["–", "–"] if error is None else [f"{100 * error[key]:.2f} %" for key in ("mean", "most")]
        rows.append([metric, str(found["n"]), _score(found["r2"]), _score(found["tau"]), *shares])
    yield _table(("metric", "test configs", "R2", "tau", "mean error", "largest error"), rows)
    yield from _noise(quality["noise"])
    references = quality["references"]
    yield "References in several objectives"
    if "reason" in references:
        yield Text(f"There are none: {references['reason']}.")
    else:
        yield Text(
            "The best known trade-offs of this release, each with a frozen reference point for the hypervolume: "
            + "; ".join(f"{', '.join(front['metrics'])} ({front['configs']} configs)" for front in references["fronts"])
            + "."
        )
    data = quality["data"]
    yield "Where the data are"
    yield _table(
        ("N", "W", "Resolution", "train", "valid", "test"),
        [[f"{group[key]:g}" for key in ("N", "W", "Resolution", "train", "valid", "test")] for group in data["groups"]],
        title="Configs in each fidelity group",
    )
    yield _table(
        ("machine", "trainings"),
        [[name, str(n)] for name, n in data["machines"].items()],
        title="Where runs were trained",
    )
    if (timed_on := data.get("timing_machine")) is not None:
        profiled_on = data["profile_machine"]
        yield Text(
            "Accuracies are those of all. One processor's seconds do not compare with another's: runtimes are those of "
            f"the trainings on {timed_on}{f', latencies those of {profiled_on}' if profiled_on else ''}."
        )
    facts = release.manifest.facts
    yield "Where this comes from"
    yield Text(
        "RUNS and SPLIT are the recorded runs and their split as they were at this commit; runs that were recorded "
        "later are not in this release."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts.get("versions", {}).items()))
    named = ("version", "protocol", "measurements", "split", "seed", "commit", "command")
    listed = [
        ["release" if name == "version" else name, f"`{facts[name]}`"] for name in named if facts.get(name) is not None
    ]
    yield _table(("what", "value"), [*listed, ["versions", versions]])


def _noise(noise: Facts) -> Iterator[str | Block]:
    yield "Noise between trainings"
    if "reason" in noise:
        yield Text(f"There is no model of it, so queries with a seed are refused: {noise['reason']}.")
        return
    n_repeated = noise["counts"]["repeated_configs"]
    n_timed = noise["counts"].get("timed_repeated_configs", n_repeated)
    yield Text(
        f"Fitted to {n_repeated} configs with several seeds, runtime to {n_timed}. The shares say how many held-out "
        "measurements the 90 % intervals hold: around earlier trainings of the same config (what a query with a seed "
        "draws), and around the prediction (the model's error included)."
    )
    if "not_held_out" in noise:
        yield Text(f"**Beware:** no share was measured fold by fold: {noise['not_held_out']}.")
    rows = [
        [
            found["metric"],
            {"seed": "earlier trainings", "outcome": "prediction"}[found["kind"]],
            found["epochs"],
            part,
            str(found["n_configs"]),
            f"{100 * found['share']:.1f} %",
            f"{100 * found['low']:.0f} to {100 * found['high']:.0f} %",
            f"{100 * found['width']:.1f} %" if found["metric"] == "runtime" else f"{found['width']:.2f} points",
        ]
        for part in ("folds", "test")
        for found in noise[part]
    ]
    heads = (
        "metric",
        "around",
        "epochs",
        "held out",
        "configs",
        "inside 90 %",
        "interval of the share",
        "median width",
    )
    yield _table(heads, rows)
    yield _table(
        ("metric, last epoch", "configs", "tau of two trainings", "of two draws", "mean difference", "of two draws"),
        [
            [
                found["metric"],
                str(found["n_configs"]),
                *(_score(found[key]) for key in ("measured_tau", "drawn_tau")),
                *(_difference(found[key], found["metric"]) for key in ("measured_difference", "drawn_difference")),
            ]
            for found in noise["realism"]
        ],
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> Table:
    """A table; one with a title is folded up."""
    n_labels = 2 if len(columns) == 2 else 1
    cells = tuple(tuple(row) for row in rows)
    return Table(caption=title, columns=tuple(columns), rows=cells, n_labels=n_labels, is_folded=bool(title))


def _difference(value: float, metric: str) -> str:
    return f"{100 * value:.2f} %" if metric == "runtime" else f"{value:.2f} points"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _amount(value: float | None, metric: str, *, is_signed: bool = False) -> str:
    sign = "+" if is_signed else ""
    unit = METRICS[metric].unit
    return "–" if value is None else f"{value:{sign}.3g} {'points' if unit == '%' else unit}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = new_parser("surrogate.card", __doc__, example="jahs/releases/fashion_mnist_mini --out card/")
    parser.add_argument("release", type=Path, help="a release folder")
    parser.add_argument("--out", type=Path, help="a folder for quality.md and quality.html")
    given = parser.parse_args(argv)

    def work() -> str:
        release = read_release(given.release)
        if given.out is None:
            return to_markdown(card(release), has_figures=False)
        return "\n".join(str(path) for path in write_card(release, given.out))

    return run_command("surrogate.card", work)
