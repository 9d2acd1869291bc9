import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from jahs.errors import InvalidArgument, MissingDependency
from jahs.files.runs import read_runs, timing_machine
from jahs.spaces.cell import EDGES
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY, ZERO
from jahs.tasks.definitions import TASKS
from pipeline.data import load_images
from pipeline.native import build
from pipeline.native.build import software
from pipeline.native.engine import Engine
from pipeline.network import build_network
from pipeline.sampling import sample_config
from pipeline.train import EPOCH_FIELDS, train
from workshop.machine import NATIVE

BATCH = 64
TASK = dataclasses.replace(
    TASKS["digits"], n_train=3 * BATCH, n_valid=100, n_test=70, max_epoch=3, batch_size=BATCH, index_digest=None
)
N_MEASURED = EPOCH_FIELDS.index("runtime")
RATES = {"rate": 0.05, "momentum": 0.9, "decay": 1e-3}

try:
    build.load_library(BATCH)
except MissingDependency as err:
    pytest.skip(str(err), allow_module_level=True)


@pytest.fixture(scope="module")
def sets():
    return load_images(TASK)


def networks(config, side, *, seed=0, task=TASK):
    """An engine, the torch network that it moves, and the same network in double precision."""
    torch.manual_seed(seed)
    moved = build_network(config, task)
    torch.manual_seed(seed)
    exact = build_network(config, task).double()
    return Engine(moved, config["Activation"], side=side, n_images=0, batch=task.batch_size), moved, exact


def draw(side, *, n=BATCH, n_channels=1, n_classes=10, seed=0):
    chance = torch.Generator().manual_seed(seed)
    images = torch.randn(n, n_channels, side, side, generator=chance)
    return images, torch.randint(n_classes, (n,), generator=chance)


def gradients(network, images, labels):
    loss = functional.cross_entropy(network(images.double()), labels)
    network.zero_grad(set_to_none=True)
    loss.backward()
    parts = (torch.zeros_like(p) if p.grad is None else p.grad for p in network.parameters())
    return loss.item(), torch.cat([part.flatten() for part in parts])


def distance(one, other):
    return ((one.double() - other).norm() / other.norm().clamp(min=1e-30)).item()


@settings(max_examples=25, deadline=None)
@given(number=st.integers(0, 10**6), is_wide=st.booleans())
def test_loss_gradients_and_running_statistics_are_those_of_torch_in_double_precision(number, is_wide):
    config = sample_config(number)
    task = dataclasses.replace(TASK, batch_size=128 if is_wide else 64, n_channels=3 if is_wide else 1)
    side = task.image_side(config["Resolution"])
    engine, moved, exact = networks(config, side, seed=number, task=task)
    images, labels = draw(side, n=task.batch_size, n_channels=task.n_channels, seed=number)
    loss, gradient = gradients(exact.train(), images, labels)
    ours, _ = engine.learn(images, labels, **RATES | {"rate": 0.0})
    assert ours == pytest.approx(loss, rel=1e-4)
    # A value that rounding moves across a jump of the slope moves the gradient: torch's as well.
    assert distance(engine.param_grads, gradient) < (1e-3 if config["Activation"] == "Mish" else 0.2)
    with torch.no_grad():
        logits = exact.eval()(images.double())
        assert distance(moved.eval()(images), logits) < 1e-3
    total = functional.cross_entropy(logits, labels, reduction="sum").item()
    assert engine.evaluate(images, labels)[0] == pytest.approx(total, rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(number=st.integers(0, 10**6))
def test_steps_are_those_of_nesterov_sgd_and_leave_alone_what_reaches_no_output(number):
    config = sample_config(number) | {"Activation": "Mish", "N": 1}
    side = TASK.image_side(config["Resolution"])
    engine, _, exact = networks(config, side, seed=number)
    before = engine.params.clone()
    sgd = torch.optim.SGD(exact.train().parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
    for seed in range(3):
        images, labels = draw(side, seed=seed)
        gradients(exact, images, labels)
        sgd.step()
        engine.learn(images, labels, **RATES)
    assert not torch.equal(engine.params, before)
    assert distance(engine.params, torch.cat([p.detach().flatten() for p in exact.parameters()])) < 1e-4


@pytest.mark.parametrize("side", [4, 8, 16])
def test_an_edge_that_leads_nowhere_is_not_computed(side):
    ops = {"Op1": CONV3X3, "Op2": IDENTITY, "Op3": CONV1X1, "Op4": ZERO, "Op5": ZERO, "Op6": ZERO}
    config = sample_config(0) | ops | {"N": 1, "W": 4}
    engine, moved, _ = networks(config, side)
    live, dead = (moved.body[0].convs[f"Op{i}"].conv.weight.detach() for i in (3, 1))
    before = live.clone(), dead.clone()
    engine.learn(*draw(side), **RATES)
    assert EDGES[0] == (1, 2)
    assert not torch.equal(live, before[0])
    assert torch.equal(dead, before[1])


def test_a_cell_without_a_path_leaves_the_classifier_to_learn(sets):
    config = sample_config(0) | {f"Op{i}": ZERO for i in range(1, 7)}
    engine, moved, _ = networks(config, 8)
    stem = moved.stem.conv.weight.detach().clone()
    loss, n_right = engine.learn(*draw(8), **RATES)
    assert loss > 0
    assert 0 <= n_right <= BATCH
    assert torch.equal(moved.stem.conv.weight, stem)
    assert moved.classify.bias.abs().max() > 0


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_any_number_of_images_is_evaluated(n):
    config = sample_config(4)
    engine, moved, _ = networks(config, 8)
    images, labels = draw(8, n=n)
    with torch.no_grad():
        logits = moved.eval()(images)
    loss, n_right = engine.evaluate(images, labels)
    assert loss == pytest.approx(functional.cross_entropy(logits, labels, reduction="sum").item(), rel=1e-4)
    assert n_right == int((logits.argmax(1) == labels).sum())


def test_a_training_has_the_bits_of_another_and_of_one_that_was_stopped_and_resumed(sets, tmp_path):
    config = sample_config(3)
    images = sets[config["Resolution"]]
    whole = train(config, TASK, images, seed=1, device=NATIVE)
    train(config, TASK, images, seed=1, device=NATIVE, epochs=2, checkpoint=tmp_path / "run.pt")
    resumed = train(config, TASK, images, seed=1, device=NATIVE, checkpoint=tmp_path / "run.pt")
    again = train(config, TASK, images, seed=1, device=NATIVE)
    for run in (resumed, again):
        assert np.array_equal(run.epochs[:, :N_MEASURED], whole.epochs[:, :N_MEASURED])
    assert (np.diff(whole.epochs[:, N_MEASURED]) > 0).all()


def test_a_training_begins_as_torch_begins_it(sets):
    config = sample_config(2)
    ours, torchs = (
        train(config, TASK, sets[config["Resolution"]], seed=1, epochs=1, device=d) for d in (NATIVE, "cpu")
    )
    assert ours.epochs[0, :N_MEASURED] == pytest.approx(torchs.epochs[0, :N_MEASURED], rel=1e-3)


def test_a_training_that_leaves_the_numbers_is_marked(sets):
    config = sample_config(1)
    images = sets[config["Resolution"]]
    broken = dataclasses.replace(images, std=(1e-42,))
    run = train(config, TASK, broken, seed=0, device=NATIVE)
    assert run.status == "diverged"
    assert len(run.epochs) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 48}, "batch_size=48 is not a multiple of 64; use device cpu"),
        (
            {"batch_size": 128},
            "device native cannot train .* 192 images an epoch are not whole batches of 128; use device cpu",
        ),
        ({"epoch_images": 100}, "100 images an epoch are not whole batches of 64"),
    ],
)
def test_batches_that_are_not_whole_are_refused(sets, changes, message):
    config = sample_config(0)
    with pytest.raises(InvalidArgument, match=message):
        train(config, dataclasses.replace(TASK, **changes), sets[config["Resolution"]], seed=0, device=NATIVE)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    build.engine_version.cache_clear()
    with pytest.raises(
        MissingDependency, match=r"needs a C compiler: install gcc .*, name one in CC, or use device cpu"
    ):
        build.engine_version(BATCH)


def test_a_compiler_that_fails_is_named_and_leaves_nothing(monkeypatch, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo abacus 9; exit; }\necho "out of beads" >&2; exit 1\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build.engine_version.cache_clear()
    build.load_library.cache_clear()
    with pytest.raises(
        MissingDependency, match=r"failed: out of beads; name another compiler in CC, or use device cpu"
    ):
        build.load_library(BATCH)
    assert list((tmp_path / "cache").rglob("*.so")) == []
    assert list((tmp_path / "cache" / "jahs").iterdir()) == []


@pytest.fixture(autouse=True)
def compilers_are_found_anew():
    yield
    build.engine_version.cache_clear()
    build.load_library.cache_clear()


def test_the_recorded_build_names_torch_and_the_engine():
    assert software("cpu", BATCH) == torch.__version__
    assert software(NATIVE, BATCH) == f"{torch.__version__}, engine {build.engine_version(BATCH)}"
    assert build.engine_version(64) != build.engine_version(128)


@pytest.mark.slow
def test_native_runs_are_collected_verified_and_trained_again_to_the_same_bits(tmp_path):
    task, out = Path(__file__).with_name("digits_short.json"), tmp_path / "runs"
    collect = [sys.executable, "-m", "pipeline.collect"]
    subprocess.run(
        [*collect, "--task", task, "--out", out, "--runs", "2", "--workers", "1", "--device", NATIVE], check=True
    )
    done = subprocess.run([*collect, "verify", out, "--retrain", "2"], check=True, capture_output=True, text=True)
    assert done.stdout.count("same processor and torch build: the same bits: reproduced") == 2
    runs = read_runs(out)
    assert {*runs["device"].tolist()} == {NATIVE}
    assert {*runs["torch_version"].tolist()} == {software(NATIVE, 256)}
    assert timing_machine(runs, {"machine": np.array([])}) is None  # seconds of another code are not comparable
