"""The features that are computed: functions of a config's keys, costs, and columns of the cell and of its signal.

Parameters are named after their inputs. Functions take floats or float64 arrays, and give the same bits for either.
Each computes many columns: a query needs them all, and a call costs as much as several products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from jahs.models.features.timing import time_terms
from jahs.spaces.parameters import PARAMETERS

# Any, here and below: a float or a float64 array.
Formula: TypeAlias = Callable[..., Mapping[str, Any]]

_ACTIVATION: Final = PARAMETERS["Activation"].code_of


def published_rest(Activation: Any, TrivialAugment: Any) -> dict[str, Any]:
    """Return JAHS-Bench-201's columns of the choices that are neither operations nor sizes."""
    return {
        **{f"Activation_{name}": (Activation == _ACTIVATION[name]) * 1.0 for name in ("Hardswish", "Mish", "ReLU")},
        "Optimizer_SGD": 1.0,
        "TrivialAugment_True": TrivialAugment,
    }


def _training_terms(  # noqa: PLR0917  # called with positions: the fast path of a query
    LearningRate: Any, WeightDecay: Any, N: Any, W: Any, Resolution: Any,
    epoch: Any, schedule_spent: Any, schedule_now: Any,
    n_params: Any, n_live_paths: Any, effective_depth: Any, n_live_conv3x3: Any, widest_view: Any,
    signal_convs: Any, signal_pools: Any,
) -> dict[str, Any]:  # fmt: skip
    rate_decay = LearningRate * WeightDecay
    return {
        "rate_times_decay": rate_decay,
        "rate_over_decay": LearningRate / WeightDecay,
        "rate_times_N": LearningRate * N,
        "rate_times_W": LearningRate * W,
        "rate_over_W": LearningRate / W,
        "rate_times_params": LearningRate * n_params,
        "decay_times_params": WeightDecay * n_params,
        "rate_times_decay_times_N": rate_decay * N,
        "rate_times_live_paths": LearningRate * n_live_paths,
        "network_depth": N * effective_depth,
        "network_conv3x3": N * n_live_conv3x3,
        "network_view": N * widest_view / Resolution,
        "N_times_W": N * W,
        "W_times_resolution": W * Resolution,
        "epochs_per_conv": epoch / (1.0 + signal_convs),
        "pools_per_conv": signal_pools / (1.0 + signal_convs),
        "pools_per_resolution": signal_pools / Resolution,
        "rate_spent": LearningRate * schedule_spent,
        "rate_left": LearningRate * (1.0 - schedule_spent),
        "rate_now": LearningRate * schedule_now,
        "decay_spent": rate_decay * schedule_spent,
    }


def parameters_of(formula: Formula) -> tuple[str, ...]:
    """Return the names of a formula's inputs."""
    return tuple(signature(formula).parameters)


def columns_of(formula: Formula) -> tuple[str, ...]:
    """Return the names of a formula's outputs, in order."""
    return tuple(formula(**dict.fromkeys(parameters_of(formula), 1.0)))


FORMULAS: Final[Mapping[str, Formula]] = MappingProxyType(
    {name: formula for formula in (published_rest, _training_terms, time_terms) for name in columns_of(formula)}
)
"""The function that computes each column, by the column's name."""
