"""Gradient accumulation: a batch in parts, one after the other, for a fraction of the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.extend
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Bool

from exactdp.accounting import validate
from exactdp.train.parallel import AXIS

Sums = TypeVar("Sums")
_CONVOLUTION = "conv_general_dilated"


def accumulate(
    part: Callable[[Any, Bool[Array, " part"]], Sums],
    records: Any,
    mask: Bool[Array, " batch"],
    *,
    parts: int,
) -> Sums:
    """Sum of `part` over slices of a batch: of J of them, J at most `parts`.

        sum over j < J of part(rows j k to (j + 1) k - 1),   J = ceil((1 + last row that counts) / k)

    with k = ceil(rows / parts) rows a slice. One slice is compiled, as the body of a loop: the memory is that
    of one slice, and more of them take no longer to compile. Samplers put the records drawn at the front, so
    that the room kept for large batches is not computed. A mask with gaps is summed all the same and saves
    less. An empty batch computes no slice and gives zeros.

    Where `Layout.spread` has put the rows of `mask` on several devices, rows are dealt to them like cards and
    a slice is as many rows of each, so that every device has its share of the records drawn.

    A convolution in a compiled loop is several times slower on XLA's CPU backend: there, a `part` with one is
    written out `parts` times, on slices taken with a stride, and all of them are computed.

    How long a step takes tells about how many records were drawn. Run times are no part of what is released
    under any `ThreatModel` here: whoever has to count with someone who measures them takes one part.

    Args:
      part: sums over the records given, a pytree; rows masked out must add nothing. It is traced once.
      records: the batch, a pytree of arrays with a row a record.
      mask: which rows count.
      parts: how many slices, >= 1; rows are added, masked out, until it and the devices divide their number.
        With 1, `part` is called on the whole batch.

    Raises:
      ValueError: `parts` is no whole number >= 1.
    """
    count = int(validate.count("accumulation", parts, minimum=1))
    if count == 1:
        return part(records, mask)
    rows: Rows = records, mask
    devices = _devices(mask)
    missing = -mask.shape[0] % (count * devices)
    rows = jax.tree.map(lambda a: jnp.pad(a, [(0, missing)] + [(0, 0)] * (a.ndim - 1)), rows)
    one = _traced(part, rows, count)
    if not _convolves(one.jaxpr.jaxpr):
        return _looped(one, rows, count=count, devices=devices)
    return lax.platform_dependent(
        cpu=lambda: _written_out(one, rows, count=count),
        default=lambda: _looped(one, rows, count=count, devices=devices),
    )


Rows = tuple[Any, Bool[Array, " rows"]]


class _Traced(NamedTuple):
    """`part` for a slice: its program, and the pytree of shapes that it gives."""

    jaxpr: jax.extend.core.ClosedJaxpr
    shapes: Any

    def __call__(self, rows: Rows) -> Any:
        leaves = jax.extend.core.jaxpr_as_fun(self.jaxpr)(*jax.tree.leaves(rows))
        return jax.tree.unflatten(jax.tree.structure(self.shapes), leaves)


def _traced(part: Callable[..., Any], rows: Rows, count: int) -> _Traced:
    slices = jax.tree.map(lambda a: jax.ShapeDtypeStruct((a.shape[0] // count, *a.shape[1:]), a.dtype), rows)
    return _Traced(*jax.make_jaxpr(part, return_shape=True)(*slices))


def _looped(one: _Traced, rows: Rows, *, count: int, devices: int) -> Any:
    size = rows[1].shape[0]
    dealt = jax.tree.map(lambda a: _dealt(a, devices, rows[1]), rows)
    each = size // (count * devices)

    def add(index: Array, total: Any) -> Any:
        def taken(a: Array) -> Array:
            return jnp.reshape(lax.dynamic_slice_in_dim(a, index * each, each, axis=1), (-1, *a.shape[2:]))

        return jax.tree.map(jnp.add, total, one(jax.tree.map(taken, dealt)))

    # Of the mask and not of the batch's size: no row that counts can be left out, wherever it stands.
    last = jnp.max(jnp.where(rows[1], jnp.arange(1, size + 1, dtype=jnp.int32), 0))
    slices = (last + (each * devices - 1)) // (each * devices)
    return lax.fori_loop(0, slices, add, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), one.shapes))


def _dealt(rows: Array, devices: int, mask: Array) -> Array:
    """[devices, rows of each, ...]: row s of the batch is row s // devices of device s % devices."""
    if devices == 1:
        return rows[None]
    cards = jnp.swapaxes(jnp.reshape(rows, (-1, devices, *rows.shape[1:])), 0, 1)
    mesh = jax.typeof(mask).sharding.mesh
    return lax.with_sharding_constraint(cards, NamedSharding(mesh, PartitionSpec(AXIS)))


def _devices(mask: Array) -> int:
    """How many devices the rows are spread over: the constraint that did it left its mesh in the type."""
    return dict(jax.typeof(mask).sharding.mesh.shape).get(AXIS, 1)


def _written_out(one: _Traced, rows: Rows, *, count: int) -> Any:
    total: Any = None
    for index in range(count):
        # With a stride: every slice of rows that are spread over devices is spread too.
        piece = jax.tree.map(lambda a, i=index: a[i::count], rows)
        if total is None:
            total = one(piece)
        else:
            # Each begins after the one before.
            total, piece = lax.optimization_barrier((total, piece))
            total = jax.tree.map(jnp.add, total, one(piece))
    return total


def _convolves(jaxpr: Any) -> bool:
    """Whether a convolution is in it, at any depth."""

    def within(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(within(each) for each in value)
        inner = getattr(value, "jaxpr", value)
        return hasattr(inner, "eqns") and _convolves(inner)

    return any(
        equation.primitive.name == _CONVOLUTION or any(within(value) for value in equation.params.values())
        for equation in jaxpr.eqns
    )
