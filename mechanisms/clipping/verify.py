"""A check of the clipped sum against `vmap(grad)`, and of the loss against coupling records."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping.clipped import clipped_grad
from exactdp.mechanisms.clipping.loss import Loss, PyTree

_TOLERANCE = {jnp.dtype(jnp.float32): 1e-3, jnp.dtype(jnp.float64): 1e-3}
# Formats of fewer bits round activations differently when records are taken together.
_NARROW_TOLERANCE = 0.1
# Norms of zero gradients come out a little above zero (`rule.squared`).
_LEAST = 1e-9


def verify(loss: Loss, params: PyTree, batch: PyTree, *, records: int = 3) -> None:
    """Compares clipping with `vmap(grad)` on the first records, and refuses a loss that couples records.

    Coupling: the loss of each record in the batch of `records` is compared with its loss alone, and again
    with the batch in reverse order, so that a sort cannot pass by finding the records sorted. Statistics of
    the batch, a division by the batch size or randomness drawn for the whole batch all show there. (Most
    coupling is refused before, from the trace alone; see `coupling`.)

    Clipping: with half the median gradient norm as clip norm, every leaf of the sum is compared in the
    Euclidean norm relative to the whole; to 1e-3 (0.1 if a parameter has less than 32 bits).

    Args:
      loss: as for `clipped_grad`.
      params: concrete arrays.
      batch: concrete arrays with at least two records.
      records: how many to compare, >= 2.

    Raises:
      ValueError: fewer than two records, a loss that is not finite or couples records, or a sum or norm that
        does not match; the parameter is named.
    """
    count = losses.record_count(batch)
    if records < 2 or count < 2:
        raise ValueError(f"batch must have at least two records to compare, got {min(count, records)}")
    few = jax.tree.map(lambda x: x[: min(records, count)], batch)
    analysed = losses.analyse(loss, params, few)
    leaves, structure = jax.tree.flatten(params)
    floats = [k for k, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    tolerance = max(
        (_TOLERANCE.get(jnp.dtype(leaves[k].dtype), _NARROW_TOLERANCE) for k in floats), default=1e-3
    )

    def one(values: list[Any], record: PyTree) -> Array:
        arguments = list(leaves)
        for k, value in zip(floats, values, strict=True):
            arguments[k] = value
        return loss(jax.tree.unflatten(structure, arguments), jax.tree.map(lambda x: x[None], record))[0]

    values = [leaves[k] for k in floats]
    alone, gradients = jax.jit(jax.vmap(jax.value_and_grad(one), (None, 0)))(values, few)
    if not np.all(np.isfinite(alone)):
        raise ValueError(f"loss must be finite on the records compared, got {np.asarray(alone).tolist()}")
    together = jax.jit(loss)
    _refuse_coupling(together(params, few), alone, tolerance)
    _refuse_coupling(together(params, jax.tree.map(lambda x: x[::-1], few)), alone[::-1], tolerance)

    wide = [np.asarray(x, np.float64) for x in gradients]
    norms = np.sqrt(sum((x.reshape(x.shape[0], -1) ** 2).sum(1) for x in wide))
    clip_norm = float(np.median(norms)) / 2.0 or 1.0
    mask = jnp.ones(norms.shape, bool)
    clipped = jax.jit(clipped_grad(loss, clip_norm=clip_norm))(params, few, mask)
    _compare("gradient norms", np.asarray(clipped.norms, np.float64), norms, float(norms.max()), tolerance)
    weights = np.minimum(1.0, clip_norm / np.maximum(norms, 1e-300))
    found = jax.tree.leaves(clipped.sum)
    for k, gradient in zip(floats, wide, strict=True):
        expected = np.tensordot(weights, gradient, 1)
        size = clip_norm * len(norms)
        _compare(f"sum of {analysed.names[k]}", np.asarray(found[k], np.float64), expected, size, tolerance)


def _compare(name: str, found: np.ndarray, expected: np.ndarray, size: float, tolerance: float) -> None:
    error = float(np.linalg.norm(found - expected))
    if not error <= tolerance * max(size, _LEAST):
        raise ValueError(
            f"clipping must equal vmap(grad) to {tolerance:g}, got {name} off by {error:.3g} at size "
            f"{size:.3g}"
        )


def _refuse_coupling(together: Array, alone: Array, tolerance: float) -> None:
    if together.shape != alone.shape:
        raise ValueError(
            f"loss must return one loss a record, got {together.shape} for {alone.shape} records"
        )
    first, second = np.asarray(together, np.float64), np.asarray(alone, np.float64)
    difference = float(np.max(np.abs(first - second)))
    if not difference <= tolerance * max(float(np.max(np.abs(second))), 1e-3):
        raise ValueError(
            "loss must not couple records: a record's loss in the batch and alone must agree, got a "
            f"difference of {difference:.3g} (statistics or mean over the batch, or randomness of the batch)"
        )
