"""The card's sections on the noise between trainings and on refits: facts of `judging.noise` and `.uncertainty`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from surrogate.card.cells import amount_text, score_text, table_of
from surrogate.data.rows import Facts
from workshop.pages.document import Block, Table, Text

_AROUND: Final = {"seed": "earlier trainings", "outcome": "prediction"}
_REGIONS: Final = {
    "all": "all",
    "full size": "full size",
    "best tenth": "predicted best tenth",
    "worst third": "predicted worst third",
}
_ORDER: Final = ("valid_acc", "test_acc", "train_acc")
_ANSWERS: Final = {"model": "model", "refit": "one refit, on average", "mean_of_refits": "mean of the refits"}
_BY: Final = {"by_model_sd": "model sd", "by_distance": "distance to the training configs"}
_ORDERED: Final = 0.25


def noise_blocks(noise: Facts) -> Iterator[Block]:
    """Yield the text and tables about a noise model, from what `surrogate.judging.noise.noise_of` found."""
    if "reason" in noise:
        yield Text(f"There is no noise model, so queries with a seed are refused: {noise['reason']}.")
        return
    counts = noise["counts"]
    yield Text(
        f"The noise model was fitted to {counts['repeated_configs']} configs with several seeds; for runtime, "
        f"{counts['timed_repeated_configs']}. Coverage is the share of held-out measurements inside the 90 % "
        "intervals. An interval around earlier trainings of a config covers the noise that a query with a seed draws; "
        "one around the prediction covers the error of the model as well."
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
    if found := noise["seed_sd"]:
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


def uncertainty_blocks(found: Facts) -> Iterator[Block]:
    """Yield the text and tables about refits."""
    yield Text(
        f"Each accuracy has {found['n_refits']} refits: models fitted again to configs resampled with replacement, "
        f"with {100 * found['share']:.0f} % of the trees. In `bench.predict`, the error of the model "
        "is the standard deviation between refits, times a scale chosen on the validation configs; the training noise "
        "is added to it. The figures are for test configs, with models and refits fitted to the training configs."
    )
    if "reason" in found:
        yield Text(f"The intervals are not calibrated: {found['reason']}.")
    judged = [(metric, found["metrics"][metric]) for metric in _ORDER if metric in found["metrics"]]
    judged = [(metric, facts) for metric, facts in judged if facts["scores"] is not None]
    if judged:
        yield _refit_scores(judged)
        yield _refit_coverage(judged)
        yield Text(
            "Coverage is the share of test runs inside their interval; every config has the same weight. Brackets give "
            "the 90 % interval of the coverage. The predicted best tenth is selected by prediction."
        )
        yield _refit_errors(judged)
        yield Text(_about_distance(judged))


def _refit_scores(judged: Sequence[tuple[str, Facts]]) -> Table:
    rows = [
        [metric, title, score_text(facts["scores"][name]["tau"]), amount_text(facts["scores"][name]["mae"], metric)]
        for metric, facts in judged
        for name, title in _ANSWERS.items()
    ]
    return table_of(("metric, last epoch", "predicted by", "tau", "MAE"), rows)


def _refit_coverage(judged: Sequence[tuple[str, Facts]]) -> Table:
    levels = sorted({entry["level"] for _, facts in judged for entry in facts["coverage"]})
    coverages = [f"coverage of {100 * level:.0f} %" for level in levels]
    rows = []
    for metric, facts in judged:
        for cut in dict.fromkeys(entry["cut"] for entry in facts["coverage"]):
            by_level = {entry["level"]: entry for entry in facts["coverage"] if entry["cut"] == cut}
            shares = [
                f"{100 * entry['share']:.0f} % ({100 * entry['low']:.0f} to {100 * entry['high']:.0f} %)"
                for entry in (by_level[level] for level in levels)
            ]
            title = "predicted best tenth" if cut == "best tenth" else cut
            labels = [metric, f"{facts['scale']:.1f}", title, str(by_level[0.9]["n_configs"])]
            rows.append([*labels, *shares, f"{by_level[0.9]['width']:.2f} points"])
    return table_of(["metric", "scale", "test rows", "configs", *coverages, "median width of 90 %"], rows)


def _refit_errors(judged: Sequence[tuple[str, Facts]]) -> Table:
    heads = (
        "metric, last epoch", "score", "tau with the absolute error", "tau between tenths", "MAE of the lowest tenth",
        "MAE of the highest tenth",
    )  # fmt: skip
    rows = []
    for metric, facts in judged:
        for key, title in _BY.items():
            by = facts[key]
            ends = [amount_text(by["mae"][i], metric) for i in (0, -1)]
            rows.append([metric, title, score_text(by["tau"]), score_text(by["tau_of_bins"]), *ends])
    return table_of(heads, rows)


def _about_distance(judged: Sequence[tuple[str, Facts]]) -> str:
    taus = [facts["by_distance"]["tau_of_bins"] for _, facts in judged]
    is_ordered = all(tau is not None and tau >= _ORDERED for tau in taus)
    verdict = "orders" if is_ordered else "does not order"
    so = (
        "as the model sd does"
        if is_ordered
        else "so `bench.predict` does not return it; the model sd is the score to use"
    )
    return (
        "The distance is the mean over the five nearest training configs, in ranks of the model's features. It "
        f"{verdict} the absolute errors of every metric (tau between tenths of at least {_ORDERED} is required), {so}."
    )
