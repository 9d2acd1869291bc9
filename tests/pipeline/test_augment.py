from __future__ import annotations

import itertools

import pytest
import torch
from scipy.stats import chisquare

from jahs.tasks.definitions import RESOLUTIONS, TASKS
from pipeline import augment
from pipeline.augment import (
    N_LEVELS,
    OPERATIONS,
    apply_operations,
    crop_padding,
    flip_and_crop,
    scaled_translation,
    trivial_augment,
)
from tests.pipeline.pil_augment import apply_with_pillow, flip_and_crop_with_pillow

SIDES = (4, 8, 16, 32)
MOVES = {"rotate", "shear_x", "shear_y", "translate_x", "translate_y"}
KINDS = ["uniform", "narrow", "sparse", "constant", "ramp"]
SHAPES = [(n_channels, side) for side in SIDES for n_channels in (1, 3)]


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_images(kind: str, *, n_images: int, n_channels: int, side: int) -> torch.Tensor:
    """Images that reach different corners: full range, low contrast, mostly black, one value, every value in turn."""
    shape = (n_images, n_channels, side, side)
    generator = make_generator(side)
    uniform = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    noise = torch.rand(shape, generator=generator)
    if kind == "narrow":
        low, width = torch.rand((2, n_images, 1, 1, 1), generator=generator)
        return (255 * (low + (1 - low) * width * noise)).to(torch.uint8)
    if kind == "sparse":
        return uniform * (noise > 0.7)
    if kind == "constant":
        return torch.arange(n_images).remainder(256).view(-1, 1, 1, 1).expand(shape).to(torch.uint8)
    if kind == "ramp":
        start = 7 * torch.arange(n_images)[:, None]
        values = start + torch.arange(n_channels * side * side)
        return values.remainder(256).view(shape).to(torch.uint8)
    return uniform


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_channels", "side"), SHAPES)
def test_every_operation_level_and_sign_gives_the_bytes_that_pillow_gives(kind, n_channels, side):
    # Moves do not look at the values, and they alone have a sign.
    choices = [
        (k, m, s)
        for (k, name), m, s in itertools.product(enumerate(OPERATIONS), range(N_LEVELS), (0, 1))
        if (kind == "uniform" if name in MOVES else s == 0)
    ]
    operation, level, sign = torch.tensor(choices)[torch.randperm(len(choices), generator=make_generator())].T
    images = make_images(kind, n_images=len(choices), n_channels=n_channels, side=side)
    augmented = apply_operations(images, operation=operation, level=level, sign=sign)
    for at, (k, m, s) in enumerate(zip(operation.tolist(), level.tolist(), sign.tolist(), strict=True)):
        expected = apply_with_pillow(
            images[at], name=OPERATIONS[k], level=m, is_negative=bool(s), max_translation=10 * side / 32
        )
        assert augmented[at].equal(expected), (OPERATIONS[k], m, s)


@pytest.mark.parametrize(("n_channels", "side"), SHAPES)
@pytest.mark.parametrize("name", ["translate_x", "translate_y"])
def test_the_published_translation_is_there_for_the_asking(name, n_channels, side):
    choices = list(itertools.product(range(N_LEVELS), (0, 1)))
    level, sign = torch.tensor(choices).T
    images = make_images("uniform", n_images=len(choices), n_channels=n_channels, side=side)
    operation = torch.full_like(level, OPERATIONS.index(name))
    augmented = apply_operations(images, operation=operation, level=level, sign=sign, max_translation=10)
    for at, (m, s) in enumerate(choices):
        expected = apply_with_pillow(images[at], name=name, level=m, is_negative=bool(s), max_translation=10)
        assert augmented[at].equal(expected), (m, s)


def test_translations_scale_with_the_side_and_are_rounded_down():
    longest = {side: int(scaled_translation(side)) for side in SIDES}
    assert longest == {4: 1, 8: 2, 16: 5, 32: 10}
    assert {side: crop_padding(side) for side in SIDES} == {4: 0, 8: 1, 16: 2, 32: 4}


@pytest.mark.parametrize(
    ("side", "n_bright", "expected"),
    [
        (8, 1, (10, 20)),  # 63 pixels below the brightest value make no whole step of 255,
        (16, 2, (10, 20)),  # nor do 254,
        (16, 1, (0, 255)),  # and 255 make one.
        (32, 512, (0, 255)),  # Steps of 2: (512 + 1) // 2 = 256 is cut to 255.
        (32, 700, (0, 255)),
    ],
)
def test_equalize_moves_values_only_where_a_whole_step_fits(side, n_bright, expected):
    image = torch.full((side * side,), 10, dtype=torch.uint8)
    image[:n_bright] = 20
    image = image.view(1, side, side)
    at = torch.tensor([OPERATIONS.index("equalize")])
    equalized = apply_operations(image[None], operation=at, level=at, sign=at)[0]
    assert (equalized.min().item(), equalized.max().item()) == expected
    assert equalized.equal(apply_with_pillow(image, name="equalize", level=0, is_negative=False, max_translation=0))


@pytest.mark.parametrize(("n_channels", "side"), SHAPES)
def test_flip_and_crop_gives_windows_of_the_padded_mirror_image(n_channels, side):
    padding = max(1, crop_padding(side))
    images = make_images("uniform", n_images=64, n_channels=n_channels, side=side)
    cropped = flip_and_crop(images, padding=padding, generator=make_generator(5))
    generator, n_offsets = make_generator(5), 2 * padding + 1
    flips, tops, lefts = (torch.randint(n, (64,), generator=generator).tolist() for n in (2, n_offsets, n_offsets))
    for at, (flip, top, left) in enumerate(zip(flips, tops, lefts, strict=True)):
        expected = flip_and_crop_with_pillow(images[at], padding=padding, is_flipped=bool(flip), top=top, left=left)
        assert cropped[at].equal(expected)


def test_without_padding_an_image_is_only_flipped_about_half_the_time():
    images = make_images("uniform", n_images=2000, n_channels=1, side=8)
    cropped = flip_and_crop(images, padding=0, generator=make_generator())
    is_same = (cropped == images).all((1, 2, 3))
    is_mirrored = (cropped == images.flip(3)).all((1, 2, 3))
    assert (is_same ^ is_mirrored).all()
    assert 900 < is_mirrored.sum() < 1100


def test_every_flip_and_offset_is_equally_likely():
    side, padding = 8, 1
    image = torch.arange(1, side * side + 1, dtype=torch.uint8).view(1, 1, side, side)  # No pixel is black.
    cropped = flip_and_crop(image.expand(18_000, -1, -1, -1), padding=padding, generator=make_generator(1))
    _, counts = cropped.flatten(1).unique(dim=0, return_counts=True)
    assert len(counts) == 2 * 3 * 3
    assert chisquare(counts).pvalue > 0.01


def test_operations_levels_and_signs_are_uniform_and_independent(monkeypatch):
    drawn = {}
    monkeypatch.setattr(augment, "apply_operations", lambda images, **choices: drawn.update(choices))
    trivial_augment(torch.zeros(120_000, 1, 4, 4, dtype=torch.uint8), generator=make_generator(3))
    combination = (drawn["operation"] * N_LEVELS + drawn["level"]) * 2 + drawn["sign"]
    counts = combination.bincount(minlength=len(OPERATIONS) * N_LEVELS * 2)
    assert len(counts) == 14 * 31 * 2
    assert chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize(
    "call",
    [
        lambda images, generator: flip_and_crop(images, padding=2, generator=generator),
        lambda images, generator: trivial_augment(images, generator=generator),
    ],
    ids=["flip_and_crop", "trivial_augment"],
)
class TestBoth:
    @pytest.mark.parametrize(("n_channels", "side"), SHAPES)
    def test_the_shape_and_type_stay_and_the_input_is_left_alone(self, call, n_channels, side):
        images = make_images("uniform", n_images=50, n_channels=n_channels, side=side)
        before = images.clone()
        augmented = call(images, make_generator())
        assert images.equal(before)
        assert (augmented.shape, augmented.dtype) == (images.shape, torch.uint8)
        assert not augmented.requires_grad
        assert augmented.data_ptr() != images.data_ptr()

    def test_the_same_generator_state_gives_the_same_images(self, call):
        images = make_images("uniform", n_images=50, n_channels=3, side=16)
        first, again, other = (call(images, make_generator(seed)) for seed in (1, 1, 2))
        assert first.equal(again)
        assert not first.equal(other)

    def test_the_draws_do_not_depend_on_the_images(self, call):
        images = make_images("uniform", n_images=50, n_channels=3, side=16)
        used, also_used = make_generator(), make_generator()
        together = call(images, used)
        images[1:] = 0
        assert call(images, also_used)[0].equal(together[0])
        assert used.get_state().equal(also_used.get_state())

    def test_memory_order_makes_no_difference(self, call):
        images = make_images("uniform", n_images=50, n_channels=3, side=16)
        reordered = images.contiguous(memory_format=torch.channels_last)
        assert call(images, make_generator()).equal(call(reordered, make_generator()))

    @pytest.mark.parametrize("n_images", [0, 1])
    def test_small_batches_pass(self, call, n_images):
        images = make_images("uniform", n_images=n_images, n_channels=1, side=8)
        assert call(images, make_generator()).shape == images.shape

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_a_gpu_gives_the_same_images_as_the_cpu(self, call):
        for (n_channels, side), kind in itertools.product(SHAPES, KINDS):
            images = make_images(kind, n_images=2000, n_channels=n_channels, side=side)
            assert call(images.cuda(), make_generator()).cpu().equal(call(images, make_generator()))

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_a_generator_on_the_gpu_is_reproducible(self, call):
        images = make_images("uniform", n_images=256, n_channels=1, side=16).cuda()
        first, again = (call(images, torch.Generator("cuda").manual_seed(1)) for _ in range(2))
        assert first.is_cuda
        assert first.equal(again)


def test_every_task_has_sides_that_the_operations_are_compared_at():
    assert {task.image_side(resolution) for task in TASKS.values() for resolution in RESOLUTIONS} <= {*SIDES}
