"""Score untrained networks: what proxies say of every config of a folder of runs before a single step of training.

    python -m pipeline.proxies --task fashion_mnist_mini --runs out/mini

Each network has the weights that its training with the same seed starts from, and sees the first 64 training images as
they are. Of every proxy, more is meant to be better:

    grad_norm  sum over layers of the length of the loss's gradient (Abdelfattah et al., 2021)
    snip       sum over weights of |weight * gradient of the loss| (Lee et al., 2019)
    synflow    sum over weights of |weight * gradient|, of the sum of outputs for an image of ones, all weights made
               positive and BatchNorm as it starts, without images (Tanaka et al., 2020)
    jacob_cov  how unlike the gradients at different images are (Mellor et al., 2020)
    naswot     how unlike the signs before activations are for different images (Mellor et al., 2021)

A network that gives every image the same answer has no jacob_cov and no naswot: they are NaN. What is scored is saved
every few configs in `proxies.parquet`, and the command resumes from there.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from jahs.errors import InvalidArgument
from jahs.files.runs import proxies_path, read_configs, read_proxies, read_runs
from jahs.files.tables import Table, concatenate, sort_by, take, typed
from jahs.schema import CONFIG_KEYS, PROXIES, PROXY_COLUMNS
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config
from jahs.tasks.definitions import Task
from pipeline.candidates import trained_task
from pipeline.command import runs_parser
from pipeline.data import ImageSet, load_images
from pipeline.protocol import shared_protocol
from pipeline.runs import RunsFolder
from pipeline.train import Training, check_seed, one_core
from workshop.command import run_command
from workshop.progress import Progress

__all__ = ["main", "merge_proxies", "proxy_folder", "score_config", "score_network"]

_N_IMAGES: Final = 64
_SAVE_EVERY: Final = 50
_JITTER: Final = 1e-5


def score_network(network: nn.Module, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Return every proxy of an untrained network, which stays as it is.

    Args:
        network: what its modules call as `activation` is what naswot listens to.
        images: as the network reads them, (n, channels, side, side).
    """
    return {
        **_of_the_loss(copy.deepcopy(network).train(), images, labels),
        "synflow": _synflow(copy.deepcopy(network), images),
        "jacob_cov": _jacob_cov(copy.deepcopy(network).train(), images),
        "naswot": _naswot(copy.deepcopy(network).train(), images),
    }


def score_config(config: Config, of_task: Task, images: ImageSet, *, seed: int = 0) -> dict[str, float]:
    """Return every proxy of a config: with the weights of this seed, on the first training images."""
    with one_core(), torch.random.fork_rng(devices=[]):
        training = Training.start(config, of_task, images, seed=seed)
        part = training.images.train
        return score_network(training.network, training.prepare(part.images[:_N_IMAGES]), part.labels[:_N_IMAGES])


def proxy_folder(folder: Path, of_task: Task, *, data_dir: Path | None = None, seed: int = 0) -> int:
    """Score the configs of a folder of runs that have a run and no scores yet; return how many.

    Raises:
        ProtocolMismatch: the folder holds runs of another protocol.
        InvalidArgument: a negative seed, or its scores have another seed.
        MissingData, CorruptFile: the folder or the images cannot be read.
    """
    check_seed(seed)
    wanted = shared_protocol(folder, of_task)
    scored, configs = read_proxies(folder), read_configs(folder)
    _refuse_another_seed(scored, folder, seed)
    trained = np.isin(configs["config_id"], read_runs(folder)["config_id"])
    todo = take(configs, trained & ~np.isin(configs["config_id"], scored["config_id"]))
    n_todo = len(todo["config_id"])
    images = load_images(of_task, data_dir=data_dir) if n_todo else {}
    progress = Progress(n_todo, "proxies")
    try:
        for first in range(0, n_todo, _SAVE_EVERY):
            part = take(todo, np.arange(first, min(first + _SAVE_EVERY, n_todo)))
            found = [
                score_config(config, of_task, images[config["Resolution"]], seed=seed)
                for config in rows({key: part[key] for key in CONFIG_KEYS})
            ]
            added = _table_of(part["config_id"].tolist(), found, seed=seed, protocol=wanted)
            _add_scores(folder, added, seed)
            progress.update(first + len(found), "")
    finally:
        progress.close()
    return n_todo


def merge_proxies(folder: Path, others: Sequence[Table]) -> None:
    """Add other folders' scores; of a config that several hold, the first counts.

    Raises:
        InvalidArgument: they have another seed.
    """
    for other in others:
        if len(other["config_id"]):
            _add_scores(folder, other, int(other["seed"][0]))


def _add_scores(folder: Path, added: Table, seed: int) -> None:
    """Add scores to those that are there now, which another process may have added to since they were read."""
    runs = RunsFolder(folder)
    with runs.lock("proxies"):
        scored = read_proxies(folder)
        _refuse_another_seed(scored, folder, seed)
        is_new = ~np.isin(added["config_id"], scored["config_id"])
        together = sort_by(concatenate([scored, take(added, is_new)], PROXY_COLUMNS), ("config_id",))
        runs.commit(proxies_path(folder).name, together, PROXY_COLUMNS)


def _refuse_another_seed(scored: Table, folder: Path, seed: int) -> None:
    if others := sorted(set(scored["seed"].tolist()) - {seed}):
        raise InvalidArgument(f"{proxies_path(folder)} has scores of seed {others[0]}, not {seed}; move it away first")


def _of_the_loss(network: nn.Module, images: Tensor, labels: Tensor) -> dict[str, float]:
    functional.cross_entropy(network(images), labels).backward()  # type: ignore[no-untyped-call]  # torch leaves it so
    pairs = _weights_and_gradients(network)
    return {
        "grad_norm": math.fsum(gradient.norm().item() for _, gradient in pairs),
        "snip": math.fsum((weight * gradient).abs().sum().item() for weight, gradient in pairs),
    }


def _synflow(network: nn.Module, images: Tensor) -> float:
    network = network.double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    network(torch.ones_like(images[:1], dtype=torch.float64)).sum().backward()
    return math.fsum((weight * gradient).abs().sum().item() for weight, gradient in _weights_and_gradients(network))


def _jacob_cov(network: nn.Module, images: Tensor) -> float:
    images = images.clone().requires_grad_()
    network(images).sum().backward()
    if images.grad is None:
        return math.nan
    jacobian = images.grad.flatten(1).double().numpy()
    if not jacobian.std(axis=1).all():  # the answer does not depend on some image
        return math.nan
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(jacobian)) + _JITTER
    return -float(np.sum(np.log(eigenvalues) + 1 / eigenvalues))


def _naswot(network: nn.Module, images: Tensor) -> float:
    kernel = torch.zeros(len(images), len(images), dtype=torch.float64)

    def listening(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def call(x: Tensor) -> Tensor:
            sign = (x.flatten(1) > 0).double()
            kernel.add_(sign @ sign.T + (1 - sign) @ (1 - sign).T)
            return activation(x)

        return call

    for module in network.modules():
        if callable(activation := getattr(module, "activation", None)):
            setattr(module, "activation", listening(activation))  # noqa: B010  # torch declares no such attribute
    with torch.no_grad():
        network(images)
    sign, logarithm = np.linalg.slogdet(kernel.numpy())
    return float(logarithm) if sign > 0 else math.nan


def _weights_and_gradients(network: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return weights and gradients of the convolutions and linear layers that the output depends on."""
    layers = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    return [(layer.weight.detach(), layer.weight.grad) for layer in layers if layer.weight.grad is not None]


def _table_of(ids: Sequence[int], found: Sequence[dict[str, float]], *, seed: int, protocol: str) -> Table:
    n = len(ids)
    columns: Table = {
        "config_id": np.array(ids, dtype=np.uint64),
        "seed": np.full(n, seed),
        **{name: np.array([scores[name] for scores in found]) for name in PROXIES},
        "torch_version": np.full(n, torch.__version__),
        "protocol": np.full(n, protocol),
    }
    return typed(columns, PROXY_COLUMNS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Score the untrained network of every config of a folder of runs."
    given = runs_parser("proxies", about, seed_of="the weights").parse_args(argv)

    def work() -> dict[str, object]:
        n_scored = proxy_folder(given.runs, trained_task(given.task), data_dir=given.data_dir, seed=given.seed)
        return {"task": given.task, "runs": str(given.runs), "configs_scored": n_scored}

    return run_command("pipeline.proxies", work)


if __name__ == "__main__":
    sys.exit(main())
