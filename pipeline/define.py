"""Make a task of your own from your images: check them, draw their split, and write the task file.

    python -m pipeline.define IMAGES --name flowers --out flowers.json

IMAGES is a folder with a folder of images for each class, an npz file with the arrays `images` and `labels`, or a
folder with the four idx files of MNIST. Then `python -m pipeline.collect --task flowers.json --data-dir IMAGES --out
RUNS` trains on them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import CorruptFile, InvalidArgument
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import Task
from jahs.tasks.own import register, write_task_file
from pipeline.data import check_images, draw_split
from pipeline.own_images import data_set_of, read_own_images
from pipeline.protocol import check_batches
from pipeline.sources import Pool
from workshop.command import new_parser, run_command

_SHARE: Final = 0.15  # share of the images for each of validation and test


def define(
    images: Path,
    *,
    name: str,
    out: Path,
    title: str | None = None,
    citation: str = "Own images.",
    side: int = 16,
    train: int | None = None,
    valid: int | None = None,
    test: int | None = None,
    epochs: int = 12,
    batch_size: int = 64,
) -> Task:
    """Write a task file and return the task, which is registered in this process.

    Its arguments are flags, which `--help` explains.

    Raises:
        InvalidArgument: the task is invalid, its name is taken, there are too few images, or `out` exists.
        JahsError: the images cannot be used, see `pipeline.own_images.read_own_images`. Nothing was written.
    """
    if out.suffix != ".json" or out.exists() or not out.absolute().parent.is_dir():
        raise InvalidArgument(
            f"out={out} must be a new file in a folder that exists, and end in .json; choose another one"
        )
    pool = read_own_images(images)
    n_train, n_valid, n_test = _counts(pool, train=train, valid=valid, test=test)
    task = Task(
        name=name,
        title=name if title is None else title,
        citation=citation,
        data_set=data_set_of(pool),
        side=side,
        n_channels=pool.images.shape[1],
        n_classes=int(pool.labels.max()) + 1,
        max_epoch=epochs,
        batch_size=batch_size,
        has_own_test=pool.n_development < len(pool.labels),
        n_train=n_train,
        n_valid=n_valid,
        n_test=n_test,
    )
    try:
        split = draw_split(pool, task)
    except CorruptFile as err:
        raise InvalidArgument(f"{images}: {err}; choose smaller --train, --valid or --test") from err
    for part in SPLIT_PARTS:
        if missing := {*range(task.n_classes)} - {*np.unique(pool.labels[getattr(split, part)]).tolist()}:
            raise InvalidArgument(
                f"{images}: no image of class {min(missing)} in {part} (n={len(getattr(split, part))}); give "
                f"more images of it, or a larger --{part}"
            )
    check_batches(task)
    task = dataclasses.replace(task, index_digest=split.digest)
    check_images(task, data_dir=images)  # raises what collecting would raise
    task = register(task)
    write_task_file(out, task)
    return task


def _counts(pool: Pool, *, train: int | None, valid: int | None, test: int | None) -> tuple[int, int, int]:
    """Return the numbers of training, validation and test images."""
    n_own_test = len(pool.labels) - pool.n_development
    share = int(_SHARE * pool.n_development)
    n_valid = share if valid is None else valid
    n_test = (n_own_test or share) if test is None else test
    n_left = pool.n_development - n_valid - (0 if n_own_test else n_test)
    return n_left if train is None else train, n_valid, n_test


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Make a task of your own from your images: check them, draw their split, write the task file."
    parser = new_parser("pipeline.define", about, example="IMAGES --name flowers --out flowers.json")
    parser.add_argument(
        "images", type=Path, help="a folder of class folders, an npz file with images and labels, or MNIST's idx files"
    )
    parser.add_argument("--name", required=True, help="name of the task: lowercase letters, digits and _")
    parser.add_argument("--out", type=Path, required=True, help="the task file to write (.json)")
    parser.add_argument("--title", help="title of the task in texts (default: the name)")
    parser.add_argument("--citation", default="Own images.", help="where the images come from")
    parser.add_argument("--side", type=int, default=16, help="image side at Resolution 1 (default: %(default)s px)")
    for part in SPLIT_PARTS:
        share = "the rest" if part == "train" else "15 %% of the images, or the data set's own"
        parser.add_argument(f"--{part}", type=int, help=f"{part} images (default: {share})")
    parser.add_argument("--epochs", type=int, default=12, help="epochs of a full training (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="images in a step (default: %(default)s)")
    given = parser.parse_args(argv)

    def work() -> object:
        task = define(**vars(given))
        return {"task": task.name, "data_set": task.data_set, "out": str(given.out)} | {
            f"n_{part}": getattr(task, f"n_{part}") for part in SPLIT_PARTS
        }

    return run_command("pipeline.define", work)


if __name__ == "__main__":
    sys.exit(main())
