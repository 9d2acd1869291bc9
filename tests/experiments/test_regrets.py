"""Regrets and their distribution."""

import numpy as np
import pytest

from experiments.analysis.regrets import ecdf, regret
from jahs.errors import InvalidArgument


def test_a_distribution_on_paper():
    found = ecdf(np.array([0.5, 0.1, 0.5, 2.0]))
    assert found.values.tolist() == [0.1, 0.5, 2.0]
    assert found.shares.tolist() == [0.25, 0.75, 1.0]
    assert found.at(np.array([0.0, 0.1, 0.49, 0.5, 9.0])).tolist() == [0, 0.25, 0.25, 0.75, 1]


def test_a_distribution_of_nothing_or_of_nan_is_refused():
    for values in (np.empty(0), np.array([1.0, np.nan])):
        with pytest.raises(InvalidArgument, match="finite"):
            ecdf(values)


def test_regret_is_what_lacks_to_the_best_and_never_negative():
    assert regret(np.array([90.0, 91.5]), best=91.5).tolist() == [1.5, 0]
    with pytest.raises(InvalidArgument, match="not the best one known"):
        regret(np.array([92.0]), best=91.5)
