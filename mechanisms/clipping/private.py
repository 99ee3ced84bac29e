"""A private gradient for an optimiser of optax, to be taken alone by any loop.

gradient = private_gradient(loss, clip_norm=1.0, noise_multiplier=1.1, expected_batch_size=256.0)
private = gradient(params, batch, mask, key=key)
updates, state = optimiser.update(private.gradient, state, params)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
from jax import Array
from jaxtyping import Bool

from exactdp.accounting import validate
from exactdp.mechanisms import noise
from exactdp.mechanisms.clipping.clipped import Clipped, clipped_grad
from exactdp.mechanisms.clipping.loss import Loss, PyTree


class Private(NamedTuple):
    """A private gradient, and what it was made of.

    Attributes:
      gradient: (sum of clipped gradients + noise) / expected batch size, in the dtypes of params.
      clipped: the sum, losses and norms, which are *not* private.
    """

    gradient: PyTree
    clipped: Clipped


class PrivateGradient(Protocol):
    """(params, batch, mask, key) -> `Private`."""

    def __call__(
        self, params: PyTree, batch: PyTree, mask: Bool[Array, " records"], *, key: Array
    ) -> Private:
        """One release."""
        ...


def private_gradient(
    loss: Loss, *, clip_norm: float, noise_multiplier: float, expected_batch_size: float, **settings: Any
) -> PrivateGradient:
    """The gradient function of DP-SGD, to be jitted.

    Formula: (sum_i m_i c_i G_i + N(0, (noise_multiplier clip_norm)^2)) / expected_batch_size. The noise is
    for the sum; the divisor is public and does not depend on the batch drawn. An empty batch gives noise
    alone.

    Args:
      loss: (params, batch) -> one loss a record.
      clip_norm: > 0, the sensitivity of the sum.
      noise_multiplier: >= 0, noise standard deviation over clip norm.
      expected_batch_size: > 0, sampling probability times number of records.
      **settings: others of `clipped_grad`.

    Raises:
      ValueError: an argument is out of its range.
    """
    bound = validate.positive("clip_norm", clip_norm)
    std = validate.non_negative("noise_multiplier", noise_multiplier) * bound
    size = validate.positive("expected_batch_size", expected_batch_size)
    clipped = clipped_grad(loss, clip_norm=bound, **settings)

    def gradient(params: PyTree, batch: PyTree, mask: Bool[Array, " records"], *, key: Array) -> Private:
        result = clipped(params, batch, mask)
        noisy = noise.gaussian(key, result.sum, std=std)
        return Private(jax.tree.map(lambda x, p: (x / size).astype(p.dtype), noisy, params), result)

    return gradient
