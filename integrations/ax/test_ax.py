"""Ax's benchmarking suite and BoTorch run on JAHS: scores, simulated time, learning curves, mixed columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from ax.benchmark.benchmark import benchmark_replication
from ax.benchmark.methods.sobol import get_sobol_benchmark_method
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.models import MixedSingleTaskGP
from botorch.optim import optimize_acqf_mixed_alternating
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from jahs_ax import make_problem
from jahs_botorch import JAHSProblem

import jahs
from jahs.adapters.values import to_config
from tests.docs.test_markdown import run_blocks

README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bench():
    return jahs.Benchmark("fashion_mnist_mini")


@pytest.mark.parametrize(
    ("metrics", "is_curve"),
    [(["valid_acc"], False), (["valid_acc", "latency"], False), (["valid_acc"], True)],
    ids=["one", "two", "curves"],
)
def test_ax_scores_a_run(metrics: list[str], is_curve: bool, bench) -> None:
    n_steps = bench.max_epoch if is_curve else 1
    problem = make_problem(bench, metrics, n_trials=6, n_steps=n_steps)
    result = benchmark_replication(problem, get_sobol_benchmark_method(), seed=0, strip_runner_before_saving=False)
    assert len(result.score_trace) == 6
    assert np.isfinite(result.score_trace).all()
    assert max(result.score_trace) <= 100
    errors = result.experiment.lookup_data().full_df
    errors = errors[errors.metric_name == "valid_error"].groupby("arm_name")["mean"].agg(["size", "last"])
    errors = errors[errors["size"] == n_steps]
    assert len(errors) == 6
    answers = {
        name: bench.query(to_config(arm.parameters, bench.space))
        for name, arm in result.experiment.arms_by_name.items()
    }
    for name, last in errors["last"].items():
        assert last == pytest.approx(100 - answers[name].valid_acc, rel=1e-6)
    assert result.cost_trace[-1] == pytest.approx(sum(answer.runtime for answer in answers.values()), rel=0.05)


@pytest.fixture(scope="module")
def problem(bench):
    return JAHSProblem(bench, ("valid_acc", "latency"), negate=True)


def encode(problem: JAHSProblem, configs: list[dict]) -> torch.Tensor:
    return torch.tensor(
        [
            [
                np.log10(config[key.name]) if key.kind == "float" else key.choices.index(config[key.name])
                for key in problem._keys
            ]
            for config in configs
        ],
        dtype=torch.double,
    ).clamp(*problem.bounds)


def test_botorch_sees_the_answers_of_the_benchmark(problem, bench) -> None:
    configs = bench.sample(6, seed=3)
    values = problem(encode(problem, configs).reshape(2, 3, -1))
    answers = bench.query_many(configs, metrics=("valid_acc", "latency"))
    expected = torch.tensor(np.stack([answers["valid_acc"] - 100, -answers["latency"]], axis=-1)).reshape(2, 3, 2)
    assert torch.allclose(values, expected, rtol=1e-5)
    assert problem.ref_point.tolist() == (-bench.reference_point(("valid_acc", "latency"))).tolist()


def test_the_best_known_front_has_the_largest_hypervolume(problem, bench) -> None:
    Y = problem(encode(problem, list(bench.front(("valid_acc", "latency")).configs)))
    assert Hypervolume(problem.ref_point).compute(Y[is_non_dominated(Y)]) == pytest.approx(problem.max_hv, rel=1e-3)


def test_a_step_of_bayesian_optimisation_proposes_a_config(problem, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # One step is not worth minutes of compiling BoTorch's C++ kernel, or a warning where no compiler is.
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True)
    torch.manual_seed(0)
    X = encode(problem, bench.sample(12, seed=0))
    Y = problem(X)
    model = MixedSingleTaskGP(X, (Y - Y.mean(0)) / Y.std(0), cat_dims=problem.categorical_inds)
    reference = ((problem.ref_point - Y.mean(0)) / Y.std(0)).tolist()
    acquisition = qLogNoisyExpectedHypervolumeImprovement(model, reference, X, prune_baseline=True)
    choices = {i: list(range(len(problem._keys[i].choices))) for i in problem.discrete_inds}
    categories = {i: list(range(len(problem._keys[i].choices))) for i in problem.categorical_inds}
    proposed, _ = optimize_acqf_mixed_alternating(
        acquisition,
        problem.bounds,
        discrete_dims=choices,
        cat_dims=categories,
        q=1,
        num_restarts=2,
        raw_samples=16,
        options={"maxiter_alternating": 2, "maxiter_discrete": 2, "maxiter_continuous": 2},
    )
    (config,) = problem.read_configs(proposed)
    assert jahs.validate({**config, "Optimizer": "SGD"})
    assert problem(proposed).shape == (1, 2)


def test_the_readme_runs() -> None:
    assert len(list(run_blocks(README))) == 2


def test_a_curve_has_all_epochs(bench) -> None:
    with pytest.raises(jahs.errors.InvalidArgument, match="n_steps=5 must be 1 or the number of epochs, 27"):
        make_problem(bench, n_steps=5)
