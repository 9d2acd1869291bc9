"""The plots of a card, each from the facts of one metric in quality.json; None where there is nothing to show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, TypeAlias

from jahs.metrics import METRICS
from surrogate.dataset import GROUP_VALUES
from surrogate.drawing import Axis, Panel, axis

__all__ = ["plots_of"]

Facts: TypeAlias = Mapping[str, Any]
"""JSON."""

_KINDS: Final = ("three", "two", "one")


def plots_of(metric: str, facts: Facts) -> Iterator[str]:
    """Yield what there is to show of a metric, in the order in which it is read."""
    found = (
        predicted_against_measured(metric, facts),
        residuals(facts),
        calibration(metric, facts),
        tau_by_epoch(metric, facts),
        learning_curve(facts),
        search(facts),
        sizes(facts),
    )
    yield from (svg for svg in found if svg is not None)


def predicted_against_measured(metric: str, facts: Facts) -> str | None:
    """A dot for each test config at the last epoch; the colour is its Resolution."""
    test = facts["test"]
    if test is None:
        return None
    points = test["points"]
    values = [value for point in points for value in point[:2]]
    is_log = METRICS[metric].unit == "s"
    x, y = (axis(f"{which}, {_unit(metric)}", values, is_log=is_log) for which in ("measured", "predicted"))
    panel = Panel("Predicted and measured", x, y)
    panel.line([(x.low, x.low), (x.high, x.high)], "soft", is_dashed=True)
    for k, kind in enumerate(_KINDS):
        panel.dots([(a, b) for a, b, group in points if int(group) % 3 == k], kind)
    panel.legend(list(zip(("Resolution 0.25", "0.5", "1"), _KINDS, strict=True)))
    return panel.svg()


def calibration(metric: str, facts: Facts) -> str | None:
    """Means of measurements by decile of the prediction, with two standard errors."""
    test = facts["test"]
    if test is None or len(test["calibration"]) < 2:
        return None
    bins = test["calibration"]
    is_log = METRICS[metric].unit == "s"
    x, y = (
        axis(f"{label}, {_unit(metric)}", [b[key] for b in bins for key in ("predicted", "measured")], is_log=is_log)
        for label, key in (("predicted", "predicted"), ("measured", "measured"))
    )
    panel = Panel("Calibration, means by decile", x, y)
    panel.line([(x.low, x.low), (x.high, x.high)], "soft", is_dashed=True)
    for found in bins:
        reach = 2 * (found["spread"] or 0.0)
        low, high = found["measured"] - reach, found["measured"] + reach
        panel.line([(found["predicted"], max(low, y.low)), (found["predicted"], min(high, y.high))], "one")
    panel.dots([(found["predicted"], found["measured"]) for found in bins], "one", radius=3.6)
    return panel.svg()


def tau_by_epoch(metric: str, facts: Facts) -> str | None:
    """Kendall's tau of every epoch beside its ceiling."""
    test = facts["test"]
    if test is None or not METRICS[metric].by_epoch:
        return None
    lines = {
        key: [(row["epoch"], row[key]) for row in test["tau_by_epoch"] if row[key] is not None]
        for key in ("tau", "ceiling")
    }
    if len(lines["tau"]) < 2:
        return None
    values = [value for line in lines.values() for _, value in line]
    x = axis("epoch", [row["epoch"] for row in test["tau_by_epoch"]], is_whole=True)
    panel = Panel("Kendall's tau by epoch", x, axis("tau", values, high=1.0))
    panel.line(lines["ceiling"], "two", is_dashed=True)
    panel.line(lines["tau"], "one")
    panel.dots(lines["tau"], "one", radius=3)
    panel.legend([("model", "one"), ("two seeds", "two")])
    return panel.svg()


def residuals(facts: Facts) -> str | None:
    """Errors at the last epoch for each fidelity group: all, the middle half, the median."""
    test = facts["test"]
    if test is None:
        return None
    scale, label = (
        (100, "predicted less measured, %") if test["is_relative"] else (1, "predicted less measured, points")
    )
    groups = test["residuals"]
    reach = max(abs(value) for group in groups for value in group["quantiles"]) * scale * 1.05 or 1.0
    x = Axis(label=label, low=-reach, high=reach)
    names = [_short_name(group["group"]) + f" ({group['n']})" for group in reversed(groups)]
    height = 532 if len(groups) > 12 else 260
    panel = Panel(
        "Errors by group (configs)",
        x,
        Axis(label="", low=-0.7, high=len(groups) - 0.3),
        height=height,
        left=104,
        kind="tall plot" if height > 260 else "plot",
    )
    panel.line([(0, -0.7), (0, len(groups) - 0.3)], "soft", is_dashed=True)
    for row, group in enumerate(reversed(groups)):
        least, low, middle, high, most = (scale * value for value in group["quantiles"])
        panel.line([(least, row), (most, row)], "one")
        panel.box((low, row - 0.32), (high, row + 0.32), "one")
        panel.dots([(middle, row)], "one", radius=3)
    return panel.svg(rows=names)


def learning_curve(facts: Facts) -> str | None:
    """Validation tau by training configs, and what the power law says for the full collection."""
    found = facts["learning_curve"]
    if not found or not (points := [(p["n_configs"], p["tau"]) for p in found["points"] if p["tau"] is not None]):
        return None
    predicted = found["predictions"].get("tau")
    ends = [] if predicted is None else [predicted[key] for key in ("low", "value", "high")]
    sizes = [n for n, _ in points] + ([] if predicted is None else [predicted["n_configs"]])
    x = axis("training configs", sizes, is_log=True)
    least = max(min([*(tau for _, tau in points), *ends]), -0.2)
    panel = Panel("Learning curve, validation tau", x, axis("tau", [least, *ends, 1.0], high=1.0))
    panel.dots(points, "one")
    by_size = {n: [tau for m, tau in points if m == n] for n in sorted({n for n, _ in points})}
    panel.line([(n, sum(taus) / len(taus)) for n, taus in by_size.items()], "one")
    if predicted is not None:
        n = predicted["n_configs"]
        panel.line([(n, predicted["low"]), (n, predicted["high"])], "two")
        panel.dots([(n, predicted["value"])], "two", radius=4)
        panel.legend([("measured", "one"), (f"predicted, {100 * predicted['level']:.0f} %", "two")])
    return panel.svg()


def search(facts: Facts) -> str | None:
    """Validation tau of each evaluation of the search, the best so far, and the default."""
    found = facts["search"]
    tried = [] if found is None else [(e["number"], e["tau"]) for e in found["evaluations"] if e["tau"] is not None]
    if not tried:
        return None
    default = found["default_tau"]
    values = [tau for _, tau in tried] + ([] if default is None else [default])
    middle = sorted(values)[len(values) // 2]
    low = max(min(values), middle - 3 * (max(values) - middle + 0.01))  # one bad setting must not flatten all others
    x = axis("evaluation", [n for n, _ in tried], is_whole=True)
    panel = Panel("Search, validation tau", x, axis("tau", [low, max(values)]))
    if default is not None:
        panel.line([(x.low, default), (x.high, default)], "soft", is_dashed=True)
    panel.dots(tried, "one")
    numbers = [n for n, _ in tried]
    panel.line(list(zip(numbers, accumulate((tau for _, tau in tried), max), strict=True)), "two")
    panel.legend([("tried", "one"), ("best so far", "two"), ("default", "soft")])
    return panel.svg()


def sizes(facts: Facts) -> str | None:
    """Validation tau by the size of the forest; the ring is the one that ships."""
    found = facts["search"]
    measured = [] if found is None else [(s["n_nodes"], s["tau"]) for s in found["sizes"] if s["tau"] is not None]
    if not measured:
        return None
    x = axis("nodes", [n for n, _ in measured], is_log=True)
    panel = Panel("Size of the forest, validation tau", x, axis("tau", [tau for _, tau in measured]))
    panel.dots(measured, "one")
    chosen = found["chosen"]
    if chosen["tau"] is not None:
        panel.dots([(chosen["n_nodes"], chosen["tau"])], "two", radius=6, mark="ring")
    panel.legend([("measured", "one"), ("ships", "two")])
    return panel.svg()


def _unit(metric: str) -> str:
    return METRICS[metric].unit


def _short_name(group: int) -> str:
    return " ".join(f"{key[0]}{value:g}" for key, value in GROUP_VALUES[group].items())
