import dataclasses
import errno
import functools
import json
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, OutOfSpace, ProtocolMismatch
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline import train as train_module
from pipeline.data import load_images
from pipeline.protocol import AUGMENTATION_VERSION, EPOCH_FIELDS
from pipeline.sampling import sample_config
from pipeline.train import TrainedRun, Training, learning_rate, train
from pipeline.train.__main__ import main
from pipeline.train.step import take_step
from tests.pipeline.image_files import write_cifar, write_fashion, write_tiles
from tests.pipeline.unwritable import unwritable
from workshop.machine import device_name
from workshop.numbered import N_GROUPS

TINY = dataclasses.replace(TASKS["digits"], n_train=300, n_valid=100, n_test=100, max_epoch=4, index_digest=None)
CONFIG = space(fixed={"N": 1, "W": 4, "Resolution": 0.5}).sample(seed=4) | {"TrivialAugment": True, "LearningRate": 0.1}
N_MEASURED = EPOCH_FIELDS.index("runtime")  # columns that are the same in every run


@pytest.fixture(scope="module")
def images():
    return load_images(TINY, resolutions=(0.5,))[0.5]


@pytest.fixture(scope="module")
def whole(images):
    return train(CONFIG, TINY, images, seed=7)


def _is_same(run, other) -> bool:
    weights, others = run.network.state_dict(), other.network.state_dict()
    return (
        run.status == other.status
        and run.epochs[:, :N_MEASURED].tobytes() == other.epochs[:, :N_MEASURED].tobytes()
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )


def test_the_same_seed_gives_the_same_bits_whatever_was_drawn_before(images, whole):
    torch.manual_seed(99)
    torch.rand(10)
    assert _is_same(train(CONFIG, TINY, images, seed=7), whole)
    assert whole.epochs.shape == (TINY.max_epoch, len(EPOCH_FIELDS))


@pytest.mark.parametrize("n_epochs", [1, 2, 3, 4])
def test_a_run_that_was_stopped_and_resumed_has_the_bits_of_one_that_was_not(images, whole, tmp_path, n_epochs):
    checkpoint, heard = tmp_path / "run.pt", []
    first = train(CONFIG, TINY, images, seed=7, epochs=n_epochs, checkpoint=checkpoint)
    assert len(first.epochs) == n_epochs
    run = train(CONFIG, TINY, images, seed=7, checkpoint=checkpoint, on_epoch=lambda epoch, row: heard.append(epoch))
    assert _is_same(run, whole)
    assert heard == [1, 2, 3, 4]
    assert np.all(np.diff(run.epochs[:, N_MEASURED], prepend=0) > 0)
    assert np.array_equal(run.epochs[:n_epochs], first.epochs)
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_runtime_does_not_include_saving_and_the_callers_own_work(images, tmp_path, monkeypatch):
    now = 0.0

    def spend(seconds, result=None):
        nonlocal now
        now += seconds
        return result

    monkeypatch.setattr(train_module, "time", SimpleNamespace(thread_time=lambda: now))
    monkeypatch.setattr(Training, "train_epoch", lambda *_: spend(1, (50.0, 1.0)))
    monkeypatch.setattr(Training, "evaluate", lambda *_: spend(0.5, (50.0, 1.0)))
    save = Training.save
    monkeypatch.setattr(Training, "save", lambda *args: spend(100, save(*args)))
    for epochs in (2, 4):  # the second training resumes the first
        run = train(
            CONFIG, TINY, images, seed=7, epochs=epochs, checkpoint=tmp_path / "run.pt", on_epoch=lambda *_: spend(1000)
        )
    assert run.epochs[:, N_MEASURED].tolist() == [2, 4, 6, 8]


def test_another_seed_gives_another_run(images, whole):
    other = train(CONFIG, TINY, images, seed=8, epochs=1)
    assert not np.array_equal(other.epochs[0, :N_MEASURED], whole.epochs[0, :N_MEASURED])


def test_digits_are_learned(images, whole):
    assert whole.epochs[-1, EPOCH_FIELDS.index("train_loss")] < whole.epochs[0, EPOCH_FIELDS.index("train_loss")]
    config = CONFIG | {"W": 8, "Resolution": 0.25, "LearningRate": 0.3, "TrivialAugment": False}
    config |= {"Activation": "ReLU", **{f"Op{i}": 2 for i in range(1, 7)}}
    run = train(config, TASKS["digits"], load_images(TASKS["digits"])[0.25], seed=0)
    assert run.epochs[-1, EPOCH_FIELDS.index("test_acc")] > 65


def test_an_epoch_draws_its_images_anew_and_each_at_most_once(images, monkeypatch):
    drawn = []
    real = Training.augment
    monkeypatch.setattr(Training, "augment", lambda self, index: drawn.append(index) or real(self, index))
    task = dataclasses.replace(TINY, epoch_images=70, batch_size=32)
    train(CONFIG, task, images, seed=7, epochs=2)
    seen = torch.cat(drawn).reshape(2, 70)
    assert [len(epoch.unique()) for epoch in seen] == [70, 70]
    assert len(seen.unique()) > 70
    assert seen.min() >= 0
    assert seen.max() < TINY.n_train


def test_training_uses_the_rate_and_the_decay_of_its_task(images):
    factors = {"learning_rate_factor": 0.5, "learning_rate_power": 0.5}
    task = dataclasses.replace(TINY, **factors, keeps_decay=True)
    rate, decay = task.trained_rate(CONFIG["LearningRate"]), CONFIG["WeightDecay"]
    (group,) = Training(CONFIG, task, images, seed=7).optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (rate, pytest.approx(decay * CONFIG["LearningRate"] / rate))
    assert Training(CONFIG, dataclasses.replace(TINY, **factors), images, seed=7).optimizer.param_groups[0][
        "weight_decay"
    ] == pytest.approx(decay)


def test_an_epoch_of_all_images_is_the_usual_one(images, whole):
    assert _is_same(train(CONFIG, dataclasses.replace(TINY, epoch_images=TINY.n_train), images, seed=7), whole)


def test_the_callers_torch_is_left_as_it_was(images):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        before = torch.get_rng_state()
        train(CONFIG, TINY, images, seed=0, epochs=1)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == 2
        assert float(torch.tensor([1e-40]) * 0.5) > 0, "denormal numbers are numbers again"
        with pytest.raises(RuntimeError, match="planted"), train_module.one_core():
            raise RuntimeError("planted")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_the_learning_rate_follows_a_cosine_over_200_epochs():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200)  # what JAHS-Bench-201 steps per epoch
    for epoch in range(1, 201):
        assert learning_rate(0.3, epoch, 200) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9), epoch
        optimizer.step()
        scheduler.step()
    assert learning_rate(0.3, 1, 200) == 0.3
    assert learning_rate(0.3, 101, 200) == pytest.approx(0.15, rel=1e-15)
    assert learning_rate(0.3, 200, 200) == 0.15 * (1 + math.cos(math.pi * 199 / 200))


def test_every_step_of_a_200_epoch_task_has_its_epochs_rate(images, monkeypatch):
    task = dataclasses.replace(TINY, max_epoch=200)
    rates = []

    def learn(training, prepared, labels):
        rates.append(training.optimizer.param_groups[0]["lr"])
        return torch.zeros(()), torch.zeros((), dtype=torch.int64)

    monkeypatch.setattr(Training, "learn", learn)
    monkeypatch.setattr(Training, "evaluate", lambda training, part: (0.0, 0.0))
    train(CONFIG, task, images, seed=0)
    n_steps = math.ceil(TINY.n_train / TINY.batch_size)
    assert rates == [learning_rate(CONFIG["LearningRate"], e, 200) for e in range(1, 201) for _ in range(n_steps)]


def test_one_step_is_the_published_update(images):
    with train_module.one_core(), torch.random.fork_rng(devices=[]):
        training = Training(CONFIG | {"TrivialAugment": False}, TINY, images, seed=0)
        before = [p.detach().clone() for p in training.network.parameters()]
        training.learn(*training.augment(torch.arange(TINY.batch_size)))
    rate, decay = CONFIG["LearningRate"], CONFIG["WeightDecay"]
    for old, parameter in zip(before, training.network.parameters(), strict=True):
        if parameter.grad is not None:  # a first Nesterov step moves by (1 + momentum) times the gradient
            expected = old - rate * 1.9 * (parameter.grad + decay * old)
            torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-7)


def test_a_disconnected_cell_trains_to_chance(images):
    run = train(CONFIG | {f"Op{i}": 1 for i in range(1, 7)}, TINY, images, seed=0, epochs=2)
    assert run.status == "finished"
    assert np.all(run.epochs[:, : EPOCH_FIELDS.index("train_loss")] < 25)
    assert np.isfinite(run.epochs).all()


# ------------------------------------------------------------------------------------------------- divergence


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("is_training", [True, False])
def test_divergence_ends_the_run_with_the_epoch_in_which_it_happened(images, whole, monkeypatch, bad, is_training):
    n_calls = 0

    def planted(logits, labels, **options):
        nonlocal n_calls
        loss = functional.cross_entropy(logits, labels, **options)
        n_calls += logits.requires_grad == is_training
        per_epoch = math.ceil(TINY.n_train / TINY.batch_size) if is_training else 2
        return loss * bad if n_calls > 2 * per_epoch else loss

    stand_in = type("functional", (), {"cross_entropy": staticmethod(planted)})
    for module in (train_module, train_module.step):
        monkeypatch.setattr(module, "functional", stand_in)
    heard = []
    run = train(CONFIG, TINY, images, seed=7, on_epoch=lambda epoch, row: heard.append(epoch))
    assert run.status == "diverged"
    assert heard == [1, 2]
    assert np.array_equal(run.epochs[:2, :N_MEASURED], whole.epochs[:2, :N_MEASURED])
    (last,) = run.epochs[2:]
    first_loss = EPOCH_FIELDS.index("train_loss")
    assert np.isfinite(last[first_loss]) != is_training
    assert not np.isfinite(last[first_loss : first_loss + 3]).all()
    assert np.all(np.diff(run.epochs[:, N_MEASURED]) > 0)


def test_an_infinite_image_diverges_in_the_first_epoch_and_again_where_the_run_is_resumed(images, tmp_path):
    planted = dataclasses.replace(images, std=(1e-42,))  # pixels leave the range of float32
    for _ in range(2):
        run = train(CONFIG | {"LearningRate": 1.0}, TINY, planted, seed=0, checkpoint=tmp_path / "run.pt")
        assert run.status == "diverged"
        assert run.epochs.shape == (1, len(EPOCH_FIELDS))
        assert np.isnan(run.epochs[0, EPOCH_FIELDS.index("train_loss")])


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("epochs", [0, -1, TINY.max_epoch + 1, 1.0, True])
def test_epochs_that_the_task_does_not_have_are_refused(images, epochs):
    with pytest.raises(InvalidArgument, match=r"epochs=.* must be an integer in 1\.\.4"):
        train(CONFIG, TINY, images, seed=0, epochs=epochs)


@pytest.mark.parametrize("seed", [-1, 0.5, True, None])
def test_a_seed_that_is_none_is_refused(images, seed):
    with pytest.raises(InvalidArgument, match=r"seed=.* is not an integer in 0"):
        train(CONFIG, TINY, images, seed=seed)


def test_images_of_another_resolution_are_refused(images):
    message = r"images are 8 pixels wide, but digits at Resolution=1.0 has 16; give load_images\(task\)\[1.0\]"
    with pytest.raises(InvalidArgument, match=message):
        train(CONFIG | {"Resolution": 1.0}, TINY, images, seed=0)


@pytest.mark.parametrize("device", ["gpu", "cuda:77"])
def test_a_device_that_is_not_there_is_refused(images, device):
    with pytest.raises(InvalidArgument, match=f"device='{device}' cannot be used"):
        train(CONFIG, TINY, images, seed=0, device=device)


def test_a_config_with_faults_is_refused(images):
    with pytest.raises(InvalidConfig, match=r"N=4 is not one of 1, 3, 5"):
        train(CONFIG | {"N": 4}, TINY, images, seed=0)


@pytest.fixture
def checkpoint(images, tmp_path):
    """The checkpoint of one epoch."""
    path = tmp_path / "run.pt"
    train(CONFIG, TINY, images, seed=7, epochs=1, checkpoint=path)
    return path


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 8},
        {"config": CONFIG | {"LearningRate": 0.2}},
        {"task": dataclasses.replace(TINY, max_epoch=5)},
        {"index_digest": "0" * 16},
    ],
)
def test_a_checkpoint_of_another_run_is_refused(images, checkpoint, other):
    content = checkpoint.read_bytes()
    arguments = {"config": CONFIG, "task": TINY, "images": images, "seed": 7, **other}
    if split := arguments.pop("index_digest", None):
        arguments["images"] = dataclasses.replace(images, index_digest=split)
    with pytest.raises(ProtocolMismatch, match="belongs to another run"):
        train(**arguments, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pipeline.protocol.AUGMENTATION_VERSION", AUGMENTATION_VERSION + 1, ""),
        ("pipeline.train.processor_model", lambda: "Abacus 9", "Abacus 9"),
        ("pipeline.train.device_name", lambda _: "Abacus 9", "Abacus 9"),
    ],
)
def test_a_checkpoint_of_another_augmentation_device_or_processor_is_refused(
    images, checkpoint, monkeypatch, name, value, told
):
    monkeypatch.setattr(name, value)
    with pytest.raises(ProtocolMismatch, match=rf"belongs to another run .*{told}.*; delete or move it"):
        train(CONFIG, TINY, images, seed=7, checkpoint=checkpoint)


def test_a_full_disk_is_named_and_the_older_checkpoint_stays(images, checkpoint, tmp_path):
    content = checkpoint.read_bytes()
    said = r"run\.pt could not be written: the disk is full"
    with unwritable(tmp_path, errno.ENOSPC), pytest.raises(OutOfSpace, match=said):
        train(CONFIG, TINY, images, seed=7, epochs=2, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == content
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_threads_of_one_process_train_one_after_another_and_get_the_same_bits(images):
    alone = [train(CONFIG, TINY, images, seed=seed, epochs=1) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: train(CONFIG, TINY, images, seed=seed, epochs=1), range(4)))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.epochs[:, :-1], other.epochs[:, :-1])


def test_a_device_is_known_by_its_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Abacus {device.index}")
    assert [device_name(device) for device in ("cpu", "native", "cuda:9")] == ["cpu", "native", "Abacus 9"]


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "another file", "lacks weights"])
def test_a_damaged_checkpoint_is_refused(images, tmp_path, damage):
    checkpoint = tmp_path / "run.pt"
    train(CONFIG, TINY, images, seed=7, epochs=1, checkpoint=checkpoint)
    content = checkpoint.read_bytes()
    state = torch.load(checkpoint, weights_only=True)
    if damage == "lacks weights":
        state["network"].pop("stem.conv.weight")
        torch.save(state, checkpoint)
    elif damage == "another file":
        torch.save([1, 2], checkpoint)
    else:
        checkpoint.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "text": b"not a checkpoint"}[damage])
    with pytest.raises(CorruptFile, match=r"is not a readable checkpoint .* delete it to start over"):
        train(CONFIG, TINY, images, seed=7, checkpoint=checkpoint)


class _Hostile:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return (Path.touch, (self.witness,))


@pytest.mark.parametrize("save", [torch.save, lambda state, path: path.write_bytes(pickle.dumps(state))])
def test_a_checkpoint_never_runs_code(images, tmp_path, save):
    checkpoint, witness = tmp_path / "run.pt", tmp_path / "witness"
    save({"identity": _Hostile(witness), "rows": []}, checkpoint)
    with pytest.raises(CorruptFile, match="is not a readable checkpoint") as caught:
        train(CONFIG, TINY, images, seed=7, checkpoint=checkpoint)
    assert "weights" not in str(caught.value), "torch advises to load it unsafely"
    assert not witness.exists()
    pickle.loads(pickle.dumps(_Hostile(witness)))
    assert witness.exists(), "the bait is real"


# ------------------------------------------------------------------------------------------------- JAHS-Bench-201


FORMATS = [
    ("cifar10", write_cifar),
    ("cifar10", lambda folder: write_cifar(folder, packed=False)),
    ("fashion_mnist", lambda folder: write_fashion(folder, n_train=80)),
    ("colorectal_histology", lambda folder: write_tiles(folder, classes="ABCDEFGH", n_per_class=12, side=150)),
]


@pytest.mark.parametrize(("name", "write"), FORMATS)
def test_a_jahs_bench_201_task_trains_an_epoch_from_each_format(name, write, tmp_path):
    write(tmp_path)
    task = dataclasses.replace(TASKS[name], n_train=48, n_valid=16, n_test=16, index_digest=None)
    assert (task.max_epoch, task.side) == (200, 32)
    sets = load_images(task, data_dir=tmp_path)
    for resolution, augments in ((0.25, True), (1.0, False)):
        images = sets[resolution]
        assert images.train.images.shape[-1] == (32 if name == "cifar10" else 32 * resolution)
        config = CONFIG | {"Resolution": resolution, "TrivialAugment": augments}
        run = train(config, task, images, seed=0, epochs=1)
        assert run.status == "finished"
        assert run.epochs.shape == (1, len(EPOCH_FIELDS))
        assert np.isfinite(run.epochs).all()


# ------------------------------------------------------------------------------------------------- the command


def test_the_command_gives_the_bits_of_the_function_from_another_process():
    command = [sys.executable, "-m", "pipeline.train", "--task", "digits", "--config", json.dumps(CONFIG)]
    done = subprocess.run([*command, "--epochs", "2", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    expected = train(CONFIG, TASKS["digits"], load_images(TASKS["digits"])[0.5], seed=0, epochs=2)
    assert [epoch["epoch"] for epoch in facts["epochs"]] == [1, 2]
    for name in EPOCH_FIELDS[:N_MEASURED]:
        assert [epoch[name] for epoch in facts["epochs"]] == expected.epochs[:, EPOCH_FIELDS.index(name)].tolist()
    assert (facts["status"], facts["seed"], facts["config"]) == ("finished", 0, CONFIG)
    assert [line.split(" valid_acc=")[0] for line in done.stderr.splitlines()] == ["1/2 digits", "2/2 digits"]


def test_the_command_resumes_and_prints_one_row_per_epoch(capsys, tmp_path):
    arguments = ["--task", "digits", "--config", json.dumps(CONFIG), "--checkpoint", str(tmp_path / "run.pt")]
    assert main([*arguments, "--epochs", "1"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert main([*arguments, "--epochs", "2"]) == 0
    second = capsys.readouterr().out.splitlines()
    assert first[0].split() == ["epoch", *EPOCH_FIELDS]
    assert second[:2] == first
    assert [line.split()[0] for line in second[1:]] == ["1", "2"]


def test_a_runtime_that_was_not_measured_is_not_shown(capsys, monkeypatch):
    row = dict.fromkeys(EPOCH_FIELDS, 50.0) | {"runtime": math.nan}

    def on_an_accelerator(*_, on_epoch, **__):
        on_epoch(1, row)
        return TrainedRun(status="finished", epochs=np.array([[*row.values()]]), network=None)

    monkeypatch.setattr("pipeline.train.__main__.train", on_an_accelerator)
    assert main(["--task", "digits", "--sample", "0", "--epochs", "1"]) == 0
    assert capsys.readouterr().err.startswith("1/1 digits valid_acc=50.0, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "digts", "--sample", "0"], "task='digts' does not exist (did you mean 'digits'?)"),
        (["--task", "digits", "--config", "{"], "config is not JSON"),
        (["--task", "digits", "--config", json.dumps(CONFIG | {"N": 4})], "N=4 is not one of 1, 3, 5"),
        (["--task", "digits", "--sample", "-1"], "seed=-1"),
        (["--task", "digits", "--sample", "0", "--seed", "-1"], "seed=-1 is not an integer in 0"),
        (["--task", "digits", "--sample", "0", "--epochs", "0"], "epochs=0 must be an integer in 1.."),
        (["--task", "digits", "--sample", "0", "--checkpoint", "no/such/run.pt"], "its folder does not exist"),
        (["--task", "cifar10", "--sample", "0", "--data-dir", "no/such"], "cifar10: no images in no/such"),
        (["--task", "digits", "--sample", "0", "--checkpoint", "/"], "checkpoint=/ is a folder; name a file"),
        (["--task", "digits", "--sample", "0", "--device", "abacus"], "device='abacus' must be cpu, native or cuda"),
        (["--task", "digits", "--sample", "0", "--device", "meta"], "device='meta' must be cpu, native or cuda"),
    ],
)
def test_a_users_mistake_is_one_clear_line_and_exit_2(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("pipeline.train: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_neither_or_two_configs_are_refused(capsys):
    for arguments in ([], ["--sample", "0", "--config", "{}"]):
        with pytest.raises(SystemExit) as stop:
            main(["--task", "digits", *arguments])
        assert stop.value.code == 2
    assert "--config" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- CUDA


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_27_configs_on_cuda_agree_with_the_cpu_within_the_noise_of_seeds():
    task = dataclasses.replace(TASKS["digits"], index_digest=None)
    sets = load_images(task)

    def accuracies(device: str, seed: int) -> np.ndarray:
        runs = []
        for number in range(N_GROUPS):
            config = sample_config(number)
            runs.append(train(config, task, sets[config["Resolution"]], seed=seed, device=device))
            assert np.isnan(runs[-1].epochs[:, N_MEASURED]).all() == (device == "cuda")
        return np.array([run.epochs[-1, EPOCH_FIELDS.index("valid_acc")] for run in runs])

    cpu, other_seed, cuda = accuracies("cpu", 0), accuracies("cpu", 1), accuracies("cuda", 0)
    noise = np.abs(cpu - other_seed)
    assert np.abs(cpu - cuda).mean() <= noise.mean()
    assert abs((cuda - cpu).mean()) <= 3 * noise.std() / math.sqrt(N_GROUPS) + 0.5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_recorded_step_trains_as_one_that_is_not_recorded(images):
    def trained(is_recorded: bool) -> tuple[list[float], dict[str, torch.Tensor]]:
        training = Training(CONFIG, TINY, images, seed=1, device="cuda")
        training.network.train()
        training.optimizer.param_groups[0]["lr"] = 0.05
        losses = []
        for index in torch.arange(256, device="cuda").split(64):
            batch = training.augment(index)
            step = training.learn if is_recorded else functools.partial(take_step, training.network, training.optimizer)
            losses.append(float(step(*batch)[0]))
        return losses, training.network.state_dict()

    with train_module.one_core():
        (losses, weights), (others, expected) = trained(is_recorded=True), trained(is_recorded=False)
    assert np.allclose(losses, others, atol=1e-4)
    assert all(torch.allclose(weights[name], expected[name], atol=1e-3) for name in weights)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_run_on_cuda_resumes_from_its_checkpoint(images, tmp_path):
    checkpoint = tmp_path / "run.pt"
    first = train(CONFIG, TINY, images, seed=7, epochs=2, device="cuda", checkpoint=checkpoint)
    again, whole = (train(CONFIG, TINY, images, seed=7, device="cuda", checkpoint=path) for path in (checkpoint, None))
    assert np.array_equal(again.epochs[:2, :N_MEASURED], first.epochs[:, :N_MEASURED])
    assert np.allclose(again.epochs[:, :N_MEASURED], whole.epochs[:, :N_MEASURED], atol=10)
