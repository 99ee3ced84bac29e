"""The records that a map is audited on, and what it makes of them."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms.public import Public
from exactdp.train.data import Dataset

_LARGEST_INPUT = 4096
# What float32 leaves uncertain of a view, with pixels of size 1.
_MOST_LEVELS = 2**24
_FLOAT_PRECISION = 1e-6


@dataclasses.dataclass(frozen=True)
class Sample:
    """Records of a data set, training and test set together, in random order.

    Attributes:
      x: [n, *input_shape].
      y: labels, [n].
    """

    x: Float[np.ndarray, "n ..."]
    y: Int[np.ndarray, " n"]

    @classmethod
    def of(cls, data: Dataset, *, key: jax.Array) -> Sample:
        """All records of a data set, shuffled."""
        x, y = np.concatenate([data.x, data.x_test]), np.concatenate([data.y, data.y_test])
        order = np.asarray(jax.random.permutation(key, len(y)))
        return cls(x[order], y[order])

    def first(self, count: int) -> Sample:
        """The first records, or all where there are fewer."""
        return Sample(self.x[:count], self.y[:count])

    @property
    def is_image(self) -> bool:
        """Whether records are [h, w, channels]."""
        return self.x.ndim == 4


@dataclasses.dataclass(frozen=True)
class View:
    """Psi as it is published.

    Attributes:
      public: the map.
      levels: how many levels a published feature is rounded to, evenly over [0, 1] for images of one channel
        and over [-1, 1] else; 0 where float32 is published, as the trainers use it.

    Raises:
      ValueError: `levels` is 1 or negative.
    """

    public: Public
    levels: int = 0

    def __post_init__(self) -> None:
        if validate.count("levels", self.levels) > _MOST_LEVELS:
            raise ValueError(f"levels must be at most {_MOST_LEVELS}, got {float(self.levels):g}")
        if self.levels == 1:
            raise ValueError("levels must be 0 (no rounding) or at least 2, got 1")

    def __call__(self, x: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
        """The published views of inputs."""
        seen = np.asarray(self.public.view(jnp.asarray(x, jnp.float32)))
        step = self._step(x.shape[1:])
        return np.round(seen / step) * step if self.levels else seen

    def precision(self, shape: tuple[int, ...]) -> float:
        """Standard deviation of the rounding of a published feature of records of a shape."""
        return self._step(shape) / math.sqrt(12.0) if self.levels else _FLOAT_PRECISION

    def _step(self, shape: tuple[int, ...]) -> float:
        one_channel = len(shape) == 3 and shape[-1] == 1
        return (1.0 if one_channel else 2.0) / max(self.levels - 1, 1)

    def affine(
        self, shape: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, " d"]] | None:
        """A and b of Psi(x) = A x + b; None where it is not affine or A is too large to write down."""
        size = math.prod(shape)
        if size > _LARGEST_INPUT:
            return None
        units = jnp.eye(size, dtype=jnp.float32).reshape(size, *shape)
        offset = np.asarray(self.public.view(jnp.zeros((1, *shape), jnp.float32)), np.float64).reshape(-1)
        images = np.asarray(self.public.view(units), np.float64).reshape(size, size)
        matrix = (images - offset).T
        tried = np.asarray(jax.random.normal(jax.random.key(0), (3, *shape)), np.float64)
        seen = np.asarray(self.public.view(jnp.asarray(tried, jnp.float32)), np.float64).reshape(3, -1)
        if not np.allclose(seen, tried.reshape(3, -1) @ matrix.T + offset, atol=1e-4):
            return None
        return matrix, offset
