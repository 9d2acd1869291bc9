"""Compare small forests with those of the full size as bootstrap refits: agreement on the best configs, and accuracy.

Eight bootstrap refits of `valid_acc` are fitted with each of several forests. Overlap and tau compare two refits on the
best 1 % of 20,000 random configs at full size, as the card does. The out-of-bag taus are those of the configs that a
refit did not draw, at the last epoch: all of them, and those at full size. It takes about four CPU minutes a refit.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.refit_forests data/cifar10_mini [REFITS]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST
from jahs.spaces.space import space
from surrogate.data.measurements import read_with_split
from surrogate.data.rows import development_rows, is_full_size
from surrogate.judging.agreement import first_seed
from surrogate.judging.top import overlap
from surrogate.models.fitting import read_params
from surrogate.models.model import fit_surrogate
from surrogate.models.optima import MAIN
from surrogate.models.refits import N_REFITS, refit_settings, weights_of
from workshop.ranks import kendall_tau

N_PROBES = 20_000


def main(folder: str, n_refits: str = str(N_REFITS)) -> None:
    data = Path(folder)
    measured, split = read_with_split(data / "runs", data / "split.json")
    rows, of_task = development_rows(MAIN, measured, split), measured.task
    tuned = read_params(data / "search" / "params.json")[MAIN]
    few = replace(tuned, min_child_weight=max(tuned.min_child_weight, 20))
    forests = {
        "all trees": few,
        "a fifth of the trees": replace(few, n_trees=tuned.n_trees // 5, learning_rate=5 * tuned.learning_rate),
        "depth 7": replace(few, n_trees=120, max_depth=7, learning_rate=0.16),
        "depth 6": replace(few, n_trees=240, max_depth=6, learning_rate=0.12),
        "as shipped": refit_settings(tuned, refit=0, share=1.0),
    }
    probes = encode(space(LARGEST).sample_columns(N_PROBES, seed=99), of_task.max_epoch)
    is_last, is_full = (rows.epoch == of_task.max_epoch) & first_seed(rows), is_full_size(rows.X)
    predicted, taus, n_nodes = defaultdict(list), defaultdict(list), {}
    for refit, (name, settings) in product(range(int(n_refits)), forests.items()):
        weights = weights_of(rows.config_id, refit=refit, seed=0)
        model = fit_surrogate(MAIN, rows, of_task, settings=replace(settings, seed=refit), weights=weights, n_bins=64)
        predicted[name].append(model.predict(probes))
        is_out = is_last & (weights == 0)
        taus[name].append([kendall_tau(rows.y[at], model.predict(rows.X[at])) for at in (is_out, is_out & is_full)])
        n_nodes[name] = len(model.booster.trees_to_dataframe())
    print(f"{'forest':22s} {'nodes':>8s} overlap   tau  out-of-bag tau  the same at full size")
    for name in forests:
        agreement = overlap(predicted[name])
        whole, full = np.mean(taus[name], axis=0)
        print(
            f"{name:22s} {n_nodes[name]:8,d} {agreement['overlap']['value']:7.3f} {agreement['tau']['value']:5.3f} "
            f"{whole:15.3f} {full:21.3f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
