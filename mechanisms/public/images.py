"""What may be public of an image: a region, its blur, a coarser version."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms.public.columns import require_fill

KERNELS = ("gaussian", "box")
_LEAST, _LARGEST = 1e-3, 1e6  # below nothing is blurred, beyond it an image of any size is one grey
_REACH = 4.0  # standard deviations at which a Gaussian kernel is cut off


@dataclasses.dataclass(frozen=True)
class Region:
    """A box of an image is public; the rest is replaced by a constant.

    Attributes:
      top: first public row.
      bottom: the row after the last public one.
      left: first public column.
      right: the column after the last public one.
      fill: what stands for a private pixel, a public constant.

    Raises:
      ValueError: the box is empty, a bound is negative, or `fill` is not finite.
    """

    top: int
    bottom: int
    left: int
    right: int
    fill: float = 0.0

    def __post_init__(self) -> None:
        for name in ("top", "left"):
            object.__setattr__(self, name, validate.count(name, getattr(self, name)))
        for name, least in (("bottom", self.top + 1), ("right", self.left + 1)):
            object.__setattr__(self, name, validate.count(name, getattr(self, name), minimum=least))
        require_fill(self.fill)

    def view(self, x: Float[Array, "batch h w c"]) -> Float[Array, "batch h w c"]:
        """x with `fill` outside of the box."""
        kept = np.zeros(x.shape[1:3], bool)
        kept[self.top : self.bottom, self.left : self.right] = True
        return jnp.where(kept[:, :, None], x, jnp.asarray(self.fill, x.dtype))

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes images that the box fits into.

        Raises:
          ValueError: records are no images, or the box reaches beyond them.
        """
        height, width = _sides("region", shape)
        for name, value, there in (("bottom", self.bottom, height), ("right", self.right, width)):
            if value > there:
                raise ValueError(f"region: {name} must be at most the image's {there}, got {value}")

    @property
    def text(self) -> str:
        """`region:` with its bounds."""
        fill = "" if self.fill == 0.0 else f",fill={self.fill:g}"
        return f"region:top={self.top},bottom={self.bottom},left={self.left},right={self.right}{fill}"


@dataclasses.dataclass(frozen=True)
class Blur:
    """An image's blur is public.

    Every row and every column is averaged with the weights of the kernel; beyond an edge the image is its
    mirror image, so that a constant image stays as it is.

    Attributes:
      sigma: standard deviation of the kernel in pixels, > 0.
      kernel: "gaussian", cut off at four standard deviations; or "box", equal weights over the odd number of
        pixels whose standard deviation is nearest, sqrt((width^2 - 1) / 12).

    Raises:
      ValueError: `sigma` is not positive and finite, or the kernel is unknown.
    """

    sigma: float
    kernel: str = "gaussian"

    def __post_init__(self) -> None:
        if not _LEAST <= validate.positive("sigma", self.sigma) <= _LARGEST:
            raise ValueError(f"sigma must be in [{_LEAST:g}, {_LARGEST:g}] pixels, got {self.sigma}")
        validate.one_of("kernel", self.kernel, KERNELS)

    def view(self, x: Float[Array, "batch h w c"]) -> Float[Array, "batch h w c"]:
        """The blurred images."""
        rows = _blur(x.shape[1], float(self.sigma), self.kernel)
        columns = _blur(x.shape[2], float(self.sigma), self.kernel)
        return jnp.einsum("hi,wj,bijc->bhwc", rows, columns, x, precision="highest").astype(x.dtype)

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes images.

        Raises:
          ValueError: records are no images.
        """
        _sides("blur", shape)

    @property
    def text(self) -> str:
        """`blur:` with its sigma."""
        return f"blur:sigma={self.sigma:g}" + ("" if self.kernel == "gaussian" else f",kernel={self.kernel}")


@dataclasses.dataclass(frozen=True)
class Downsample:
    """A coarser version of an image is public: the means of its squares, each repeated over its square.

    Attributes:
      factor: side of a square in pixels, >= 2; the last ones of a row or column may be smaller.

    Raises:
      ValueError: `factor` is no whole number >= 2.
    """

    factor: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", validate.count("factor", self.factor, minimum=2))
        if self.factor > _LARGEST:
            raise ValueError(f"factor must be at most {_LARGEST:g} pixels, got {float(self.factor):g}")

    def view(self, x: Float[Array, "batch h w c"]) -> Float[Array, "batch h w c"]:
        """The coarse images at the size of x."""
        rows, columns = _means(x.shape[1], self.factor), _means(x.shape[2], self.factor)
        return jnp.einsum("hi,wj,bijc->bhwc", rows, columns, x, precision="highest").astype(x.dtype)

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes images.

        Raises:
          ValueError: records are no images.
        """
        _sides("downsample", shape)

    @property
    def text(self) -> str:
        """`downsample:` with its factor."""
        return f"downsample:factor={self.factor}"


def _sides(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 3:
        raise ValueError(f"{name} must be of images [h, w, channels], got records of shape {shape}")
    return shape[0], shape[1]


@functools.lru_cache(maxsize=32)
def _blur(side: int, sigma: float, kernel: str) -> Float[np.ndarray, "side side"]:
    """The matrix that blurs a row of that many pixels; its rows add up to 1."""
    if kernel == "gaussian":
        reach = max(1, math.ceil(_REACH * sigma))
        # Beyond a few images' lengths everything is even: more terms would only cost time.
        reach = min(reach, 16 * side)
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    else:
        reach = min(max(1, round((math.sqrt(12.0 * sigma**2 + 1.0) - 1.0) / 2.0)), 16 * side)
        weights = np.ones(2 * reach + 1)
    weights /= weights.sum()
    places = np.arange(side)[:, None] + np.arange(-reach, reach + 1)
    # The mirror image of a row, edge pixels twice: d c b a | a b c d | d c b a
    folded = places % (2 * side)
    folded = np.where(folded >= side, 2 * side - 1 - folded, folded)
    matrix = np.zeros((side, side))
    np.add.at(matrix, (np.broadcast_to(np.arange(side)[:, None], folded.shape), folded), weights)
    return matrix.astype(np.float32)


@functools.lru_cache(maxsize=32)
def _means(side: int, factor: int) -> Float[np.ndarray, "side side"]:
    square = np.arange(side) // factor
    same = square[:, None] == square
    return (same / same.sum(1, keepdims=True)).astype(np.float32)
