"""Rows looked up in a table of parameters: Embed, position tables and `jnp.take` along the first axis.

With the rows k_t that record i reads and the output gradients g_t, G_i adds g_t to row k_t, so that
|G_i|^2 = sum_{t,s} [k_t = k_s] <g_t, g_s>. The gradient of the whole table is never formed for one record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from exactdp.mechanisms.clipping.program import Operation
from exactdp.mechanisms.clipping.rules import rule


@dataclasses.dataclass(frozen=True)
class Embed:
    """`gather` of whole rows of a parameter.

    Attributes:
      operation: the use.
      indices_shape: shape of the indices, one record.
      shape: shape of the table; rows first.
    """

    operation: Operation
    indices_shape: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return "embed"

    @property
    def positions(self) -> tuple[int, ...]:
        return (0,)

    def forward(self, operands: Sequence[Array]) -> list[Array]:
        return rule.batched(self.operation, operands, (1,))

    def outer(self, operands: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, Array]:
        """Rows k[B, T] read and g[B, T, width]; g is zero where a row out of range gave a constant."""
        rows = operands[1].reshape(operands[1].shape[0], -1).astype(jnp.int32)
        gradient = outputs[0].reshape(*rows.shape, -1)
        last = self.shape[0] - 1
        if self.operation.params["mode"] == lax.GatherScatterMode.FILL_OR_DROP:
            inside = (rows >= 0) & (rows <= last)
            gradient = jnp.where(inside[..., None], gradient, 0)
        return jnp.clip(rows, 0, last), gradient

    def gradients(self, operands: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        rows, gradient = self.outer(operands, outputs)

        def one(index: Array, value: Array) -> Array:
            return jnp.zeros((self.shape[0], value.shape[-1]), jnp.float32).at[index].add(value)

        added = jax.vmap(one)(rows, gradient.astype(jnp.float32))
        return [added.reshape(-1, *self.shape)]

    def restored(self, gradients: Sequence[Array]) -> list[Array]:
        return list(gradients)

    def squared_norms(self, operands: Sequence[Array], outputs: Sequence[Array]) -> Array:
        rows, gradient = self.outer(operands, outputs)
        same = (rows[:, :, None] == rows[:, None, :]).astype(jnp.float32)
        return rule.gram_norms(same, rule.einsum("btn,bsn->bts", gradient, gradient))

    def weighted(self, operands: Sequence[Array], outputs: Sequence[Array], weights: Array) -> list[Array]:
        rows, gradient = self.outer(operands, outputs)
        gradient = rule.scaled(gradient, weights)
        table = jnp.zeros((self.shape[0], gradient.shape[-1]), jnp.float32)
        table = table.at[rows.reshape(-1)].add(gradient.reshape(-1, gradient.shape[-1]))
        return [table.reshape(self.shape)]

    @property
    def _times(self) -> int:
        return rule.size(self.indices_shape)

    @property
    def gradient_flops(self) -> float:
        return float(rule.size(self.shape))

    @property
    def ghost_flops(self) -> float:
        return 2.0 * self._times**2 * rule.size(self.shape[1:])

    @property
    def ghost_floats(self) -> float:
        return 2.0 * self._times**2


def recognised(
    operation: Operation, positions: tuple[int, ...], shapes: Sequence[tuple[int, ...]]
) -> Embed | None:
    """The rule where the operation gathers whole rows of one parameter."""
    if operation.name != "gather" or positions != (0,):
        return None
    table, indices = tuple(shapes[0]), tuple(shapes[1])
    numbers = operation.params["dimension_numbers"]
    rank, leading = len(table), len(indices) - 1
    whole = (
        tuple(numbers.collapsed_slice_dims) == (0,)
        and tuple(numbers.start_index_map) == (0,)
        and not numbers.operand_batching_dims
        and tuple(numbers.offset_dims) == tuple(range(leading, leading + rank - 1))
        and tuple(operation.params["slice_sizes"]) == (1, *table[1:])
        and indices[-1:] == (1,)
    )
    return Embed(operation, indices, table) if whole else None
