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
    found = bench.query(config, at=5)
    asked = bench.bench.query(jahs.validate(dict(config)), at=5)
    assert isinstance(found, jahs_mfpbench.JAHSMiniResult)
    assert {name: getattr(found, name).value for name in found.metric_defs} == dict(asked.values)
    assert found.error == pytest.approx(1 - asked.valid_acc / 100)
    assert found.cost == asked.runtime
    assert bench.query(config).fidelity == bench.end == bench.bench.max_epoch


def test_a_trajectory_has_the_epochs_that_are_asked_for(bench) -> None:
    config = bench.sample()
    curve = bench.trajectory(config, frm=2, to=8, step=3)
    assert [each.fidelity for each in curve] == [2, 5, 8]
    assert [each.valid_acc for each in curve] == [bench.query(config, at=epoch).valid_acc for epoch in (2, 5, 8)]


def test_noise_priors_and_sampling_work_as_in_every_benchmark() -> None:
    good = jahs.Benchmark("cifar10_mini").reference_config
    noisy = mfpbench.get("jahs_mini", noise_seed=1, prior=dict(good))
    assert dict(noisy.prior) == good
    assert noisy.query(good).valid_acc.value == jahs.Benchmark("cifar10_mini").query(good, seed=1).valid_acc
    one, other = ([dict(each) for each in noisy.sample(5, seed=3)] for _ in range(2))
    assert one == other


def test_the_readme_runs() -> None:
    assert len(list(run_blocks((Path(__file__).parent / "README.md").read_text(encoding="utf-8")))) == 1
