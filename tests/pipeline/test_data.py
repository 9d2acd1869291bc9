"""Splits and images of a task: disjoint, stratified, the same everywhere; every side made from the originals."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import CorruptFile, MissingData, ProtocolMismatch
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import EARLIER, task
from pipeline.data import ImageSet, ImageSplit, Part, draw_split, load_images, resize_batch
from pipeline.sources import Pool, read_pool
from tests.pipeline.image_files import write_cifar, write_fashion, write_tiles


def _pool(labels, *, n_development=None, n_channels=1):
    labels = np.asarray(labels, dtype=np.int64)
    images = np.random.default_rng(0).integers(0, 256, (len(labels), n_channels, 8, 8), dtype=np.uint8)
    return Pool(images=images, labels=labels, n_development=len(labels) if n_development is None else n_development)


def _sized(name, n_train, n_valid, n_test, **changes):
    sizes = {"n_train": n_train, "n_valid": n_valid, "n_test": n_test, "index_digest": None}
    return dataclasses.replace(task(name), **sizes, **changes)


def _parts(split):
    return [getattr(split, part) for part in SPLIT_PARTS]


# Splits


@given(
    st.lists(st.integers(0, 4), min_size=3, max_size=60),
    st.booleans(),
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_parts_are_disjoint_sorted_and_of_the_wanted_sizes(labels, has_own_test, shares):
    n_development = max(2, len(labels) // 2) if has_own_test else len(labels)
    n_test = 1 + int(shares[0] * (len(labels) - (n_development if has_own_test else 2) - 1))
    n_rest = n_development if has_own_test else len(labels) - n_test
    n_valid = 1 + int(shares[1] * (n_rest - 2))
    n_train = 1 + int(shares[2] * (n_rest - n_valid - 1))
    pool = _pool(labels, n_development=n_development)
    parts = _parts(draw_split(pool, _sized("digits", n_train, n_valid, n_test, has_own_test=has_own_test)))
    assert [len(part) for part in parts] == [n_train, n_valid, n_test]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert set(together) <= set(range(len(labels)))
    assert all((np.diff(part) > 0).all() for part in parts)
    if has_own_test:
        assert (parts[2] >= n_development).all()
        assert (np.concatenate(parts[:2]) < n_development).all()


@given(st.lists(st.integers(0, 4), min_size=12, max_size=80), st.integers(1, 9))
def test_every_class_has_its_share_to_within_one(labels, n_test):
    split = draw_split(_pool(labels), _sized("digits", 1, (len(labels) - n_test) // 3, n_test))
    everything = np.arange(len(labels))
    for part, candidates in ((split.test, everything), (split.valid, np.setdiff1d(everything, split.test))):
        shares = np.bincount(np.array(labels)[candidates], minlength=5) * len(part) / len(candidates)
        assert (np.abs(np.bincount(np.array(labels)[part], minlength=5) - shares) < 1).all()


def test_a_tie_goes_to_the_smaller_label():
    split = draw_split(_pool([0, 1, 2, 3] * 5), _sized("digits", 2, 5, 6))
    pool_labels = np.array([0, 1, 2, 3] * 5)
    assert np.bincount(pool_labels[split.test]).tolist() == [2, 2, 1, 1]


def test_a_split_does_not_look_at_the_images():
    pool = _pool([0, 1] * 20)
    black = dataclasses.replace(pool, images=np.zeros_like(pool.images))
    small = _sized("digits", 10, 10, 10)
    assert draw_split(pool, small).digest == draw_split(black, small).digest


def test_fewer_training_images_are_some_of_the_same_and_leave_the_other_parts_alone():
    pool = _pool([0, 1, 2] * 40)
    large, small = (draw_split(pool, _sized("digits", n_train, 20, 20)) for n_train in (60, 30))
    assert set(small.train) < set(large.train)
    assert np.array_equal(small.valid, large.valid)
    assert np.array_equal(small.test, large.test)


def test_the_digest_tells_every_part_apart():
    one, two, three = (np.array([number], dtype=np.int64) for number in (1, 2, 3))
    split = ImageSplit(train=one, valid=two, test=three)
    assert split.digest == ImageSplit(train=one.copy(), valid=two, test=three).digest
    others = [
        ImageSplit(train=two, valid=one, test=three),
        ImageSplit(train=one, valid=three, test=two),
        ImageSplit(train=np.concatenate([one, two]), valid=two[:0], test=three),
    ]
    assert split.digest not in [other.digest for other in others]


def _golden(pool, small, starts):
    split = draw_split(pool, small)
    assert [part[:4].tolist() for part in _parts(split)] == starts
    return split.digest


def test_the_split_of_digits_is_the_golden_one():
    starts = [[0, 1, 2, 4], [5, 7, 13, 17], [3, 9, 10, 21]]
    pool = read_pool("digits")
    assert _golden(pool, _sized("digits", 1024, 256, 256), starts) == "4e1f81e15601f151"
    assert draw_split(pool, _sized("digits", 100, 50, 25)).digest == "3a970b155339be28"
    assert load_images(task("digits"), resolutions=[0.25])[0.25].index_digest == task("digits").index_digest


def test_the_splits_of_fashion_mnist_are_the_golden_ones():
    try:
        pool = read_pool("fashion_mnist")
    except MissingData as err:
        pytest.skip(str(err))
    starts = [[5, 21, 26, 27], [3, 9, 10, 32], [60001, 60006, 60030, 60036]]
    [earlier] = [chosen for chosen in EARLIER.values() if chosen.name == "fashion_mnist_mini"]
    unfrozen = dataclasses.replace(earlier, index_digest=None)
    assert _golden(pool, unfrozen, starts) == earlier.index_digest == "24c9a820911c7860"
    assert draw_split(pool, _sized("fashion_mnist", 56_000, 7_000, 7_000)).digest == "8b15f2658553c18e"
    images = load_images(task("fashion_mnist_mini"), resolutions=[0.25])[0.25]
    assert images.index_digest == task("fashion_mnist_mini").index_digest
    assert (images.mean, images.std) == ((0.2864,), (0.3531,))


def test_too_small_a_pool_is_refused():
    with pytest.raises(
        CorruptFile, match="20 images are needed, but the pool has only 10 left; the data set is incomplete"
    ):
        draw_split(_pool([0, 1] * 10), _sized("digits", 20, 5, 5))


# Resizing


@pytest.mark.parametrize(
    ("n_channels", "side", "wanted"), [(1, 28, 16), (1, 28, 8), (1, 28, 4), (3, 150, 32), (1, 8, 16), (3, 32, 8)]
)
def test_resizing_is_pillows_bilinear_to_within_one_level(n_channels, side, wanted):
    from PIL import Image

    images = np.random.default_rng(0).integers(0, 256, (5, n_channels, side, side), dtype=np.uint8)
    ours = resize_batch(torch.from_numpy(images), wanted).numpy()
    for image, small in zip(images, ours, strict=True):
        for channel, small_channel in zip(image, small, strict=True):
            expected = np.asarray(Image.fromarray(channel).resize((wanted, wanted), Image.Resampling.BILINEAR))
            assert np.abs(expected.astype(int) - small_channel).max() <= 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 255))
def test_an_even_grey_stays_what_it_is_at_every_side(side, wanted, grey):
    images = torch.full((2, 1, side, side), grey, dtype=torch.uint8)
    assert (resize_batch(images, wanted) == grey).all()


def test_many_images_are_resized_as_one_alone_is():
    images = torch.randint(0, 256, (600, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    together = resize_batch(images, 8)
    assert torch.equal(together[517], resize_batch(images[517:518], 8)[0])
    assert resize_batch(images, 28) is images


# The images of a task


def test_digits_have_sides_of_4_8_and_16():
    sets = load_images(task("digits"))
    assert {resolution: images.side for resolution, images in sets.items()} == {0.25: 4, 0.5: 8, 1.0: 16}
    pool = read_pool("digits")
    split = draw_split(pool, task("digits"))
    for images in sets.values():
        assert images.index_digest == split.digest
        for part, index in zip(SPLIT_PARTS, _parts(split), strict=True):
            held = getattr(images, part)
            assert held.images.dtype == torch.uint8
            assert held.images.shape == (len(index), 1, images.side, images.side)
            assert held.labels.dtype == torch.int64
            assert np.array_equal(held.labels, pool.labels[index])
            # Every side is made from the originals, never from another side.
            assert torch.equal(held.images, resize_batch(torch.from_numpy(pool.images[index]), images.side))


def test_mean_and_deviation_are_of_the_original_training_images():
    pool = read_pool("digits")
    pixels = pool.images[draw_split(pool, task("digits")).train] / 255
    for images in load_images(task("digits")).values():
        assert images.mean == (round(float(pixels.mean()), 4),) == (0.3068,)
        assert images.std == (round(float(pixels.std()), 4),) == (0.3763,)


def test_only_the_wanted_resolutions_are_loaded():
    full = load_images(task("digits"))
    for resolution in (0.25, 0.5, 1.0):
        (images,) = (one := load_images(task("digits"), resolutions=[resolution])).values()
        assert list(one) == [resolution]
        assert torch.equal(images.train.images, full[resolution].train.images)


def test_fashion_mnist_is_padded_with_black_before_it_is_resized(tmp_path):
    images, _ = write_fashion(tmp_path)
    small = _sized("fashion_mnist", 30, 10, 20)
    sets = load_images(small, data_dir=tmp_path)
    index = draw_split(read_pool("fashion_mnist", data_dir=tmp_path), small).train
    padded = np.pad(images[index], ((0, 0), (2, 2), (2, 2)))[:, None]
    assert np.array_equal(sets[1.0].train.images, padded)
    assert torch.equal(sets[0.25].train.images, resize_batch(torch.from_numpy(padded), 8))
    # The black that is added counts for nothing.
    assert sets[1.0].mean[0] == pytest.approx(images[index].mean() / 255, abs=1e-4)
    assert (index >= 40).any()  # its own test images are not kept apart, as published


def test_fashion_mnist_mini_tests_on_the_data_sets_own_test_images(tmp_path):
    images, _ = write_fashion(tmp_path)
    small = _sized("fashion_mnist_mini", 20, 10, 10, epoch_images=None)
    index = draw_split(read_pool("fashion_mnist", data_dir=tmp_path), small)
    assert index.test.min() >= 40 > max(index.train.max(), index.valid.max())
    sets = load_images(small, data_dir=tmp_path)
    expected = resize_batch(torch.from_numpy(images[index.test][:, None]), 4)
    assert torch.equal(sets[0.25].test.images, expected)


def test_cifar10_is_trained_at_full_side_and_evaluated_resized(tmp_path):
    rows = write_cifar(tmp_path)
    small = _sized("cifar10", 50, 40, 20)
    sets = load_images(small, data_dir=tmp_path)
    split = draw_split(read_pool("cifar10", data_dir=tmp_path), small)
    originals = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32))
    for resolution, side in ((0.25, 8), (0.5, 16), (1.0, 32)):
        images = sets[resolution]
        assert images.side == side
        assert torch.equal(images.train.images, originals[split.train])
        assert torch.equal(images.valid.images, resize_batch(originals[split.valid], side))
        assert torch.equal(images.test.images, resize_batch(originals[split.test], side))
        assert images.mean == (0.4914, 0.4822, 0.4465)
        assert images.std == (0.247, 0.2435, 0.2616)
    assert sets[0.25].train.images is sets[1.0].train.images  # held once
    assert split.test.min() >= 100


def test_colorectal_tiles_are_shrunk_and_split_by_class(tmp_path):
    tiles = write_tiles(tmp_path, classes=[f"{number:02}" for number in range(8)], n_per_class=5, side=50)
    small = _sized("colorectal_histology", 24, 8, 8)
    sets = load_images(small, data_dir=tmp_path)
    split = draw_split(read_pool("colorectal_histology", data_dir=tmp_path), small)
    for resolution, side in ((0.25, 8), (0.5, 16), (1.0, 32)):
        images = sets[resolution]
        originals = torch.from_numpy(tiles[split.train].transpose(0, 3, 1, 2).copy())
        assert torch.equal(images.train.images, resize_batch(originals, side))
        assert images.test.labels.bincount().tolist() == [1] * 8
        assert images.train.labels.bincount().tolist() == [3] * 8
    pixels = tiles[split.train] / 255
    assert sets[1.0].mean == pytest.approx(pixels.mean(axis=(0, 1, 2)), abs=1e-4)
    assert sets[1.0].std == pytest.approx(pixels.std(axis=(0, 1, 2)), abs=1e-4)


def test_a_frozen_task_refuses_another_split():
    frozen = dataclasses.replace(task("digits"), index_digest="0123456789abcdef")
    with pytest.raises(
        ProtocolMismatch, match="digest 4e1f81e15601f151, but the task was frozen with 0123456789abcdef"
    ):
        load_images(frozen)


def test_images_of_another_data_set_are_refused(tmp_path):
    write_tiles(tmp_path)
    with pytest.raises(CorruptFile, match="3 channels and 2 classes, not 3 and 8; the data set is not complete"):
        load_images(task("colorectal_histology"), data_dir=tmp_path)


def test_images_without_contrast_are_refused(tmp_path):
    from PIL import Image

    for name in "abcdefgh":
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / name / f"{number}.png")
    with pytest.raises(CorruptFile, match="the training images are empty"):
        load_images(_sized("colorectal_histology", 8, 8, 8), data_dir=tmp_path)


def test_a_device_gets_every_part():
    part = Part(torch.zeros((2, 1, 4, 4), dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    images = ImageSet(train=part, valid=part, test=part, side=4, mean=(0.5,), std=(0.5,), index_digest="x")
    moved = images.to(torch.device("meta"))
    for name in SPLIT_PARTS:
        assert getattr(moved, name).images.device.type == getattr(moved, name).labels.device.type == "meta"
    assert (moved.side, moved.mean, moved.std, moved.index_digest) == (4, (0.5,), (0.5,), "x")
