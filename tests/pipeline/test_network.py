import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from jahs.models.cost import cost
from jahs.models.features.cells import cell_features
from jahs.schema import OPS
from jahs.spaces.cell import Cell, all_ops, canonical_keys
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, ZERO
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline.network import CellBlock, ConvBN, ReductionBlock, build_network
from pipeline.operators import OPERATORS
from tests.pipeline.test_cell_canonical_law import (
    N_CHANNELS,
    TOLERANCE,
    PlainCell,
    Stock,
    _assignments,
)

JAHS_TASKS = ("cifar10", "colorectal_histology", "fashion_mnist")


def _count(network: nn.Module, task, side: int) -> dict[str, int]:
    """Parameters, and the multiply-adds of each layer as it is called with one image."""
    macs = 0

    def count(layer, inputs, output):
        nonlocal macs
        if isinstance(layer, nn.Linear):
            macs += layer.in_features * layer.out_features + layer.out_features
        else:
            macs += getattr(layer, "conv", layer).weight[0].numel() * output[0].numel()

    shortcuts = {block.shortcut for block in network.modules() if isinstance(block, ReductionBlock)}
    handles = [
        layer.register_forward_hook(count)
        for layer in network.modules()
        if isinstance(layer, ConvBN | nn.Linear) or layer in shortcuts
    ]
    network.eval()
    network(torch.zeros(1, task.n_channels, side, side))
    for handle in handles:
        handle.remove()
    return {"n_params": sum(p.numel() for p in network.parameters() if p.requires_grad), "n_macs": macs}


@pytest.mark.parametrize("name", JAHS_TASKS)
def test_the_module_has_the_parameters_and_multiply_adds_that_are_computed(name):
    task = TASKS[name]
    for config in space().sample(100, seed=JAHS_TASKS.index(name)):
        network = build_network(config, task)
        with torch.inference_mode():
            assert _count(network, task, task.image_side(config["Resolution"])) == cost(config, task), config


# ------------------------------------------------------------------------------------------------------------------
# An independent forward pass: no modules, no functional, one statement after another.

ACTIVATE = {
    "ReLU": lambda x: x * (x > 0),
    "Hardswish": lambda x: x * (x + 3).clip(0, 6) / 6,
    "Mish": lambda x: x * torch.tanh(torch.log1p(torch.exp(x))),
}


def _conv(x, weight, stride=1):
    size = weight.shape[-1]
    padded = torch.zeros(*x.shape[:2], x.shape[2] + size - 1, x.shape[3] + size - 1, dtype=x.dtype)
    padded[:, :, size // 2 : size // 2 + x.shape[2], size // 2 : size // 2 + x.shape[3]] = x
    out = 0
    for i, j in itertools.product(range(size), repeat=2):
        window = padded[:, :, i : i + x.shape[2] : stride, j : j + x.shape[3] : stride]
        out = out + torch.einsum("oi,bihw->bohw", weight[:, :, i, j], window)
    return out


def _norm(x, state, name, is_training):
    if is_training:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
    else:
        mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
    scale = state[f"{name}.weight"] / torch.sqrt(var + 1e-5)
    return (x - mean[:, None, None]) * scale[:, None, None] + state[f"{name}.bias"][:, None, None]


def _pool(x):
    ones, total = torch.zeros_like(x), torch.zeros_like(x)
    side = x.shape[-1]
    for i, j in itertools.product((-1, 0, 1), repeat=2):
        here = (slice(None), slice(None), slice(max(-i, 0), side - max(i, 0)), slice(max(-j, 0), side - max(j, 0)))
        there = (slice(None), slice(None), slice(max(i, 0), side - max(-i, 0)), slice(max(j, 0), side - max(-j, 0)))
        total[here] += x[there]
        ones[here] += 1
    return total / ones


def _straight_line(config, state, x, is_training):
    act = ACTIVATE[config["Activation"]]

    def conv_norm(name, x, stride=1):
        return _norm(_conv(x, state[f"{name}.conv.weight"], stride), state, f"{name}.norm", is_training)

    def edge(block, number, x):
        op = config[f"Op{number}"]
        if op == 0:
            return x
        if op == 1:
            return torch.zeros_like(x)
        if op == 4:
            return _pool(x)
        return conv_norm(f"{block}.convs.Op{number}", act(x))

    x, block = conv_norm("stem", x), 0
    for stage in range(3):
        if stage:
            name = f"body.{block}"
            short = (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]) / 4
            short = _conv(short, state[f"{name}.shortcut.weight"])
            x = short + conv_norm(f"{name}.second", act(conv_norm(f"{name}.first", act(x), stride=2)))
            block += 1
        for _ in range(config["N"]):
            name = f"body.{block}"
            a = edge(name, 1, x)
            b = edge(name, 2, x) + edge(name, 4, a)
            x = edge(name, 3, x) + edge(name, 5, a) + edge(name, 6, b)
            block += 1
    x = act(_norm(x, state, "norm", is_training)).mean((2, 3))
    return x @ state["classify.weight"].T + state["classify.bias"]


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("is_training", [True, False])
def test_the_network_computes_what_a_straight_line_of_sums_computes(is_training, on_gpu):
    for seed, config in enumerate(space(fixed={"N": 1, "W": 4}).sample(24, seed=5)):
        config["N"] = (1, 3)[seed % 2]
        task = TASKS[JAHS_TASKS[seed % 3]]
        torch.manual_seed(seed)
        network = build_network(config, task, on_gpu=on_gpu).double()
        for tensor in network.state_dict().values():  # also the running statistics and every scale and bias
            if tensor.is_floating_point():
                tensor.add_(torch.rand_like(tensor) * 0.3)
        network.train(is_training)
        images = torch.randn(3, task.n_channels, 8, 8, dtype=torch.float64)
        state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        with torch.no_grad():
            expected = _straight_line(config, state, images, is_training)
            torch.testing.assert_close(network(images), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------------------------


def _block_like(plain: PlainCell) -> CellBlock:
    block = CellBlock(plain.ops, N_CHANNELS, functional.mish, OPERATORS[2]).double()
    for edge, conv in plain.convs.items():
        block.convs[f"Op{int(edge) + 1}"].load_state_dict(conv.state_dict())
    return block.train(plain.training)


def _probes(ops, stock) -> list[float]:
    """The probed output of the cell for every assignment of the stock, with settled biases."""
    probes = []
    for assignment in _assignments(ops, stock):
        plain = PlainCell(ops, stock, assignment)
        plain.settle(stock.mean)
        block = _block_like(plain)
        output = block(stock.x)
        torch.testing.assert_close(output, plain(stock.x), rtol=1e-10, atol=1e-10)
        probes.append(float((output * stock.probe).sum()))
    return probes


def test_cells_of_one_key_give_one_output_and_the_block_is_the_plain_cell():
    keys = canonical_keys(all_ops())
    rng = np.random.default_rng(2)
    n_convs = np.isin(all_ops(), (CONV3X3, CONV1X1)).sum(1)
    shared = np.flatnonzero((np.bincount(keys)[keys] > 1) & (n_convs <= 4))
    stock, outputs = Stock(activation="mish", is_training=True), {}
    with torch.no_grad():
        for key in rng.choice(np.unique(keys[shared]), 25, replace=False):
            members = rng.permutation(shared[keys[shared] == key])[:3]
            values = [min(_probes(tuple(all_ops()[member].tolist()), stock)) for member in members]
            assert values == pytest.approx([values[0]] * len(values), abs=TOLERANCE)
            outputs[int(key)] = values[0]
    assert min(np.diff(sorted(outputs.values()))) > TOLERANCE, "and different keys give different outputs"


def test_an_edge_that_leads_nowhere_is_computed_and_moves_its_statistics():
    cell = Cell((CONV3X3, 0, 0, 1, 1, 0))  # node 2 reaches nothing
    block = CellBlock(cell.ops, 4, functional.relu, OPERATORS[2]).train()
    block(torch.randn(2, 4, 8, 8) + 1)
    assert block.convs["Op1"].norm.num_batches_tracked == 1


def test_a_cell_computes_and_goes_back_through_what_its_features_count(monkeypatch):
    counts = {}

    def counted(function, name):
        def call(*args, **kwargs):
            output = function(*args, **kwargs)
            counts[f"n_{name}"] += 1
            if output.requires_grad:
                output.register_hook(
                    lambda gradient: counts.update({f"n_trained_{name}": counts[f"n_trained_{name}"] + 1})
                )
            return output

        return call

    activate = counted(functional.mish, "activated")
    monkeypatch.setattr(functional, "avg_pool2d", counted(functional.avg_pool2d, "pooled"))
    expected = cell_features(canonical=False)
    for number in np.random.default_rng(0).choice(len(all_ops()), 400, replace=False).tolist():
        counts.update(n_activated=0, n_trained_activated=0, n_pooled=0, n_trained_pooled=0)
        block = CellBlock(tuple(all_ops()[number].tolist()), 4, activate, OPERATORS[2]).train()
        output = block(torch.randn(2, 4, 4, 4, requires_grad=True))
        if output.requires_grad:
            output.sum().backward()
        sides = [conv.conv.kernel_size[0] for conv in block.convs.values() if conv.conv.weight.grad is not None]
        counts.update(n_trained_conv1x1=sides.count(1), n_trained_conv3x3=sides.count(3))
        assert {name: expected[name][number] for name in counts} == counts, all_ops()[number]


@pytest.mark.parametrize("is_training", [True, False])
def test_a_disconnected_cell_gives_every_image_the_same_logits_and_zero_gradients_before_the_head(is_training):
    config = space().default() | dict.fromkeys(OPS, ZERO) | {"N": 3, "W": 4, "Activation": "Mish"}
    network = build_network(config, TASKS["cifar10_mini"])
    network.train(is_training)
    logits = network(torch.randn(16, 3, 16, 16))
    assert torch.equal(logits, logits[:1].expand_as(logits))
    functional.cross_entropy(logits, torch.arange(16) % 10).backward()
    assert network.classify.bias.grad.abs().sum() > 0
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_weights_are_drawn_from_the_global_generator_alone():
    config = space().default()
    torch.manual_seed(3)
    first = build_network(config, TASKS["digits"]).state_dict()
    torch.manual_seed(3)
    again = build_network(config, TASKS["digits"]).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    torch.manual_seed(4)
    other = build_network(config, TASKS["digits"]).state_dict()
    assert not any(torch.equal(first[name], other[name]) for name in first if name.endswith("conv.weight"))
