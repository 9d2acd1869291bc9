"""Zero-cost proxies: those of small networks by hand, no network changed, and what has no score says why."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from jahs.errors import InvalidArgument
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline.network import ConvBN, build_network
from pipeline.operators import OPERATORS
from pipeline.probe import Probe, Undefined
from pipeline.zero_cost import PROXIES, score_all

LABELS = torch.arange(8) % 3


class TwoLayers(nn.Module):
    """A network whose scores can be written down: logits = B relu(A x)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 20, bias=False), nn.Linear(20, 3, bias=False)
        self.activation = functional.relu

    def forward(self, images):
        return self.second(self.activation(self.first(images.flatten(1))))


class OneConvolution(nn.Module):
    """One block, mean pooling and a classifier."""

    def __init__(self, n_channels: int = 4) -> None:
        super().__init__()
        self.block = ConvBN(2, n_channels, 3, OPERATORS[1])
        self.activation = functional.relu
        self.classify = nn.Linear(n_channels, 3)

    def forward(self, images):
        return self.classify(self.activation(self.block(images)).mean(dim=(2, 3)))


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return TwoLayers(), torch.randn(8, 1, 2, 3)


@pytest.fixture
def convolution():
    torch.manual_seed(1)
    return OneConvolution(), torch.randn(8, 2, 4, 4)


def gradients(network, x, labels=LABELS):
    network = copy.deepcopy(network)
    functional.cross_entropy(network(x), labels).backward()
    return [(layer.weight.detach(), layer.weight.grad) for layer in (network.first, network.second)]


def score(name, network, x, labels=LABELS):
    return PROXIES[name](Probe(network, x, labels, seed=5))


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_leaves_the_network_as_it_is_and_gives_the_same_number_again(name, convolution):
    network, x = convolution
    before = copy.deepcopy(network.state_dict())
    first = score(name, network, x)
    assert score(name, network, x) == first
    assert math.isfinite(first)
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert network.activation is functional.relu
    assert not network.block.norm._forward_pre_hooks


def test_what_proxies_share_changes_no_score_and_is_in_the_seconds_of_each(convolution):
    together = score_all(Probe(*convolution, LABELS, seed=5))
    assert tuple(together.values) == tuple(PROXIES)
    assert together.values == {name: score(name, *convolution) for name in PROXIES}
    assert not together.reasons
    assert together.cpu_s["snip"] > 0.5 * together.cpu_s["grad_norm"] > 0


def test_the_seconds_of_a_proxy_count_each_shared_pass_once(linear, monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr("time.thread_time", lambda: next(now))  # every look at the clock takes a second
    probe = Probe(*linear, LABELS)
    alone = probe.timed(PROXIES["grad_norm"])[1]
    assert probe.timed(PROXIES["snip"])[1] == probe.timed(PROXIES["grad_norm"])[1]
    assert Probe(*linear, LABELS).timed(PROXIES["swap"])[1] < alone


def test_a_score_that_is_not_finite_is_missing_and_says_why(linear):
    network, x = linear
    scores = score_all(Probe(network, x * math.nan, LABELS))
    assert math.isnan(scores.values["grad_norm"])
    assert scores.reasons["grad_norm"] == "a gradient is not finite"
    assert scores.values["parameters"] == 180
    assert set(scores.reasons) == {name for name, value in scores.values.items() if math.isnan(value)}
    assert all(scores.reasons.values())


@pytest.mark.parametrize("task", ["fashion_mnist_mini", "cifar10_mini"])
@pytest.mark.parametrize("resolution", [0.25, 1.0])
def test_every_proxy_of_a_real_network_is_a_number(task, resolution):
    config = {**space().default(), **{f"Op{i}": i % 5 for i in range(1, 7)}, "N": 1, "W": 4, "Resolution": resolution}
    of = TASKS[task]
    torch.manual_seed(0)
    network = build_network({**config, "Activation": "Mish"}, of)
    side = of.image_side(resolution)
    x = torch.randn(8, of.n_channels, side, side).to(memory_format=torch.channels_last)
    assert score_all(Probe(network, x, LABELS)).reasons == {}


@pytest.mark.parametrize(("proxy", "n_cells"), [("grasp", 1), ("synflow", 1), ("synflow", 5)])
def test_scores_of_the_fast_operators_are_those_of_torchs(proxy, n_cells):
    """Signals of `synflow` grow beyond 1e20 in the deepest networks."""
    ops = {f"Op{i}": 2 + i % 3 for i in range(1, 7)}
    config = {**space().default(), **ops, "N": n_cells, "W": 4, "Activation": "Mish"}
    scores = []
    for version in OPERATORS:
        torch.manual_seed(0)
        network = build_network(config, replace(TASKS["digits"], operators=version)).double()
        scores.append(score(proxy, network, torch.randn(8, 1, 8, 8, dtype=torch.float64)))
    assert scores[1] == pytest.approx(scores[0], rel=1e-6)


@pytest.mark.parametrize(("n_images", "n_labels"), [(0, 0), (2, 2), (8, 7)])
def test_a_batch_that_cannot_be_scored_is_refused(linear, n_images, n_labels):
    with pytest.raises(InvalidArgument, match=r"with n >= 4"):
        Probe(linear[0], linear[1][:n_images], LABELS[:n_labels])


def test_parameters_are_counted(linear):
    assert score("parameters", *linear) == 6 * 20 + 20 * 3


def test_the_gradient_norm_is_a_sum_over_layers(linear):
    network, x = linear
    assert score("grad_norm", network, x) == pytest.approx(sum(g.norm().item() for _, g in gradients(network, x)))


def test_snip_sums_weight_times_gradient(linear):
    network, x = linear
    assert score("snip", network, x) == pytest.approx(
        sum((w * g).abs().sum().item() for w, g in gradients(network, x)), rel=1e-5
    )


def test_grasp_is_a_hessian_times_a_gradient(linear):
    network, x = linear
    network, x = network.double(), x.double()
    step, pairs = 1e-6, gradients(network, x)
    moved = copy.deepcopy(network)
    with torch.no_grad():
        for layer, (_, g) in zip((moved.first, moved.second), pairs, strict=True):
            layer.weight += step * g
    products = [(there - here) / step for (_, there), (_, here) in zip(gradients(moved, x), pairs, strict=True)]
    expected = sum((-w * product).sum().item() for (w, _), product in zip(pairs, products, strict=True))
    assert score("grasp", network, x) == pytest.approx(expected, rel=1e-4)


def test_fisher_is_half_the_mean_square_of_activation_times_gradient(linear):
    network, x = linear
    hidden = network.first(x.flatten(1))
    logits = network.second(hidden.relu())
    grads = torch.autograd.grad(functional.cross_entropy(logits, LABELS), [hidden, logits])
    expected = sum(0.5 * (z * g).square().mean(0).sum().item() for z, g in zip((hidden, logits), grads, strict=True))
    assert score("fisher", network, x) == pytest.approx(expected, rel=1e-5)


def test_fisher_sums_the_pixels_of_a_channel_first(convolution):
    network, x = convolution
    inner = copy.deepcopy(network)
    z = inner.block.convolve(x, inner.block.conv.weight)
    logits = inner.classify(inner.block.norm(z).relu().mean(dim=(2, 3)))
    on_z, on_logits = torch.autograd.grad(functional.cross_entropy(logits, LABELS), [z, logits])
    expected = (
        0.5 * (z * on_z).sum(dim=(2, 3)).square().mean(0).sum() + 0.5 * (logits * on_logits).square().mean(0).sum()
    )
    assert score("fisher", network, x) == pytest.approx(expected.item(), rel=1e-4)


def test_synflow_of_two_layers_is_twice_the_flow(linear):
    network, x = linear
    flow = (network.second.weight.double().abs() @ network.first.weight.double().abs() @ torch.ones(6).double()).sum()
    assert score("synflow", network, x) == pytest.approx(2 * flow.item())


def test_the_tangent_kernel_of_a_linear_map_is_the_images_gram_matrix():
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.only = nn.Linear(6, 1, bias=False)

        def forward(self, images):
            return self.only(images.flatten(1))

    x = torch.randn(4, 1, 2, 3, generator=torch.Generator().manual_seed(0))
    values = np.linalg.eigvalsh((x.flatten(1) @ x.flatten(1).T).double().numpy())
    assert score("ntk", Linear(), x, LABELS[:4]) == pytest.approx(values[-1] / values[0], rel=1e-3)


def test_jacov_is_highest_where_the_gradients_of_images_are_uncorrelated(linear):
    network, x = linear
    inner = x.clone().requires_grad_()
    (jacobian,) = torch.autograd.grad(network(inner).sum(), [inner])
    v = np.linalg.eigvalsh(np.corrcoef(jacobian.flatten(1).double().numpy())) + 1e-5
    assert score("jacov", network, x) == pytest.approx(-np.sum(np.log(v) + 1 / v), rel=1e-6)
    with pytest.raises(Undefined, match="does not depend on some image"):
        score("jacov", network, torch.cat([x[:7], torch.full((1, 1, 2, 3), -0.0)]))


def test_swap_counts_the_patterns_of_units(linear):
    network, x = linear
    signs = (network.first(x.flatten(1)) > 0).T.numpy()
    assert score("swap", network, x) == len({row.tobytes() for row in signs})


def test_naswot_is_the_log_determinant_of_equal_signs(linear):
    network, x = linear
    signs = (network.first(x.flatten(1)) > 0).double().numpy()
    kernel = signs @ signs.T + (1 - signs) @ (1 - signs).T
    assert score("naswot", network, x) == pytest.approx(np.linalg.slogdet(kernel)[1])
    with pytest.raises(Undefined, match="the same signs"):
        score("naswot", network, torch.cat([x, x]), torch.cat([LABELS, LABELS]))


def test_zico_compares_the_gradients_of_two_halves(linear):
    network, x = linear
    halves = [gradients(network, x[part], LABELS[part]) for part in (slice(0, 4), slice(4, 8))]
    expected = 0.0
    for pair in zip(*halves, strict=True):
        a, b = (gradient.double().numpy() for _, gradient in pair)
        deviation = np.abs(a - b) / 2
        varies = deviation > 0
        expected += np.log((((np.abs(a) + np.abs(b)) / 2)[varies] / deviation[varies]).sum())
    assert score("zico", network, x) == pytest.approx(expected, rel=1e-3)


def test_meco_is_the_smallest_eigenvalue_of_the_channels_correlations(convolution):
    network, x = convolution
    drawn = torch.randn((2, *x.shape[1:]), generator=torch.Generator().manual_seed(5))
    channels = network.block.convolve(drawn, network.block.conv.weight)[0].flatten(1)
    expected = np.linalg.eigvalsh(np.corrcoef(channels.detach().double().numpy()))[0]
    assert score("meco", network, x) == pytest.approx(expected, abs=1e-5)


def test_zen_does_not_change_when_the_weights_do(convolution):
    network, x = convolution
    other = copy.deepcopy(network)
    with torch.no_grad():
        other.block.conv.weight.mul_(7)
    assert score("zen", other, x) == score("zen", network, x)


@torch.no_grad()
def test_zen_is_how_far_the_features_move_and_what_batchnorm_rescales(convolution):
    network, x = copy.deepcopy(convolution[0]), convolution[1]
    chance = torch.Generator().manual_seed(5)
    for module in (network.block.conv, network.classify):
        module.weight.data.normal_(generator=chance)
    one, by = (torch.randn(x.shape, generator=chance) for _ in range(2))
    inner = [network.block.convolve(image, network.block.conv.weight).double() for image in (one, one + 0.01 * by)]
    a, b = ((of - of.mean((0, 2, 3), True)) / (of.var((0, 2, 3), False, keepdim=True) + 1e-5).sqrt() for of in inner)
    expected = math.log((a - b).abs().flatten(1).sum(1).mean()) + math.log(inner[0].var((0, 2, 3)).mean()) / 2
    assert score("zen", network, x) == pytest.approx(expected, abs=1e-3)


def test_zen_leaves_out_layers_behind_an_edge_that_passes_nothing():
    """One convolution leads to the output, another one follows a zeroized edge."""
    config = {**space().default(), **{f"Op{i}": 1 for i in range(1, 7)}, "N": 1, "W": 4, "Resolution": 0.25}
    x = torch.randn(8, 1, 4, 4)
    for ops in ({"Op3": 2}, {"Op3": 2, "Op6": 2}):
        assert math.isfinite(score("zen", build_network(config | ops, TASKS["digits"]), x))


def test_a_cell_without_any_path_has_reasons_in_place_of_numbers():
    config = {**space().default(), **{f"Op{i}": 1 for i in range(1, 7)}, "N": 1, "W": 4, "Resolution": 0.25}
    network = build_network(config, TASKS["digits"])
    x = torch.randn(8, 1, 4, 4)
    reasons = {}
    for name in PROXIES.keys() - {"parameters"}:
        with pytest.raises(Undefined) as caught:
            score(name, network, x)
        reasons[name] = str(caught.value)
    assert all(reasons.values())
