"""Faster operators compute what torch's do, gradients included, on every size that networks have."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pipeline import operators
from pipeline.operators import OPERATORS

SIDES = st.sampled_from([1, 2, 3, 4, 7, 8, 16])


def images(side, *, n_channels=3, scale=1.0, seed=0):
    made = torch.randn(2, n_channels, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (made * scale).to(memory_format=torch.channels_last).requires_grad_()


def both(name, *inputs):
    """The output of each version and its gradients, for the same weights on the output."""
    results = []
    for version in (1, 2):
        fresh = [value.detach().clone(memory_format=torch.preserve_format).requires_grad_() for value in inputs]
        output = getattr(OPERATORS[version], name)(*fresh)
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=output.dtype)
        output.backward(weights)
        results.append([output.detach(), *(value.grad for value in fresh)])
    return results


def assert_same(name, *inputs):
    for old, new in zip(*both(name, *inputs), strict=True):
        torch.testing.assert_close(new, old, rtol=1e-7, atol=1e-8)


@given(side=SIDES, scale=st.sampled_from([1e-3, 1.0, 30.0, 500.0]), seed=st.integers(0, 99))
def test_mish_is_torchs_also_far_from_zero(side, scale, seed):
    assert_same("mish", images(side, scale=scale, seed=seed))


@given(side=SIDES, n_channels=st.integers(1, 5), seed=st.integers(0, 99))
def test_average_pooling_is_torchs(side, n_channels, seed):
    assert_same("average_pool", images(side, n_channels=n_channels, seed=seed))


@given(side=SIDES, kernel=st.sampled_from([1, 3]), n_out=st.integers(1, 5), seed=st.integers(0, 99))
def test_convolution_is_torchs(side, kernel, n_out, seed):
    weight = torch.randn(n_out, 3, kernel, kernel, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert_same("convolve", images(side, seed=seed), weight.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("name", ["mish", "average_pool"])
def test_second_derivatives_are_torchs_also_after_a_first_use_in_inference_mode(name):
    operators._shares.cache_clear()
    with torch.inference_mode():
        getattr(OPERATORS[2], name)(images(8))
    results = []
    for version in (1, 2):
        x = images(8)
        weights = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
        (slope,) = torch.autograd.grad(
            (getattr(OPERATORS[version], name)(x) ** 2 * weights).sum(), [x], create_graph=True
        )
        results.append(torch.autograd.grad((slope * weights).sum(), [x])[0])
    torch.testing.assert_close(results[1], results[0], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("value", [-1e30, -1e4, -100.0, 0.0, 19.999, 20.001, 1e4, 1e10])
def test_mish_and_its_slope_are_finite_and_right_in_single_precision(value):
    x = torch.full((4,), value, requires_grad=True)
    y = OPERATORS[2].mish(x)
    y.sum().backward()
    reference = torch.full((4,), value, dtype=torch.float64, requires_grad=True)
    expected = functional.mish(reference)
    expected.sum().backward()
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(x.grad.double(), reference.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [-1e300, -800.0, 19.0, 40.0, 349.0, 351.0, 1e20, 1e100])
def test_mish_and_its_slope_are_right_in_double_precision_however_large(value):
    assert_same("mish", torch.full((4,), value, dtype=torch.float64, requires_grad=True))


def test_mish_without_gradients_gives_the_same_bits_as_with_them():
    x = images(8).float()
    with torch.no_grad():
        alone = OPERATORS[2].mish(x)
    assert torch.equal(alone, OPERATORS[2].mish(x))


def test_outputs_stay_channels_last():
    for side in (1, 4, 16):
        x = images(side, n_channels=4).float()
        weight = torch.randn(4, 4, 3, 3).to(memory_format=torch.channels_last)
        operators = OPERATORS[2]
        for output in (operators.mish(x), operators.average_pool(x), operators.convolve(x, weight)):
            assert output.is_contiguous(memory_format=torch.channels_last)
