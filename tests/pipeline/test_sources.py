"""Reading original images: every format gives back what was written, and refuses what is not such a file."""

import builtins
import contextlib
import errno
import gzip
import hashlib
import re
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import CorruptFile, MissingData, MissingDependency, UnknownName, UnsafeFile
from pipeline import cifar, sources
from pipeline.cifar import BATCHES
from pipeline.sources import DATA_SETS, FASHION_FILES, cache_folder, read_pool, search_folders
from tests.adversarial.attacks import peak_memory
from tests.pipeline.image_files import (
    cifar_files,
    cifar_rows,
    idx_bytes,
    write_archive,
    write_cifar,
    write_fashion,
    write_tiles,
)


def test_fashion_mnist_comes_back_as_it_was_written(tmp_path):
    images, labels = write_fashion(tmp_path)
    pool = read_pool("fashion_mnist", data_dir=tmp_path)
    assert np.array_equal(pool.images[:, 0], images)
    assert np.array_equal(pool.labels, labels)
    assert pool.n_development == 40


@pytest.mark.parametrize("packed", [True, False])
def test_cifar10_comes_back_packed_or_not(tmp_path, packed):
    rows = write_cifar(tmp_path, packed=packed)
    pool = read_pool("cifar10", data_dir=tmp_path)
    assert np.array_equal(pool.labels, rows[:, 0])
    assert np.array_equal(pool.images, rows[:, 1:].reshape(-1, 3, 32, 32))
    assert pool.n_development == 100


@pytest.fixture
def first_batches(monkeypatch):
    """Small batches in place of the published ones, which are known by their MD5."""
    batches = {name: rows for name, rows in cifar_rows().items() if name in cifar.FIRST_BATCHES}
    known = {name: hashlib.md5(rows.tobytes()).hexdigest() for name, rows in batches.items()}
    monkeypatch.setattr(cifar, "FIRST_BATCHES", known)
    monkeypatch.setattr(sources, "FIRST_BATCHES", known)
    return batches


@pytest.mark.parametrize("packed", [True, False])
def test_the_laptop_task_reads_the_first_two_batches(tmp_path, first_batches, packed):
    write_cifar(tmp_path, packed=packed)
    pool = read_pool("cifar10_first", data_dir=tmp_path)
    rows = np.concatenate(list(first_batches.values()))
    assert np.array_equal(pool.images, rows[:, 1:].reshape(-1, 3, 32, 32))
    assert np.array_equal(pool.labels, rows[:, 0])
    assert pool.n_development == len(rows), "no image is set apart for testing"


def test_the_laptop_task_needs_no_more_than_two_files(tmp_path, first_batches):
    for name, content in cifar_files(first_batches).items():
        (tmp_path / name).write_bytes(content)
    assert len(read_pool("cifar10_first", data_dir=tmp_path).labels) == 40
    with pytest.raises(MissingData, match=r"^cifar10: no images"):
        read_pool("cifar10", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[: 3073 * 19], "data_batch_2 has 19 images and MD5"),
        (lambda content: content[:-1], "61459 bytes are not whole rows"),
        (
            lambda content: content[:3072] + bytes([content[3072] ^ 1]) + content[3073:],
            "data_batch_2 has 20 images and MD5",
        ),
        (lambda content: bytes([11]) + content[1:], "data_batch_2 has 20 images and MD5"),
        (lambda content: b"", "0 bytes are not whole rows"),
    ],
)
def test_a_batch_that_is_cut_or_another_is_named(tmp_path, first_batches, change, message):
    for name, content in cifar_files(first_batches).items():
        (tmp_path / name).write_bytes(change(content) if "2" in name else content)
    with pytest.raises(CorruptFile, match=message) as caught:
        read_pool("cifar10_first", data_dir=tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_without_images_says_what_to_do(tmp_path):
    with pytest.raises(MissingData, match=r"pipeline.download cifar10.*data_batch_1\.bin and data_batch_2\.bin"):
        read_pool("cifar10_first", data_dir=tmp_path)


@pytest.mark.parametrize("ending", [".tif", ".png"])
def test_tiles_come_back_with_labels_by_sorted_folder_name(tmp_path, ending):
    images = write_tiles(tmp_path, classes=("02_B", "10_C", "01_A"), n_per_class=2, ending=ending)
    (tmp_path / "01_A" / "notes.txt").write_text("not a tile")
    (tmp_path / "empty").mkdir()
    pool = read_pool("colorectal_histology", data_dir=tmp_path)
    assert np.array_equal(pool.images, images.transpose(0, 3, 1, 2))
    assert pool.labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_data_set_is_found_in_a_subfolder_of_the_given_folder(tmp_path):
    write_tiles(tmp_path / "Kather_texture_2016_image_tiles_5000")
    write_fashion(tmp_path / "fashion-mnist")
    assert len(read_pool("colorectal_histology", data_dir=tmp_path).labels) == 12
    assert len(read_pool("fashion_mnist", data_dir=tmp_path).labels) == 60


def test_the_users_cache_is_looked_into_after_the_systems_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("cifar10") == tmp_path / "jahs" / "cifar10"
    assert [str(folder) for folder in search_folders("fashion_mnist")] == [
        "/usr/share/datasets/fashion-mnist",
        str(tmp_path / "jahs" / "fashion_mnist"),
    ]
    rows = write_cifar(cache_folder("cifar10"))
    assert len(read_pool("cifar10").labels) == len(rows)


@pytest.mark.usefixtures("no_home")
def test_a_user_without_a_home_has_no_cache(tmp_path):
    assert search_folders("fashion_mnist") == [Path("/usr/share/datasets/fashion-mnist")]
    with pytest.raises(MissingData, match=r"no images in the cache, since this user has no home.*--data-dir"):
        read_pool("cifar10")
    with pytest.raises(MissingData, match=r"^this user has no home, .* set XDG_CACHE_HOME, or .* --data-dir"):
        cache_folder("cifar10")
    write_cifar(tmp_path)
    assert len(read_pool("cifar10", data_dir=tmp_path).labels)


@pytest.mark.parametrize("data_set", [name for name in DATA_SETS if name != "digits"])
def test_missing_images_say_where_was_looked_and_what_to_do(tmp_path, data_set):
    with pytest.raises(MissingData, match=re.escape(f"{data_set}: no images in {tmp_path}, ")) as raised:
        read_pool(data_set, data_dir=tmp_path)
    assert "--data-dir" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("method", ["read_bytes", "is_dir"])
def test_files_that_must_not_be_read_are_one_clear_line(tmp_path, monkeypatch, method):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    write_cifar(tmp_path, packed=False)
    monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(MissingData, match=f"^cifar10: {re.escape(str(tmp_path))} cannot be read: .*Permission denied"):
        read_pool("cifar10", data_dir=tmp_path)


def test_an_unknown_data_set_lists_those_that_exist():
    with pytest.raises(UnknownName, match=r"data_set='cifar' does not exist \(did you mean 'cifar10'\?\).*digits"):
        read_pool("cifar")


def _gz(content):
    return gzip.compress(content, mtime=0)  # a time would be in the names of cases, and differ between processes


_LABELS = idx_bytes(np.zeros(20, dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is not an idx file"),
        (b"<html>", "cannot be decompressed"),
        (_gz(_LABELS)[:-9], "cannot be decompressed"),
        (_gz(_LABELS)[:10] + b"\xff" * 20, "cannot be decompressed"),
        (_gz(b"\x00\x00\x0d" + _LABELS[3:]), "is not an idx file of unsigned bytes"),
        (_gz(_LABELS[:6]), "is not an idx file of unsigned bytes"),
        (_gz(_LABELS[:-1]), r"announces \(20,\) but holds 19 bytes"),
        (_gz(_LABELS[:4] + b"\xff\xff\xff\xff" + _LABELS[8:]), r"announces \(4294967295,\) but holds 20 bytes"),
        (_gz(idx_bytes(np.zeros((20, 1), dtype=np.uint8))), "do not fit labels"),
        (_gz(idx_bytes(np.full(20, 10, dtype=np.uint8))), "are not Fashion-MNIST"),
        (_gz(idx_bytes(np.zeros(19, dtype=np.uint8))), "do not fit labels"),
    ],
)
def test_a_broken_idx_file_is_one_clear_line(tmp_path, content, fault):
    write_fashion(tmp_path)
    (tmp_path / FASHION_FILES[3]).write_bytes(content)
    with pytest.raises(CorruptFile, match=fault) as raised:
        read_pool("fashion_mnist", data_dir=tmp_path)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda files: files.pop("data_batch_3.bin"), "lacks data_batch_3"),
        (lambda files: files.update({"test_batch.bin": b"abc"}), "test_batch.bin: 3 bytes are not whole rows of 3073"),
        (lambda files: files.update({"test_batch.bin": b""}), "test_batch.bin: 0 bytes are not whole rows"),
        (lambda files: files.update({"test_batch.bin": b"\x0b" * 3073}), "a label is 11, not in 0 to 9"),
        (lambda files: files.update({"test_batch.bin": b"\x0b" * 3073 * 22_000}), "too many for a batch of CIFAR-10"),
        (
            lambda files: files.update({"again/test_batch.bin": files["test_batch.bin"]}),
            "occurs twice, in two folders",
        ),
    ],
)
def test_a_broken_cifar_archive_is_one_clear_line(tmp_path, change, fault):
    files = cifar_files(cifar_rows())
    change(files)
    write_archive(tmp_path / "cifar-10-binary.tar.gz", files)
    with pytest.raises(CorruptFile, match=fault):
        read_pool("cifar10", data_dir=tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 100, 20_000])
def test_a_cut_cifar_archive_is_one_clear_line(tmp_path, keep):
    write_cifar(tmp_path)
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CorruptFile, match=r"cifar-10-binary.tar.gz (is not a readable archive|lacks)"):
        read_pool("cifar10", data_dir=tmp_path)


def test_an_archive_that_asks_for_more_than_data_is_refused_and_nothing_is_written(tmp_path):
    write_archive(tmp_path / "cifar-10-binary.tar.gz", cifar_files(cifar_rows()) | {"../../escaped": b"x"})
    with pytest.raises(UnsafeFile, match="would land outside of its folder") as raised:
        read_pool("cifar10", data_dir=tmp_path)
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-binary.tar.gz"]


def test_an_idx_file_that_decompresses_without_end_is_refused(tmp_path):
    write_fashion(tmp_path)
    path = tmp_path / FASHION_FILES[0]
    path.write_bytes(gzip.compress(bytes(1 << 20), 1) * 512)
    with pytest.raises(UnsafeFile, match="decompresses to more than 67108864 bytes") as raised:
        read_pool("fashion_mnist", data_dir=tmp_path)
    assert str(path) in str(raised.value)

    def read_again():
        with contextlib.suppress(UnsafeFile):
            read_pool("fashion_mnist", data_dir=tmp_path)

    assert peak_memory(read_again) < 160 << 20


def test_a_batch_of_an_absurd_size_is_not_read(tmp_path):
    write_cifar(tmp_path, packed=False)
    with (tmp_path / "cifar-10-batches-bin/test_batch.bin").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptFile, match=r"test_batch\.bin has 1099511627776 bytes, too many"):
        read_pool("cifar10", data_dir=tmp_path)


def test_batches_are_put_in_order_whatever_the_archives_order(tmp_path):
    batches = cifar_rows()
    write_archive(tmp_path / "cifar-10-binary.tar.gz", dict(reversed(cifar_files(batches).items())))
    expected = np.concatenate([batches[name][:, 0] for name in BATCHES])
    assert np.array_equal(read_pool("cifar10", data_dir=tmp_path).labels, expected)


def _write_image(path, *, mode="RGB", size=(20, 20)):
    from PIL import Image

    Image.new(mode, size).save(path)


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        (lambda path: path.write_bytes(b"no image"), "is not a readable image"),
        (lambda path: path.write_bytes(b""), "is not a readable image"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "is not a readable image"),
        (lambda path: _write_image(path, mode="L"), "is L, 20 x 20; images must be RGB and square: convert it"),
        (lambda path: _write_image(path, size=(20, 10)), "is RGB, 20 x 10; images must be RGB and square: convert it"),
        (lambda path: _write_image(path, size=(10, 10)), "has 10 x 10 pixels; .* has another size"),
    ],
)
def test_a_broken_tile_is_named(tmp_path, write, fault):
    write_tiles(tmp_path)
    path = tmp_path / "02_STROMA" / "tile_03.tif"
    write(path)
    with pytest.raises(CorruptFile, match=fault) as raised:
        read_pool("colorectal_histology", data_dir=tmp_path)
    assert str(raised.value).startswith(str(path))


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    digits, pool = load_digits(), read_pool("digits", data_dir=None)
    np.testing.assert_array_equal(pool.images[:, 0], np.rint(digits.images * (255 / 16)))
    np.testing.assert_array_equal(pool.labels, digits.target)
    assert (pool.images.min(), pool.images.max()) == (0, 255)


@pytest.mark.parametrize(
    ("found", "error", "told"),
    [
        (None, MissingDependency, "pip install scikit-learn"),
        (ModuleSpec("sklearn", None, origin="/nowhere/sklearn/__init__.py"), MissingData, "a part of scikit-learn"),
    ],
)
def test_digits_that_are_not_there_are_one_clear_error(monkeypatch, found, error, told):
    monkeypatch.setattr("pipeline.sources.find_spec", lambda _: found)
    with pytest.raises(error, match=told):
        read_pool("digits", data_dir=None)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    write_tiles(tmp_path)
    real = builtins.__import__

    def without(name, *args, **options):
        if name.split(".")[0] == "PIL":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match="pip install pillow"):
        read_pool("colorectal_histology", data_dir=tmp_path)
