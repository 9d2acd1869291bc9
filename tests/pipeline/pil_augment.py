"""The slow, obvious reference: TrivialAugment's published operations with Pillow, one image at a time."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

from pipeline.augment import OPERATIONS


def apply_with_pillow(image: torch.Tensor, *, name: str, level: int, is_negative: bool, max_translation: float):
    """One operation on one (channels, side, side) image."""
    picture = to_picture(image)
    sign = -1 if is_negative else 1
    factor = 0.1 + 1.8 * level / 30
    shear = sign * 0.3 * level / 30
    shift = sign * int(max_translation * level / 30)
    operations = {
        "identity": lambda: picture,
        "auto_contrast": lambda: ImageOps.autocontrast(picture),
        "equalize": lambda: ImageOps.equalize(picture),
        "rotate": lambda: picture.rotate(sign * level),
        "solarize": lambda: ImageOps.solarize(picture, 256 - int(256 * level / 30)),
        "color": lambda: ImageEnhance.Color(picture).enhance(factor),
        "posterize": lambda: ImageOps.posterize(picture, 8 - int(4 * level / 30)),
        "contrast": lambda: ImageEnhance.Contrast(picture).enhance(factor),
        "brightness": lambda: ImageEnhance.Brightness(picture).enhance(factor),
        "sharpness": lambda: ImageEnhance.Sharpness(picture).enhance(factor),
        "shear_x": lambda: affine(picture, (1, shear, 0, 0, 1, 0)),
        "shear_y": lambda: affine(picture, (1, 0, 0, shear, 1, 0)),
        "translate_x": lambda: affine(picture, (1, 0, shift, 0, 1, 0)),
        "translate_y": lambda: affine(picture, (1, 0, 0, 0, 1, shift)),
    }
    assert set(operations) == set(OPERATIONS)
    return to_tensor(operations[name]())


def flip_and_crop_with_pillow(image: torch.Tensor, *, padding: int, is_flipped: bool, top: int, left: int):
    """Mirror, pad with black and cut one (channels, side, side) image."""
    picture = to_picture(image)
    if is_flipped:
        picture = ImageOps.mirror(picture)
    padded = ImageOps.expand(picture, border=padding, fill=0)
    return to_tensor(padded.crop((left, top, left + picture.width, top + picture.height)))


def affine(picture: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix)


def to_picture(image: torch.Tensor) -> Image.Image:
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(np.ascontiguousarray(array.squeeze(2) if array.shape[2] == 1 else array))


def to_tensor(picture: Image.Image) -> torch.Tensor:
    array = np.array(picture)
    return torch.from_numpy(array.reshape(*array.shape[:2], -1)).permute(2, 0, 1).contiguous()
