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
from exactdp.mechanisms.clipping.rules import rule

_TOLERANCE = {jnp.dtype(jnp.float32): 1e-3, jnp.dtype(jnp.float64): 1e-3}
# Formats of fewer bits round activations differently when records are taken together.
_NARROW_TOLERANCE = 0.1
# Norms of zero gradients come out a little above zero (`rule.squared`).
_LEAST = 1e-9
# Of what cancels in a record's gradient: what rounding may leave, in 32 bits and in fewer, and what a norm
# may be too large by. `rule.GUARD` goes with single positions, whose gradients may cancel within a part too.
_ROUNDING, _NARROW_ROUNDING = 2.0**-20, 2.0**-6
_GUARD = 4.0 * rule.GUARD


def verify(loss: Loss, params: PyTree, batch: PyTree, *, records: int = 3, scale: Loss | None = None) -> None:
    """Compares clipping with `vmap(grad)` on the first records, and refuses a loss that couples records.

    Coupling: the loss of each record in the batch of `records` is compared with its loss alone, and again
    with the batch in reverse order, so that a sort cannot pass by finding the records sorted. Statistics of
    the batch, a division by the batch size or randomness drawn for the whole batch all show there. (Most
    coupling is refused before, from the trace alone; see `coupling`.)

    Clipping: with half the median gradient norm as clip norm, every leaf of the sum is compared in the
    Euclidean norm relative to the whole; to 1e-3 (0.1 if a parameter has less than 32 bits). Where the
    gradients of a record's parts cancel, rounding is as large as the parts make it, and norms are kept from
    coming out too small by as much (see `rounding`): `scale` says how large they are.

    Args:
      loss: as for `clipped_grad`.
      params: concrete arrays.
      batch: concrete arrays with at least two records.
      records: how many to compare, >= 2.
      scale: a loss of the same records with gradients as large as those that may cancel in `loss`: where that
        is a difference of two, their sum. None where nothing cancels.

    Raises:
      ValueError: fewer than two records, a loss that is not finite or couples records, or a sum or norm that
        does not match; the parameter is named.
    """
    count = losses.record_count(batch)
    if records < 2 or count < 2:
        raise ValueError(f"batch must have at least two records to compare, got {min(count, records)}")
    few = jax.tree.map(lambda x: x[: min(records, count)], batch)
    analysed = losses.analyse(loss, params, few)
    leaves = jax.tree.leaves(params)
    floats = [k for k, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating)]
    tolerance = max(
        (_TOLERANCE.get(jnp.dtype(leaves[k].dtype), _NARROW_TOLERANCE) for k in floats), default=1e-3
    )

    alone, wide = _one_by_one(loss, params, few, floats)
    if not np.all(np.isfinite(alone)):
        raise ValueError(f"loss must be finite on the records compared, got {alone.tolist()}")
    parts, part_losses = np.zeros(alone.shape), 0.0
    if scale is not None:
        values, gradients = _one_by_one(scale, params, few, floats)
        parts, part_losses = _norms(gradients), float(np.max(np.abs(values)))
    rounding = _ROUNDING if tolerance < _NARROW_TOLERANCE else _NARROW_ROUNDING
    together, reverse = jax.jit(loss), jax.tree.map(lambda x: x[::-1], few)
    for found, expected in ((together(params, few), alone), (together(params, reverse), alone[::-1])):
        _refuse_coupling(found, expected, tolerance, rounding * part_losses)

    norms = _norms(wide)
    clip_norm = float(np.median(norms)) / 2.0 or 1.0
    mask = jnp.ones(norms.shape, bool)
    clipped = jax.jit(clipped_grad(loss, clip_norm=clip_norm))(params, few, mask)
    own = np.asarray(clipped.norms, np.float64)
    largest, room = float(norms.max()), float(parts.max())
    _compare("gradient norms", own, norms, largest, tolerance, max(rounding, _GUARD) * room)
    # Norms may come out too large, not too small.
    _compare("too small gradient norms", np.minimum(own, norms), norms, largest, tolerance, rounding * room)
    # By the norms that were found: those above are none the less of records whose gradients nearly vanish.
    weights = np.minimum(1.0, clip_norm / np.maximum(own, 1e-300))
    sums = jax.tree.leaves(clipped.sum)
    for k, gradient in zip(floats, wide, strict=True):
        expected = np.tensordot(weights, gradient, 1)
        found = np.asarray(sums[k], np.float64)
        size, left = clip_norm * len(norms), rounding * float(weights @ parts)
        _compare(f"sum of {analysed.names[k]}", found, expected, size, tolerance, left)


def _one_by_one(
    loss: Loss, params: PyTree, batch: PyTree, floats: list[int]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Losses and gradients of each record by itself, by `vmap(grad)`; gradients of the leaves in `floats`."""
    leaves, structure = jax.tree.flatten(params)

    def one(values: list[Any], record: PyTree) -> Array:
        arguments = list(leaves)
        for k, value in zip(floats, values, strict=True):
            arguments[k] = value
        return loss(jax.tree.unflatten(structure, arguments), jax.tree.map(lambda x: x[None], record))[0]

    values = [leaves[k] for k in floats]
    losses_found, gradients = jax.jit(jax.vmap(jax.value_and_grad(one), (None, 0)))(values, batch)
    return np.asarray(losses_found, np.float64), [np.asarray(x, np.float64) for x in gradients]


def _norms(gradients: list[np.ndarray]) -> np.ndarray:
    squares = [(x.reshape(x.shape[0], -1) ** 2).sum(1) for x in gradients]
    return np.sqrt(np.sum(squares, axis=0))


def _compare(
    name: str, found: np.ndarray, expected: np.ndarray, size: float, tolerance: float, room: float
) -> None:
    """Refuses a difference above tolerance * size + room."""
    error = float(np.linalg.norm(found - expected))
    if not error <= tolerance * max(size, _LEAST) + room:
        beside = f" and {room:.3g} for rounding" if room else ""
        raise ValueError(
            f"clipping must equal vmap(grad) to {tolerance:g}{beside}, got {name} off by {error:.3g} at size "
            f"{size:.3g}"
        )


def _refuse_coupling(together: Array, alone: np.ndarray, tolerance: float, room: float) -> None:
    if together.shape != alone.shape:
        raise ValueError(
            f"loss must return one loss a record, got {together.shape} for {alone.shape} records"
        )
    difference = float(np.max(np.abs(np.asarray(together, np.float64) - alone)))
    if not difference <= tolerance * max(float(np.max(np.abs(alone))), 1e-3) + room:
        raise ValueError(
            "loss must not couple records: a record's loss in the batch and alone must agree, got a "
            f"difference of {difference:.3g} (statistics or mean over the batch, or randomness of the batch)"
        )
