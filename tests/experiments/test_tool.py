"""What the optimisers of other tools have in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.optimizers.tools.tool import Tool
from jahs.optimizers.random_search import RandomSearchSettings
from jahs.simulate import Trial, visible
from tests.contracts.optimizer import BENCH, VIEWS


class Echo(Tool):
    """A tool that writes down what it is told."""

    name = "echo"

    def _make_tool(self, settings):
        pass

    def _ask_tool(self):
        return self.random_config(), None, None

    def _tell_tool(self, trial, result):
        self.told = self.told_losses(result)


@given(st.lists(st.sampled_from(["finished", "failed"]), min_size=1, max_size=8))
def test_a_failure_is_never_told_as_better_than_a_success(statuses):
    objectives = ("valid_acc", "latency", "n_params")
    echo = Echo(visible(VIEWS["full"]), seed=0, objectives=objectives, settings=RandomSearchSettings())
    told = []
    for number, status in enumerate(statuses):
        (proposal,) = echo.ask(1)
        metrics = BENCH.query(proposal.config) if status == "finished" else {}
        facts = {"config": proposal.config, "fidelity": {"epoch": 9}, "seed": None, "metrics": metrics, "worker": 0}
        echo.tell(Trial(trial=number, **facts, start=0.0, end=1.0, status=status, tag=proposal.tag))
        told.append(np.array(echo.told))
    successes = [i for i, status in enumerate(statuses) if status == "finished"]
    for i, losses in enumerate(told):
        if i not in successes:
            known = [j for j in successes if j < i] or successes
            assert all((losses >= told[j]).all() for j in known)
    assert np.isfinite(told).all()
