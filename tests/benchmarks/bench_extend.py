"""How often an extended split keeps what is promised of the thirds, by how many configs are new.

python -m tests.benchmarks.bench_extend
"""

from itertools import product

import numpy as np

from splits.partition import quota_margins
from splits.quotas import deviations, fill_quotas

TRIES = 60
N_OLD = (189, 500)


def strata(start, stop):
    """Sizes of the strata of configs number `start` to `stop - 1`, every tenth of them repeated."""
    number = np.arange(start, stop)
    return np.bincount(2 * (number % 27) + (number % 10 == 0), minlength=54)


def main():
    groups = np.array(list(product((1, 3, 5), (4, 8, 16), (0.25, 0.5, 1.0))))
    margins = quota_margins(groups, np.arange(len(groups)))
    rng = np.random.default_rng(0)
    print("new configs   all groups kept   all thirds kept   worst third off by")
    for n_new in (10, 20, 50, 100, 200):
        worst = []
        for _ in range(TRIES):
            n_old, order = int(rng.integers(*N_OLD)), rng.permutation(54).tolist()
            empty = np.zeros((54, 3), dtype=np.int64)
            old = fill_quotas(empty, strata(0, n_old), margins=margins, order=order)
            new = fill_quotas(old, strata(n_old, n_old + n_new), margins=margins, order=order)
            off = [np.abs(deviations(m.astype(np.int64) @ new)).max() / 20 for m in (margins.groups, margins.thirds)]
            worst.append(off)
        n_kept = (np.array(worst) <= 1).sum(axis=0)
        print(f"{n_new:11} {n_kept[0]:10} of {TRIES} {n_kept[1]:11} of {TRIES} {np.max(worst, axis=0)[1]:20.2f}")


if __name__ == "__main__":
    main()
