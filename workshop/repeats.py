"""How far two trainings of the same configs agree."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jahs.comparison.summaries import Interval
from jahs.files.runs import sorted_runs
from jahs.files.tables import Table, take
from workshop.measured import last_rows
from workshop.ranks import kendall_tau_within
from workshop.resampling import bootstrap_estimates

FEWEST_PAIRS: Final = 10  # the bootstrap interval of a tau of few configs is too narrow


class Pairs(NamedTuple):
    """Two measurements of configs, and a number of the place of each; values of two places do not compare."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    place: NDArray[np.int64]

    def tau(self, at: NDArray[np.int64]) -> float:
        """Return Kendall's tau of the configs at these positions."""
        return kendall_tau_within(self.first[at], self.second[at], self.place[at])

    def repeats(self) -> Repeats:
        """Return tau over all configs with its 95 % interval."""
        if (n := len(self.first)) < FEWEST_PAIRS:
            return Repeats(n, None)
        return Repeats(n, *bootstrap_estimates(self.tau, n, level=0.95, n_resamples=500))


class Repeats(NamedTuple):
    """Kendall's tau between two measurements of `n` configs; None for fewer than ten."""

    n: int
    tau: Interval | None


def pairs_of_seeds(runs: Table) -> dict[str, Pairs]:
    """Return each metric after the last epoch of the first two finished runs of every config that has two.

    The two runtimes of a config are of one processor and version of torch, which timed other configs twice as well.
    """
    last = last_rows(sorted_runs(runs))
    last = take(last, (last["status"] == "finished") & (last["epoch"] == last["epoch"].max(initial=0)))
    timed = take(last, np.isfinite(last["runtime"]))
    accuracies = {name: _pairs(last, name, ["epoch"]) for name in ("train_acc", "valid_acc", "test_acc")}
    return {"runtime": _pairs(timed, "runtime", ["machine", "torch_version"]), **accuracies}


def _pairs(runs: Table, metric: str, place: list[str]) -> Pairs:
    """Return the first two values of every config that has two in one place; those of two places are two pairs.

    `place` is what identifies a place. One with a single config is left out. `runs` are in the order of seeds.
    """
    places = pd.DataFrame({key: runs[key] for key in place}).groupby(place).ngroup()
    values = pd.DataFrame({"config": runs["config_id"], "value": runs[metric].astype(np.float64), "place": places})
    n_before = values.groupby(["config", "place"]).cumcount()
    pairs = values[n_before == 0].merge(values[n_before == 1], on=["config", "place"], sort=True)
    pairs = pairs[pairs.groupby("place")["place"].transform("size") > 1]
    return Pairs(pairs["value_x"].to_numpy(), pairs["value_y"].to_numpy(), pairs["place"].to_numpy())
