"""The rank correlation of variants of `ntk` or `zen` with NAS-Bench-201's accuracies.

The zero-cost benchmark has -0.25 and 0.35; `experiments.nasbench201` differs by more than 0.08. Variants of `ntk` are
batch size, mode, initialisation and network size; variants of `zen` differ in the BatchNorm term of the score. All
variants score the same cells, the first ones of the stratified sample of data/nasbench201; cells without a score are
left out. This takes 25 CPU seconds per cell for `ntk`, one for `zen`; four of them for one variant of `ntk` alone.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.proxy_variants zen ACCURACIES.csv CIFAR10_DIR [CELLS [VARIANT]]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import torch

from jahs.files.runs import read_configs
from jahs.files.tables import take
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.cell.index import nb201_indices
from jahs.spaces.columns import rows
from pipeline.data import load_images
from pipeline.one_core import one_core
from pipeline.probe import Undefined, fresh
from pipeline.protocol import NASBENCH201
from pipeline.proxies import probe_of
from pipeline.zero_cost.activations import zen_passes
from pipeline.zero_cost.gradients import condition_number
from workshop.measured import read_proxies
from workshop.ranks import spearman
from workshop.real_landscape import read_cell_accuracies
from workshop.resampling import bootstrap_agreement, interval_text

RUNS = Path("data/nasbench201/runs")
SMALL = {"N": 1, "W": 4}


def kaiming(network):
    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return network


def zen_variants(config, images, variant):
    """Return each variant's Zen-score; ZenNAS's own code reads the running variances."""
    distance, scales, network = zen_passes(probe_of(config, NASBENCH201, images))
    if not distance > 0:
        return dict.fromkeys(("batch variances", "running variances", "nothing"), math.nan)
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    added = {
        "batch variances": [scale for scale in scales if scale > 0],
        "running variances": [norm.running_var.mean().item() for norm in norms],
        "nothing": [],
    }
    return {
        name: math.log(distance) + sum(0.5 * math.log(variance) for variance in variances)
        for name, variances in added.items()
        if variant in {name, ""}
    }


def ntk_variants(config, images, variant):
    """Return each variant's condition number."""
    full, small = (probe_of(sized, NASBENCH201, images) for sized in (config, {**config, **SMALL}))
    arguments = {
        **{f"{n} images": (fresh(full.network), full.images[:n]) for n in (16, 32, 64)},
        "32 images, evaluation mode": (fresh(full.network, is_training=False), full.images[:32]),
        "32 images, Kaiming initialisation": (kaiming(fresh(full.network)), full.images[:32]),
        "32 images, N=1 and W=4": (fresh(small.network), small.images[:32]),
    }
    return {name: condition_or_nan(*pair) for name, pair in arguments.items() if variant in {name, ""}}


def condition_or_nan(network, images):
    try:
        return condition_number(network, images)
    except Undefined:
        return np.nan


VARIANTS = {"ntk": ntk_variants, "zen": zen_variants}


def main(proxy, accuracies, data_dir, n_cells=60, variant="") -> int:
    torch.manual_seed(0)
    table, scored = read_configs(RUNS), read_proxies(RUNS)
    is_sample = (table["round"] == 0) & np.isin(table["config_id"], scored["config_id"])
    chosen = take(table, np.flatnonzero(is_sample)[: int(n_cells)])
    published = read_cell_accuracies(Path(accuracies))[200]
    truth = np.array([published[i] for i in nb201_indices(np.stack([chosen[op] for op in OPS], axis=1)).tolist()])
    images = load_images(NASBENCH201, data_dir=Path(data_dir), resolutions=(1.0,))[1.0]
    with one_core():
        cells = [VARIANTS[proxy](config, images, variant) for config in rows({key: chosen[key] for key in CONFIG_KEYS})]
    for name in cells[0]:
        scores = np.array([cell[name] for cell in cells])
        is_known = np.isfinite(scores)
        rho = bootstrap_agreement(spearman, scores[is_known], truth[is_known], n_resamples=2000)
        print(f"{name:36} rho {interval_text(rho)} on {is_known.sum()} cells", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
