"""Small files in the formats that the data sets are published in, with known contents."""

import gzip
import io
import struct
import tarfile

import numpy as np

from pipeline.cifar import BATCHES
from pipeline.sources import FASHION_FILES


def idx_bytes(array):
    return b"\x00\x00\x08" + struct.pack(f">B{array.ndim}I", array.ndim, *array.shape) + array.tobytes()


def write_fashion(folder, *, n_train=40, n_test=20, seed=0):
    """Return the images and the labels that were written, training first; every class equally often."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n_train + n_test, 28, 28), dtype=np.uint8)
    labels = np.concatenate([np.arange(n_train), np.arange(n_test)]).astype(np.uint8) % 10
    folder.mkdir(parents=True, exist_ok=True)
    arrays = (images[:n_train], labels[:n_train], images[n_train:], labels[n_train:])
    for name, array in zip(FASHION_FILES, arrays, strict=True):
        (folder / name).write_bytes(gzip.compress(idx_bytes(array)))
    return images, labels


def cifar_rows(*, n_per_batch=20, seed=0):
    """Return rows of each batch: a label, then 3072 pixels."""
    rng = np.random.default_rng(seed)
    batches = {}
    for name in BATCHES:
        rows = rng.integers(0, 256, (n_per_batch, 3073), dtype=np.uint8)
        rows[:, 0] = rng.permutation(n_per_batch) % 10
        batches[name] = rows
    return batches


def cifar_files(batches):
    """Return the files of batches by their names."""
    return {f"{name}.bin": rows.tobytes() for name, rows in batches.items()}


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_cifar(folder, *, packed=True, n_per_batch=20, seed=0):
    """Return all rows that were written, in order."""
    batches = cifar_rows(n_per_batch=n_per_batch, seed=seed)
    files = cifar_files(batches)
    folder.mkdir(parents=True, exist_ok=True)
    if packed:
        write_archive(folder / "cifar-10-binary.tar.gz", files)
    else:
        inner = folder / "cifar-10-batches-bin"
        inner.mkdir()
        for name, content in files.items():
            (inner / name).write_bytes(content)
    return np.concatenate(list(batches.values()))


def write_tiles(folder, *, classes=("01_TUMOR", "02_STROMA"), n_per_class=6, side=20, ending=".tif", seed=0):
    """Return the images (n, side, side, 3) that were written, class by class in sorted order."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    images = []
    for name in sorted(classes):
        (folder / name).mkdir(parents=True)
        for number in range(n_per_class):
            tile = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(tile).save(folder / name / f"tile_{number:02}{ending}")
            images.append(tile)
    return np.stack(images)
