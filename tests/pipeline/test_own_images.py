"""A user's own images: what is read, what is refused, and the task that is made of them."""

import dataclasses
import re
import zipfile

import numpy as np
import pytest
from PIL import Image

from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData, ProtocolMismatch, UnsafeFile
from jahs.tasks.definitions import BUILT_IN, KNOWN, TASKS
from jahs.tasks.own import write_task_file
from pipeline import own_images
from pipeline.collect import main as collect_main
from pipeline.data import load_images
from pipeline.define import define
from pipeline.own_images import data_set_of, read_own_images
from pipeline.protocol import protocol_digest, protocol_facts, recorded_task, trained_task
from pipeline.train.__main__ import main as train_main
from tests.pipeline.image_files import idx_bytes, write_fashion, write_tiles


@pytest.fixture(autouse=True)
def only_the_built_in_tasks_stay():
    yield
    for name in {*TASKS} - BUILT_IN:
        del KNOWN[name]


def toy(n=60, side=8, n_classes=3):
    images = np.random.default_rng(0).integers(0, 256, (n, side, side), dtype=np.uint8)
    return images, np.arange(n) % n_classes


def write_npz(path, **changes):
    images, labels = toy()
    np.savez_compressed(path, **{"images": images, "labels": labels, **changes})
    return path


def settings(folder, images, **more):
    return {"images": images, "name": "toy", "out": folder / "toy.json", "epochs": 1, "batch_size": 8, **more}


def test_npz_images_come_back_grey_or_coloured(tmp_path):
    images, labels = toy()
    pool = read_own_images(write_npz(tmp_path / "toy.npz"))
    assert np.array_equal(pool.images[:, 0], images)
    assert np.array_equal(pool.labels, labels)
    assert pool.n_development == 60
    colour = np.stack([images, images, 255 - images], axis=-1)
    pool = read_own_images(write_npz(tmp_path / "colour.npz", images=colour))
    assert np.array_equal(pool.images, colour.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_class_folders_are_labelled_by_sorted_name(tmp_path, ending):
    images = write_tiles(tmp_path, classes=("b", "a"), n_per_class=2, ending=ending)
    pool = read_own_images(tmp_path)
    assert np.array_equal(pool.images, images.transpose(0, 3, 1, 2))
    assert pool.labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("ending", ["png", "tiff", "jpg", "jpeg"])
def test_grey_images_have_one_channel(tmp_path, ending):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("L", (8, 8), 7).save(tmp_path / name / f"one.{ending}")
    assert read_own_images(tmp_path).images.shape == (2, 1, 8, 8)


def test_idx_files_keep_their_test_images(tmp_path):
    write_fashion(tmp_path)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.unlink()
    path.with_suffix("").write_bytes(idx_bytes((np.arange(20) % 10).astype(np.uint8)))
    pool = read_own_images(tmp_path)
    assert pool.images.shape == (60, 1, 28, 28)
    assert pool.n_development == 40


def test_the_digest_covers_every_pixel_label_and_the_test_part(tmp_path):
    pool = read_own_images(write_npz(tmp_path / "toy.npz"))
    pixels, labels = pool.images.copy(), pool.labels.copy()
    pixels[-1, 0, -1, -1] ^= 1
    labels[0] = 1
    others = [{"images": pixels}, {"labels": labels}, {"n_development": 50}, {"images": pool.images[:, :, :4, :4]}]
    digests = {data_set_of(dataclasses.replace(pool, **change)) for change in ({}, *others)}
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": np.zeros((60, 8, 8))}, "images must be uint8, from 0 to 255, got float64"),
        ({"images": np.zeros((60, 8, 9), np.uint8)}, r"square, 4 to 1024 pixels wide, got \(60, 8, 9\)"),
        ({"images": np.zeros((60, 3, 8, 8), np.uint8)}, r"\(n, side, side, 3\).*got \(60, 3, 8, 8\)"),
        ({"images": np.zeros((60, 2, 2), np.uint8)}, "4 to 1024 pixels wide"),
        ({"labels": np.arange(59) % 3}, r"labels must be one integer per image, got int64 \(59,\)"),
        ({"labels": np.arange(60) % 3 / 2}, "labels must be one integer per image, got float64"),
        ({"labels": np.array(5)}, "labels must be one integer per image"),
        ({"labels": np.arange(60) % 3 + 1}, r"labels must be 0, 1, 2 and so on.*got \[1, 2, 3\]"),
        ({"labels": np.where(np.arange(60) == 7, 90, np.arange(60) % 3)}, r"got \[0, 1, 2, 90\]"),
        ({"labels": np.zeros(60, int)}, "at least two"),
        ({"images": np.zeros((0, 8, 8), np.uint8), "labels": np.zeros(0, int)}, "at least two"),
    ],
)
def test_arrays_that_are_no_data_set_are_refused(tmp_path, changes, message):
    path = write_npz(tmp_path / "toy.npz", **changes)
    with pytest.raises(CorruptFile, match=message) as caught:
        read_own_images(path)
    assert str(caught.value).startswith(str(path))


def test_object_arrays_are_never_unpickled(tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "executed"), "w")

    images = np.empty(60, dtype=object)
    images[:] = [Evil() for _ in range(60)]
    path = write_npz(tmp_path / "toy.npz", images=images)
    with pytest.raises(CorruptFile, match=r"not an npz file with the arrays images and labels \(Object arrays cannot"):
        read_own_images(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", "cut", "no labels"])
def test_a_damaged_npz_is_one_clear_line(tmp_path, content):
    path = write_npz(tmp_path / "toy.npz")
    if content == "no labels":
        np.savez(path, images=toy()[0])
    else:
        path.write_bytes(path.read_bytes()[:-40] if content == "cut" else content)
    with pytest.raises(CorruptFile, match=r"is not an npz file.*numpy.savez_compressed\(file, images=images"):
        read_own_images(path)


@pytest.mark.parametrize("name", ["labels", "labels.npy"])
def test_an_npz_of_other_files_is_refused(tmp_path, name):
    path = tmp_path / "toy.npz"
    np.savez(path, images=toy()[0])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"0, 1, 2")
    with pytest.raises(CorruptFile, match=r"toy.npz is not an npz file .*labels is not in the format of numpy"):
        read_own_images(path)


def test_an_npz_that_fills_the_memory_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(own_images, "_MOST_BYTES", 1000)
    with pytest.raises(UnsafeFile, match="bytes; at most 1000 are read"):
        read_own_images(write_npz(tmp_path / "toy.npz"))


def test_a_header_that_claims_more_than_the_file_has_is_refused(tmp_path):
    path = write_npz(tmp_path / "toy.npz")
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999, 8, 8), }"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", header.ljust(127) + b"\n")
        archive.writestr("labels.npy", b"")
    with pytest.raises(CorruptFile, match="is not an npz file"):
        read_own_images(path)


def spoil_mode(folder):
    Image.new("L", (20, 20)).save(folder / "b" / "zz.png")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "c").mkdir(), "c: no images; delete the folder, or put images of its class there"),
        (spoil_mode, r"zz.png has 20 x 20 pixels; .*tile_00.tif has another number of channels"),
    ],
)
def test_class_folders_that_are_no_data_set_name_the_file(tmp_path, spoil, message):
    write_tiles(tmp_path, classes=("a", "b"))
    spoil(tmp_path)
    with pytest.raises(CorruptFile, match=message):
        read_own_images(tmp_path)


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_text("x"), lambda path: None])
def test_where_there_are_no_images_the_forms_are_listed(tmp_path, make):
    make(tmp_path / "here")
    with pytest.raises(MissingData, match=r"here holds no images; give a folder with a folder of PNG.*npz file.*idx"):
        read_own_images(tmp_path / "here")


def test_a_task_is_defined_and_found_by_its_file(tmp_path):
    images = write_npz(tmp_path / "toy.npz")
    made = define(**settings(tmp_path, images, title="Toys"))
    assert (made.n_train, made.n_valid, made.n_test) == (42, 9, 9)
    assert trained_task(str(tmp_path / "toy.json")) == made
    sets = load_images(made, data_dir=images)
    assert sets[1.0].index_digest == made.index_digest
    del KNOWN["toy"]
    assert trained_task(str(tmp_path / "toy.json")) == made


def test_a_folder_of_runs_holds_the_task_and_a_process_that_does_not_know_it_has_the_same_digest(tmp_path):
    made = define(**settings(tmp_path, write_npz(tmp_path / "toy.npz"), title="Toys"))
    facts, digest = protocol_facts(made), protocol_digest(made)
    del KNOWN["toy"]
    assert protocol_digest(made) == digest
    assert recorded_task(facts) == made
    assert protocol_digest(dataclasses.replace(made, title="Other words")) == digest


def test_the_data_sets_own_test_images_are_used(tmp_path):
    write_fashion(tmp_path / "idx")
    made = define(**settings(tmp_path, tmp_path / "idx", valid=10))
    assert (made.has_own_test, made.n_train, made.n_valid, made.n_test) == (True, 30, 10, 20)


def test_other_images_are_never_taken_for_a_tasks_own(tmp_path):
    made = define(**settings(tmp_path, write_npz(tmp_path / "toy.npz")))
    other = write_npz(tmp_path / "other.npz", images=toy()[0] ^ 1)  # the same labels, so the same split
    with pytest.raises(ProtocolMismatch, match=r"other.npz holds the images own_\w+, but the task was made from own_"):
        load_images(made, data_dir=other)
    with pytest.raises(MissingData, match=r"no images in .*none.npz; put the ones that the task was made from in"):
        load_images(made, data_dir=tmp_path / "none.npz")


@pytest.mark.usefixtures("no_home")
def test_images_that_are_named_need_no_cache(tmp_path):
    images = write_npz(tmp_path / "toy.npz")
    made = define(**settings(tmp_path, images))
    assert load_images(made, data_dir=images)[1.0].index_digest == made.index_digest
    with pytest.raises(MissingData, match="this user has no home"):
        load_images(made)


def test_images_in_the_users_cache_may_be_one_file(tmp_path, monkeypatch):
    made = define(**settings(tmp_path, write_npz(tmp_path / "toy.npz")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingData, match=f"put the ones .* in the folder .*jahs/{made.data_set} or in the file "):
        load_images(made)
    (tmp_path / "jahs").mkdir()
    write_npz(tmp_path / "jahs" / f"{made.data_set}.npz")
    assert load_images(made)[1.0].index_digest == made.index_digest


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"train": 100}, "100 images are needed, but the pool has only 42 left.*choose smaller --train"),
        ({"valid": 2}, r"no image of class \d in valid \(n=2\); give more images of it, or a larger --valid"),
        ({"batch_size": 1}, "an epoch of 42 images in batches of 1 has a batch of one image, which cannot be normal"),
        ({"train": 41, "batch_size": 8}, "an epoch of 41 images in batches of 8 has a batch of one image"),
        ({"test": 0}, "n_test=0: must be at least 1"),
        ({"side": 20}, "side=20: .*must be a multiple of 16"),
    ],
)
def test_a_task_that_cannot_be_is_refused_and_nothing_is_written(tmp_path, more, message):
    images = write_npz(tmp_path / "toy.npz")
    with pytest.raises(InvalidArgument, match=message):
        define(**settings(tmp_path, images, **more))
    assert [path.name for path in tmp_path.iterdir()] == ["toy.npz"]
    assert {*TASKS} == BUILT_IN


@pytest.mark.parametrize("name", ["digits", "Toy", "../toy", ""])
def test_a_name_that_is_taken_or_no_name_is_refused(tmp_path, name):
    images = write_npz(tmp_path / "toy.npz")
    with pytest.raises(JahsError, match=r"exists already|name"):
        define(**settings(tmp_path, images, name=name))
    assert not (tmp_path / "toy.json").exists()


def test_a_task_file_whose_epochs_end_with_a_single_image_is_refused_before_training(tmp_path, capsys):
    file = tmp_path / "odd.json"
    write_task_file(file, dataclasses.replace(TASKS["digits"], name="odd", epoch_images=257))
    for main in (collect_main, train_main):
        more = ["--out", str(tmp_path / "runs")] if main is collect_main else ["--sample", "0"]
        assert main(["--task", str(file), *more]) == 2
        assert (
            "task 'odd': an epoch of 257 images in batches of 256 has a batch of one image" in capsys.readouterr().err
        )
    assert not (tmp_path / "runs").exists()


def test_black_images_and_a_file_that_is_there_are_refused(tmp_path):
    images = write_npz(tmp_path / "toy.npz", images=np.zeros((60, 8, 8), np.uint8))
    with pytest.raises(CorruptFile, match="the training images are empty"):
        define(**settings(tmp_path, images))
    (tmp_path / "toy.json").write_text("mine")
    with pytest.raises(InvalidArgument, match=re.escape("toy.json must be a new file")):
        define(**settings(tmp_path, images))
    assert (tmp_path / "toy.json").read_text() == "mine"
