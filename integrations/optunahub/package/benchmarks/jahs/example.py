"""Search for an accurate and small network with the default multi-objective sampler."""

from __future__ import annotations

import optuna
import optunahub


if __name__ == "__main__":
    problem = optunahub.load_module("benchmarks/jahs").Problem(
        "cifar10_mini", ("valid_acc", "n_params")
    )
    study = optuna.create_study(directions=problem.directions)
    study.optimize(problem, n_trials=30)
    for trial in study.best_trials:
        print(trial.values, trial.params)
