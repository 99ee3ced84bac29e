"""What turns images into features, on which sets of images are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

_ROWS = 64


class Encoder(Protocol):
    """Features of images. It must not be made of the private images that it is to compare."""

    @property
    def distance_name(self) -> str:
        """What the Fréchet distance on these features is called; figures and tables print it."""
        ...

    def features(self, images: UInt8[np.ndarray, "n h w c"]) -> Float[np.ndarray, "n d"]:
        """Features, one row an image, each a function of its own image.

        Args:
          images: one or three channels.
        """
        ...


def require_images(images: UInt8[np.ndarray, "n h w c"]) -> None:
    """Refuses anything but a stack of images as `grid.to_bytes` makes it.

    Raises:
      ValueError: it is refused.
    """
    if images.ndim != 4 or images.dtype != np.uint8 or not images.size:
        raise ValueError(f"images must be uint8 [n, h, w, c], got {images.dtype} of shape {images.shape}")
    if images.shape[-1] not in (1, 3):
        raise ValueError(f"images must have one or three channels, got {images.shape[-1]}")


def in_chunks(
    encode: Callable[[Array], Array], images: UInt8[np.ndarray, "n h w c"]
) -> Float[np.ndarray, "n d"]:
    """A jitted function of images, applied to 64 at a time."""
    found: list[np.ndarray] = []
    rows = min(_ROWS, len(images))
    for start in range(0, len(images), rows):
        part = images[start : start + rows]
        missing = rows - len(part)
        full = np.pad(part, [(0, missing), (0, 0), (0, 0), (0, 0)])
        found.append(np.asarray(jax.device_get(encode(jnp.asarray(full))))[: len(part)])
    return np.concatenate(found)
