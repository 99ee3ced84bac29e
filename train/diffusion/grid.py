"""Images as bytes, and many of them as one picture."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from jaxtyping import Num, UInt8
from PIL import Image

from exactdp.accounting import validate
from exactdp.train.diffusion import encoder


def to_bytes(
    images: Num[np.ndarray, "n h w c"], *, pixel_range: tuple[float, float]
) -> UInt8[np.ndarray, "n h w c"]:
    """Pixels of a range as the nearest of 0 ... 255, those beyond it cut.

    Args:
      images: finite numbers.
      pixel_range: what becomes 0 and what 255.

    Raises:
      ValueError: a range that is not ascending, or pixels that are not finite.
    """
    low, high = (validate.finite("pixel_range", end) for end in pixel_range)
    if high <= low:
        raise ValueError(f"pixel_range must be ascending, got {pixel_range}")
    pixels = np.asarray(images, np.float64)
    if not np.isfinite(pixels).all():
        raise ValueError("images must be finite, got NaN or infinity")
    return np.rint(np.clip((pixels - low) / (high - low), 0.0, 1.0) * 255.0).astype(np.uint8)


def tiled(
    images: UInt8[np.ndarray, "n h w c"], *, columns: int | None = None, gap: int = 2, scale: int = 1
) -> UInt8[np.ndarray, "height width c"]:
    """Images in rows, from left to right and from the top, on white.

    Args:
      images: one or three channels.
      columns: images a row, >= 1; None for as many as rows, or one more.
      gap: white pixels between images and round them, >= 0.
      scale: whole number of times that each pixel is repeated in both directions, >= 1.

    Raises:
      ValueError: an argument is outside its range.
    """
    encoder.require_images(images)
    width = math.ceil(math.sqrt(len(images))) if columns is None else validate.count("columns", columns, 1)
    validate.count("gap", gap)
    factor = validate.count("scale", scale, 1)
    large = images.repeat(factor, axis=1).repeat(factor, axis=2)
    count, rows, across, channels = large.shape
    lines = -(-count // width)
    page = np.full((lines * (rows + gap) + gap, width * (across + gap) + gap, channels), 255, np.uint8)
    for number, image in enumerate(large):
        top, left = gap + number // width * (rows + gap), gap + number % width * (across + gap)
        page[top : top + rows, left : left + across] = image
    return page


def save(
    path: str | Path,
    images: UInt8[np.ndarray, "n h w c"],
    *,
    columns: int | None = None,
    gap: int = 2,
    scale: int = 1,
) -> None:
    """Writes `tiled` images to a PNG file: no text, no date, the same bytes for the same images.

    Raises:
      ValueError: an argument is outside its range, or the path does not end in .png.
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise ValueError(f"path must end in .png, got {target}")
    page = tiled(images, columns=columns, gap=gap, scale=scale)
    Image.fromarray(page[..., 0] if page.shape[-1] == 1 else page).save(target, format="PNG")
