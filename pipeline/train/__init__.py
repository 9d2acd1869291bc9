"""Train one config as JAHS-Bench-201 does: Nesterov SGD and a cosine schedule over the task's epochs."""

from __future__ import annotations

import dataclasses
import io
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch
from jahs.files.atomic import out_of_space, write_beside
from jahs.spaces.configs import Config, config_id, validate
from jahs.spaces.seeds import read_seed
from jahs.tasks.definitions import Task
from pipeline.augment import crop_padding, flip_and_crop, trivial_augment
from pipeline.data import ImageSet, Part, resize_batch
from pipeline.native.build import software
from pipeline.native.engine import Engine
from pipeline.network import Network, build_network
from pipeline.one_core import one_core
from pipeline.protocol import EPOCH_FIELDS, SGD, protocol_digest
from pipeline.train.step import RecordedStep, take_step
from workshop.machine import NATIVE, device_name, processor_model

_AT_ONCE: Final = 256  # images that are augmented or evaluated; one training batch if that is larger
_AT_ONCE_ON_GPU: Final = 1600  # images that a GPU evaluates


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """The measurements of one training.

    Attributes:
        status: "finished" at the requested epoch, or "diverged" at the first NaN or infinity.
        epochs: (n_epochs, 7) of float64, columns `EPOCH_FIELDS`; the last row of a diverged run is the epoch in which
            it diverged, with the losses that were not finite.
        network: the network after the last step.
    """

    status: Literal["finished", "diverged"]
    epochs: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    network: Network


def learning_rate(initial: float, epoch: int, max_epoch: int) -> float:
    """Return the learning rate in an epoch, counted from 1: constant within it, `initial` in the first."""
    return 0.5 * initial * (1 + math.cos(math.pi * (epoch - 1) / max_epoch))


def place_of(device: str, task: Task) -> str:
    """Return what determines the bits of a config's training with a seed: device, processor, and versions."""
    return f"{device_name(device)}, {processor_model()}, torch {software(device, task.batch_size)}"


def train(
    config: Mapping[str, Any],  # Any: a config's values, validated here
    task: Task,
    images: ImageSet,
    *,
    seed: int,
    epochs: int | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    on_epoch: Callable[[int, Mapping[str, float]], None] = lambda *_: None,
) -> TrainedRun:
    """Train a config and measure it after every epoch.

    The same config, seed and machine give the same bits, also when the run is stopped after any epoch and resumed.

    Args:
        images: the task's images at the config's Resolution.
        seed: seed of weights, order and augmentation.
        epochs: stop after this many; the schedule stays the task's. None: all.
        device: "cpu" for torch on one core, "native" for our own C code on one core (`pipeline.native`), or a CUDA
            device, where `runtime` is NaN, and a second training may differ by rounding.
        checkpoint: file to resume from if it exists, saved after every epoch; it must come from the same device,
            processor, torch and C engine: elsewhere, bits differ and seconds cannot be added up.
        on_epoch: called with the epoch and its measurements, also for epochs that a checkpoint restores.

    Raises:
        InvalidConfig, InvalidArgument: bad input; nothing was trained.
        MissingDependency: "native" without a C compiler that compiles the engine.
        ProtocolMismatch, CorruptFile: the checkpoint belongs to another run, or is unreadable.
    """
    config = validate(config)
    last = task.max_epoch if epochs is None else epochs
    if isinstance(last, bool) or not isinstance(last, int) or not 1 <= last <= task.max_epoch:
        raise InvalidArgument(f"epochs={epochs!r} must be an integer in 1..{task.max_epoch}, the epochs of {task.name}")
    seed = read_seed(seed)
    with one_core(), torch.random.fork_rng(devices=[]):
        training = Training(config, task, images, seed=seed, device=device)
        protocol = protocol_digest(dataclasses.replace(task, index_digest=images.index_digest))
        place = place_of(device, task)
        identity = f"{task.name}, protocol {protocol}, config {config_id(config):016x}, seed {seed}, on {place}"
        rows = [] if checkpoint is None else training.resume(checkpoint, identity)
        for epoch, row in enumerate(rows[:last], start=1):
            on_epoch(epoch, dict(zip(EPOCH_FIELDS, row, strict=True)))
        started = time.thread_time() - (rows[-1][-1] if rows else 0.0)
        while len(rows) < last:
            epoch = len(rows) + 1
            measured = [training.train_epoch(epoch)]
            measured += [training.evaluate(part) for part in (training.images.valid, training.images.test)]
            runtime = time.thread_time() - started if training.device.type == "cpu" else math.nan
            rows.append([acc for acc, _ in measured] + [loss for _, loss in measured] + [runtime])
            if not all(math.isfinite(loss) for _, loss in measured):
                return TrainedRun(status="diverged", epochs=_table(rows), network=training.network)
            ended = time.thread_time()
            if checkpoint is not None:
                training.save(checkpoint, identity, rows)
            on_epoch(epoch, dict(zip(EPOCH_FIELDS, rows[-1], strict=True)))
            started += time.thread_time() - ended  # neither counts as runtime
    return TrainedRun(status="finished", epochs=_table(rows[:last]), network=training.network)


class Training:
    """The state of a training between two steps, and its inputs.

    Attributes:
        images: images on `device`.
        n_images: training images of an epoch.
        chance: draws order and augmentation, on the CPU whatever the device.
        engine: the C engine, which updates the network's parameters in place; None: torch trains and evaluates.
        recorded: the step that a CUDA device replays, from the first one on.
    """

    def __init__(self, config: Config, task: Task, images: ImageSet, *, seed: int, device: str = "cpu") -> None:
        """Seed torch's global generator, draw the weights from it, and set up the rest.

        Raises:
            InvalidArgument: the images have another Resolution, the device cannot be used, or the C engine does not
                support the task.
            MissingDependency: "native" without a C compiler that compiles the engine.
        """
        resolution = config["Resolution"]
        if images.side != (side := task.image_side(resolution)):
            raise InvalidArgument(
                f"images are {images.side} pixels wide, but {task.name} at Resolution={resolution} has {side}; give "
                f"load_images(task)[{resolution}]"
            )
        self.config, self.task = config, task
        try:
            self.device = torch.device("cpu" if device == NATIVE else device)
            self.images = images.to(self.device)
        except (RuntimeError, AssertionError) as err:  # torch raises either where there is no such device
            raise InvalidArgument(f"device={device!r} cannot be used: {str(err).splitlines()[0]}") from err
        child = np.random.SeedSequence([seed, config_id(config)]).generate_state(2, np.uint64)
        torch.manual_seed(int(child[0] >> np.uint64(1)))
        self.network = build_network(config, task, on_gpu=self.is_on_gpu).to(self.device)
        rate = config["LearningRate"]
        decay = task.trained_decay(rate, config["WeightDecay"])
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), lr=task.trained_rate(rate), weight_decay=decay, fused=True, **SGD
        )
        self.n_images = task.epoch_images or len(images.train.labels)
        self.engine: Engine | None = None
        if device == NATIVE:
            shape = {"side": side, "n_images": self.n_images, "batch": task.batch_size}
            self.engine = Engine(self.network, config["Activation"], **shape)
        self.recorded: RecordedStep | None = None
        self.chance = torch.Generator().manual_seed(int(child[1] >> np.uint64(1)))

    @property
    def is_on_gpu(self) -> bool:
        """Whether a CUDA device trains and evaluates."""
        return self.device.type == "cuda"

    def train_epoch(self, epoch: int) -> tuple[float, float]:
        """Train on the images of an epoch in random order; return their accuracy (percent) and loss."""
        initial = self.task.trained_rate(self.config["LearningRate"])
        self.optimizer.param_groups[0]["lr"] = learning_rate(initial, epoch, self.task.max_epoch)
        self.network.train()
        n_right = torch.zeros((), dtype=torch.int64, device=self.device)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        order = torch.randperm(len(self.images.train.labels), generator=self.chance)[: self.n_images].to(self.device)
        size = self.task.batch_size
        for indices in torch.split(order, size * max(1, _AT_ONCE // size)):
            prepared, labels = self.augment(indices)
            for batch in zip(torch.split(prepared, size), torch.split(labels, size), strict=True):
                loss, n_right_here = self.learn(*batch)
                total += loss * len(batch[1])
                n_right += n_right_here
        return 100 * n_right.item() / self.n_images, total.item() / self.n_images

    def augment(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return the training images at `index`, augmented and prepared, and their labels."""
        part = self.images.train
        batch = part.images[index]
        if self.config["TrivialAugment"]:
            batch = trivial_augment(batch, max_translation=self.task.max_translation, generator=self.chance)
        padding = crop_padding(self.images.side) if self.task.random_crop else 0
        batch = flip_and_crop(batch, padding=padding, generator=self.chance)
        return self.prepare(batch), part.labels[index]

    def learn(self, prepared: Tensor, labels: Tensor) -> tuple[Tensor | float, Tensor | int]:
        """Take one optimiser step; return the batch's mean loss and how many images were right."""
        if self.engine is not None:
            sgd = self.optimizer.param_groups[0]
            rate, momentum, decay = sgd["lr"], sgd["momentum"], sgd["weight_decay"]
            return self.engine.learn(prepared, labels, rate=rate, momentum=momentum, decay=decay)
        if self.is_on_gpu:
            if self.recorded is None:
                self.recorded = RecordedStep(self.network, self.optimizer, prepared, labels)
            if self.recorded.fits(prepared):  # the last batch of an epoch may be smaller
                return self.recorded(prepared, labels, self.optimizer.param_groups[0]["lr"])
        return take_step(self.network, self.optimizer, prepared, labels)

    @torch.inference_mode()
    def evaluate(self, part: Part) -> tuple[float, float]:
        """Return accuracy (percent) and loss on a part."""
        if self.engine is not None:
            loss, n_correct = self.engine.evaluate(self.prepare(part.images), part.labels)
            return 100 * n_correct / len(part.labels), loss / len(part.labels)
        self.network.eval()
        n_right = torch.zeros((), dtype=torch.int64, device=self.device)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        at_once = _AT_ONCE_ON_GPU if self.is_on_gpu else _AT_ONCE
        chunks = (torch.split(tensor, at_once) for tensor in (part.images, part.labels))
        for batch, labels in zip(*chunks, strict=True):
            logits = self.network(self.prepare(batch))
            total += functional.cross_entropy(logits, labels, reduction="sum")
            n_right += (logits.argmax(1) == labels).sum()
        return 100 * n_right.item() / len(part.labels), total.item() / len(part.labels)

    def prepare(self, batch: Tensor) -> Tensor:
        """Return uint8 images as the network reads them: floats of mean 0 and deviation 1, on a CPU channels last."""
        side = self.task.image_side(self.config["Resolution"])
        if batch.shape[-1] != side:
            batch = resize_batch(batch, side)
        mean, std = self.images.mean, self.images.std
        scale = torch.tensor([1 / (255 * s) for s in std], device=batch.device).view(1, -1, 1, 1)
        shift = torch.tensor([-m / s for m, s in zip(mean, std, strict=True)], device=batch.device).view(1, -1, 1, 1)
        layout = torch.contiguous_format if self.is_on_gpu else torch.channels_last
        return torch.addcmul(shift, batch.to(torch.float32, memory_format=layout), scale)

    def save(self, path: Path, identity: str, rows: list[list[float]]) -> None:
        """Save a checkpoint of the run called `identity`, whole or not at all; OutOfSpace if the disk is full."""
        state = {
            "identity": identity,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict() if self.engine is None else {"momenta": self.engine.momenta},
            "chance": self.chance.get_state(),
            "rows": rows,
        }
        buffer = io.BytesIO()  # torch.save has errors of its own for a full disk
        torch.save(state, buffer)
        with out_of_space(path), write_beside(path) as beside:
            beside.write_bytes(buffer.getbuffer())

    def resume(self, path: Path, identity: str) -> list[list[float]]:
        """Load a checkpoint if there is one; return the rows measured so far.

        Raises:
            InvalidArgument: it is a folder.
            ProtocolMismatch, CorruptFile: it belongs to another run, or is unreadable.
        """
        if path.is_dir():
            raise InvalidArgument(f"checkpoint={path} is a folder; name a file")
        if not path.exists():
            return []
        try:
            state = torch.load(path, weights_only=True, map_location="cpu")
            if state["identity"] != identity:
                raise ProtocolMismatch(
                    f"{path} belongs to another run ({state['identity']}), not to this one ({identity}); "
                    "delete or move it"
                )
            self.network.load_state_dict(state["network"])
            if self.engine is None:
                self.optimizer.load_state_dict(state["optimizer"])
            else:
                self.engine.momenta.copy_(state["optimizer"]["momenta"])
            self.chance.set_state(state["chance"])
            rows = _table(state["rows"]).tolist()
        except ProtocolMismatch:
            raise
        except Exception as err:  # torch raises many kinds for a bad file
            raise CorruptFile(  # without torch's message, which may advise to load the file unsafely
                f"{path} is not a readable checkpoint ({type(err).__name__}): it is damaged or another kind of file; "
                "name another file, or delete it to start over"
            ) from err
        return rows


def _table(rows: list[list[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(EPOCH_FIELDS))
