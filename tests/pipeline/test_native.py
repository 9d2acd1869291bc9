import dataclasses
import errno
import functools
import math
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from jahs.errors import InvalidArgument, MissingDependency, ProtocolMismatch
from jahs.files.runs import is_timed, read_runs, timing_machine
from jahs.schema import OPS
from jahs.spaces.cell import EDGES
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY, ZERO
from jahs.tasks.definitions import TASKS
from pipeline.collect import main
from pipeline.data import load_images
from pipeline.native import build, tape
from pipeline.native import engine as engine_module
from pipeline.native.build import software
from pipeline.native.engine import _ARRAYS, Engine
from pipeline.network import build_network
from pipeline.one_core import one_core
from pipeline.protocol import EPOCH_FIELDS, trained_task
from pipeline.sampling import sample_config
from pipeline.train import train
from workshop.machine import NATIVE, processor_model

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


@functools.cache
def library(batch, lanes):
    """The engine for vectors of so many images, whatever this processor has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_FLAGS", (*build._FLAGS, "-Wno-psabi", f"-DLANES={lanes}"))
        patch.setattr(build, "engine_version", build.engine_version.__wrapped__)
        return build.load_library.__wrapped__(batch)


def networks(config, side, *, seed=0, task=TASK):
    """An engine, the torch network whose parameters it updates, and the same network in double precision."""
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
    loss = functional.cross_entropy(network(images.to(network.classify.weight.dtype)), labels)
    network.zero_grad(set_to_none=True)
    loss.backward()
    parts = (torch.zeros_like(p) if p.grad is None else p.grad for p in network.parameters())
    return loss.item(), torch.cat([part.flatten() for part in parts])


def distance(one, other):
    return ((one.double() - other).norm() / other.norm().clamp(min=1e-30)).item()


@settings(max_examples=15, deadline=None)
@example(number=3214, is_wide=False, lanes=8)  # torch's own error is 3.5e-3
@given(number=st.integers(0, 10**6), is_wide=st.booleans(), lanes=st.sampled_from([8, 16]))
def test_loss_gradients_and_running_statistics_are_those_of_torch_in_double_precision(number, is_wide, lanes):
    config = sample_config(number)
    task = dataclasses.replace(TASK, batch_size=128 if is_wide else 64, n_channels=3 if is_wide else 1)
    side = task.image_side(config["Resolution"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "load_library", functools.partial(library, lanes=lanes))
        engine, moved, exact = networks(config, side, seed=number, task=task)
    images, labels = draw(side, n=task.batch_size, n_channels=task.n_channels, seed=number)
    loss, gradient = gradients(exact.train(), images, labels)
    ours, _ = engine.learn(images, labels, **RATES | {"rate": 0.0})
    assert ours == pytest.approx(loss, rel=1e-4)
    # Where rounding moves a value across a jump of the activation's slope, the gradient changes; torch's does, too.
    error, limit = distance(engine.param_grads, gradient), 1e-3 if config["Activation"] == "Mish" else 0.2
    if error > limit:  # a gradient that rounding changes by much
        torch.manual_seed(number)
        single = build_network(config, task).train()
        assert error < 3 * distance(gradients(single, images, labels)[1], gradient)
    with torch.no_grad():
        logits = exact.eval()(images.double())
        assert distance(moved.eval()(images), logits) < 1e-3
    total = functional.cross_entropy(logits, labels, reduction="sum").item()
    assert engine.evaluate(images, labels)[0] == pytest.approx(total, rel=1e-3)


@pytest.mark.parametrize("activation", ["ReLU", "Hardswish", "Mish"])
@pytest.mark.parametrize("lanes", [8, 16])
def test_gradients_of_a_shallow_network_are_exact_for_every_activation(activation, lanes):
    """In so few layers, rounding moves no value across a jump of the activation's slope."""
    ops = {f"Op{i}": CONV3X3 if i == 4 else ZERO for i in range(1, 7)}
    config = sample_config(0) | ops | {"Activation": activation, "N": 1, "W": 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "load_library", functools.partial(library, lanes=lanes))
        engine, _, exact = networks(config, 16)
    images, labels = draw(16)
    engine.learn(images, labels, **RATES | {"rate": 0.0})
    assert distance(engine.param_grads, gradients(exact.train(), images, labels)[1]) < 1e-5


@settings(max_examples=15, deadline=None)
@example(number=16018)  # torch's own error is 0.2
@given(number=st.integers(0, 10**6))
def test_steps_are_those_of_nesterov_sgd_and_leave_alone_what_reaches_no_output(number):
    config = sample_config(number) | {"Activation": "Mish", "N": 1}
    side = TASK.image_side(config["Resolution"])
    engine, _, exact = networks(config, side, seed=number)
    before = engine.params.clone()
    for seed in range(3):
        engine.learn(*draw(side, seed=seed), **RATES)
    assert not torch.equal(engine.params, before)
    stepped = step_with_torch(exact, side)
    error = distance(engine.params, stepped)
    if error > 1e-4:  # steps that rounding changes by much
        torch.manual_seed(number)
        assert error < 3 * distance(step_with_torch(build_network(config, TASK), side), stepped)


def step_with_torch(network, side):
    """Return the parameters after three steps."""
    sgd = torch.optim.SGD(network.train().parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
    for seed in range(3):
        gradients(network, *draw(side, seed=seed))
        sgd.step()
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


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
def test_any_number_of_images_can_be_evaluated(n):
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


def test_the_first_epoch_is_that_of_torch_up_to_rounding(sets):
    config = sample_config(2)
    ours, torchs = (
        train(config, TASK, sets[config["Resolution"]], seed=1, epochs=1, device=d) for d in (NATIVE, "cpu")
    )
    assert ours.epochs[0, :N_MEASURED] == pytest.approx(torchs.epochs[0, :N_MEASURED], rel=1e-3)


def test_a_training_whose_loss_is_not_finite_is_marked_as_diverged(sets):
    config = sample_config(1)
    images = sets[config["Resolution"]]
    broken = dataclasses.replace(images, std=(1e-42,))
    run = train(config, TASK, broken, seed=0, device=NATIVE)
    assert run.status == "diverged"
    assert len(run.epochs) == 1


@pytest.mark.parametrize("activation", ["ReLU", "Hardswish", "Mish"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_one_parameter_that_is_not_finite_shows_in_the_losses_of_training_and_evaluation(activation, value):
    config = sample_config(0) | dict.fromkeys(OPS, CONV3X3) | {"N": 1, "W": 8, "Activation": activation}
    engine, moved, _ = networks(config, 8)
    before, running = engine.params.clone(), engine.running.clone()
    for weights in moved.parameters():
        weights.detach().view(-1)[0] = value
        assert not math.isfinite(engine.evaluate(*draw(8))[0])
        assert not math.isfinite(engine.learn(*draw(8), **RATES)[0])
        engine.params.copy_(before)
        engine.running.copy_(running)
        engine.momenta.zero_()


def test_shared_memory_of_gradients_and_what_it_held_before_change_no_bit(monkeypatch):
    config = sample_config(1) | dict(zip(OPS, (2, 3, 0, 4, 2, 3), strict=True)) | {"N": 2, "W": 8}

    def apart(sizes, blocks):
        at = np.cumsum([0, *sizes])
        return at[:-1], int(at[-1])

    engines = [networks(config, 8)[0]]
    monkeypatch.setattr(tape, "_share_memory", apart)
    engines.append(networks(config, 8)[0])
    for engine in engines:
        for name in ("grads", "work", "kept", "features", "logits"):
            engine._kept_alive[_ARRAYS.index(name)].fill_(math.nan)
        engine.learn(*draw(8), **RATES)
    assert engines[0].params.isfinite().all()
    assert torch.equal(engines[0].params, engines[1].params)


def test_the_engine_works_where_the_system_has_no_huge_pages(monkeypatch):
    class WithoutHugePages(mmap.mmap):
        def madvise(self, *_):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("pipeline.native.engine.mmap.mmap", WithoutHugePages)
    engine, _, _ = networks(sample_config(0), 8)
    assert engine.learn(*draw(8), **RATES)[0] > 0


@pytest.mark.parametrize("side", [12, 20, 24, 32])
def test_sides_of_own_tasks_have_the_gradients_of_torch(side):
    config = sample_config(0) | {f"Op{i}": CONV3X3 for i in range(1, 7)} | {"N": 1, "W": 8, "Activation": "Mish"}
    engine, _, exact = networks(config, side)
    images, labels = draw(side)
    _, gradient = gradients(exact.train(), images, labels)
    engine.learn(images, labels, **RATES | {"rate": 0.0})
    assert distance(engine.param_grads, gradient) < 1e-4


def test_a_channel_far_from_zero_is_normalised_exactly_once_its_running_mean_is_near():
    config = sample_config(0) | {f"Op{i}": CONV1X1 for i in range(1, 7)} | {"N": 1, "W": 8, "Activation": "Mish"}
    moved, exact = (networks(config, 8)[i] for i in (1, 2))
    with torch.no_grad():
        moved.stem.norm.bias += 100
        exact.stem.norm.bias += 100
    engine = Engine(moved, config["Activation"], side=8, n_images=0, batch=BATCH)
    images, labels = draw(8)
    _, gradient = gradients(exact.train(), images, labels)
    errors = []
    for _ in range(60):
        engine.learn(images, labels, **RATES | {"rate": 0.0})
        errors.append(distance(engine.param_grads, gradient))
    assert errors[-1] < 0.2 * errors[0]
    assert errors[-1] < 0.02


@pytest.mark.parametrize("label", [-1, 10])
def test_a_label_without_a_class_is_refused_before_c_reads_beyond_the_logits(label):
    engine, _, _ = networks(sample_config(0), 8)
    images, labels = draw(8)
    labels[3] = label
    with pytest.raises(AssertionError):
        engine.learn(images, labels, **RATES)


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
        '#!/bin/sh\ncase "$*" in --version) echo abacus 9; exit;; *" -E "*) exit;; esac\n'
        'printf "note: counting\nerror: out of beads\n" >&2; exit 1\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build.engine_version.cache_clear()
    build.load_library.cache_clear()
    with pytest.raises(
        MissingDependency, match=r"failed: error: out of beads; name another GCC in CC, or use device cpu"
    ):
        build.load_library(BATCH)
    assert list((tmp_path / "cache").rglob("*.so")) == []
    assert list((tmp_path / "cache" / "jahs").iterdir()) == []


def test_the_engine_is_compiled_once_and_once_more_for_another_processor(monkeypatch, tmp_path):
    compiled = count_compilations(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        build.load_library.cache_clear()
        build.load_library(BATCH)
    assert len(compiled) == 1
    monkeypatch.setattr(build, "_target", lambda: "another")
    monkeypatch.setattr(build, "engine_version", build.engine_version.__wrapped__)
    build.load_library.cache_clear()
    build.load_library(BATCH)
    assert len(compiled) == 2
    assert len([*(tmp_path / "jahs").iterdir()]) == 2


def test_a_cache_that_cannot_be_made_or_that_others_can_write_is_not_used(monkeypatch, tmp_path):
    compiled = count_compilations(monkeypatch)
    (tmp_path / "file").touch()
    (tmp_path / "open" / "jahs").mkdir(parents=True)
    (tmp_path / "open" / "jahs").chmod(0o777)
    for n, place in enumerate(("file", "open"), start=1):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
        build.load_library.cache_clear()
        assert build.load_library(BATCH).train_step
        assert len(compiled) == n
    assert [*(tmp_path / "open" / "jahs").iterdir()] == []


def test_a_damaged_engine_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "engine_version", lambda batch: "damaged")
    (tmp_path / "jahs").mkdir()
    (tmp_path / "jahs" / "engine-damaged.so").write_bytes(b"half")
    build.load_library.cache_clear()
    with pytest.raises(MissingDependency, match=r"damaged\.so cannot be loaded .*; delete it, or use device cpu"):
        build.load_library(BATCH)


def count_compilations(monkeypatch):
    """Return the list of compilations to come, which are quick."""
    monkeypatch.setattr(build, "_FLAGS", ("-O0", *build._FLAGS[1:]))
    build.engine_version.cache_clear()
    run, compiled = build._run, []

    def noted(command):
        compiled.extend([command] if "-o" in command else [])
        return run(command)

    monkeypatch.setattr(build, "_run", noted)
    return compiled


@pytest.fixture(autouse=True)
def compilers_are_found_anew():
    yield
    build.engine_version.cache_clear()
    build.load_library.cache_clear()


def test_the_recorded_build_names_torch_and_the_engine():
    assert software("cpu", BATCH) == torch.__version__
    assert software(NATIVE, BATCH) == f"{torch.__version__}, engine {build.engine_version(BATCH)}"
    assert build.engine_version(64) != build.engine_version(128)


def test_a_checkpoint_of_another_engine_is_refused(sets, tmp_path, monkeypatch):
    config = sample_config(3)
    arguments = {"seed": 1, "epochs": 1, "device": NATIVE, "checkpoint": tmp_path / "run.pt"}
    train(config, TASK, sets[config["Resolution"]], **arguments)
    monkeypatch.setattr("pipeline.train.software", lambda *_: "2.0, engine of yore")
    with pytest.raises(ProtocolMismatch, match=r"belongs to another run .*engine of yore"):
        train(config, TASK, sets[config["Resolution"]], **arguments)


def test_one_core_restores_the_settings_that_it_found_also_when_it_is_nested():
    assert not flushes()
    with one_core():
        with one_core():
            assert flushes()
        assert flushes()
    assert not flushes()


def flushes():
    return (torch.tensor(1e-40) * 1).item() == 0


@pytest.mark.slow
def test_native_runs_are_collected_verified_and_trained_again_to_the_same_bits(tmp_path, capsys):
    task, out = Path(__file__).with_name("digits_short.json"), tmp_path / "runs"
    collect = ["--task", str(task), "--out", str(out), "--runs", "2", "--workers", "1", "--device", NATIVE]
    subprocess.run([sys.executable, "-m", "pipeline.collect", *collect], check=True)
    assert main(["verify", str(out), "--retrain", "2"]) == 0
    assert capsys.readouterr().out.count("same processor model and software: bit-identical: reproduced") == 2
    runs = read_runs(out)
    assert {*runs["device"].tolist()} == {NATIVE}
    assert {*runs["torch_version"].tolist()} == {software(NATIVE, trained_task(str(task)).batch_size)}
    clock = timing_machine(runs, {"machine": np.array([])})
    assert clock == f"{processor_model()}, {runs['torch_version'][0]}"
    assert is_timed(runs, clock).all()
    with_torch = {**runs, "device": np.where(runs["seed"] == 0, "cpu", runs["device"])}  # seconds of other code
    clock = timing_machine(with_torch, {"machine": np.array([])})
    assert clock == processor_model()
    assert is_timed(with_torch, clock).tolist() == (runs["seed"] == 0).tolist()
