"""Figures of papers beside ours: one rule for the sign, and a reason in every row."""

import math

import pytest

from experiments.science.papers import COLUMNS, beside_paper, compared, same_sign
from jahs.comparison.summaries import Interval


@pytest.mark.parametrize(
    ("ends", "paper", "same"),
    [
        ((0.1, 0.2, 0.3), 1.0, "yes"),
        ((0.1, 0.2, 0.3), -1.0, "no"),
        ((-0.3, -0.2, -0.1), -0.5, "yes"),
        ((-0.1, 0.2, 0.3), 1.0, "not shown"),
        ((0.1, -0.1, 0.3), 1.0, "not shown"),  # a value outside of the interval from its refits
        ((math.nan, 0.2, math.nan), 1.0, "not shown"),
        ((0.0, 0.0, 0.0), 1.0, "not shown"),
        ((0.1, 0.2, 0.3), 0.0, "–"),
    ],
)
def test_a_sign_is_that_of_the_estimate_and_both_ends(ends, paper, same):
    low, value, high = ends
    assert same_sign(Interval(low=low, value=value, high=high), paper) == same


def test_a_row_that_deviates_says_why():
    ours = Interval(value=0.2, low=0.1, high=0.3)
    same = compared("gain", "task", "+0.5", ours)
    other = compared("gain", "task", "-0.5", ours, sign=-1, why="not tested, probably short training")
    assert same == ("gain", "task", "+0.5", "0.20 (0.10 to 0.30)", "yes", "as in the paper")
    assert other[-2:] == ("no", "not tested, probably short training")
    table = beside_paper("NAS-Bench-101", [same, other], level=90)
    assert table.caption == "Figures of NAS-Bench-101 and ours, with 90 % intervals"
    assert len(COLUMNS) == len(same)
