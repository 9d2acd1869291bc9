"""Compare a release's predictions for the configs that it proposed with those of its teacher and with trainings.

A search ends where the model is too optimistic. The teacher (a Gaussian process, see `surrogate.models.teacher`) is
fitted to the train and valid configs without the proposals of this release, and predicts those that are trained: the
part of the release's excess that the teacher does not have is the shipped forest's own.

Numbers of distilled configs may follow. For each, the forest is fitted with four seeds, and local search and evolution
look for its ten best configs: how much better does it predict them than the teacher does? A fit takes half a minute.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.search_excess data/cifar10_mini jahs/releases/cifar10_mini [N ...]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from jahs.release import read_release
from jahs.spaces.encoding import encode
from surrogate.data.measurements import read_with_split
from surrogate.data.rows import assemble, development_rows
from surrogate.models.fitting import read_params
from surrogate.models.model import default_features, fit_surrogate, fit_transform
from surrogate.models.optima import MAIN, asking, best_found
from surrogate.models.teacher import teach
from surrogate.packing import release_answers

N_SEEDS, N_BEST, EVALUATIONS = 4, 10, 20_000


def main(folder: str, release_folder: str, *distilled: str) -> None:
    data, release = Path(folder), read_release(Path(release_folder))
    measured, split = read_with_split(data / "runs", data / "split.json")
    configs = measured.configs
    is_own = np.isin(configs["release"], sorted(release.answers_as))
    proposed = configs["config_id"][is_own & (configs["source"] == "best")]
    rows = development_rows(MAIN, measured, split)
    rows = rows.take(~np.isin(rows.config_id, configs["config_id"][is_own]))
    settings = read_params(data / "search" / "params.json")[MAIN]
    teacher = teach(rows, measured.task, default_features(MAIN), fit_transform(MAIN, rows.y))

    trained = assemble(MAIN, measured)
    trained = trained.take(np.isin(trained.config_id, proposed) & (trained.epoch == measured.task.max_epoch))
    ids, first, place = np.unique(trained.config_id, return_index=True, return_inverse=True)
    found = {
        "trained": np.bincount(place, trained.y) / np.bincount(place),
        "release": release_answers(release, MAIN, trained.X[first]),
        "teacher": teacher.predict_last(trained.X[first]),
    }
    print(f"{len(ids)} configs, {len(trained)} trainings; {MAIN} after the last epoch")
    for name, values in found.items():
        excess = values - found["trained"]
        error = excess.std(ddof=1) / np.sqrt(len(ids))
        print(f"{name:12s} {values.mean():6.2f}  minus trained {excess.mean():+.2f} ± {error:.2f}")

    for n in map(int, distilled):
        excesses, nodes = [], 0
        for seed in range(N_SEEDS):
            model = fit_surrogate(MAIN, rows, measured.task, settings=replace(settings, n_distilled=n, seed=seed))
            nodes += len(model.booster.trees_to_dataframe())
            best = best_found(
                asking(model),
                ("local_search", "regularized_evolution"),
                n=N_BEST,
                evaluations=EVALUATIONS,
                seed=seed,
                is_known=lambda columns: np.zeros(len(columns["N"]), np.bool_),
            )
            X = encode(best, measured.task.max_epoch)
            excesses.append(float((model.predict(X) - teacher.predict_last(X)).mean()))
        each = " ".join(f"{excess:+.2f}" for excess in excesses)
        print(
            f"{n:,} distilled, {nodes // N_SEEDS:,} nodes: minus teacher {np.mean(excesses):+.2f} ({each})", flush=True
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
