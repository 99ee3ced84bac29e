"""What a rule answers about one use of parameters.

For record i and a use with output gradient g_i, G_i is the gradient of the record's loss with respect to the
parameter operand, and c_i the weight that clipping gives to the record. B records lie along the first axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from exactdp.mechanisms.clipping.program import Operation

# Rounding of a Gram norm: its error is a small multiple of eps (sum_t |a_t| |g_t|)^2, which may exceed
# eps |G|^2 where the terms of G cancel. Adding the bound keeps a norm from coming out too small.
_SLACK = 4.0 * float(jnp.finfo(jnp.float32).eps)
GUARD = math.sqrt(_SLACK)
"""What that is of a norm whose terms cancel altogether, as a share of sum_t |a_t| |g_t|."""
# The square of a number below 1e-19 underflows, to zero on most devices. A record with tiny output gradients
# and huge activations would then have a norm of zero and escape clipping, so that every square counts as at
# least the smallest normal number, and every entry of a Gram matrix as what 2^20 such squares add up to,
# over `_SLACK`, by which `gram_norms` multiplies it. Ordinary norms do not change.
TINY = float(jnp.finfo(jnp.float32).tiny)
_UNSEEN = 2.0**20 * TINY / _SLACK


# Most squares that are added in one go.
_BLOCK = 1024


class Rule(Protocol):
    """How one use of parameters turns activations and output gradients into norms and weighted sums."""

    @property
    def name(self) -> str:
        """Shown by `explain`."""
        ...

    @property
    def positions(self) -> tuple[int, ...]:
        """The operands that are parameters."""
        ...

    def forward(self, operands: Sequence[Array]) -> list[Array]:
        """The operation on B records: record operands have a leading axis B, parameter operands have none."""
        ...

    def gradients(self, operands: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        """G_i for each position in the layout in which it is cheapest to form, float32[B, ...]."""
        ...

    def restored(self, gradients: Sequence[Array]) -> list[Array]:
        """Those, as float32[B, *shape of the operand]."""
        ...

    @property
    def gradient_flops(self) -> float:
        """Floating-point operations of `gradients`, a record."""
        ...


class Contraction(Rule, Protocol):
    """A rule whose norms and weighted sums need no gradient of a record."""

    def squared_norms(self, operands: Sequence[Array], outputs: Sequence[Array]) -> Array:
        """|G_i|^2 without G_i, float32[B]."""
        ...

    def weighted(self, operands: Sequence[Array], outputs: Sequence[Array], weights: Array) -> list[Array]:
        """Sum_i c_i G_i for each position, float32[*shape of the operand]."""
        ...

    @property
    def ghost_flops(self) -> float:
        """Floating-point operations of `squared_norms`, a record."""
        ...

    @property
    def ghost_floats(self) -> float:
        """Numbers that `squared_norms` holds at a time, a record."""
        ...


def einsum(equation: str, left: Array, right: Array) -> Array:
    """`jnp.einsum` accumulated in float32, with no reduced-precision passes for float32 operands."""
    narrow = left.dtype == right.dtype and left.dtype in (jnp.bfloat16, jnp.float16)
    if not narrow:
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.einsum(
        equation, left, right, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32
    )


def inner(left: Array, right: Array) -> Array:
    """Sum over all axes but the first of left * right, in float32; shape [B]."""
    product = left.astype(jnp.float32) * right.astype(jnp.float32)
    return product.reshape(product.shape[0], -1).sum(1)


def blocks(count: int) -> list[int]:
    """Factors of `count` whose product it is, none above `_BLOCK` but primes; [] for 0 and 1."""
    found: list[int] = []
    while count > 1:
        factor = next((k for k in range(min(_BLOCK, count), 1, -1) if count % k == 0), count)
        found.append(factor)
        count //= factor
    return found


def roundings(count: int) -> int:
    """How often a term of `squared` over `count` numbers is rounded at most, whatever the order in a block.

    A block of m squares is added by m - 1 additions, so that each of its terms passes at most m - 1; one more
    rounds the square, one the bound on what underflows.
    """
    return sum(m - 1 for m in blocks(count)) + 2


def squared(value: Array) -> Array:
    """Sum of squares over all axes but the first in float32, plus the bound on what underflows; [B].

    In blocks, of each of which only the sum goes on, so that no term is rounded more than `roundings` times.
    """
    count = size(value.shape[1:])
    rows = jnp.square(value.astype(jnp.float32)).reshape(value.shape[0], -1)
    for block in blocks(count):
        # Changes no sum of squares, and keeps the compiler from joining the sums of two rounds to one.
        parts = rows if block == rows.shape[1] else rows.reshape(value.shape[0], -1, block)
        rows = jnp.maximum(parts.sum(-1).reshape(value.shape[0], -1), 0.0)
    return rows.sum(1) + count * TINY


def gram(value: Array) -> Array:
    """The inner products of the T rows [B, H, T, K] of each record, float32[B, H, T, T]."""
    if value.shape[2] != 2:
        return einsum("bhtk,bhsk->bhts", value, value)
    # Two rows are a record beside its public view. On a CPU three sums of products take half the time of many
    # small matrix products one after the other.
    rows = value.astype(jnp.float32)
    first, second = rows[:, :, 0], rows[:, :, 1]
    mixed = jnp.sum(first * second, -1)
    squares = [jnp.sum(jnp.square(x), -1) for x in (first, second)]
    return jnp.stack([jnp.stack([squares[0], mixed], -1), jnp.stack([mixed, squares[1]], -1)], -2)


def gram_norms(left: Array, right: Array) -> Array:
    """Sum_{t,s} L_ts R_ts of two Gram matrices [B, ..., T, T], plus the bound on its rounding error; [B]."""
    roots = [jnp.sqrt(jnp.maximum(jnp.diagonal(x, axis1=-2, axis2=-1), 0.0) + _UNSEEN) for x in (left, right)]
    sizes = jnp.square((roots[0] * roots[1]).sum(-1))
    slack = _SLACK * sizes.reshape(sizes.shape[0], -1).sum(1) + size(left.shape[1:]) * TINY
    return jnp.maximum(inner(left, right), 0.0) + slack


def scaled(value: Array, weights: Array) -> Array:
    """c_i value_i in float32."""
    return value.astype(jnp.float32) * weights.reshape(-1, *[1] * (value.ndim - 1))


def after(value: Array, earlier: Array) -> Array:
    """`value`, not to be computed before `earlier`; both have the first axis B.

    Compilers order operations after they have dropped all barriers, and like to copy activations in the
    forward pass for use in the backward pass. A zero that is computed from `earlier` cannot be dropped, as
    it may be
    NaN: then that of the same record, which is not finite anyway.
    """
    zero = 0.0 * earlier.reshape(earlier.shape[0], -1)[:, 0].astype(jnp.float32)
    return value + zero.reshape(-1, *[1] * (value.ndim - 1)).astype(value.dtype)


def batched(operation: Operation, operands: Sequence[Array], records: Sequence[int]) -> list[Array]:
    """The operation on B records by its own batching rule; only operands at `records` have a record axis."""
    axes = [0 if k in records else None for k in range(len(operands))]

    def one(*values: Array) -> list[Array]:
        return bind(operation, values)

    return jax.vmap(one, in_axes=axes)(*operands)


def bind(operation: Operation, operands: Sequence[Any]) -> list[Array]:
    """The operation as traced, on one record or on parameters."""
    bound = operation.primitive.get_bind_params(operation.params)
    # Older versions of JAX return the functions of custom derivatives apart.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    results = operation.primitive.bind(*functions, *operands, **params)
    return list(results) if operation.primitive.multiple_results else [results]


def size(shape: Sequence[int]) -> int:
    """Number of elements."""
    return math.prod(shape)
