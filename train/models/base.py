"""What a model of this package offers: penultimate features and logits."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class Model(nnx.Module):
    """A classifier: an affine `head` on the features of each record.

    *Records stay apart.* Row i of what a model returns depends on row i of its input alone, as clipping each
    record's gradient needs. So no BatchNorm, no statistic over the batch, no random state.

    *Precision.* Parameters are float32. Features are computed in the model's `dtype`; the logits are float32.
    """

    head: nnx.Linear

    def features(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        """The activations that `head` reads, one row a record."""
        raise NotImplementedError

    def __call__(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch classes"]:
        """Logits in float32, one row a record."""
        return self.head(self.features(x)).astype(jnp.float32)


def rows(x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
    """Each record of `x` as one flat row."""
    return jnp.reshape(x, (x.shape[0], -1))
