"""Several uses of one parameter: norms with the cross terms.

Where every use is an outer product in the parameter's own axes (a table looked up in one place and multiplied
by in another), G = sum over all positions of all uses, and
|G|^2 = sum over pairs of positions of <left, left> <right, right>, pairs from different uses included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from exactdp.mechanisms.clipping.rules import rule
from exactdp.mechanisms.clipping.rules.dense import Dense
from exactdp.mechanisms.clipping.rules.embed import Embed

if TYPE_CHECKING:
    from exactdp.mechanisms.clipping.groups import Group
    from exactdp.mechanisms.clipping.program import Operation


@dataclasses.dataclass(frozen=True)
class _Factor:
    """One side of an outer product: vectors [B, T, width], or numbers of unit vectors [B, T]."""

    value: Array

    def gram(self, other: _Factor) -> Array:
        """Inner products [B, T, S]."""
        unit, other_unit = self.value.ndim == 2, other.value.ndim == 2
        if unit and other_unit:
            return (self.value[:, :, None] == other.value[:, None, :]).astype(jnp.float32)
        if unit:
            return jnp.swapaxes(other.gram(self), 1, 2)
        if other_unit:
            return jnp.take_along_axis(self.value, other.value[:, None, :], 2).astype(jnp.float32)
        return rule.einsum("btk,bsk->bts", self.value, other.value)


def _first_axes(chosen: rule.Rule, chain: Sequence[Operation], rank: int) -> tuple[int, ...] | None:
    """Axes of the parameter along which the left factor lies; None where the use has no such form."""
    order = tuple(range(rank))
    for operation in chain:
        if operation.name == "transpose":
            order = tuple(order[k] for k in operation.params["permutation"])
        elif operation.name != "convert_element_type":
            return None
    if isinstance(chosen, Dense):
        shared, contracted, free = chosen.axes
        # The factors are flattened in this order, so that both must be ascending in the parameter.
        left, right = [order[k] for k in contracted], [order[k] for k in free]
        ascending = left == sorted(left) and right == sorted(right)
        return tuple(left) if ascending and not shared else None
    return (order[0],) if isinstance(chosen, Embed) and order == tuple(range(rank)) else None


def _orientations(rules: Sequence[rule.Rule], group: Group) -> list[bool] | None:
    """For each use whether its factors are swapped against the first one's; None where they do not match."""
    if group.computed:
        return None
    rank = len(group.root_shapes[0])
    sides = [_first_axes(r, m.chain, rank) for r, m in zip(rules, group.members, strict=True)]
    if any(side is None for side in sides):
        return None
    first = sides[0] or ()
    second = tuple(k for k in range(rank) if k not in first)
    if any(side not in (first, second) for side in sides):
        return None
    return [side != first for side in sides]


def ghost_cost(rules: Sequence[rule.Rule], group: Group) -> tuple[float, float] | None:
    """Floating-point operations and numbers held, a record; None where there is no such form."""
    if _orientations(rules, group) is None:
        return None
    times = 0
    for chosen in rules:
        if isinstance(chosen, Dense):
            times += chosen.sizes[1]
        elif isinstance(chosen, Embed):
            times += rule.size(chosen.indices_shape)
    shape = group.root_shapes[0]
    return 2.0 * times**2 * sum(shape), 3.0 * times**2


def squared_norms(
    rules: Sequence[rule.Rule],
    group: Group,
    kept: Sequence[tuple[Sequence[Array], Sequence[Array]]],
) -> Array:
    """|G_i|^2 from (operands, output gradients) of every use, with the bound on rounding; float32[B]."""
    swaps = _orientations(rules, group) or []
    factors: list[tuple[_Factor, _Factor]] = []
    for chosen, (operands, outputs), swap in zip(rules, kept, swaps, strict=True):
        if not isinstance(chosen, (Dense, Embed)):
            raise TypeError(f"rule must be dense or embed, got {chosen.name}")
        left, right = chosen.outer(operands, outputs)
        sides = [x if x.ndim == 2 else x.reshape(x.shape[0], -1, x.shape[-1]) for x in (left, right)]
        pair = (_Factor(sides[0]), _Factor(sides[1]))
        factors.append((pair[1], pair[0]) if swap else pair)
    rows = [
        [jnp.concatenate([f[side].gram(g[side]) for g in factors], 2) for f in factors] for side in (0, 1)
    ]
    lefts, rights = (jnp.concatenate(row, 1) for row in rows)
    return rule.gram_norms(lefts, rights)
