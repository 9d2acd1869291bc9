"""Compare a release's predictions for the configs that it proposed with those of its teacher and with trainings.

A search ends where the model is too optimistic. The teacher (a Gaussian process and a forest, see
`surrogate.models.teacher`) is fitted to the train and valid configs without the proposals of this release, and predicts
those that are trained: the part of the release's excess that the teacher does not have is the shipped forest's own.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.search_excess data/cifar10_mini jahs/releases/cifar10_mini
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jahs.release import read_release
from surrogate.data.measurements import read_with_split
from surrogate.data.rows import assemble, development_rows, features_of
from surrogate.models.fitting import read_params
from surrogate.models.model import default_features, fit_transform
from surrogate.models.optima import MAIN
from surrogate.models.teacher import teach
from surrogate.packing import release_answers


def main(folder: str, release_folder: str) -> None:
    data, release = Path(folder), read_release(Path(release_folder))
    measured, split = read_with_split(data / "runs", data / "split.json")
    configs = measured.configs
    is_own = np.isin(configs["release"], sorted(release.answers_as))
    proposed = configs["config_id"][is_own & (configs["source"] == "best")]
    rows = development_rows(MAIN, measured, split)
    rows = rows.take(~np.isin(rows.config_id, configs["config_id"][is_own]))
    features = default_features(MAIN)
    transform = fit_transform(MAIN, rows.y, slope=read_params(data / "search" / "params.json")[MAIN].slope)
    F = features_of(rows.X, features, measured.task)
    teacher = teach(rows, F, transform.forward(rows.y), measured.task, features)
    trained = assemble(MAIN, measured)
    trained = trained.take(np.isin(trained.config_id, proposed) & (trained.epoch == measured.task.max_epoch))
    ids, first, place = np.unique(trained.config_id, return_index=True, return_inverse=True)
    F_ends = features_of(trained.X[first], features, measured.task)
    process, forest = teacher.curves.predict(F_ends)[:, -1], teacher.forest.inplace_predict(F_ends)
    found = {
        "trained": np.bincount(place, trained.y) / np.bincount(place),
        "release": release_answers(release, MAIN, trained.X[first]),
        "teacher": transform.inverse((process + forest) / 2),
        "its process": transform.inverse(process),
        "its forest": transform.inverse(np.asarray(forest, np.float64)),
    }
    print(f"{len(ids)} configs, {len(trained)} trainings; {MAIN} after the last epoch")
    for name, values in found.items():
        excess = values - found["trained"]
        error = excess.std(ddof=1) / np.sqrt(len(ids))
        print(f"{name:12s} {values.mean():6.2f}  minus trained {excess.mean():+.2f} ± {error:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
