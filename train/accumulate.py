"""Gradient accumulation: a batch in parts, one after the other, for a fraction of the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from exactdp.accounting import validate

Sums = TypeVar("Sums")


def accumulate(
    part: Callable[[Any, Bool[Array, " part"]], Sums],
    records: Any,
    mask: Bool[Array, " batch"],
    *,
    parts: int,
) -> Sums:
    """Sum of `part` over `parts` slices of a batch.

    The slices are taken with a stride, so that with rows spread over devices each slice is spread too.
    Each begins only after the one before, which is what saves the memory; they are unrolled, as a
    convolution inside a compiled loop is many times slower on a CPU.

    Args:
      part: sums over the records given, a pytree; rows masked out must add nothing.
      records: the batch, a pytree of arrays with a row a record.
      mask: which rows count.
      parts: how many slices, >= 1; rows are added, masked out, until it divides their number.

    Raises:
      ValueError: `parts` is no whole number >= 1.
    """
    count = int(validate.count("accumulation", parts, minimum=1))
    if count == 1:
        return part(records, mask)
    missing = -mask.shape[0] % count

    def padded(rows: Array) -> Array:
        return jnp.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1))

    rows = jax.tree.map(padded, (records, mask))
    total: Any = None
    for index in range(count):
        piece = jax.tree.map(lambda a, i=index: a[i::count], rows)
        if total is None:
            total = part(*piece)
        else:
            total, piece = jax.lax.optimization_barrier((total, piece))
            total = jax.tree.map(jnp.add, total, part(*piece))
    return total
