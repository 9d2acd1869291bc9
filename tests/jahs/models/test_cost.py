import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, InvalidConfig
from jahs.models.cost import cost, n_macs, n_params
from jahs.schema import COLUMNS, OPS
from jahs.tasks.definitions import TASKS

CIFAR, COLORECTAL, FASHION = TASKS["cifar10"], TASKS["colorectal_histology"], TASKS["fashion_mnist"]
README_OPS = (4, 1, 2, 0, 2, 1)

# N, W, Resolution, task, operations, size_MB and FLOPS in millions.
GOLDEN = [
    (5, 16, 1.0, CIFAR, (2,) * 6, 1531546, 220119690),
    (5, 16, 1.0, CIFAR, (1,) * 6, 73306, 7783050),
    (5, 16, 1.0, COLORECTAL, (2,) * 6, 1531416, 220119560),
    (5, 16, 1.0, FASHION, (2,) * 6, 1531258, 219824778),
    (1, 4, 0.25, CIFAR, (2,) * 6, 23374, 201642),
    (1, 4, 0.25, CIFAR, (1,) * 6, 4894, 35754),
    (5, 16, 1.0, CIFAR, README_OPS, 559386, 78561930),
    (3, 8, 0.5, CIFAR, README_OPS, 91986, 3168586),
]

configs = st.fixed_dictionaries(
    {
        "N": st.sampled_from([1, 3, 5]),
        "W": st.sampled_from([4, 8, 16]),
        "Resolution": st.sampled_from([0.25, 0.5, 1.0]),
        **{key: st.integers(0, 4) for key in OPS},
    }
)


def _config(n=1, w=4, resolution=1.0, ops=(0,) * 6):
    return {"N": n, "W": w, "Resolution": resolution, **dict(zip(OPS, ops, strict=True))}


def _encoded(*rows):
    X = np.full((len(rows), len(COLUMNS)), np.nan, dtype=np.float32)  # what costs nothing may be anything
    for x, row in zip(X, rows, strict=True):
        for key, value in row.items():
            x[COLUMNS.index(key)] = value
    return X


def _layer_by_layer(config, task):
    """Parameters and multiply-adds, one layer of the network after another."""
    params, macs = 0, 0

    def conv(size, wide_in, wide_out, side, *, has_norm=True):
        nonlocal params, macs
        params += size**2 * wide_in * wide_out + 2 * wide_out * has_norm
        macs += size**2 * wide_in * wide_out * side**2

    width, side = config["W"], int(task.side * config["Resolution"])
    conv(3, task.n_channels, width, side)
    for stage in range(3):
        if stage > 0:
            side = -(-side // 2)
            conv(3, width, 2 * width, side)
            conv(3, 2 * width, 2 * width, side)
            conv(1, width, 2 * width, side, has_norm=False)
            width *= 2
        for _ in range(config["N"]):
            for key in OPS:
                if config[key] in (2, 3):
                    conv(3 if config[key] == 2 else 1, width, width, side)
    params += 2 * width
    linear = width * task.n_classes + task.n_classes
    return {"n_params": params + linear, "n_macs": macs + linear}


@pytest.mark.parametrize(("n", "w", "resolution", "task", "ops", "params", "macs"), GOLDEN)
def test_costs_are_the_published_ones_to_the_last_digit(n, w, resolution, task, ops, params, macs):
    config = _config(n, w, resolution, ops)
    assert cost(config, task) == {"n_params": params, "n_macs": macs}
    assert n_params(_encoded(config), task).tolist() == [params]
    assert n_macs(_encoded(config), task).tolist() == [macs]


@given(configs, st.sampled_from(list(TASKS.values())))
def test_the_closed_form_is_the_sum_over_layers(config, task):
    assert cost(config, task) == _layer_by_layer(config, task)


@given(st.lists(configs, max_size=5), st.sampled_from(list(TASKS.values())))
def test_many_configs_cost_what_each_does(rows, task):
    X = _encoded(*rows)
    assert n_params(X, task).dtype == n_macs(X, task).dtype == np.int64
    assert n_params(X, task).tolist() == [cost(row, task)["n_params"] for row in rows]
    assert n_macs(X, task).tolist() == [cost(row, task)["n_macs"] for row in rows]


def test_many_rows_keep_their_order():
    one, other = _config(), _config(5, 16, 1.0, (2,) * 6)
    X = np.tile(_encoded(one, other), (10_000, 1))
    expected = [cost(one, CIFAR)["n_macs"], cost(other, CIFAR)["n_macs"]] * 10_000
    assert n_macs(X, CIFAR).tolist() == expected
    assert n_macs(np.asfortranarray(X), CIFAR).tolist() == expected


def test_costs_are_built_in_integers_and_take_numpy_scalars():
    config = _config(np.int8(3), np.int64(8), np.float32(0.5), [np.int32(op) for op in README_OPS])
    result = cost(config, CIFAR)
    assert result == {"n_params": 91986, "n_macs": 3168586}
    assert {type(value) for value in result.values()} == {int}


def test_large_networks_do_not_overflow():
    config = _config(1024, 1024, 1.0, (2,) * 6)
    assert cost(config, CIFAR) == _layer_by_layer(config, CIFAR)


def test_every_fault_of_a_config_is_named_at_once():
    config = {"N": True, "W": 0, "Resolution": 0.3, "Op1": 5, "Op2": 1.0, "Op3": 0, "Op4": 0, "Op5": 0}
    with pytest.raises(InvalidConfig) as caught:
        cost(config, CIFAR)
    assert [fault.split("=")[0] for fault in caught.value.faults] == [
        "N",
        "Op1",
        "Op2",
        "Op6: missing",
        "Resolution",
        "W",
    ]


@pytest.mark.parametrize("value", [True, 1.5, "1", None, float("nan"), 0, -1, 10**30])
@pytest.mark.parametrize("key", ["N", "W", "Resolution"])
def test_a_value_without_a_network_is_refused(key, value):
    with pytest.raises(InvalidConfig, match=f"^{key}="):
        cost({**_config(), key: value}, CIFAR)


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["large", "small"])
def test_a_number_of_too_many_digits_is_refused_as_any_other(number):
    with pytest.raises(InvalidConfig) as caught:
        cost({**_config(), "N": number, "W": number, "Resolution": number, "Op1": number}, CIFAR)
    assert [fault.split(" digits>")[0] for fault in caught.value.faults] == [
        f"{key}=<a number of too many" for key in ("N", "Op1", "Resolution", "W")
    ]


@pytest.mark.parametrize("task", ["cifar10", None, 32])
def test_what_is_no_task_is_refused(task):
    with pytest.raises(InvalidArgument, match="Task"):
        cost(_config(), task)
