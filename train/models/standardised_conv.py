"""Convolution with a standardised kernel."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

_EPSILON = 1e-4


def standardise(kernel: Float[Array, "h w i o"]) -> Float[Array, "h w i o"]:
    """The kernel shifted and scaled, filter by filter, to mean 0 and variance 1 / fan_in.

        (w - mean(w)) / sqrt(max(fan_in var(w), 1e-4)),   fan_in = h w i,

    with mean and variance over the fan_in weights of each output channel. It is a function of the parameters
    alone, so that it couples no records.

    Source: arXiv 1903.10520 (weight standardisation), arXiv 2101.08692 (the scale by fan_in).
    """
    fan_in = math.prod(kernel.shape[:-1])
    mean = jnp.mean(kernel, axis=(0, 1, 2), keepdims=True)
    variance = jnp.var(kernel, axis=(0, 1, 2), keepdims=True)
    return (kernel - mean) * jax.lax.rsqrt(jnp.maximum(fan_in * variance, _EPSILON))


class StandardisedConv(nnx.Module):
    """A square convolution, padded, without bias, whose kernel is standardised before it is used.

    It is no subclass of `flax.nnx.Conv`: the gradient with respect to its parameter is not a convolution's,
    and a rule for convolutions must not be applied to it.

    Args:
      in_features: input channels.
      out_features: output channels.
      side: side of the kernel.
      stride: in both directions.
      dtype: of the computation; the kernel is standardised in float32.
      rngs: initialises the kernel.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        side: int,
        stride: int,
        dtype: DTypeLike,
        rngs: nnx.Rngs,
    ) -> None:
        init = nnx.initializers.lecun_normal()
        self.kernel = nnx.Param(init(rngs.params(), (side, side, in_features, out_features), jnp.float32))
        self.stride = stride
        self.dtype = dtype

    def __call__(self, x: Float[Array, "batch h w i"]) -> Float[Array, "batch h2 w2 o"]:
        """The convolution of each image with the standardised kernel."""
        kernel = standardise(self.kernel[...])
        return jax.lax.conv_general_dilated(
            x.astype(self.dtype),
            kernel.astype(self.dtype),
            window_strides=(self.stride, self.stride),
            padding="SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
