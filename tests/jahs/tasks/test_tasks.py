"""Tasks: the protocols and what refuses a bad one."""

import contextlib
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, UnknownName
from jahs.tasks.definitions import PROSE, RESOLUTIONS, TASKS, Task, caveats_of, task


@pytest.mark.parametrize("found", TASKS.values(), ids=TASKS)
def test_a_task_is_whole(found):
    assert task(found.name) is found
    assert found.citation
    assert found.title
    assert found.n_train >= 256
    sides = [found.image_side(resolution) for resolution in RESOLUTIONS]
    assert sides == [found.side // 4, found.side // 2, found.side]
    for statistic in (found.mean, found.std):
        assert statistic is None or len(statistic) == found.n_channels


def test_the_published_tasks_are_as_published():
    facts = {
        name: (t.side, t.n_channels, t.n_classes, t.max_epoch, t.n_train + t.n_valid, t.n_test)
        for name, t in TASKS.items()
        if name in ("cifar10", "colorectal_histology", "fashion_mnist")
    }
    assert facts == {
        "cifar10": (32, 3, 10, 200, 50_000, 10_000),
        "colorectal_histology": (32, 3, 8, 200, 4_504, 496),
        "fashion_mnist": (32, 1, 10, 200, 63_000, 7_000),
    }


def test_a_task_takes_no_more_images_than_there_are():
    n_images = {
        "digits": 1_797,
        "fashion_mnist": 70_000,
        "cifar10": 60_000,
        "cifar10_first": 20_000,
        "colorectal_histology": 5_000,
    }
    for found in TASKS.values():
        assert found.n_train + found.n_valid + found.n_test <= n_images[found.data_set]


def test_a_task_whose_network_runs_out_of_pixels_is_refused():
    with pytest.raises(InvalidArgument, match="images of 2 pixels; the side must be a multiple of 16"):
        dataclasses.replace(TASKS["digits"], side=8)
    with pytest.raises(InvalidArgument, match="multiple of 16"):
        dataclasses.replace(TASKS["digits"], side=20)


def test_a_rate_is_trained_as_it_is_unless_the_task_says_otherwise():
    found = TASKS["digits"]
    assert (found.trained_rate(0.1), found.trained_rate(1.0)) == (0.1, 1.0)
    factored = dataclasses.replace(found, learning_rate_factor=0.25, learning_rate_power=0.5)
    assert factored.trained_rate(0.04) == pytest.approx(0.05)


@given(rate=st.floats(1e-3, 1), decay=st.floats(1e-5, 1e-2), factor=st.floats(0.01, 10), power=st.floats(0.1, 2))
def test_a_step_shrinks_weights_by_the_trained_rate_or_by_the_one_given(rate, decay, factor, power):
    task = dataclasses.replace(TASKS["digits"], learning_rate_factor=factor, learning_rate_power=power)
    assert task.trained_decay(rate, decay) == decay
    kept = dataclasses.replace(task, keeps_decay=True)
    assert kept.trained_rate(rate) * kept.trained_decay(rate, decay) == pytest.approx(rate * decay)


@pytest.mark.parametrize("key", ["learning_rate_factor", "learning_rate_power"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_that_is_no_positive_number_is_refused(key, value):
    with pytest.raises(InvalidArgument, match=f"{key} must be a finite number above 0"):
        dataclasses.replace(TASKS["digits"], **{key: value})


@pytest.mark.parametrize("n_images", [0, 1025])
def test_an_epoch_has_no_more_images_than_the_task(n_images):
    with pytest.raises(InvalidArgument, match=f"epoch_images={n_images}: must be from 1 to n_train=1024, or none"):
        dataclasses.replace(TASKS["digits"], epoch_images=n_images)


def test_every_fault_of_a_task_is_named_at_once():
    with pytest.raises(InvalidArgument) as caught:
        dataclasses.replace(TASKS["digits"], side=8, n_train=0, max_epoch=0)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1].split("=")[0] for line in lines] == ["side", "n_train", "max_epoch"]


def test_every_wrong_type_of_a_task_is_named_at_once_beside_its_other_faults():
    wrong = {"title": 3, "side": "16", "n_train": True, "n_valid": 0, "learning_rate_power": None, "mean": "0.5"}
    with pytest.raises(InvalidArgument) as caught:
        dataclasses.replace(TASKS["digits"], **wrong)
    assert str(caught.value).replace("task 'digits': ", "").splitlines() == [
        "title must be a printable text, got 3",
        "side must be an integer from 0 to a billion, got '16'",
        "n_train must be an integer from 0 to a billion, got True",
        "learning_rate_power must be a finite number above 0, got None",
        "mean must be a list of numbers from 0 to 1, one per channel, got '0.5'",
        "n_valid=0: must be at least 1",
    ]


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(Task)])
@pytest.mark.parametrize("kind", ["object", "list", "array", "nan", "huge", "negative"])
def test_any_value_is_refused_with_one_kind_of_error_or_taken(key, kind):
    kinds = {"object": object(), "list": [object()], "array": np.array([1, 2]), "nan": math.nan, "huge": 10**400}
    value = kinds.get(kind, -(10**400))
    with contextlib.suppress(InvalidArgument):
        dataclasses.replace(TASKS["digits"], **{key: value})


def test_a_task_keeps_builtins():
    changes = {
        "n_train": np.int64(1024),
        "learning_rate_factor": np.float32(0.5),
        "mean": [1],
        "title": np.str_("Digits"),
    }
    task = dataclasses.replace(TASKS["digits"], **changes)
    assert [type(getattr(task, key)) for key in changes] == [int, float, tuple, str]
    assert hash(task) == hash(dataclasses.replace(task))


def test_a_side_that_no_image_has_and_more_epochs_than_a_table_holds_are_refused():
    with pytest.raises(InvalidArgument, match=r"side=100000: must be at least 1 and at most 1024\n.*max_epoch=40000"):
        dataclasses.replace(TASKS["digits"], side=100_000, max_epoch=40_000)


def test_tasks_cannot_be_changed():
    with pytest.raises(TypeError):
        TASKS["new"] = TASKS["digits"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        TASKS["digits"].side = 32


@pytest.mark.parametrize("name", ["cifar", "", None, 3, ["digits"], "CIFAR10"])
def test_an_unknown_task_lists_those_that_exist(name):
    with pytest.raises(UnknownName, match=r"task=.* does not exist.*digits, fashion_mnist_mini, cifar10"):
        task(name)


def test_each_caveat_is_given_once_and_tasks_without_one_add_nothing():
    short, plain = (dataclasses.replace(TASKS["digits"], caveat=caveat) for caveat in ("Short.", None))
    assert caveats_of([short, plain, short]) == ("Short.",)
    assert caveats_of([plain]) == ()


@pytest.mark.parametrize("name", ["fashion_mnist_mini", "cifar10_mini"])
def test_an_embedded_task_says_that_its_training_is_short(name):
    caveat = TASKS[name].caveat
    assert caveat is not None
    assert "2,700 SGD steps" in caveat
    assert set(PROSE) <= {field.name for field in dataclasses.fields(TASKS["digits"])}
