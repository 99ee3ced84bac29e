"""An encoder that needs no weights: random convolutions at several scales."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from exactdp.accounting import validate
from exactdp.train.diffusion import encoder

_SIDE = 5  # of a filter
_CELLS = 2  # along each side, in which responses are averaged
_COLOURS = 4  # along each side, in which pixels are averaged
_SEED = 20_220_601  # of the filters, a constant: numbers under one name must be comparable


@dataclasses.dataclass(frozen=True)
class RandomConvolution:
    """Mean sizes of the responses to fixed random filters, at full, half, quarter ... resolution.

    At each scale with sides of at least five pixels, images (pixels in [-1, 1]) are convolved with `filters`
    filters of 5 x 5 pixels and all channels: normal, each shifted to mean 0 in every channel and scaled to
    norm 1. The absolute responses are averaged over 2 x 2 cells. Average colours of 4 x 4 cells are added, so
    that the features are filters * 4 a scale and channels * 16 in number.

    They see colours, contrasts and textures and their rough places; they know nothing of what is in a
    picture. Distances on them compare models of one task. They are no FID, and not comparable with one.

    Args:
      filters: a scale, >= 1.
      scales: >= 1; scales that a small image does not have are left out.

    Raises:
      ValueError: an argument is outside its range.
    """

    filters: int = 32
    scales: int = 3

    def __post_init__(self) -> None:
        validate.count("filters", self.filters, 1)
        validate.count("scales", self.scales, 1)

    @property
    def distance_name(self) -> str:
        return "Frechet distance, random-convolution features"

    def features(self, images: UInt8[np.ndarray, "n h w c"]) -> Float[np.ndarray, "n d"]:
        encoder.require_images(images)
        validate.count("sides of images", min(images.shape[1:3]), _SIDE)
        return encoder.in_chunks(functools.partial(_encode, self), images).astype(np.float64)

    def kernels(self, channels: int) -> Float[np.ndarray, "5 5 channels filters"]:
        """The filters: those of a scale are taken `filters` at a time."""
        # RandomState: its streams are frozen for good, which those of NumPy's Generator are not.
        draws = np.random.RandomState(_SEED).standard_normal(
            (self.scales * self.filters, channels, _SIDE, _SIDE)
        )
        draws -= draws.mean((2, 3), keepdims=True)
        draws /= np.sqrt(np.sum(draws**2, axis=(1, 2, 3), keepdims=True))
        return draws.transpose(2, 3, 1, 0).astype(np.float32)


@functools.partial(jax.jit, static_argnums=0)
def _encode(settings: RandomConvolution, images: UInt8[Array, "n h w c"]) -> Float[Array, "n d"]:
    x = images.astype(jnp.float32) / 127.5 - 1.0
    kernels = settings.kernels(images.shape[-1])
    found = [_cells(x, _COLOURS)]
    for scale in range(settings.scales):
        if min(x.shape[1:3]) < _SIDE:
            break
        kernel = kernels[..., scale * settings.filters : (scale + 1) * settings.filters]
        response = jax.lax.conv_general_dilated(
            x, jnp.asarray(kernel), (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        found.append(_cells(jnp.abs(response), _CELLS))
        height, width = x.shape[1] // 2, x.shape[2] // 2
        cut = x[:, : 2 * height, : 2 * width]
        x = jnp.mean(jnp.reshape(cut, (-1, height, 2, width, 2, x.shape[-1])), axis=(2, 4))
    return jnp.concatenate(found, axis=1)


def _cells(x: Float[Array, "n h w c"], count: int) -> Float[Array, "n d"]:
    """Averages over count x count cells, as even as the sides allow; fewer along a shorter side."""
    for axis in (1, 2):
        cells = min(count, x.shape[axis])
        ends = [round(k * x.shape[axis] / cells) for k in range(cells + 1)]
        parts = [
            jnp.mean(jax.lax.slice_in_dim(x, a, b, axis=axis), axis=axis)
            for a, b in zip(ends, ends[1:], strict=False)
        ]
        x = jnp.stack(parts, axis=axis)
    return jnp.reshape(x, (x.shape[0], -1))
