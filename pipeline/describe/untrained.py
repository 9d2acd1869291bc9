"""How well scores of untrained networks rank configs: Kendall's tau, Spearman, and overlap at the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.cost import n_params
from jahs.schema import CONFIG_KEYS, PROXIES
from jahs.spaces.encoding import encode
from pipeline.describe.measured import Measured
from workshop.overlap import choose_p, webber_overlap
from workshop.ranks import kendall_tau, kendall_tau_within, spearman

__all__ = ["Orders", "random_overlap", "untrained_agreement"]

_TOP: Final = 0.1  # the share of configs that gets most of the weight of the overlap
_FEWEST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """How well a score ranks configs by their validation accuracy at the last epoch."""

    n_known: int  # configs whose score is not NaN
    tau: float
    spearman: float
    overlap: float  # rank-biased, with 90 % of its weight on the best tenth
    tau_within: float  # the mean over fidelity groups, weighted by their numbers of pairs


def untrained_agreement(measured: Measured) -> dict[str, Orders]:
    """Compare every score with the accuracy at the last epoch; nothing where fewer than 20 configs are scored."""
    ids, at, of_proxy = np.intersect1d(
        measured.configs["config_id"], measured.proxies["config_id"], return_indices=True
    )
    if len(ids) < _FEWEST:
        return {}
    X = encode({key: measured.configs[key][at] for key in CONFIG_KEYS}, 1)
    scores: dict[str, NDArray[np.float64]] = {
        **{f"`{name}`": measured.proxies[name][of_proxy].astype(np.float64) for name in PROXIES},
        "parameters": np.asarray(n_params(X, measured.task), dtype=np.float64),
        "multiply-adds": measured.macs[at],
        "accuracy after one epoch": measured.curves["valid_acc"][at, 0],
    }
    final, group = measured.final[at], measured.group[at]
    return {name: _orders(values, final, group) for name, values in scores.items()}


def random_overlap(measured: Measured) -> float:
    """Return the expected rank-biased overlap of two random rankings of the scored configs."""
    n = int(np.isin(measured.configs["config_id"], measured.proxies["config_id"]).sum())
    return webber_overlap(np.zeros(n), np.zeros(n), p=choose_p(n, top_share=_TOP))  # ties are broken at random


def _orders(scores: NDArray[np.float64], final: NDArray[np.float64], group: NDArray[np.int64]) -> Orders:
    is_known = ~np.isnan(scores)
    ranked = np.where(is_known, scores, -np.inf)
    return Orders(
        n_known=int(is_known.sum()),
        tau=kendall_tau(ranked, final),
        spearman=spearman(ranked, final),
        overlap=webber_overlap(ranked, final, p=choose_p(len(final), top_share=_TOP)),
        tau_within=kendall_tau_within(ranked, final, group),
    )
