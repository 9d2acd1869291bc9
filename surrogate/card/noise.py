"""The card's section on the noise between trainings, from the facts of `surrogate.judging.noise`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from surrogate.card.cells import score_text, table_of
from surrogate.data.rows import Facts
from workshop.pages.document import Block, Text

_AROUND: Final = {"seed": "earlier trainings", "outcome": "prediction"}
_REGIONS: Final = {
    "all": "all",
    "full size": "full size",
    "best tenth": "predicted best tenth",
    "worst third": "predicted worst third",
}


def noise_blocks(noise: Facts) -> Iterator[Block]:
    """Yield the text and tables about a noise model, from what `surrogate.judging.noise.noise_of` found."""
    if "reason" in noise:
        yield Text(f"There is no noise model, so queries with a seed are refused: {noise['reason']}.")
        return
    n_repeated = noise["counts"]["repeated_configs"]
    n_timed = noise["counts"].get("timed_repeated_configs", n_repeated)
    yield Text(
        f"The noise model was fitted to {n_repeated} configs with several seeds; for runtime, {n_timed}. Coverage is "
        "the share of held-out measurements inside the 90 % intervals. An interval around earlier trainings of a "
        "config covers the noise that a query with a seed draws; one around the prediction covers the error of the "
        "model as well."
    )
    if "not_held_out" in noise:
        yield Text(f"**Warning:** there is no cross-validated coverage: {noise['not_held_out']}.")
    heads = (
        "metric", "interval around", "epochs", "held out", "configs", "coverage of 90 %",
        "90 % interval of the coverage", "median width",
    )  # fmt: skip
    yield table_of(heads, [_coverage(part, found) for part in ("folds", "test") for found in noise[part]])
    two = (
        "metric, last epoch", "configs", "tau of two runs", "tau of two draws", "mean absolute difference of two runs",
        "mean absolute difference of two draws",
    )  # fmt: skip
    rows = []
    for found in noise["realism"]:
        taus = [score_text(found[key]) for key in ("measured_tau", "drawn_tau")]
        differences = [_width(found[key], found["metric"], 2) for key in ("measured_difference", "drawn_difference")]
        rows.append([found["metric"], str(found["n_configs"]), *taus, *differences])
    yield table_of(two, rows)
    if found := noise.get("seed_sd"):  # an older release has none
        yield from _seed_sd(found)


def _seed_sd(found: Sequence[Facts]) -> Iterator[Block]:
    """Yield the standard deviations between trainings by region, measured and drawn."""
    heads = (
        "metric, last epoch", "repeated configs", "number of configs", "degrees of freedom",
        "sd between trainings, measured", "sd between trainings, drawn", "drawn / measured (95 % interval)",
    )  # fmt: skip
    rows = []
    for one in found:
        shares = [_width(one[key], one["metric"], 2) for key in ("measured", "drawn")]
        ratio = f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
        about = [one["metric"], _REGIONS[one["region"]], str(one["n_configs"]), str(one["freedom"])]
        rows.append([*about, *shares, ratio])
    yield table_of(heads, rows)
    outside = [f"{one['metric']}, {_REGIONS[one['region']]}" for one in found if not one["low"] <= 1 <= one["high"]]
    yield Text(
        "Both are pooled over the repeated configs; best and worst are chosen by prediction. The interval resamples "
        "configs. "
        + (f"**It does not include 1 for: {'; '.join(outside)}.**" if outside else "It includes 1 in every line.")
    )


def _coverage(part: str, found: Facts) -> list[str]:
    about = [found["metric"], _AROUND[found["kind"]], found["epochs"], part, str(found["n_configs"])]
    interval = f"{100 * found['low']:.0f} to {100 * found['high']:.0f} %"
    return [*about, f"{100 * found['share']:.1f} %", interval, _width(found["width"], found["metric"], 1)]


def _width(value: float, metric: str, digits: int) -> str:
    return f"{100 * value:.{digits}f} %" if metric == "runtime" else f"{value:.2f} points"
