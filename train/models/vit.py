"""A small vision transformer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from exactdp.train.models import base

_MIN_PATCHES = 7


class Attention(nnx.Module):
    """Self-attention over the patches of one image, softmax in float32.

    Args:
      width: features a token, a multiple of `heads`.
      heads: attention heads.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(self, width: int, *, heads: int, dtype: DTypeLike, rngs: nnx.Rngs) -> None:
        self.qkv = nnx.Linear(width, 3 * width, dtype=dtype, rngs=rngs)
        self.out = nnx.Linear(width, width, dtype=dtype, rngs=rngs)
        self.heads = heads

    def __call__(self, x: Float[Array, "batch tokens width"]) -> Float[Array, "batch tokens width"]:
        """Each token's mixture of the values of its image's tokens."""
        batch, tokens, width = x.shape
        qkv = jnp.reshape(self.qkv(x), (batch, tokens, 3, self.heads, width // self.heads))
        query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scale = (width // self.heads) ** -0.5
        scores = jnp.einsum("bqhd,bkhd->bhqk", query * scale, key, preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return self.out(jnp.reshape(mixed, (batch, tokens, width)))


class Layer(nnx.Module):
    """A pre-norm transformer layer: attention, then two dense layers with GELU, each added to its input.

    Args:
      width: features a token.
      heads: attention heads.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(self, width: int, *, heads: int, dtype: DTypeLike, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.attention = Attention(width, heads=heads, dtype=dtype, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)

    def __call__(self, x: Float[Array, "batch tokens width"]) -> Float[Array, "batch tokens width"]:
        """The layer's output for the tokens of each image."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x)), approximate=False))


class ViT(base.Model):
    """ViT-tiny: twelve layers of width 192 with three heads, fixed positions, average pooling.

    The patch side is the largest of 16, 8, 4, 2 and 1 that divides both sides and leaves at least seven
    patches along each: 4 for 28x28 and 32x32, 16 for 224x224, 1 for 8x8. Positions are sine waves, so that
    they cost no parameter and no noise.

    Args:
      input_shape: (height, width, channels).
      num_classes: classes.
      rngs: initialises the parameters.
      dtype: of the computation.
      depth: layers.
      width: features a token, a multiple of 4 and of `heads`.
      heads: attention heads.

    Source: arXiv 2010.11929 (ViT), arXiv 2012.12877 (the tiny size), arXiv 2205.01580 (sine waves, pooling).
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        num_classes: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        depth: int = 12,
        width: int = 192,
        heads: int = 3,
    ) -> None:
        if width % 4 or width % heads:
            raise ValueError(f"width must be a multiple of 4 and of heads = {heads}, got {width}")
        rows, columns, channels = input_shape
        self.patch = patch_side(rows, columns)
        self.embed = nnx.Linear(self.patch**2 * channels, width, dtype=dtype, rngs=rngs)
        self.layers = nnx.List([Layer(width, heads=heads, dtype=dtype, rngs=rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(width, num_classes, dtype=dtype, rngs=rngs)
        self.width = width

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        rows, columns = x.shape[1] // self.patch, x.shape[2] // self.patch
        x = self.embed(patches(x, side=self.patch))
        x = x + jnp.asarray(positions(rows, columns=columns, width=self.width), x.dtype)
        for layer in self.layers:
            x = layer(x)
        return jnp.mean(self.norm(x), axis=1)


def patch_side(rows: int, columns: int) -> int:
    """The side of a patch for images of `rows` times `columns` pixels; see `ViT`."""
    fitting = (
        s for s in (16, 8, 4, 2) if not (rows % s or columns % s) and min(rows, columns) >= s * _MIN_PATCHES
    )
    return next(fitting, 1)


def patches(x: Float[Array, "batch h w c"], *, side: int) -> Float[Array, "batch tokens pixels"]:
    """The images cut into squares of `side`, row by row, each square one flat row of pixels."""
    batch, height, width, channels = x.shape
    cut = jnp.reshape(x, (batch, height // side, side, width // side, side, channels))
    return jnp.reshape(jnp.swapaxes(cut, 2, 3), (batch, -1, side**2 * channels))


def positions(rows: int, *, columns: int, width: int) -> Float[np.ndarray, "tokens width"]:
    """Sines and cosines of each patch's row and column at width / 4 frequencies from 1 down to 1e-4."""
    frequencies = 1e-4 ** (np.arange(width // 4) / max(width // 4 - 1, 1))
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    angles = [np.ravel(place)[:, None] * frequencies for place in (row, column)]
    waves = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    return np.concatenate(waves, axis=1).astype(np.float32)
