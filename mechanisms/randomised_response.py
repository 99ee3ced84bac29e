"""Randomised response for labels, with or without a public guess of them.

With a public prior p over K labels, Y the k labels of largest p, and epsilon > 0: a label y in Y is kept with
probability e^epsilon / (e^epsilon + k - 1) and becomes one of the other labels in Y otherwise, all alike; a
label outside Y becomes one of Y, all alike. Of all k the one is taken that keeps the label most often if the
prior is right, argmax_k e^epsilon / (e^epsilon + k - 1) sum of p over Y. For the uniform prior that is k = K,
randomised response.

Source: Ghazi, Golowich, Kumar, Manurangsi and Zhang 2021 (arXiv 2102.06062), RRTop-k and RRWithPrior.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from exactdp.accounting import validate
from exactdp.accounting.pairs.pure import PureDP
from exactdp.mechanisms import keys

_LARGEST_CLASSES = 1000
# Words have 32 bits: choosing among K labels is even to K / 2^32, and this much less epsilon pays for it.
_ROUNDING = 1e-6


def respond(
    key: jax.Array, labels: Int[Array, " records"], *, prior: Float[Array, "records classes"], epsilon: float
) -> Int[Array, " records"]:
    """The labels by randomised response with a prior.

    Guarantee: for each record, the answer's law changes by a factor e^epsilon at most when the label changes
    (`pair`); the prior, being used in the clear, must not depend on the labels given here.

    Args:
      key: a typed key; it is used up.
      labels: in 0 ... K - 1.
      prior: a public guess of each label's distribution, >= 0; only its order and sums matter.
      epsilon: >= 1e-5, nats.

    Raises:
      ValueError: `epsilon` is too small, there are not 2 to 1000 classes, or labels or prior are none.
    """
    keys.require_key(key)
    labels, prior = jnp.asarray(labels), jnp.asarray(prior)
    if prior.ndim != 2 or not jnp.issubdtype(labels.dtype, jnp.integer):
        raise ValueError(
            f"prior must be [records, classes] and labels whole numbers, got {prior.dtype}"
            f"{list(prior.shape)} and {labels.dtype}"
        )
    classes = prior.shape[-1]
    if not 2 <= classes <= _LARGEST_CLASSES:
        raise ValueError(f"prior must be over 2 to {_LARGEST_CLASSES} classes, got {classes}")
    if validate.positive("epsilon", epsilon) < 10.0 * _ROUNDING:
        raise ValueError(f"epsilon must be at least {10.0 * _ROUNDING:g}, got {epsilon}")
    if labels.shape != prior.shape[:1]:
        raise ValueError(f"labels must be one for each row of prior, got {labels.shape} and {prior.shape}")
    _require_values(labels, prior)
    kept = 1.0 / (1.0 + np.arange(classes) * math.exp(-(epsilon - _ROUNDING)))  # for k = 1 ... K
    thresholds = jnp.asarray(np.minimum(np.floor(kept * 2.0**32), 2.0**32 - 1).astype(np.uint32))
    order = jnp.argsort(-prior, axis=-1, stable=True)
    sums = jnp.cumsum(jnp.take_along_axis(prior, order, -1), axis=-1)
    k = jnp.argmax(sums * jnp.asarray(kept, jnp.float32), axis=-1) + 1
    rank = jnp.argmax(order == labels[:, None], axis=-1)
    coin, choice = keys.words(key, labels.shape)
    inside = rank < k
    # With one label left there is nothing to choose: it is the answer whatever the coin says.
    stays = inside & ((coin < thresholds[k - 1]) | (k == 1))
    # One of the k - 1 other labels of Y, or one of all k.
    other = _below(choice, jnp.where(inside, k - 1, k))
    other = other + (inside & (other >= rank))
    place = jnp.where(stays, rank, other)
    return jnp.take_along_axis(order, place[:, None], -1)[:, 0].astype(labels.dtype)


def _require_values(labels: Array, prior: Array) -> None:
    """Refuses values that say nothing; traced ones are not looked at.

    A label out of range would go as the likeliest one, and a prior that is none keeps one label alone.
    """
    if not isinstance(labels, Tracer) and labels.size:
        if int(labels.min()) < 0 or int(labels.max()) >= prior.shape[-1]:
            raise ValueError(
                f"labels must be in 0 ... {prior.shape[-1] - 1}, got {int(labels.min())} to "
                f"{int(labels.max())}"
            )
    if not isinstance(prior, Tracer):
        sums = jnp.sum(prior, axis=-1)
        if not bool(jnp.all(prior >= 0.0) & jnp.all(sums > 0.0) & jnp.all(jnp.isfinite(sums))):
            raise ValueError("prior must be finite and >= 0, with a positive entry in each row, got another")


def pair(epsilon: float) -> PureDP:
    """What accounts for one response to one record's label, under replacement of that label."""
    return PureDP(epsilon)


def _below(words: Array, count: Array) -> Array:
    """floor(words count / 2^32) for counts below 2^16, in 32 bits; 0 for a count of 0."""
    count = count.astype(jnp.uint32)
    low = ((words & np.uint32(0xFFFF)) * count) >> 16
    return (((words >> 16) * count + low) >> 16).astype(jnp.int32)
