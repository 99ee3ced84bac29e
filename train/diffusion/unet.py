"""A small U-Net that treats every image alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, DTypeLike, Float, Int

from exactdp.accounting import validate
from exactdp.train.models.initialise import initialise as fill
from exactdp.train.models.vit import Attention

_LEAST_GROUP = 4  # channels a group of GroupNorm holds, at least
_MOST_GROUPS = 32
_ZERO = (("conv2", "kernel"), ("out", "kernel"), ("head", "kernel"))
# Frequencies of the noise level's waves: c_noise lies within about [-2, 2], so that the slowest wave makes
# less than one turn over it, and the fastest about thirty.
_SLOWEST, _FASTEST = 1.0, 50.0

Graph = nnx.GraphDef["UNet"]


def group_norm(channels: int, *, affine: bool = True, dtype: DTypeLike, rngs: nnx.Rngs) -> nnx.GroupNorm:
    """GroupNorm with as many groups as there can be, at most 32 and of at least four channels each."""
    fitting = (g for g in range(min(_MOST_GROUPS, channels // _LEAST_GROUP), 1, -1) if channels % g == 0)
    groups = next(fitting, 1)
    return nnx.GroupNorm(channels, groups, use_scale=affine, use_bias=affine, dtype=dtype, rngs=rngs)


def _conv(
    inputs: int, outputs: int, *, side: int = 3, bias: bool = True, dtype: DTypeLike, rngs: nnx.Rngs
) -> nnx.Conv:
    return nnx.Conv(inputs, outputs, (side, side), use_bias=bias, dtype=dtype, rngs=rngs)


class Block(nnx.Module):
    """A residual block: twice (GroupNorm, SiLU, 3x3 convolution), added to its input.

    Scale and shift of the second norm come from the embedding of noise level and class. The norm has none
    of its own beside them, nor have the convolution before it and the shortcut a bias: private noise falls on
    parameters that add nothing as it does on the others.

    Args:
      inputs: input channels.
      outputs: output channels.
      embedding: width of the embedding.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(
        self, inputs: int, outputs: int, *, embedding: int, dtype: DTypeLike, rngs: nnx.Rngs
    ) -> None:
        self.norm1 = group_norm(inputs, dtype=dtype, rngs=rngs)
        self.conv1 = _conv(inputs, outputs, bias=False, dtype=dtype, rngs=rngs)
        self.modulation = nnx.Linear(embedding, 2 * outputs, dtype=dtype, rngs=rngs)
        self.norm2 = group_norm(outputs, affine=False, dtype=dtype, rngs=rngs)
        self.conv2 = _conv(outputs, outputs, dtype=dtype, rngs=rngs)
        self.shortcut = (
            _conv(inputs, outputs, side=1, bias=False, dtype=dtype, rngs=rngs) if inputs != outputs else None
        )

    def __call__(
        self, x: Float[Array, "batch h w i"], embedding: Float[Array, "batch e"]
    ) -> Float[Array, "batch h w o"]:
        """The block's output for each image."""
        skipped = x if self.shortcut is None else self.shortcut(x)
        x = self.conv1(nnx.silu(self.norm1(x)))
        scale, shift = jnp.split(self.modulation(embedding)[:, None, None, :], 2, axis=-1)
        x = self.norm2(x) * (1.0 + scale) + shift
        return skipped + self.conv2(nnx.silu(x))


class SpatialAttention(nnx.Module):
    """Self-attention among the pixels of one image, after a GroupNorm, added to its input.

    Args:
      channels: of the input, a multiple of `heads`.
      heads: attention heads.
      dtype: of the computation.
      rngs: initialises the parameters.
    """

    def __init__(self, channels: int, *, heads: int, dtype: DTypeLike, rngs: nnx.Rngs) -> None:
        self.norm = group_norm(channels, dtype=dtype, rngs=rngs)
        self.attention = Attention(channels, heads=heads, dtype=dtype, rngs=rngs)

    def __call__(self, x: Float[Array, "batch h w c"]) -> Float[Array, "batch h w c"]:
        """The input with what each pixel takes from the others."""
        pixels = jnp.reshape(self.norm(x), (x.shape[0], -1, x.shape[-1]))
        return x + jnp.reshape(self.attention(pixels), x.shape)


class UNet(nnx.Module):
    """The raw network F(x, c_noise, class) of a diffusion model.

    Going down, each level has `blocks` residual blocks and halves the sides by averaging; at the lowest level
    stands self-attention between two blocks; going up, pixels are repeated and the level's output from the
    way down is put beside them. Images whose sides 2^(levels - 1) does not divide are padded with zeros, and
    the output is cut.

    *Records stay apart*: GroupNorm in place of BatchNorm, no dropout, no state. A class is a row of a
    matrix product with its indicator; label -1 is no class, whose indicator is zero.

    *Precision.* Parameters and output are float32; activations are of `dtype`.

    The last layers (of each block, of attention, of the network) start at zero, so that an untrained network
    is F = 0.

    Args:
      channels: of the images.
      num_classes: K >= 2, or None for a model without classes.
      width: channels at full resolution, a multiple of 4.
      multipliers: each level's channels over `width`.
      blocks: residual blocks a level and direction.
      heads: attention heads at the lowest level; 0 for none.
      dtype: of the computation.
      rngs: initialises the parameters.

    Source: arXiv 2006.11239 (network), arXiv 2206.00364, Table 1 (noise level).
    """

    def __init__(
        self,
        channels: int,
        *,
        num_classes: int | None,
        width: int = 16,
        multipliers: Sequence[int] = (1, 2),
        blocks: int = 1,
        heads: int = 2,
        dtype: DTypeLike = jnp.float32,
        rngs: nnx.Rngs,
    ) -> None:
        size = 4 * width
        levels = [width * m for m in multipliers]

        def block(inputs: int, outputs: int) -> Block:
            return Block(inputs, outputs, embedding=size, dtype=dtype, rngs=rngs)

        def row(inputs: int, outputs: int) -> nnx.List[Block]:
            return nnx.List([block(inputs if k == 0 else outputs, outputs) for k in range(blocks)])

        self.noise1 = nnx.Linear(size, size, dtype=dtype, rngs=rngs)
        self.noise2 = nnx.Linear(size, size, dtype=dtype, rngs=rngs)
        self.label = (
            None
            if num_classes is None
            else nnx.Linear(num_classes, size, use_bias=False, dtype=dtype, rngs=rngs)
        )
        self.stem = _conv(channels, width, dtype=dtype, rngs=rngs)
        self.down = nnx.List([row(a, b) for a, b in zip([width, *levels], levels, strict=False)])
        self.middle1 = block(levels[-1], levels[-1])
        self.attention = SpatialAttention(levels[-1], heads=heads, dtype=dtype, rngs=rngs) if heads else None
        self.middle2 = block(levels[-1], levels[-1])
        upward = levels[::-1]
        self.up = nnx.List([row(a + b, b) for a, b in zip(upward, upward[1:], strict=False)])
        self.norm = group_norm(levels[0], dtype=dtype, rngs=rngs)
        self.head = _conv(levels[0], channels, dtype=dtype, rngs=rngs)
        self.size = size
        self.num_classes = num_classes
        self.dtype = dtype

    def __call__(
        self, x: Float[Array, "batch h w c"], c_noise: Float[Array, " batch"], labels: Int[Array, " batch"]
    ) -> Float[Array, "batch h w c"]:
        """F for each image, float32.

        Args:
          x: noisy images, scaled to about unit variance.
          c_noise: noise level of each image, within about [-2, 2].
          labels: class of each image, -1 for none; not read by a model without classes.
        """
        height, width = x.shape[1:3]
        embedding = nnx.silu(self._embedding(c_noise, labels))
        x = self.stem(padded(x.astype(self.dtype), multiple=2 ** (len(self.down) - 1)))
        kept: list[Array] = []
        for level, row in enumerate(self.down):
            x = halved(x) if level else x
            for block in row:
                x = block(x, embedding)
            kept.append(x)
        x = self.middle1(x, embedding)
        if self.attention is not None:
            x = self.attention(x)
        x = self.middle2(x, embedding)
        for row, beside in zip(self.up, kept[-2::-1], strict=True):
            x = jnp.concatenate([doubled(x), beside], axis=-1)
            for block in row:
                x = block(x, embedding)
        x = self.head(nnx.silu(self.norm(x))).astype(jnp.float32)
        top, left = (x.shape[1] - height) // 2, (x.shape[2] - width) // 2
        return x[:, top : top + height, left : left + width]

    def _embedding(self, c_noise: Array, labels: Array) -> Array:
        embedding = self.noise2(nnx.silu(self.noise1(waves(c_noise, width=self.size))))
        if self.label is not None and self.num_classes is not None:
            indicator = jax.nn.one_hot(labels, self.num_classes, dtype=self.dtype)
            # sqrt(K) makes up for the kernel's variance 1 / K, so that a class weighs as much as a level.
            embedding = embedding + self.label(indicator * math.sqrt(self.num_classes))
        return embedding


def build(
    input_shape: tuple[int, ...],
    *,
    num_classes: int | None,
    key: jax.Array,
    width: int = 16,
    multipliers: tuple[int, ...] = (1, 2),
    blocks: int = 1,
    heads: int = 2,
    dtype: DTypeLike = jnp.float32,
) -> tuple[Graph, Any]:
    """A U-Net as (graphdef, params), freshly initialised; the same key gives the same parameters.

    Args:
      input_shape: (height, width, channels) of one image.
      num_classes: K >= 2, or None for a model without classes.
      key: a typed JAX key.
      width: channels at full resolution, a positive multiple of 4.
      multipliers: each level's channels over `width`, at least one; the sides are halved between levels.
      blocks: residual blocks a level and direction, >= 1.
      heads: attention heads at the lowest level, which divide its channels; 0 for none.
      dtype: of the computation, float32 or bfloat16.

    Raises:
      ValueError: an argument outside of what is said above, or an image smaller than 2^(levels - 1) pixels.
    """
    if len(input_shape) != 3:
        raise ValueError(f"input_shape must be (height, width, channels), got {input_shape}")
    for side in input_shape:
        validate.count("input_shape", side, 1)
    if num_classes is not None:
        validate.count("num_classes", num_classes, 2)
    if validate.count("width", width, 1) % _LEAST_GROUP:
        raise ValueError(f"width must be a multiple of {_LEAST_GROUP}, got {width}")
    if not multipliers:
        raise ValueError("multipliers must name at least one level, got none")
    for multiplier in multipliers:
        validate.count("multipliers", multiplier, 1)
    if min(input_shape[:2]) < 2 ** (len(multipliers) - 1):
        raise ValueError(
            f"multipliers must be few enough that the sides {input_shape[:2]} can be halved between levels, "
            f"got {len(multipliers)} levels"
        )
    validate.count("blocks", blocks, 1)
    if validate.count("heads", heads) and (width * multipliers[-1]) % heads:
        raise ValueError(f"heads must divide the {width * multipliers[-1]} lowest channels, got {heads}")
    if jnp.dtype(dtype) not in (jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)):
        raise ValueError(f"dtype must be float32 or bfloat16, got {jnp.dtype(dtype)}")

    # Under eval_shape nothing is drawn: the streams only satisfy the layers' signatures.
    module = nnx.eval_shape(
        lambda: UNet(
            input_shape[2],
            num_classes=num_classes,
            width=width,
            multipliers=multipliers,
            blocks=blocks,
            heads=heads,
            dtype=dtype,
            rngs=nnx.Rngs(params=key),
        )
    )
    graphdef, shapes = nnx.split(module)

    def last_at_zero(path: tuple[Any, ...], leaf: Array) -> Array:
        names = tuple(str(entry.key) for entry in path if isinstance(entry, jax.tree_util.DictKey))
        return jnp.zeros_like(leaf) if names[-2:] in _ZERO else leaf

    filled = jax.jit(lambda k: jax.tree_util.tree_map_with_path(last_at_zero, fill(shapes, key=k)))
    return graphdef, filled(key)


def waves(c_noise: Float[Array, " batch"], *, width: int) -> Float[Array, "batch width"]:
    """Cosines and sines of the noise level at width / 2 fixed frequencies, each of mean square about 1.

    Args:
      c_noise: one a row.
      width: an even number.
    """
    frequencies = np.geomspace(_SLOWEST, _FASTEST, width // 2).astype(np.float32)
    angles = c_noise.astype(jnp.float32)[:, None] * frequencies
    return math.sqrt(2.0) * jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)


def padded(x: Float[Array, "batch h w c"], *, multiple: int) -> Float[Array, "batch h2 w2 c"]:
    """Images with zeros around them, as evenly as can be, until `multiple` divides both sides."""
    missing = [-side % multiple for side in x.shape[1:3]]
    return jnp.pad(x, [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)])


def halved(x: Float[Array, "batch h w c"]) -> Float[Array, "batch h2 w2 c"]:
    """Averages over squares of two by two pixels."""
    batch, height, width, channels = x.shape
    return jnp.mean(jnp.reshape(x, (batch, height // 2, 2, width // 2, 2, channels)), axis=(2, 4))


def doubled(x: Float[Array, "batch h w c"]) -> Float[Array, "batch h2 w2 c"]:
    """Each pixel as a square of two by two."""
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
