"""How many times more configs per hour our C engine trains than our torch loop and than a plain one, on one core.

The plain loop is what one writes first: a DataLoader, Pillow on single images, the optimiser as it comes, images in
PyTorch's usual order; once with a network of one module per edge, and once with ours, to tell how much is the loop's.
Our torch loop is device cpu, the engine is device native.
All train configs of the 27 fidelity groups, with TrivialAugment in half of them, for one epoch and evaluate it. The
task is `digits` with the laptop task's ratio of image counts, which has its side and its channels. Each config is
trained by every loop, one after the other, in an order that alternates, and CPU seconds are summed over the groups.

It does so for the batch sizes of `fashion_mnist_mini`, 256, and of `cifar10_mini`.

Run: OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_training_loop [BATCH_SIZE ...]
"""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
import time

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from jahs.spaces.cell import EDGES
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, IDENTITY, POOL
from jahs.tasks.definitions import TASKS
from pipeline.augment import N_LEVELS, OPERATIONS, crop_padding, scaled_translation
from pipeline.data import load_images
from pipeline.network import CellBlock, build_network
from pipeline.sampling import sample_config
from pipeline.train import train
from workshop.machine import NATIVE
from workshop.numbered import FIDELITY_GROUPS

TASK = dataclasses.replace(TASKS["digits"], n_train=1024, n_valid=384, n_test=256, index_digest=None)
N_WARM_UP = 2
OURS = "C engine"

OPERATE = {  # picture, level m from 0 to 30, sign, pixels of the strongest translation
    "identity": lambda picture, m, sign, most: picture,
    "auto_contrast": lambda picture, m, sign, most: ImageOps.autocontrast(picture),
    "equalize": lambda picture, m, sign, most: ImageOps.equalize(picture),
    "rotate": lambda picture, m, sign, most: picture.rotate(sign * m),
    "solarize": lambda picture, m, sign, most: ImageOps.solarize(picture, 256 - int(256 * m / 30)),
    "color": lambda picture, m, sign, most: ImageEnhance.Color(picture).enhance(0.1 + 1.8 * m / 30),
    "posterize": lambda picture, m, sign, most: ImageOps.posterize(picture, 8 - int(4 * m / 30)),
    "contrast": lambda picture, m, sign, most: ImageEnhance.Contrast(picture).enhance(0.1 + 1.8 * m / 30),
    "brightness": lambda picture, m, sign, most: ImageEnhance.Brightness(picture).enhance(0.1 + 1.8 * m / 30),
    "sharpness": lambda picture, m, sign, most: ImageEnhance.Sharpness(picture).enhance(0.1 + 1.8 * m / 30),
    "shear_x": lambda picture, m, sign, most: _affine(picture, (1, sign * 0.01 * m, 0, 0, 1, 0)),
    "shear_y": lambda picture, m, sign, most: _affine(picture, (1, 0, 0, sign * 0.01 * m, 1, 0)),
    "translate_x": lambda picture, m, sign, most: _affine(picture, (1, 0, sign * int(most * m / 30), 0, 1, 0)),
    "translate_y": lambda picture, m, sign, most: _affine(picture, (1, 0, 0, 0, 1, sign * int(most * m / 30))),
}
assert set(OPERATE) == set(OPERATIONS)


def _affine(picture, matrix):
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix)


class PlainImages(Dataset):
    """Images one by one, augmented with Pillow if they are for training."""

    def __init__(self, part, images, *, is_training, has_trivial_augment):
        self.pictures = [Image.fromarray(image) for image in part.images[:, 0].numpy()]
        self.labels = part.labels.tolist()
        self.mean, self.std = images.mean[0], images.std[0]
        self.is_training = is_training
        self.has_trivial_augment = has_trivial_augment

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, position):
        picture = self.pictures[position]
        if self.is_training:
            side = picture.width
            if self.has_trivial_augment:
                operate = OPERATE[random.choice(OPERATIONS)]
                level, sign = random.randrange(N_LEVELS), random.choice((-1, 1))
                picture = operate(picture, level, sign, scaled_translation(side))
            if random.random() < 0.5:
                picture = ImageOps.mirror(picture)
            padding = crop_padding(side)
            left, top = random.randint(0, 2 * padding), random.randint(0, 2 * padding)
            picture = ImageOps.expand(picture, border=padding).crop((left, top, left + side, top + side))
        tensor = torch.from_numpy(np.array(picture)).float()[None] / 255
        return (tensor - self.mean) / self.std, self.labels[position]


class PlainCell(nn.Module):
    """A module on each edge, each with its own activation; every edge is computed, as JAHS-Bench-201 does."""

    def __init__(self, block, activation):
        super().__init__()
        self.edges = nn.ModuleList()
        for number, op in enumerate(block.ops, start=1):
            if op in (CONV3X3, CONV1X1):
                conv = block.convs[f"Op{number}"]
                self.edges.append(nn.Sequential(getattr(nn, activation)(), conv.conv, conv.norm))
            elif op == POOL:
                self.edges.append(nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False))
            else:
                self.edges.append(nn.Identity() if op == IDENTITY else Zero())

    def forward(self, x):
        nodes = {1: [x]}
        for (source, target), edge in zip(EDGES, self.edges, strict=True):
            nodes.setdefault(target, []).append(edge(sum(nodes[source])))
        return sum(nodes[4])


class Zero(nn.Module):
    def forward(self, x):
        return x * 0.0


def train_plainly(config, images, task, *, has_plain_cells):
    loaders = [
        DataLoader(
            PlainImages(part, images, is_training=i == 0, has_trivial_augment=config["TrivialAugment"]),
            batch_size=task.batch_size,
            shuffle=i == 0,
        )
        for i, part in enumerate((images.train, images.valid, images.test))
    ]
    network = build_network(config, task).to(memory_format=torch.contiguous_format)
    if has_plain_cells:
        for position, block in enumerate(network.body):
            if isinstance(block, CellBlock):
                network.body[position] = PlainCell(block, config["Activation"])
    optimizer = torch.optim.SGD(
        network.parameters(), lr=config["LearningRate"], momentum=0.9, nesterov=True, weight_decay=config["WeightDecay"]
    )
    network.train()
    total = 0.0
    for batch, labels in loaders[0]:
        loss = functional.cross_entropy(network(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    network.eval()
    with torch.no_grad():
        for loader in loaders[1:]:
            for batch, labels in loader:
                logits = network(batch)
                total += functional.cross_entropy(logits, labels).item()
                total += (logits.argmax(1) == labels).sum().item()
    return total


def main() -> int:
    sizes = [int(size) for size in sys.argv[1:]] or [TASK.batch_size, TASKS["cifar10_mini"].batch_size]
    torch.set_num_threads(1)
    for size in sizes:
        compare(dataclasses.replace(TASK, batch_size=size))
    return 0


def compare(task):
    sets = load_images(task)
    loops = {
        OURS: lambda config, images: train(config, task, images, seed=0, epochs=1, device=NATIVE),
        "our torch loop": lambda config, images: train(config, task, images, seed=0, epochs=1),
        "plain loop, plain network": functools.partial(train_plainly, task=task, has_plain_cells=True),
        "plain loop, our network": functools.partial(train_plainly, task=task, has_plain_cells=False),
    }
    times = {name: np.zeros(len(FIDELITY_GROUPS)) for name in loops}
    configs = [sample_config(number) | {"TrivialAugment": number % 2 == 0} for number in range(len(FIDELITY_GROUPS))]
    for config in configs[:N_WARM_UP]:
        for loop in loops.values():
            loop(config, sets[config["Resolution"]])
    for number, config in enumerate(configs):
        for name in sorted(loops, reverse=bool(number % 2)):
            started = time.process_time()
            loops[name](config, sets[config["Resolution"]])
            times[name][number] = time.process_time() - started
    spent = ", ".join(f"{name} {seconds.sum():.1f} s" for name, seconds in times.items())
    print(f"batches of {task.batch_size}, one epoch of 27 configs: {spent}")
    n_cells, width, resolution = np.array(FIDELITY_GROUPS).T
    ours = times.pop(OURS)
    for name, plain in times.items():
        print(f"configs per hour, {OURS} / {name}: {plain.sum() / ours.sum():.2f}")
        for key, values in (("N", n_cells), ("W", width), ("Resolution", resolution)):
            parts = [f"{v:g}: {plain[values == v].sum() / ours[values == v].sum():.2f}" for v in np.unique(values)]
            print(f"  by {key}  {', '.join(parts)}")


if __name__ == "__main__":
    raise SystemExit(main())
