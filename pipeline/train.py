"""Train one config as JAHS-Bench-201 does: Nesterov SGD, batches of 256, a cosine over the task's epochs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jahs.atomic import write_beside
from jahs.configs import config_id, validate
from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch
from jahs.tasks import Task
from pipeline.augment import crop_padding, flip_and_crop, trivial_augment
from pipeline.data import ImageSet, Part, resize_batch
from pipeline.network import Network, build_network

__all__ = ["CONSTANTS", "EPOCH_FIELDS", "TrainedRun", "learning_rate", "one_core", "train"]

CONSTANTS: Final[Mapping[str, object]] = {
    "batch_size": 256,
    "momentum": 0.9,
    "nesterov": True,
    "schedule": "cosine per epoch, to zero after the task's last",
    "weight_decay": "all parameters",
    "clipping": None,
    "loss": "cross entropy",
}
"""What every training has in common; part of the protocol digest."""

_BATCH: Final = 256
EPOCH_FIELDS: Final = ("train_acc", "valid_acc", "test_acc", "train_loss", "valid_loss", "test_loss", "runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """What one training measured.

    Attributes:
        status: "finished" at the asked epoch, or "diverged" at the first NaN or infinity.
        epochs: (n_epochs, 7) of float64, columns `EPOCH_FIELDS`; the last row of a diverged run is the epoch in which
            it diverged, with the losses that were not finite.
        network: the network as the last step left it.
    """

    status: Literal["finished", "diverged"]
    epochs: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    network: Network


def learning_rate(initial: float, epoch: int, max_epoch: int) -> float:
    """Return the rate of an epoch, counted from 1: constant inside it, `initial` in the first."""
    return 0.5 * initial * (1 + math.cos(math.pi * (epoch - 1) / max_epoch))


def train(
    config: Mapping[str, Any],  # Any: a config's values, validated here
    task: Task,
    images: ImageSet,
    *,
    seed: int,
    epochs: int | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    on_epoch: Callable[[int, Mapping[str, float]], None] | None = None,
) -> TrainedRun:
    """Train a config and measure it after every epoch.

    The same config, seed and machine give the same bits, also when the run is stopped after any epoch and resumed.

    Args:
        images: the task's images at the config's Resolution.
        seed: the draw of weights, order and augmentation.
        epochs: stop after this many; the schedule stays the task's. None: all.
        device: "cpu" or a CUDA device; away from the CPU `runtime` is NaN.
        checkpoint: file to resume from if it exists, and to save to after every epoch.
        on_epoch: called with the epoch and its measurements.

    Raises:
        InvalidConfig, InvalidArgument: bad input; nothing was trained.
        ProtocolMismatch, CorruptFile: the checkpoint is of another run, or unreadable.
    """
    config = validate(config)
    last = task.max_epoch if epochs is None else epochs
    if isinstance(last, bool) or not isinstance(last, int) or not 1 <= last <= task.max_epoch:
        raise InvalidArgument(f"epochs={epochs!r} is not an integer in 1..{task.max_epoch}, the epochs of {task.name}")
    place = torch.device(device)
    images = images.to(place)
    child = np.random.SeedSequence([seed, config_id(config)]).generate_state(2, np.uint64)
    with one_core(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(child[0] >> np.uint64(1)))
        network = build_network(config, task).to(place)
        chance = torch.Generator().manual_seed(int(child[1] >> np.uint64(1)))
        optimizer = torch.optim.SGD(
            network.parameters(), lr=config["LearningRate"], momentum=0.9, nesterov=True,
            weight_decay=config["WeightDecay"], fused=True,
        )  # fmt: skip
        identity = f"{task.name} {images.index_digest} {config_id(config)} {seed} {task.max_epoch}"
        rows = _resume(checkpoint, identity, network, optimizer, chance)
        started = time.thread_time() - (rows[-1][-1] if rows else 0.0)
        while len(rows) < last:
            epoch = len(rows) + 1
            optimizer.param_groups[0]["lr"] = learning_rate(config["LearningRate"], epoch, task.max_epoch)
            network.train()
            measured = [_train_epoch(network, optimizer, images, task, config, chance)]
            network.eval()
            measured += [_evaluate(network, part, images, task, config) for part in (images.valid, images.test)]
            runtime = time.thread_time() - started if place.type == "cpu" else math.nan
            rows.append([acc for acc, _ in measured] + [loss for _, loss in measured] + [runtime])
            if not all(math.isfinite(loss) for _, loss in measured):
                return TrainedRun(status="diverged", epochs=_table(rows), network=network)
            if checkpoint is not None:
                _save(checkpoint, identity, network, optimizer, chance, rows)
            if on_epoch is not None:
                on_epoch(epoch, dict(zip(EPOCH_FIELDS, rows[-1], strict=True)))
    return TrainedRun(status="finished", epochs=_table(rows[:last]), network=network)


@contextmanager
def one_core() -> Iterator[None]:
    """Compute with one thread and without denormal numbers: faster for small networks, and the same bits anywhere."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        torch.set_flush_denormal(False)


def _train_epoch(  # noqa: PLR0917
    network: Network,
    optimizer: torch.optim.Optimizer,
    images: ImageSet,
    task: Task,
    config: Mapping[str, Any],  # Any: a config's values
    chance: torch.Generator,
) -> tuple[float, float]:
    """Train on every image once, in random order; return accuracy (percent) and loss as met on the way."""
    part = images.train
    n_right = torch.zeros((), dtype=torch.int64, device=part.labels.device)
    total = torch.zeros((), dtype=torch.float64, device=part.labels.device)
    for index in torch.split(torch.randperm(len(part.labels), generator=chance).to(part.labels.device), _BATCH):
        batch, labels = part.images[index], part.labels[index]
        if config["TrivialAugment"]:
            batch = trivial_augment(batch, max_translation=task.max_translation, generator=chance)
        batch = flip_and_crop(batch, padding=crop_padding(batch.shape[-1]), generator=chance)
        logits = network(_normalised(batch, images, task, config))
        loss = functional.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
        optimizer.step()
        total += loss.detach() * len(labels)
        n_right += (logits.detach().argmax(1) == labels).sum()
    return 100 * n_right.item() / len(part.labels), total.item() / len(part.labels)


@torch.inference_mode()
def _evaluate(
    network: Network,
    part: Part,
    images: ImageSet,
    task: Task,
    config: Mapping[str, Any],  # Any: a config's values
) -> tuple[float, float]:
    """Return accuracy (percent) and loss on a part."""
    n_right = torch.zeros((), dtype=torch.int64, device=part.labels.device)
    total = torch.zeros((), dtype=torch.float64, device=part.labels.device)
    for batch, labels in zip(torch.split(part.images, _BATCH), torch.split(part.labels, _BATCH), strict=True):
        logits = network(_normalised(batch, images, task, config))
        total += functional.cross_entropy(logits, labels, reduction="sum")
        n_right += (logits.argmax(1) == labels).sum()
    return 100 * n_right.item() / len(part.labels), total.item() / len(part.labels)


def _normalised(
    batch: Tensor,
    images: ImageSet,
    task: Task,
    config: Mapping[str, Any],  # Any: a config's values
) -> Tensor:
    """Return uint8 images as the network reads them: floats of mean 0 and deviation 1, channels last."""
    side = task.image_side(config["Resolution"])
    if batch.shape[-1] != side:
        batch = resize_batch(batch, side)
    scale = torch.tensor([1 / (255 * std) for std in images.std], device=batch.device).view(1, -1, 1, 1)
    shift = torch.tensor([-m / s for m, s in zip(images.mean, images.std, strict=True)], device=batch.device)
    floats = batch.to(torch.float32, memory_format=torch.channels_last)
    return torch.addcmul(shift.view(1, -1, 1, 1), floats, scale)


def _table(rows: list[list[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(EPOCH_FIELDS))


def _save(  # noqa: PLR0917
    path: Path,
    identity: str,
    network: Network,
    optimizer: torch.optim.Optimizer,
    chance: torch.Generator,
    rows: list[list[float]],
) -> None:
    state = {
        "identity": identity,
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "chance": chance.get_state(),
        "rows": rows,
    }
    with write_beside(path) as beside:
        torch.save(state, beside)


def _resume(
    path: Path | None,
    identity: str,
    network: Network,
    optimizer: torch.optim.Optimizer,
    chance: torch.Generator,
) -> list[list[float]]:
    """Load a checkpoint if there is one; return the rows measured so far."""
    if path is None or not path.exists():
        return []
    try:
        state = torch.load(path, weights_only=True)
        found, rows = state["identity"], state["rows"]
    except Exception as err:  # torch raises many kinds for a bad file
        raise CorruptFile(f"{path} is not a readable checkpoint ({err}); delete it to start over") from err
    if found != identity:
        raise ProtocolMismatch(
            f"{path} belongs to another run ({found}), not to this one ({identity}); delete or move it"
        )
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    chance.set_state(state["chance"])
    return [list(row) for row in rows]
