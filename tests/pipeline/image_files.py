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


def short(text):
    return b"U" + struct.pack("B", len(text)) + text


def python_batch(rows, *, name=b"numpy.core.multiarray\n_reconstruct\n", labels=None, shape=None, dtype=b"u1"):
    """Write a batch as Python 2 pickled it with protocol 2: byte strings, and numpy's old way to rebuild an array."""
    labels = rows[:, 0].tolist() if labels is None else labels
    pixels = rows[:, 1:].tobytes()
    n_rows, n_columns = shape or (len(rows), 3072)
    array = (
        b"c" + name + b"q\x07cnumpy\nndarray\nq\x08K\x00\x85q\x09U\x01bq\x0a\x87q\x0bRq\x0c"
        b"(K\x01" + b"M" + struct.pack("<H", n_rows) + b"M" + struct.pack("<H", n_columns) + b"\x86q\x0d"
        b"cnumpy\ndtype\nq\x0e" + short(dtype) + b"K\x00K\x01\x87q\x0fRq\x10"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x11b\x89"
        b"T" + struct.pack("<i", len(pixels)) + pixels + b"q\x12tq\x13b"
    )
    numbers = b"".join(b"K" + bytes([label]) for label in labels)
    filenames = b"".join(short(b"tile_%d.png" % i) for i in range(len(rows)))
    return (
        b"\x80\x02}q\x01("
        + (short(b"batch_label") + b"q\x02" + short(b"training batch 1 of 5") + b"q\x03")
        + (short(b"labels") + b"q\x04]q\x05(" + numbers + b"e")
        + (short(b"data") + b"q\x06" + array)
        + (short(b"filenames") + b"r\x14\x00\x00\x00]q\x15(" + filenames + b"eu.")
    )


def cifar_files(batches, version):
    """Return the files of a version by their names."""
    if version == "binary":
        return {f"{name}.bin": rows.tobytes() for name, rows in batches.items()}
    return {name: python_batch(rows) for name, rows in batches.items()}


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_cifar(folder, *, version="binary", packed=True, n_per_batch=20, seed=0):
    """Return all rows that were written, in order."""
    batches = cifar_rows(n_per_batch=n_per_batch, seed=seed)
    files = cifar_files(batches, version)
    folder.mkdir(parents=True, exist_ok=True)
    if packed:
        write_archive(folder / f"cifar-10-{version}.tar.gz", files)
    else:
        inner = folder / {"binary": "cifar-10-batches-bin", "python": "cifar-10-batches-py"}[version]
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
