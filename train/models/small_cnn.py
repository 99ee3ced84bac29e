"""The small convolutional network that DP-SGD papers train on MNIST."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from exactdp.train.models import base

# Below this side the strides of 2 would leave the second convolution nothing to stand on.
_SMALL_SIDE = 16


class SmallCNN(base.Model):
    """Two convolutions, each followed by tanh and 2x2 max-pooling of stride 1, then a hidden layer of 32.

    Convolutions: 16 filters 8x8, stride 2, padded; 32 filters 4x4, stride 2, not padded. On 28x28x1 with ten
    classes: 1 040 + 8 224 + 16 416 + 330 = 26 010 parameters. Images smaller than 16 on a side (the 8x8
    digits) get strides of 1, all else equal.

    Args:
      input_shape: (height, width, channels), each side >= 8.
      num_classes: classes.
      rngs: initialises the parameters.
      dtype: of the computation.

    Source: arXiv 2007.14191 (layers and tanh).
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        num_classes: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        height, width, channels = input_shape
        stride = 2 if min(height, width) >= _SMALL_SIDE else 1
        self.conv1 = nnx.Conv(channels, 16, (8, 8), stride, padding="SAME", dtype=dtype, rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (4, 4), stride, padding="VALID", dtype=dtype, rngs=rngs)
        # Padded convolution: ceil(side / stride); pooling: one less; unpadded 4x4: floor((side - 4) / s) + 1.
        sides = [(-(-side // stride) - 1 - 4) // stride for side in (height, width)]
        self.hidden = nnx.Linear(32 * sides[0] * sides[1], 32, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(32, num_classes, dtype=dtype, rngs=rngs)

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        x = max_pool(nnx.tanh(self.conv1(x)))
        x = max_pool(nnx.tanh(self.conv2(x)))
        return nnx.tanh(self.hidden(base.rows(x)))


def max_pool(x: Float[Array, "b h w c"]) -> Float[Array, "b h_1 w_1 c"]:
    """2x2 max-pooling of stride 1, by slices: XLA's windowed maximum is several times slower on a CPU."""
    x = jnp.maximum(x[:, :-1], x[:, 1:])
    return jnp.maximum(x[:, :, :-1], x[:, :, 1:])
