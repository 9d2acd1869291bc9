"""mf-prior-bench gets JAHS by name: queries, trajectories, priors and errors are the package's own."""

from __future__ import annotations

from pathlib import Path

import jahs_mfpbench
import mfpbench
import pytest

import jahs
from tests.docs.test_markdown import run_blocks


@pytest.fixture(params=jahs.releases())
def bench(request):
    return mfpbench.get("jahs_mini", task=request.param, seed=0)


def test_a_query_is_the_answer_of_the_benchmark(bench) -> None:
    config = bench.sample()
    result = bench.query(config, at=5)
    expected = bench.bench.query(jahs.validate(dict(config)), at=5)
    assert isinstance(result, jahs_mfpbench.JAHSMiniResult)
    assert {name: getattr(result, name).value for name in result.metric_defs} == dict(expected.values)
    assert result.error == pytest.approx(1 - expected.valid_acc / 100)
    assert result.cost == expected.runtime
    assert bench.query(config).fidelity == bench.end == bench.bench.max_epoch


def test_a_trajectory_has_the_epochs_that_are_asked_for(bench) -> None:
    config = bench.sample()
    curve = bench.trajectory(config, frm=2, to=8, step=3)
    assert [result.fidelity for result in curve] == [2, 5, 8]
    assert [result.valid_acc for result in curve] == [bench.query(config, at=epoch).valid_acc for epoch in (2, 5, 8)]


def test_noise_priors_and_sampling_work_as_in_every_benchmark() -> None:
    reference = jahs.Benchmark("cifar10_mini").reference_config
    noisy = mfpbench.get("jahs_mini", noise_seed=1, prior=dict(reference))
    assert dict(noisy.prior) == reference
    assert noisy.query(reference).valid_acc.value == jahs.Benchmark("cifar10_mini").query(reference, seed=1).valid_acc
    first, second = ([dict(config) for config in noisy.sample(5, seed=3)] for _ in range(2))
    assert first == second


def test_the_readme_runs() -> None:
    assert len(list(run_blocks((Path(__file__).parent / "README.md").read_text(encoding="utf-8")))) == 1
