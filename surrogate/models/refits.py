"""Refits: the models of the accuracies, fitted again to resampled configs. Their spread shows the error of the model.

Refit k draws as many configs as there are, with replacement. A config, with all its epochs and seeds, is weighted by
the number of times it was drawn; the draw is the same for all accuracies with the same configs. Refits have the
settings of the tuned model, except that all refits of a release must fit into `MOST_BYTES`: leaves have at least 20
rows and values of 7 significant bits, and a column has 64 thresholds, the same for every refit. Deep trees are replaced
by more and shallower ones: refits with 480 trees of depth 5 agree on the best configs as well as refits with all 400
trees of depth 8, and those with 80 of them, which take as much space, do not (decision 20). If that is still too large,
there are fewer trees with larger steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.forest import Forest, forest_from_xgboost, save_forest
from jahs.release.models import Models, RefitPack
from surrogate.data.rows import Rows
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, booster_json, fit_again
from workshop.jobs import in_processes

N_REFITS: Final = 8
MOST_BYTES: Final = 1_200_000  # largest size of all forests of a task's refits
_MOST_DEPTH: Final = 5
_SHALLOW: Final[Mapping[str, Any]] = {"max_depth": _MOST_DEPTH, "n_trees": 480, "learning_rate": 0.08}
_FEWEST_IN_LEAF: Final = 20
_N_BINS: Final = 64
_BITS: Final = 6  # bits of the mantissa that are kept, besides the first
_SHARES: Final = tuple(round(share / 20, 2) for share in range(20, 0, -1))
_ROOM: Final = 0.98


def weights_of(config_id: NDArray[np.uint64], *, refit: int, seed: int) -> NDArray[np.float64]:
    """Return the weight of each row in a refit: the number of times that its config was drawn with replacement."""
    ids, place = np.unique(config_id, return_inverse=True)
    drawn = np.random.default_rng([seed, refit]).integers(len(ids), size=len(ids))
    return np.bincount(drawn, minlength=len(ids)).astype(np.float64)[place]


def refit_settings(settings: ForestSettings, *, refit: int, share: float) -> ForestSettings:
    """Return the settings of a refit, with a share of the trees of the model or of those that replace deep ones."""
    if settings.max_depth > _MOST_DEPTH:
        settings = dataclasses.replace(settings, **_SHALLOW)
    return dataclasses.replace(
        settings,
        n_trees=max(round(share * settings.n_trees), 1),
        learning_rate=min(settings.learning_rate / share, 1.0),
        min_child_weight=max(settings.min_child_weight, _FEWEST_IN_LEAF),
        seed=refit,
    )


def fit_refits(
    training: Mapping[str, Rows],
    fitted: Mapping[str, Surrogate],
    *,
    share: float,
    seed: int,
    n_refits: int = N_REFITS,
    workers: int = 1,
) -> dict[str, list[Surrogate]]:
    """Return the refits of each metric; the number of workers does not change a byte.

    Args:
        training: the rows of the accuracies; those with the same configs share the resampled ones.
        fitted: the tuned models.
    """
    calls = [
        {
            "model": fitted[metric],
            "rows": rows,
            "settings": refit_settings(fitted[metric].settings, refit=k, share=share),
            "weights": weights_of(rows.config_id, refit=k, seed=seed),
            "n_bins": _N_BINS,
        }
        for metric, rows in training.items()
        for k in range(n_refits)
    ]
    models = iter(in_processes(fit_again, calls, workers=workers))
    return {metric: [next(models) for _ in range(n_refits)] for metric in training}


def refit_share(
    training: Mapping[str, Rows],
    fitted: Mapping[str, Surrogate],
    *,
    n_refits: int = N_REFITS,
    most_bytes: int = MOST_BYTES,
    workers: int = 1,
) -> float:
    """Return the largest share of the trees with which all refits are small enough, estimated from refit 0."""
    first = fit_refits(training, fitted, share=1.0, seed=0, n_refits=1, workers=workers)
    size = n_refits * sum(_size(_forest([models[0]])) for models in first.values())
    for share in _SHARES:
        if share * size <= _ROOM * most_bytes:
            return share
    raise InvalidArgument(f"{n_refits} refits have {size:,} bytes, more than the {most_bytes:,} allowed; make fewer")


def pack_refits(
    fitted: Mapping[str, Sequence[Surrogate]], models: Models
) -> tuple[tuple[RefitPack, ...], list[Forest]]:
    """Return the packs of a release's refits and the forest of each; see `jahs.release.models`."""
    places = sorted({models.metrics[metric].pack for metric in fitted})
    packs, forests = [], []
    for i, place in enumerate(places):
        metrics = tuple(
            metric for metric in models.metrics if metric in fitted and models.metrics[metric].pack == place
        )
        packs.append(RefitPack(file=f"refits-{i}.npz", pack=place, metrics=metrics))
        forests.append(_forest([model for refit in zip(*(fitted[m] for m in metrics), strict=True) for model in refit]))
    return tuple(packs), forests


def _forest(models: Sequence[Surrogate]) -> Forest:
    """Return the forests of models with leaves of few significant bits, which compress well."""
    forest = forest_from_xgboost([booster_json(model) for model in models])
    mantissa, exponent = np.frexp(forest.node_value)
    scale = np.float32(2 ** (_BITS + 1))
    return dataclasses.replace(forest, node_value=np.ldexp(np.rint(mantissa * scale) / scale, exponent))


def _size(forest: Forest) -> int:
    """Return the size of a forest's file in bytes."""
    with TemporaryDirectory() as folder:
        save_forest(forest, path := Path(folder) / "forest.npz")
        return path.stat().st_size
