"""Test regret."""

import numpy as np

from experiments.report.baselines import regret_steps
from jahs.comparison.steps import Steps


def test_regret_is_what_lacks_to_the_best_and_never_negative():
    (found,) = regret_steps([Steps(times=np.array([1.0, 2.0]), values=np.array([90.0, 91.5]))], 91.5)
    assert found.values.tolist() == [1.5, 0]
