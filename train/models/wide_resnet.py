"""Wide residual networks with group normalisation and weight standardisation."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from exactdp.train.models import base
from exactdp.train.models.standardised_conv import StandardisedConv

_GROUPS = 16


class Block(nnx.Module):
    """A pre-activation residual block: twice (GroupNorm, ReLU, 3x3 convolution), added to its input.

    Where the number of channels or the stride changes, the input passes through a 1x1 convolution of its own.

    Args:
      in_features: input channels, a multiple of 16.
      out_features: output channels, a multiple of 16.
      stride: of the first convolution.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, *, stride: int, dtype: DTypeLike, rngs: nnx.Rngs
    ) -> None:
        self.norm1 = nnx.GroupNorm(in_features, _GROUPS, dtype=dtype, rngs=rngs)
        self.conv1 = StandardisedConv(
            in_features, out_features, side=3, stride=stride, dtype=dtype, rngs=rngs
        )
        self.norm2 = nnx.GroupNorm(out_features, _GROUPS, dtype=dtype, rngs=rngs)
        self.conv2 = StandardisedConv(out_features, out_features, side=3, stride=1, dtype=dtype, rngs=rngs)
        self.shortcut = (
            StandardisedConv(in_features, out_features, side=1, stride=stride, dtype=dtype, rngs=rngs)
            if stride != 1 or in_features != out_features
            else None
        )

    def __call__(self, x: Float[Array, "batch h w i"]) -> Float[Array, "batch h2 w2 o"]:
        """The block's output for each image."""
        activated = nnx.relu(self.norm1(x))
        skipped = x if self.shortcut is None else self.shortcut(activated)
        return skipped + self.conv2(nnx.relu(self.norm2(self.conv1(activated))))


class WideResNet(base.Model):
    """WRN-depth-width: a 3x3 convolution, three stages of residual blocks, average pooling and the head.

    The stages have 16 k, 32 k and 64 k channels for width k, and (depth - 4) / 6 blocks each; the second and
    third halve the sides. GroupNorm with 16 groups stands in for BatchNorm, which couples records. Kernels
    are standardised without a gain of their own, as a GroupNorm with a scale follows or precedes each.

    Args:
      input_shape: (height, width, channels).
      num_classes: classes.
      rngs: initialises the parameters.
      dtype: of the computation.
      depth: 6 n + 4 for a whole n >= 1.
      width: k >= 1.

    Source: arXiv 1605.07146 (network), arXiv 2204.13650 (normalisation under DP-SGD).
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        num_classes: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        depth: int = 16,
        width: int = 4,
    ) -> None:
        if depth < 10 or (depth - 4) % 6 != 0:
            raise ValueError(f"depth must be 6 n + 4 for a whole n >= 1, got {depth}")
        self.stem = StandardisedConv(input_shape[-1], 16, side=3, stride=1, dtype=dtype, rngs=rngs)
        blocks: list[Block] = []
        channels = 16
        for stage in range(3):
            out = 16 * width * 2**stage
            for index in range((depth - 4) // 6):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(Block(channels, out, stride=stride, dtype=dtype, rngs=rngs))
                channels = out
        self.blocks = nnx.List(blocks)
        self.norm = nnx.GroupNorm(channels, _GROUPS, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(channels, num_classes, dtype=dtype, rngs=rngs)

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return jnp.mean(nnx.relu(self.norm(x)), axis=(1, 2))
