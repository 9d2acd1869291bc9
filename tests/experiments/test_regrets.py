"""Test regret."""

import numpy as np
import pytest

from experiments.report.baselines import regret
from jahs.errors import InvalidArgument


def test_regret_is_what_lacks_to_the_best_and_never_negative():
    assert regret(np.array([90.0, 91.5]), best=91.5).tolist() == [1.5, 0]
    with pytest.raises(InvalidArgument, match=r"must be at least 92\.0"):
        regret(np.array([92.0]), best=91.5)
