"""Models of dense layers: softmax regression, and one hidden layer."""

from __future__ import annotations

import math

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from exactdp.train.models import base


class Linear(base.Model):
    """Softmax regression: logits = W x + b on the flattened record; its features are the record itself.

    d K + K parameters for d inputs and K classes.

    Args:
      input_shape: shape of one record.
      num_classes: K.
      rngs: initialises the parameters.
      dtype: of the computation.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        num_classes: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        self.head = nnx.Linear(math.prod(input_shape), num_classes, dtype=dtype, rngs=rngs)

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        return base.rows(x)


class MLP(base.Model):
    """One hidden layer of rectified units on the flattened record.

    d h + h + h K + K parameters for d inputs, h hidden units and K classes: 101 770 for 784-128-10.

    Args:
      input_shape: shape of one record.
      num_classes: K.
      rngs: initialises the parameters.
      dtype: of the computation.
      width: h.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        num_classes: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        width: int = 128,
    ) -> None:
        self.hidden = nnx.Linear(math.prod(input_shape), width, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(width, num_classes, dtype=dtype, rngs=rngs)

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        return nnx.relu(self.hidden(base.rows(x)))
