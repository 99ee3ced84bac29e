"""Matrix products with a parameter: Dense, Linear, LinearGeneral, Einsum and the inner layers of attention.

The record operand, brought to a[B, H, T, K], and the output gradient, brought to g[B, H, T, N], give
G_i[h] = sum_t a_i[h, t] g_i[h, t]^T: H are axes that both operands share, T those of the record alone, K the
contracted ones, N those of the parameter alone. At T = 1 the norm is a product, |a|^2 |g|^2; otherwise
|G_i|^2 = sum_{t,s} <a_t, a_s> <g_t, g_s> (Gram matrices; Li et al., arXiv 2110.05679, "ghost clipping").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from exactdp.mechanisms.clipping.program import Operation
from exactdp.mechanisms.clipping.rules import rule


@dataclasses.dataclass(frozen=True)
class Dense:
    """`dot_general` of a record operand and a parameter operand.

    Attributes:
      operation: the use.
      position: operand that is the parameter, 0 or 1.
      record_shape: shape of the record operand, one record.
      shape: shape of the parameter operand.
    """

    operation: Operation
    position: int
    record_shape: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return "dense"

    @property
    def positions(self) -> tuple[int, ...]:
        return (self.position,)

    def _dimensions(self, operand: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shared, contracted and free axes of an operand."""
        contracted, shared = self.operation.params["dimension_numbers"]
        rank = len(self.shape if operand == self.position else self.record_shape)
        free = tuple(k for k in range(rank) if k not in contracted[operand] and k not in shared[operand])
        return tuple(shared[operand]), tuple(contracted[operand]), free

    @property
    def axes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shared, contracted and free axes of the parameter."""
        return self._dimensions(self.position)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """H, T, K, N."""
        shared, contracted, free = self.axes
        positions = self._dimensions(1 - self.position)[2]
        return (
            rule.size([self.shape[k] for k in shared]),
            rule.size([self.record_shape[k] for k in positions]),
            rule.size([self.shape[k] for k in contracted]),
            rule.size([self.shape[k] for k in free]),
        )

    def forward(self, operands: Sequence[Array]) -> list[Array]:
        shared, contracted, _ = self.axes
        if shared or self.position == 0:
            return rule.batched(self.operation, operands, (1 - self.position,))
        # One matrix product for all positions of all records: a product with two leading axes is slower.
        record, parameter = operands
        _, summed, free = self._dimensions(0)
        rows = lax.transpose(record, (0, *[k + 1 for k in (*free, *summed)]))
        rows = rows.reshape(-1, *[self.shape[k] for k in contracted])
        numbers = ((tuple(range(1, rows.ndim)), contracted), ((), ()))
        settings = {k: self.operation.params[k] for k in ("precision", "preferred_element_type")}
        result = lax.dot_general(rows, parameter, numbers, **settings)
        return [result.reshape(record.shape[0], *[self.record_shape[k] for k in free], *result.shape[1:])]

    def outer(self, operands: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, Array]:
        """a[B, H, T, K] and g[B, H, T, N]."""
        heads, times, width, features = self.sizes
        shared, contracted, free = self._dimensions(1 - self.position)
        order = (0, *[k + 1 for k in (*shared, *free, *contracted)])
        left = lax.transpose(operands[1 - self.position], order)
        right = outputs[0]
        first, second = (features, times) if self.position == 0 else (times, features)
        right = right.reshape(right.shape[0], heads, first, second)
        if self.position == 0:
            right = jnp.swapaxes(right, 2, 3)
        return left.reshape(left.shape[0], heads, times, width), right

    def _restored(self, gradient: Array, leading: int) -> Array:
        """From [..., H, K, N] to [..., *shape]."""
        order = [k for axes in self.axes for k in axes]
        gradient = gradient.reshape(*gradient.shape[:leading], *[self.shape[k] for k in order])
        return lax.transpose(gradient, (*range(leading), *[leading + int(k) for k in np.argsort(order)]))

    def gradients(self, operands: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        left, right = self.outer(operands, outputs)
        # The first factor of the product is turned, which is cheaper for the narrower one.
        if self._features_first:
            return [rule.einsum("bhtn,bhtk->bhnk", right, left)]
        return [rule.einsum("bhtk,bhtn->bhkn", left, right)]

    @property
    def _features_first(self) -> bool:
        _, _, width, features = self.sizes
        return features < width

    def restored(self, gradients: Sequence[Array]) -> list[Array]:
        (gradient,) = gradients
        return [self._restored(jnp.swapaxes(gradient, 2, 3) if self._features_first else gradient, 1)]

    def squared_norms(self, operands: Sequence[Array], outputs: Sequence[Array]) -> Array:
        left, right = self.outer(operands, outputs)
        if self.sizes[1] == 1:
            # Two axes, so that a layout in which no square needs to be copied out is found.
            rows = [rule.squared(x.reshape(-1, x.shape[3])) for x in (left, right)]
            return jnp.sum((rows[0] * rows[1] + rule.TINY).reshape(left.shape[0], -1), 1)
        return rule.gram_norms(rule.gram(left), rule.gram(right))

    def weighted(self, operands: Sequence[Array], outputs: Sequence[Array], weights: Array) -> list[Array]:
        left, right = self.outer(operands, outputs)
        right = rule.scaled(right, weights)
        if self.sizes[0] == 1:
            left, right = (x.reshape(-1, x.shape[-1]) for x in (left, right))
            return [self._restored(rule.einsum("tk,tn->kn", left, right)[None], 0)]
        return [self._restored(rule.einsum("bhtk,bhtn->hkn", left, right), 0)]

    @property
    def gradient_flops(self) -> float:
        heads, times, width, features = self.sizes
        return 2.0 * heads * times * width * features

    @property
    def ghost_flops(self) -> float:
        heads, times, width, features = self.sizes
        return 2.0 * heads * (width + features) * (1 if times == 1 else times**2)

    @property
    def ghost_floats(self) -> float:
        heads, times, _, _ = self.sizes
        return 0.0 if times == 1 else 2.0 * heads * times**2


def recognised(
    operation: Operation, positions: tuple[int, ...], shapes: Sequence[tuple[int, ...]]
) -> Dense | None:
    """The rule where the operation is a matrix product with one parameter operand."""
    if operation.name != "dot_general" or len(positions) != 1 or any(rule.size(x) == 0 for x in shapes):
        return None
    (position,) = positions
    return Dense(operation, position, tuple(shapes[1 - position]), tuple(shapes[position]))
