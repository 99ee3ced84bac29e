"""Accuracy on the test set."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.train.state import Parameters

_ROWS = 512

Accuracy = Callable[[Parameters, np.ndarray, np.ndarray], float]


@functools.lru_cache(maxsize=8)
def accuracy(
    logits: Callable[[Parameters, Float[Array, "batch ..."]], Float[Array, "batch classes"]],
) -> Accuracy:
    """A function of (params, x, y) that gives the share of records whose largest logit is their label's.

    Computed without noise, in chunks of 512 records of one shape, so that it is compiled once.

    Args:
      logits: (params, x) -> logits.
    """

    @jax.jit
    def correct(params: Parameters, x: Array, y: Array) -> Array:
        return jnp.sum((jnp.argmax(logits(params, x), axis=-1) == y).astype(jnp.int32))

    def measure(params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        hits = 0
        for start in range(0, len(x), _ROWS):
            rows, labels = x[start : start + _ROWS], y[start : start + _ROWS]
            missing = min(_ROWS, len(x)) - len(rows)  # padded with a label that nothing predicts
            rows = np.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1))
            hits += int(
                correct(
                    params, jnp.asarray(rows), jnp.asarray(np.pad(labels, (0, missing), constant_values=-1))
                )
            )
        return hits / len(x)

    return measure
