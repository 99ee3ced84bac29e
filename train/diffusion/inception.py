"""InceptionV3 as FID uses it, with weights from a local file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from exactdp.train.diffusion import encoder, weights

_SIDE = 299
_EPSILON = 1e-3  # of the batch normalisations
_NUM_CLASSES = 1008  # of the network of 2015; torchvision's own has 1000, and other weights

Kernels = Mapping[str, tuple[Array, Array]]


@dataclasses.dataclass(frozen=True)
class _Conv:
    """A convolution with normalisation and ReLU; padded to keep the sides where the stride is 1.

    Attributes:
      name: within its block.
      outputs: channels.
      kernel: (height, width).
      stride: of both sides.
      keeps: whether the sides are kept by zeros around.
    """

    name: str
    outputs: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    keeps: bool = True


@dataclasses.dataclass(frozen=True)
class _Branch:
    """Convolutions in a row, after a pooling ("", "average", "max" or "max_half") of the block's input.

    Those of `ends` all read what the row gives, and stand beside one another.
    """

    convs: tuple[_Conv, ...]
    pool: str = ""
    ends: tuple[_Conv, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Block:
    name: str
    branches: tuple[_Branch, ...]


def _half(name: str, outputs: int) -> _Conv:
    return _Conv(name, outputs, (3, 3), stride=2, keeps=False)


def _block_a(name: str, pooled: int) -> _Block:
    return _Block(
        name,
        (
            _Branch((_Conv("branch1x1", 64),)),
            _Branch((_Conv("branch5x5_1", 48), _Conv("branch5x5_2", 64, (5, 5)))),
            _Branch(
                (
                    _Conv("branch3x3dbl_1", 64),
                    _Conv("branch3x3dbl_2", 96, (3, 3)),
                    _Conv("branch3x3dbl_3", 96, (3, 3)),
                )
            ),
            _Branch((_Conv("branch_pool", pooled),), "average"),
        ),
    )


def _block_c(name: str, inner: int) -> _Block:
    wide, high = (1, 7), (7, 1)
    return _Block(
        name,
        (
            _Branch((_Conv("branch1x1", 192),)),
            _Branch(
                (
                    _Conv("branch7x7_1", inner),
                    _Conv("branch7x7_2", inner, wide),
                    _Conv("branch7x7_3", 192, high),
                )
            ),
            _Branch(
                (
                    _Conv("branch7x7dbl_1", inner),
                    _Conv("branch7x7dbl_2", inner, high),
                    _Conv("branch7x7dbl_3", inner, wide),
                    _Conv("branch7x7dbl_4", inner, high),
                    _Conv("branch7x7dbl_5", 192, wide),
                )
            ),
            _Branch((_Conv("branch_pool", 192),), "average"),
        ),
    )


def _block_e(name: str, pool: str) -> _Block:
    def split(stem: str) -> tuple[_Conv, ...]:
        return _Conv(f"{stem}a", 384, (1, 3)), _Conv(f"{stem}b", 384, (3, 1))

    return _Block(
        name,
        (
            _Branch((_Conv("branch1x1", 320),)),
            _Branch((_Conv("branch3x3_1", 384),), ends=split("branch3x3_2")),
            _Branch(
                (_Conv("branch3x3dbl_1", 448), _Conv("branch3x3dbl_2", 384, (3, 3))),
                ends=split("branch3x3dbl_3"),
            ),
            _Branch((_Conv("branch_pool", 192),), pool),
        ),
    )


def _stem(*convs: _Conv, pool: str = "") -> _Block:
    return _Block("", (_Branch(convs, pool),))


# The last block pools by maxima: so does the network whose weights define FID.
_BLOCKS = (
    _stem(
        _half("Conv2d_1a_3x3", 32),
        _Conv("Conv2d_2a_3x3", 32, (3, 3), keeps=False),
        _Conv("Conv2d_2b_3x3", 64, (3, 3)),
    ),
    _stem(_Conv("Conv2d_3b_1x1", 80), _Conv("Conv2d_4a_3x3", 192, (3, 3), keeps=False), pool="max_half"),
    _Block("", (_Branch((), "max_half"),)),
    _block_a("Mixed_5b", 32),
    _block_a("Mixed_5c", 64),
    _block_a("Mixed_5d", 64),
    _Block(
        "Mixed_6a",
        (
            _Branch((_half("branch3x3", 384),)),
            _Branch(
                (
                    _Conv("branch3x3dbl_1", 64),
                    _Conv("branch3x3dbl_2", 96, (3, 3)),
                    _half("branch3x3dbl_3", 96),
                )
            ),
            _Branch((), "max_half"),
        ),
    ),
    _block_c("Mixed_6b", 128),
    _block_c("Mixed_6c", 160),
    _block_c("Mixed_6d", 160),
    _block_c("Mixed_6e", 192),
    _Block(
        "Mixed_7a",
        (
            _Branch((_Conv("branch3x3_1", 192), _half("branch3x3_2", 320))),
            _Branch(
                (
                    _Conv("branch7x7x3_1", 192),
                    _Conv("branch7x7x3_2", 192, (1, 7)),
                    _Conv("branch7x7x3_3", 192, (7, 1)),
                    _half("branch7x7x3_4", 192),
                )
            ),
            _Branch((), "max_half"),
        ),
    ),
    _block_e("Mixed_7b", "average"),
    _block_e("Mixed_7c", "max"),
)


class Inception:
    """Features of the pool3 layer, 2048 an image: Fréchet distances on them are FID.

    Images are resized to 299 x 299 (bilinear, pixel centres aligned, no filter), pixels scaled to [-1, 1];
    one channel is taken three times.

    Args:
      path: a .safetensors or .npz file with the tensors of the PyTorch port of the network of 2015-12-05
        (`Mixed_5b.branch1x1.conv.weight`, `Mixed_5b.branch1x1.bn.running_mean` ...), by those names. It must
        hold fc.weight of 1008 classes, too, by which that network is told from ImageNet's of 1000 classes.
        Nothing is downloaded.

    Raises:
      ValueError: the file or a tensor is missing, damaged or of another shape, by its name.

    Source: arXiv 1512.00567 (network), arXiv 1706.08500 (FID).
    """

    def __init__(self, path: str | Path) -> None:
        self._kernels = jax.tree.map(jnp.asarray, _folded(weights.read(path, shapes=tensor_shapes())))

    @property
    def distance_name(self) -> str:
        return "FID"

    def features(self, images: UInt8[np.ndarray, "n h w c"]) -> Float[np.ndarray, "n 2048"]:
        encoder.require_images(images)
        return encoder.in_chunks(lambda part: _encode(self._kernels, part), images).astype(np.float64)


def tensor_shapes() -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that is read."""
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (_NUM_CLASSES, 2048)}
    for name, conv, inputs in _convolutions():
        shapes[f"{name}.conv.weight"] = (conv.outputs, inputs, *conv.kernel)
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.bn.{part}"] = (conv.outputs,)
    return shapes


def _convolutions() -> Iterator[tuple[str, _Conv, int]]:
    """Full name, settings and input channels of every convolution."""
    channels = 3
    for block in _BLOCKS:
        outputs = 0
        for branch in block.branches:
            inner = channels
            for conv in branch.convs:
                yield _full(block, conv), conv, inner
                inner = conv.outputs
            for conv in branch.ends:
                yield _full(block, conv), conv, inner
            outputs += sum(conv.outputs for conv in branch.ends) or inner
        channels = outputs


def _full(block: _Block, conv: _Conv) -> str:
    return f"{block.name}.{conv.name}" if block.name else conv.name


def _folded(tensors: Mapping[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Kernels [h, w, i, o] with the normalisation's scale, and biases."""
    folded: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, _, _ in _convolutions():
        normal = {part: tensors[f"{name}.bn.{part}"].astype(np.float64) for part in ("weight", "bias")}
        mean, variance = (tensors[f"{name}.bn.running_{part}"].astype(np.float64) for part in ("mean", "var"))
        if variance.min() < 0.0:
            raise ValueError(f"{name}.bn.running_var must be >= 0, got {variance.min():.3g}")
        scale = normal["weight"] / np.sqrt(variance + _EPSILON)
        kernel = tensors[f"{name}.conv.weight"].transpose(2, 3, 1, 0) * scale
        folded[name] = (kernel.astype(np.float32), (normal["bias"] - mean * scale).astype(np.float32))
    return folded


@jax.jit
def _encode(kernels: Kernels, images: UInt8[Array, "n h w c"]) -> Float[Array, "n 2048"]:
    x = jnp.broadcast_to(images, (*images.shape[:3], 3)).astype(jnp.float32) / 127.5 - 1.0
    x = jax.image.resize(x, (x.shape[0], _SIDE, _SIDE, 3), "bilinear", antialias=False)
    for block in _BLOCKS:
        parts: list[Array] = []
        for branch in block.branches:
            value = _pooled(x, branch.pool)
            for conv in branch.convs:
                value = _convolved(value, conv, kernels[_full(block, conv)])
            ends = [_convolved(value, conv, kernels[_full(block, conv)]) for conv in branch.ends]
            parts.extend(ends or [value])
        x = jnp.concatenate(parts, axis=-1)
    return jnp.mean(x, axis=(1, 2))


def _convolved(x: Array, conv: _Conv, kernel: tuple[Array, Array]) -> Array:
    padding = [(k // 2, k // 2) if conv.keeps else (0, 0) for k in conv.kernel]
    strides = (conv.stride, conv.stride)
    numbers = ("NHWC", "HWIO", "NHWC")
    found = jax.lax.conv_general_dilated(x, kernel[0], strides, padding, dimension_numbers=numbers)
    return jax.nn.relu(found + kernel[1])


def _pooled(x: Array, pool: str) -> Array:
    """The input pooled over squares of 3 x 3 pixels; zeros around it do not count towards an average."""
    if not pool:
        return x
    window, ones = (1, 3, 3, 1), (1, 1, 1, 1)
    if pool == "max_half":
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, (1, 2, 2, 1), "VALID")
    if pool == "max":
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, ones, "SAME")

    def total(value: Array) -> Any:
        return jax.lax.reduce_window(value, 0.0, jax.lax.add, window, ones, "SAME")

    return total(x) / total(jnp.ones_like(x[:1, :, :, :1]))
