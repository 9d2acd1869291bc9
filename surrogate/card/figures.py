"""The figures that `surrogate.figures` measures: their file, and the section of a card that judges them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.release import Release
from surrogate.data.rows import Facts
from workshop.folders import write_text
from workshop.pages.document import Block, Table, Text, answer

_FORMAT: Final = 1
_NOT_YET: Final = "not measured yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A figure of the table."""

    title: str
    required: str
    place: tuple[str, ...]  # its keys in the figures
    is_met: Callable[[float], bool]  # whether a value meets the requirement
    has_final: bool = False  # whether it is measured on the final test set as well, under the key `final`


_LINES: Final = (
    _Line(
        title="full size, predicted best tenth: MAE / seed sd",
        required="≤ 1.2", place=("ordinary", "mae"), is_met=lambda v: v <= 1.2, has_final=True,
    ),
    _Line(
        title="full size, predicted best tenth: bias / seed sd",
        required="within 0.35 of 0", place=("ordinary", "bias"), is_met=lambda v: abs(v) <= 0.35, has_final=True,
    ),
    _Line(
        title="full size, measured top quarter: tau / noise ceiling",
        required="≥ 0.75", place=("ordinary", "top_quarter"), is_met=lambda v: v >= 0.75, has_final=True,
    ),
    _Line(
        title="ten best of a long search: mean of trained minus predicted / seed sd",
        required="within 0.5 of 0", place=("search",), is_met=lambda v: abs(v) <= 0.5,
    ),
    *(
        _Line(
            title=f"best 1 % at full size: {measure} of two {fits}",
            required=f"≥ {least:.2f}", place=(key, measure), is_met=partial(operator.le, least),
        )
        for fits, key in (("fits, each to 7/8 of the configs", "refits"), ("of the refits that ship", "shipped_refits"))
        for measure, least in (("overlap", 0.80), ("tau", 0.45))
    ),
    _Line(
        title="uniform configs, last epoch: tau / noise ceiling of uniform configs",
        required="≥ 0.935", place=("ordinary", "uniform"), is_met=lambda v: v >= 0.935,
    ),
    _Line(
        title="mean rank correlation between two sizes: predicted minus measured",
        required="within 0.07 of 0", place=("sizes", "difference"), is_met=lambda v: abs(v) <= 0.07,
    ),
)  # fmt: skip


_DIFFERENCES: Final = (
    ("between two configs, judged by refits", ("shipped_refits", "difference")),
    ("between two configs, judged by one training of each", ("trained", "one_run")),
    ("between the final means of two optimisers with ten runs each, judged by trainings", ("trained", "ten_runs")),
)


def write_figures(path: Path, found: Facts) -> None:
    """Write figures, whole or not at all."""
    write_text(path, sealed_text({**found, "figures_format": _FORMAT}))


def read_figures(path: Path) -> Facts:
    """Read figures."""
    figures = read_sealed(path)
    if figures.get("figures_format") != _FORMAT:
        raise CorruptFile(f"{path} holds no figures of format {_FORMAT}; run python -m surrogate.figures again")
    return figures


def figures_of(path: Path, release: Release) -> Facts:
    """Read the figures of a release.

    Raises:
        ProtocolMismatch: they belong to another release.
    """
    figures = read_figures(path)
    if not release.answers_as & set(figures["answers_as"]):
        raise ProtocolMismatch(
            f"{path} has the figures of release {figures['release']}, not of {release.sha256}; run python -m "
            "surrogate.figures on this one"
        )
    return figures


def figures_blocks(found: Facts | None) -> Iterator[str | Block]:
    """Yield the section; without figures, every line says that it is not measured yet."""
    yield "Where optimisers go"
    yield Table(
        caption="",
        columns=("figure, valid_acc at the last epoch", "required", "value", "final test set", "verdict"),
        rows=tuple(_cells(line, found) for line in _LINES),
        n_labels=2,
    )
    yield Text(
        "In brackets: the 90 % interval, and the number of configs (of fits, for the best 1 %). Errors are predicted "
        "minus measured, for one run of each config; the unit is the standard deviation between seeds of the same "
        "config there. The value of the first three lines is for the ordinary test configs; the verdict is for the "
        "final test set if there is one. The best 1 % are chosen among 20,000 random configs at full size; their tau "
        "is over the configs that either fit ranks among them. Two fits to 7/8 of the configs share 6/7 of them, which "
        "favours agreement; the refits that ship were fitted to bootstrap samples, with fewer trees. The correlations "
        "between sizes are predicted by models that were fitted to no config with the same cell and hyperparameters."
    )
    yield Text(_about_final(found))
    if found is None:
        return
    if missing := [*_missing(found)]:
        yield Text(f"{_NOT_YET.capitalize()}: {'; '.join(missing)}.")
    if found["sizes"]["measured"]["value"] is not None:
        both = (found["sizes"][name]["value"] for name in ("measured", "predicted"))
        yield Text("Mean rank correlation between two sizes: measured {:.3f}, predicted {:.3f}.".format(*both))
    yield from _sources(found)
    yield from _fits(found)


def verdict_blocks(found: Facts | None) -> Iterator[str | Block]:
    """Yield what users can tell apart with the release."""
    differences = [(title, _at(place, found)) for title, place in _DIFFERENCES]
    if not any(figure and figure["value"] is not None for _, figure in differences):
        return
    yield "What the release can tell apart"
    yield answer(
        "Among the best tenth at full size and the last epoch, predicted differences of at least this size have the "
        f"right sign in 95 % of the cases: {'; '.join(f'{_points(figure)} {title}' for title, figure in differences)}."
    )
    yield Text(
        "Points of validation accuracy, with 90 % intervals. For refits: the shipped ones, on the predicted best tenth "
        "of 20,000 random configs. For trainings: recorded configs, predicted by models that were not fitted to them; "
        "the runs of an optimiser are assumed to end at different configs. `python -m surrogate.figures` measures this."
    )


def _points(figure: Facts | None) -> str:
    if figure is None or figure["value"] is None:
        return f"({_NOT_YET})"
    low, high = figure["interval"]
    return f"{figure['value']:.1f} points ({low:.1f} to {high:.1f})"


def figure_values(found: Facts) -> list[tuple[str, str]]:
    """Return title and value of every figure, on the ordinary test part if it has two test sets."""
    return [(line.title, _shown(_both(line, found)[0])) for line in _LINES]


def _about_final(figures: Facts | None) -> str:
    if figures is None or (counts := figures["final_counts"]) is None:
        return "There is no final test set yet."
    groups = ", ".join(f"{count} {group}" for group, count in counts.items())
    reads = "once" if figures["n_reads"] == 1 else f"{figures['n_reads']} times"
    return (
        f"The final test set has {sum(counts.values())} configs at full size ({groups}). No feature, setting, split or "
        f"round was chosen by it. Its measurements were read {reads} so far."
    )


def _cells(line: _Line, figures: Facts | None) -> tuple[str, ...]:
    value, final = _both(line, figures)
    judged = final if line.has_final else value
    verdict = "–"
    if judged is not None and judged["value"] is not None:
        verdict = "reached" if line.is_met(judged["value"]) else "not reached"
    return line.title, line.required, _shown(value), _shown(final) if line.has_final else "–", verdict


def _both(line: _Line, figures: Facts | None) -> tuple[Facts | None, Facts | None]:
    """Return a figure on the ordinary test part, and on the final test set."""
    final = _at(("final", *line.place[1:]), figures) if line.has_final else None
    return _at(line.place, figures), final


def _at(place: tuple[str, ...], figures: Facts | None) -> Facts | None:
    value: Any = figures
    for key in place:
        value = (value or {}).get(key)  # figures of an older release lack some
    return value  # type: ignore[no-any-return]  # a figure


def _shown(figure: Facts | None) -> str:
    if figure is None or figure["value"] is None:
        return _NOT_YET
    interval = figure["interval"]
    reach = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}; "
    return f"{figure['value']:.3f} ({reach}{figure['n']})"


def _missing(figures: Facts) -> Iterator[str]:
    for line in _LINES:
        value, final = _both(line, figures)
        for where, figure in (("", value), (", final test set", final)):
            if figure is not None and figure["value"] is None:
                yield f"{line.title}{where}: {figure['missing']}"


def _sources(figures: Facts) -> Iterator[Block]:
    if not figures["sources"]:
        return
    rows = []
    for source in figures["sources"]:
        scores = [_score(source[how], name) for name in ("r2", "tau") for how in ("without", "with")]
        scores.append(_score(source, "ceiling"))
        rows.append((source["source"], str(source["n_train"]), str(source["n_test"]), *scores))
    yield Text(
        "Sources left out: scores on the test configs of a source, at the last epoch, of models fitted to the training "
        "configs without that source and with it, and the noise ceiling of tau: repeated configs of that source."
    )
    heads = (f"{score} {how}" for score in ("R2", "tau") for how in ("without", "with"))
    columns = ("source", "training configs", "test configs", *heads, "ceiling of tau")
    yield Table(caption="", columns=columns, rows=tuple(rows))


def _score(scores: Facts | None, name: str) -> str:
    return _NOT_YET if scores is None or scores.get(name) is None else f"{scores[name]:.3f}"


def _fits(figures: Facts) -> Iterator[Block]:
    if not (fits := figures.get("fits")):
        return
    yield Text(
        f"Comparison of fits by cross-validation over {fits['n_configs']} train and validation configs "
        f"(`python -m surrogate.top_fits`): {fits['verdict']} by this rule: a gain at the top may cost at most "
        f"{fits['most_lost']} of tau over the whole space. The section of each metric says what its shipped model "
        "learned from, and `docs/decisions/0017` why that may be more. In brackets: the 90 % interval of the "
        "difference from the current fit."
    )
    yield Table(caption="", columns=tuple(fits["columns"]), rows=tuple(tuple(row) for row in fits["rows"]))
