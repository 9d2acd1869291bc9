"""The recipe of JAHS for Syne Tune's blackbox repository: random configs, all epochs, three draws of training noise.

It belongs in `syne_tune/blackbox_repository/conversion_scripts/scripts/`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from syne_tune.blackbox_repository.blackbox_tabular import BlackboxTabular, serialize
from syne_tune.blackbox_repository.conversion_scripts import utils
from syne_tune.blackbox_repository.conversion_scripts.blackbox_recipe import BlackboxRecipe
from syne_tune.blackbox_repository.conversion_scripts.scripts import default_metric, metric_elapsed_time, time_attr
from syne_tune.config_space import randint

METRIC_VALID_ERROR = "metric_valid_error"
METRIC_ELAPSED_TIME = "metric_elapsed_time"
TIME_ATTR = "hp_epoch"

N_CONFIGS = 5_000
N_SEEDS = 3


def make_blackbox(task: str, n_configs: int = N_CONFIGS) -> BlackboxTabular:
    """Return a table of random configs, the same for every task, with the training noise of each seed."""
    import jahs
    from jahs.adapters import syne_tune as jahs_syne_tune

    bench = jahs.Benchmark(task)
    space = jahs_syne_tune.make_space(bench.space)
    columns = bench.space.sample_columns(n_configs, seed=0)
    epochs = np.arange(1, bench.max_epoch + 1)
    answers = [bench.query_many(columns, at=epochs.tolist(), seed=seed) for seed in range(N_SEEDS)]
    metrics = {f"metric_{name}": [answer[name] for answer in answers] for name in bench.metrics}
    curves = {
        METRIC_VALID_ERROR: _errors(metrics.pop("metric_valid_acc")),
        "metric_train_error": _errors(metrics.pop("metric_train_acc")),
        METRIC_ELAPSED_TIME: metrics.pop("metric_runtime"),
        **{name: values for name, values in metrics.items() if not name.endswith("_acc")},
    }
    return BlackboxTabular(
        hyperparameters=pd.DataFrame({name: columns[name].tolist() for name in space}),
        configuration_space=space,
        fidelity_space={TIME_ATTR: randint(lower=1, upper=bench.max_epoch)},
        objectives_evaluations=np.stack(list(curves.values()), axis=-1).swapaxes(0, 1).astype(np.float32),
        fidelity_values=epochs,
        objectives_names=list(curves),
    )


def _errors(accuracies: list[np.ndarray]) -> list[np.ndarray]:
    return [1.0 - accuracy / 100.0 for accuracy in accuracies]


class JAHSRecipe(BlackboxRecipe):  # type: ignore[misc]  # the base has no types here
    """One task of JAHS; each is a blackbox of its own, because tasks have different numbers of epochs.

    Args:
        task: name of the task, such as "fashion_mnist_mini"; the blackbox is "jahs-" and this name.
    """

    def __init__(self, task: str) -> None:
        super().__init__(
            name=f"jahs-{task}",
            cite_reference="JAHS: joint architecture and hyperparameter search on a laptop. The JAHS authors. "
            "Its space: JAHS-Bench-201: A Foundation For Research On Joint Architecture And Hyperparameter Search. "
            "Bansal, A., Stoll, D., Janowski, M., Zela, A. and Hutter, F. 2022.",
        )
        self.task = task

    def _generate_on_disk(self) -> None:
        serialize(
            bb_dict={self.task: make_blackbox(self.task)},
            path=utils.repository_path / self.name,
            metadata={
                metric_elapsed_time: METRIC_ELAPSED_TIME,
                default_metric: METRIC_VALID_ERROR,
                time_attr: TIME_ATTR,
            },
        )


JAHS_RECIPES = [JAHSRecipe("fashion_mnist_mini"), JAHSRecipe("cifar10_mini")]
