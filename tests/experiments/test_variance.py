"""Shares of a variance, against functions whose shares are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.analysis.variance import decomposition, draw, effects, unions
from jahs.errors import InvalidArgument

N = 4000
PARTS = {"left": ("x", "y"), "right": ("z",)}
KEYS = {"x": ("x",), "y": ("y",), "z": ("z",)}


def samples(n=N, seed=0):
    """Two samples of x, y and z, uniform in -1..1: each has variance 1/3."""
    rng = np.random.default_rng(seed)
    return tuple({key: rng.uniform(-1, 1, n) for key in "xyz"} for _ in range(2))


def drawn(of, groups, **kwargs):
    return draw(lambda columns: of(**columns), *samples(**kwargs), groups)


def shares_of(of, parts, **kwargs):
    return decomposition(drawn(of, unions(parts), **kwargs), [*parts])


def test_a_sum_has_no_interplay():
    shares = shares_of(lambda x, y, z: 3 * x + 4 * z, PARTS)
    assert shares["left"].value == pytest.approx(9 / 25, abs=0.02)
    assert shares["right"].value == pytest.approx(16 / 25, abs=0.02)
    assert shares["left × right"].value == pytest.approx(0, abs=0.02)


def test_a_product_is_nothing_else():
    shares = shares_of(lambda x, y, z: (x + y) * z, PARTS)
    assert shares["left × right"].value == pytest.approx(1, abs=0.07)
    assert shares["left × right"].low < 1 < shares["left × right"].high


def test_interplay_within_a_part_belongs_to_the_part():
    shares = shares_of(lambda x, y, z: 3 * x * y + z, PARTS)
    assert shares["left"].value == pytest.approx(3 / 4, abs=0.05)  # variances 1 and 1/3


def test_three_parts_on_paper():
    # Variances: x 1/3, yz 1/9, xyz 1/27; in all 13/27.
    assert list(unions(KEYS)) == ["x", "y", "z", "x × y", "x × z", "y × z"]
    shares = shares_of(lambda x, y, z: x + y * z + x * y * z, KEYS, n=20_000)
    wanted = {"x": 9 / 13, "y": 0, "z": 0, "x × y": 0, "x × z": 0, "y × z": 3 / 13, "x × y × z": 1 / 13}
    assert {name: share.value for name, share in shares.items()} == pytest.approx(wanted, abs=0.03)
    assert all(share.low <= share.value <= share.high for share in shares.values())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.integers(0, 10))
def test_shares_sum_to_one_and_a_part_in_all_is_what_the_others_leave(weights, seed):
    a, b, c, d = weights
    if max(map(abs, weights)) < 0.1:
        return
    shares = shares_of(lambda x, y, z: a * x + b * y * z + c * x * z + d * np.sign(z), KEYS, n=500, seed=seed)
    assert sum(share.value for share in shares.values()) == pytest.approx(1)
    assert not any(np.isnan([share.low, share.high]).any() for share in shares.values())


def test_keys_alone_and_in_all():
    draws = drawn(lambda x, y, z: 2 * x + 3 * y * z, KEYS, n=20_000)
    alone, in_all = effects(draws)  # variances 4/3 and 1
    assert alone["x"].value == pytest.approx(4 / 7, abs=0.03)
    assert in_all["x"].value == pytest.approx(4 / 7, abs=0.03)
    assert alone["y"].value == pytest.approx(0, abs=0.03)
    assert in_all["y"].value == pytest.approx(3 / 7, abs=0.03)


def test_what_decides_nothing_decides_exactly_nothing():
    draws = drawn(lambda x, y, z: np.exp(x) * y + 100, KEYS)
    for found in effects(draws):
        assert (found["z"].value, found["z"].low, found["z"].high) == (0, 0, 0)


def test_adding_and_scaling_change_no_share():
    plain = drawn(lambda x, y, z: x + y * z, KEYS)
    other = plain.changed(lambda values: 1e6 - 3 * values)
    for one, two in zip(effects(plain), effects(other), strict=True):
        for key, share in one.items():
            assert two[key].value == pytest.approx(share.value, abs=1e-6)


def test_a_constant_has_no_shares():
    with pytest.raises(InvalidArgument, match="do not vary"):
        effects(drawn(lambda x, y, z: 0 * x + 0.1, KEYS))
