"""CPU time of augmenting a batch of 256 on one thread: whole batches against a Pillow call per image.

The two take turns in blocks, so that other load meets both alike; ratios are of the two blocks of a turn.

    python -m tests.benchmarks.bench_augment --turns 9
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from collections.abc import Callable

import torch

from pipeline.augment import (
    N_LEVELS,
    OPERATIONS,
    crop_padding,
    flip_and_crop,
    scaled_translation,
    trivial_augment,
)
from tests.pipeline.pil_augment import apply_with_pillow, flip_and_crop_with_pillow

BATCH_SIZE = 256
SHAPES = ((1, 4), (1, 8), (1, 16), (3, 32))


def flip_and_crop_one_by_one(images: torch.Tensor, dice: random.Random) -> torch.Tensor:
    padding = crop_padding(images.shape[-1])
    return torch.stack(
        [
            flip_and_crop_with_pillow(
                image,
                padding=padding,
                is_flipped=dice.random() < 0.5,
                top=dice.randint(0, 2 * padding),
                left=dice.randint(0, 2 * padding),
            )
            for image in images
        ]
    )


def trivial_augment_one_by_one(images: torch.Tensor, dice: random.Random) -> torch.Tensor:
    max_translation = scaled_translation(images.shape[-1])
    return torch.stack(
        [
            apply_with_pillow(
                image,
                name=dice.choice(OPERATIONS),
                level=dice.randrange(N_LEVELS),
                is_negative=dice.random() < 0.5,
                max_translation=max_translation,
            )
            for image in images
        ]
    )


def cpu_ms(call: Callable[[], object], *, n_calls: int) -> float:
    start = time.process_time()
    for _ in range(n_calls):
        call()
    return (time.process_time() - start) / n_calls * 1e3


def pairs_of(n_channels: int, side: int) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """For each function, the batched call and the loop over images."""
    generator, dice, padding = torch.Generator().manual_seed(0), random.Random(0), crop_padding(side)
    images = torch.randint(256, (BATCH_SIZE, n_channels, side, side), generator=generator, dtype=torch.uint8)
    return {
        "flip_and_crop": (
            lambda: flip_and_crop(images, padding=padding, generator=generator),
            lambda: flip_and_crop_one_by_one(images, dice),
        ),
        "trivial_augment": (
            lambda: trivial_augment(images, generator=generator),
            lambda: trivial_augment_one_by_one(images, dice),
        ),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    turns = parser.parse_args(argv).turns
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {platform.machine()}, batches of {BATCH_SIZE}, median CPU ms per batch")
    print(f"{'images':>8} {'function':>16} {'batched':>8} {'pillow':>8} {'ratio':>6} {'(range)':>14}")
    for n_channels, side in SHAPES:
        for name, (batched, one_by_one) in pairs_of(n_channels, side).items():
            cpu_ms(batched, n_calls=5)  # warm-up
            cpu_ms(one_by_one, n_calls=1)
            times = [(cpu_ms(batched, n_calls=50), cpu_ms(one_by_one, n_calls=3)) for _ in range(turns)]
            ratios = [slow / fast for fast, slow in times]
            fast, slow = (statistics.median(column) for column in zip(*times, strict=True))
            spread = f"({min(ratios):.0f} to {max(ratios):.0f})"
            label = f"{n_channels}x{side}x{side}"
            print(f"{label:>8} {name:>16} {fast:8.2f} {slow:8.2f} {statistics.median(ratios):6.1f} {spread:>14}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
