"""hpoglue runs random search and a method with several fidelities on JAHS, and hposuite knows it by name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hpoglue import Config, Optimizer, Problem, Query
from hpoglue.run_glue import run_glue
from hposuite.benchmarks import BENCHMARKS
from hposuite.register import register
from jahs_hpoglue import describe

import jahs
from tests.docs.test_markdown import run_blocks

BENCH = jahs.Benchmark("fashion_mnist_mini")


class Doubling(Optimizer):
    """Trains each random config for 3, 6 and 12 epochs."""

    name = "Doubling"
    support = Problem.Support(
        fidelities=("single",), objectives=("single",), cost_awareness=(None,), continuations=True
    )
    mem_req_mb = 10

    def __init__(self, *, problem, seed, working_directory: Path) -> None:
        self.space = problem.config_space
        self.n_asked = 0

    def ask(self) -> Query:
        number, step = divmod(self.n_asked, 3)
        self.n_asked += 1
        if step == 0:
            self.config = Config(config_id=str(number), values=dict(self.space.sample_configuration()))
        return Query(config=self.config, fidelity=("epoch", 3 * 2**step))

    def tell(self, result) -> None:
        pass


@pytest.mark.parametrize("task", jahs.releases())
def test_random_search_sees_the_answers_of_the_benchmark(task: str) -> None:
    bench = jahs.Benchmark(task)
    description = describe(bench)
    loaded = description.load(description)
    assert not [name for name in description.metrics if name.startswith("test_")]
    values = dict(description.config_space.sample_configuration())
    config = jahs.validate({**values, "Optimizer": "SGD"})
    query = Query(config=Config(config_id="0", values=values), fidelity=("epoch", 4))
    assert loaded.query(query).values == dict(bench.query(config, at=4).values)  # noqa: PD011  # of a Result
    curve = loaded.trajectory(query=query)
    assert curve.index.tolist() == [1, 2, 3, 4]
    assert curve["valid_acc"].iloc[-1] == bench.query(config, at=4).valid_acc
    assert loaded.trajectory(query=query, frm=3).index.tolist() == [3, 4]


def test_a_run_of_a_method_that_continues_trainings() -> None:
    frame = run_glue(Doubling, describe(BENCH), fidelities="epoch", budget=4, continuations=True)
    costs = frame.filter(like="continuations_cost").iloc[:, 0]
    assert costs.tolist()[:3] == [3, 3, 6]


def test_hposuite_knows_it_by_name() -> None:
    register(describe(BENCH, seed=1))
    assert BENCHMARKS.pop("jahs-fashion_mnist_mini").predefined_points["reference"].values == BENCH.reference_config  # noqa: PD011  # of a Config


def test_the_study_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(list(run_blocks((Path(__file__).parent / "README.md").read_text(encoding="utf-8")))) == 1
    (frame,) = (pd.read_parquet(path) for path in tmp_path.rglob("*.parquet"))
    assert len(frame) == 10
