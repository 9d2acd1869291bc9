"""Augment batches of images: flip and crop, and TrivialAugment, on uint8 tensors of any device.

Every operation gives the same bytes as the Pillow call that JAHS-Bench-201 makes on single images. Draws do not
depend on the contents: one generator state means one sequence of choices, whatever the images. A CPU generator gives
the same images on every device and spares a GPU the synchronisation. A change after which the same generator state
gives other images raises `pipeline.protocol.AUGMENTATION_VERSION`.

The order in training is TrivialAugment, if the config has it, then flip and crop.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn.functional import pad

N_LEVELS = 31

_LOOKUPS = ("solarize", "posterize", "brightness")
_BLENDS = ("color", "contrast", "sharpness")
_MOVES = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
OPERATIONS = ("identity", "auto_contrast", "equalize", *_LOOKUPS, *_BLENDS, *_MOVES)
"""Grouped by how they are computed; they are drawn uniformly, so that their order is free."""

_TOP_LEVEL = N_LEVELS - 1
_FIXED_POINT = 65536  # Pillow's affine transforms count in 1/65536 of a pixel.


def crop_padding(side: int) -> int:
    """Pixels of padding before a crop: JAHS's int(4 * Resolution) at 32 pixels, an eighth of the side, rounded down."""
    return side // 8


def scaled_translation(side: int) -> float:
    """Pixels that the highest level translates by: JAHS's 10 at 32 pixels, in proportion to the side."""
    return 10 * side / 32


def flip_and_crop(images: Tensor, *, padding: int, generator: torch.Generator) -> Tensor:
    """Mirror each image with probability 1/2, pad it with black, and cut out a window of the old size at random.

    Args:
        images: (batch, channels, side, side) of uint8; 1 or 3 channels, a side of 4, 8, 16 or 32. Left as it is.
        padding: black pixels around the image before the crop, from 0 to the side; see `crop_padding`.
        generator: supplies a flip and two offsets per image.
    """
    n_offsets = 2 * padding + 1
    is_flipped, top, left = _draw(len(images), (2, n_offsets, n_offsets), generator)
    row = (is_flipped * n_offsets + top) * n_offsets + left
    sources = _crop_sources(images.shape[-1], padding, images.device)
    return _move(images, sources.index_select(0, row.to(images.device)))


def trivial_augment(images: Tensor, *, generator: torch.Generator, max_translation: float | None = None) -> Tensor:
    """Apply one operation of `OPERATIONS` to each image; operation, level and sign are uniform.

    Args:
        images: as for `flip_and_crop`; left as they are.
        generator: supplies an operation, a level and a sign per image.
        max_translation: pixels that the highest level translates by; 10 is as published, whatever the side; None
            scales that with the side, see `scaled_translation`.
    """
    operation, level, sign = _draw(len(images), (len(OPERATIONS), N_LEVELS, 2), generator)
    return apply_operations(images, operation=operation, level=level, sign=sign, max_translation=max_translation)


def apply_operations(
    images: Tensor, *, operation: Tensor, level: Tensor, sign: Tensor, max_translation: float | None = None
) -> Tensor:
    """Apply to each image the operation that was drawn for it; checks nothing.

    Args:
        images: as for `flip_and_crop`; left as they are.
        operation: (batch,) of int64, positions in `OPERATIONS`.
        level: (batch,) of int64, 0 to 30.
        sign: (batch,) of int64, 1 where a move goes the other way; the other operations have no sign.
        max_translation: as for `trivial_augment`.
    """
    side, device = images.shape[-1], images.device
    if max_translation is None:
        max_translation = scaled_translation(side)
    order = operation.argsort(stable=True)
    counts = dict(zip(OPERATIONS, operation.bincount(minlength=len(OPERATIONS)).tolist(), strict=True))
    operation, level, sign, order = (draw.to(device) for draw in (operation[order], level[order], sign[order], order))
    grouped = images.index_select(0, order).contiguous()
    start = counts["identity"]

    def span(*names: str) -> slice:
        nonlocal start
        start, old = start + sum(counts[name] for name in names), start
        return slice(old, start)

    at = span("auto_contrast")
    grouped[at] = _auto_contrast(grouped[at])
    at = span("equalize")
    grouped[at] = _equalize(grouped[at])
    at = span(*_LOOKUPS)
    row = (operation[at] - OPERATIONS.index(_LOOKUPS[0])) * N_LEVELS + level[at]
    grouped[at] = _look_up(grouped[at], _lookup_tables(device).index_select(0, row))
    for name, degenerate in zip(_BLENDS, (_gray, _mean_gray, _smooth), strict=True):
        at = span(name)
        grouped[at] = _blend(degenerate(grouped[at]), grouped[at], _factors(device)[level[at]].view(-1, 1, 1, 1))
    at = span(*_MOVES)
    row = ((operation[at] - OPERATIONS.index(_MOVES[0])) * N_LEVELS + level[at]) * 2 + sign[at]
    grouped[at] = _move(grouped[at], _move_sources(side, max_translation, device).index_select(0, row))
    return grouped.index_select(0, order.argsort())


def _draw(n_images: int, n_choices: tuple[int, ...], generator: torch.Generator) -> list[Tensor]:
    """Draw uniformly from each range for every image, range after range, on the generator's device."""
    return [torch.randint(n, (n_images,), generator=generator, device=generator.device) for n in n_choices]


def _move(images: Tensor, sources: Tensor) -> Tensor:
    """Fetch every pixel from its source, (batch, side * side) flat positions; position side * side is black."""
    n_channels, side = images.shape[1:3]
    pixels = pad(images.flatten(2), (0, 1))
    return pixels.gather(2, sources[:, None].expand(-1, n_channels, -1)).view(len(images), n_channels, side, side)


@functools.lru_cache(maxsize=32)
def _crop_sources(side: int, padding: int, device: torch.device) -> Tensor:
    """Return sources for `_move` of each crop, in the order (flip, top, left)."""
    window = torch.arange(2 * padding + 1)[:, None] + torch.arange(side) - padding  # (offset, pixel)
    columns = torch.stack([window, side - 1 - window])[:, None, :, None, :]  # (flip, 1, left, 1, x)
    rows = window[None, :, None, :, None]  # (1, top, 1, y, 1)
    return _flat_sources(columns, rows, side).view(-1, side * side).to(device)


@functools.lru_cache(maxsize=32)
def _move_sources(side: int, max_translation: float, device: torch.device) -> Tensor:
    """Return sources for `_move` of each geometric operation, in the order (operation, level, sign)."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    sources = []
    for name in _MOVES:
        for level in range(N_LEVELS):
            for sign in (1, -1):
                a, b, c, d, e, f = _affine(name, level, sign, side, max_translation)
                start_x, start_y = c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5  # The centre of the first pixel.
                column = (_fixed(start_x) + x * _fixed(a) + y * _fixed(b)) // _FIXED_POINT
                row = (_fixed(start_y) + x * _fixed(d) + y * _fixed(e)) // _FIXED_POINT
                sources.append(_flat_sources(column, row, side))
    return torch.stack(sources).view(-1, side * side).to(device)


def _affine(name: str, level: int, sign: int, side: int, max_translation: float) -> tuple[float, ...]:
    """Return coefficients (a, b, c, d, e, f): pixel (x, y) comes from (a x + b y + c, d x + e y + f)."""
    shear = sign * level * 0.3 / _TOP_LEVEL
    translation = sign * int(level * max_translation / _TOP_LEVEL)
    angle = -math.radians(sign * level % 360)  # Levels are degrees. Pillow rotates about the centre of the image.
    cos, sin, centre = round(math.cos(angle), 15), round(math.sin(angle), 15), side / 2
    return {
        "rotate": (cos, sin, -cos * centre - sin * centre + centre, -sin, cos, sin * centre - cos * centre + centre),
        "shear_x": (1.0, shear, 0.0, 0.0, 1.0, 0.0),
        "shear_y": (1.0, 0.0, 0.0, shear, 1.0, 0.0),
        "translate_x": (1.0, 0.0, translation, 0.0, 1.0, 0.0),
        "translate_y": (1.0, 0.0, 0.0, 0.0, 1.0, translation),
    }[name]


def _fixed(value: float) -> int:
    return math.floor(value * _FIXED_POINT + 0.5)


def _flat_sources(column: Tensor, row: Tensor, side: int) -> Tensor:
    is_inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
    return torch.where(is_inside, row * side + column, side * side)


@functools.lru_cache(maxsize=8)
def _factors(device: torch.device) -> Tensor:
    """Return the factor of an enhancement at each level, in the single precision that Pillow blends in."""
    return torch.tensor([0.1 + 1.8 * level / _TOP_LEVEL for level in range(N_LEVELS)], device=device)


@functools.lru_cache(maxsize=8)
def _lookup_tables(device: torch.device) -> Tensor:
    """Return new values of 0 to 255 under each pixelwise operation, in the order (operation, level)."""
    value = torch.arange(256, dtype=torch.uint8)
    levels = range(N_LEVELS)
    solarize = [torch.where(value.int() < 256 - int(256 * n / _TOP_LEVEL), value, 255 - value) for n in levels]
    posterize = [value & (0xFF << int(4 * n / _TOP_LEVEL)) % 256 for n in levels]  # 8 to 4 bits
    brightness = [_blend(torch.zeros_like(value), value, factor) for factor in _factors(torch.device("cpu"))]
    return torch.stack([*solarize, *posterize, *brightness]).to(device)


def _look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Replace every value v of an image by entry v of its table, (batch, 256)."""
    return tables.gather(1, images.flatten(1).long()).view(images.shape)


def _blend(degenerate: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """Move from the degenerate towards the image and, past a factor of 1, beyond it; truncate as Pillow does."""
    start = degenerate.float()
    return (start + factor * (images.float() - start)).clamp(0, 255).to(torch.uint8)


def _gray(images: Tensor) -> Tensor:
    """Return the ITU-R 601 luma in 16 fractional bits, (batch, 1, side, side)."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.int().unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)[:, None]


def _mean_gray(images: Tensor) -> Tensor:
    gray = _gray(images).flatten(1)
    return ((2 * gray.sum(1) + gray.shape[1]) // (2 * gray.shape[1])).view(-1, 1, 1, 1)


def _smooth(images: Tensor) -> Tensor:
    """Average over 3 x 3 pixels where the middle one counts five times; the border stays as it is."""
    wide = images.short()
    rows = wide[..., :-2, :] + wide[..., 1:-1, :] + wide[..., 2:, :]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * wide[..., 1:-1, 1:-1]
    wide[..., 1:-1, 1:-1] = (2 * total + 13) // 26  # total / 13, rounded; there are no ties
    return wide


def _auto_contrast(images: Tensor) -> Tensor:
    """Stretch each channel to 0..255; a channel of one value stays as it is. Double precision, as in Pillow."""
    low = images.amin((2, 3), keepdim=True).double()
    high = images.amax((2, 3), keepdim=True).double()
    scale = torch.full_like(high, 255.0).div(high - low)  # `255.0 / x` would multiply by a rounded reciprocal
    stretched = (images.double() * scale + -low * scale).clamp(0, 255)
    return torch.where(high > low, stretched, images.double()).to(torch.uint8)


def _equalize(images: Tensor) -> Tensor:
    """Spread each channel's histogram evenly, in whole steps; a step of zero leaves the channel as it is."""
    n_pixels = images.shape[2] * images.shape[3]
    if n_pixels <= 255:  # The step is zero for every image.
        return images
    values = images.flatten(2).flatten(0, 1).long()  # (batch * channels, pixels)
    histogram = values.new_zeros(len(values), 256).scatter_add_(1, values, torch.ones_like(values))
    step = (n_pixels - histogram.gather(1, values.amax(1, keepdim=True))) // 255
    before = histogram.cumsum(1) - histogram
    tables = ((before + step // 2) // step.clamp(min=1)).clamp(max=255)
    return torch.where(step > 0, tables.gather(1, values), values).to(torch.uint8).view(images.shape)
