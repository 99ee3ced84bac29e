"""The loss of DP-2Stage as released: class means over the batch, which couple its rows. Not private.

With n_ic tokens of class c in row i, B rows in a (physical) batch and N_c = sum over them of n_ic, the
batch's loss is sum_c w_c (sum of its tokens' cross-entropies of class c) / N_c. A row's gradient, times B as
Opacus has it for a loss that is a mean, is

    g_i = sum_c w_c (n_ic / M_c) (mean gradient of the row's tokens of class c),    M_c = N_c / B

so that it depends on the other rows by M_c. Clipping g_i then does not bound what one row changes: let m rows
of n tokens of a class have gradients of norm a <= C along one direction, from that class alone. A row with
L n such tokens raises M_c from n to n (m + L) / (m + 1), and all m gradients shrink together: their clipped
sum moves by

    a m (L - 1) / (m + L)

beside the long row's own part of at most C: a m in the limit of L, where C is taken to be the sensitivity.
(The released code counts padding as tokens too, so that a long row changes its neighbours by this way as
well; that is left out here.)

Source: arXiv 2412.02467v2, released code, for the loss; derived here for the move.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.mechanisms.clipping import Clipped, clipped_grad
from exactdp.train.state import Parameters
from exactdp.train.tables.tokens import KEY, OTHER, VALUE
from exactdp.train.two_stage.objective import RowObjective

_CLASSES = (KEY, OTHER, VALUE)

Rows = tuple[Int[Array, "batch length"], Float[Array, "batch classes"]]
"""Tokens, and beside each row the batch's `mean_sizes`."""

ClippedSum = Callable[[Parameters, Int[Array, "batch length"], Bool[Array, " batch"]], Clipped]


def mean_sizes(
    objective: RowObjective, tokens: Int[Array, "batch length"], mask: Bool[Array, " batch"]
) -> Float[Array, "batch classes"]:
    """M_c: the mean number of tokens of each class (key, other, value) in the rows that the mask keeps.

    The same in each row. Where the loss is the mean over all tokens, their mean number in each class's place.
    """
    kinds = objective.classes(tokens)[:, 1:]
    counted = jnp.stack([kinds == kind for kind in _CLASSES], axis=-1) & mask[:, None, None]
    sizes = jnp.sum(counted, axis=(0, 1)) / jnp.maximum(jnp.sum(mask), 1)
    if objective.value_weight is None:
        sizes = jnp.full_like(sizes, jnp.sum(sizes))
    return jnp.broadcast_to(sizes, (len(tokens), len(_CLASSES)))


def losses(objective: RowObjective) -> Callable[[Parameters, Rows], Float[Array, " batch"]]:
    """The function (params, rows) -> each row's part of the batch's loss, times the number of rows.

    Its gradient for one row is g_i above; a class without tokens counts nothing.
    """
    weight = objective.value_weight
    weights = (1.0, 1.0, 1.0) if weight is None else (1.0 - weight, 1.0 - weight, weight)

    def of_rows(params: Parameters, rows: Rows) -> Float[Array, " batch"]:
        tokens, sizes = rows
        each, kinds = objective.token_losses(params, tokens)
        total = jnp.zeros(len(tokens), each.dtype)
        for place, (kind, share) in enumerate(zip(_CLASSES, weights, strict=True)):
            size = jnp.where(sizes[:, place] > 0.0, sizes[:, place], 1.0)
            total += share * jnp.sum(jnp.where(kinds == kind, each, 0.0), 1) / size
        return total

    return of_rows


def clipped_sum(objective: RowObjective, *, clip_norm: float) -> ClippedSum:
    """The function (params, tokens, mask) -> sum of the clipped g_i of the rows that the mask keeps.

    Each g_i is clipped as `exactdp.mechanisms.clipping.clipped_grad` clips. To be jitted.

    Args:
      objective: whose classes, weights and model are used; not its normalisation.
      clip_norm: C > 0.

    Raises:
      ValueError: `clip_norm` is out of range.
    """
    gradient = clipped_grad(losses(objective), clip_norm=validate.positive("clip_norm", clip_norm))

    def of_batch(
        params: Parameters, tokens: Int[Array, "batch length"], mask: Bool[Array, " batch"]
    ) -> Clipped:
        return gradient(params, (tokens, mean_sizes(objective, tokens, mask)), mask)

    return of_batch


def move(num_rows: int, *, ratio: float, norm: float = 1.0) -> float:
    """How far a long row moves what m short ones add to the clipped sum: a m (L - 1) / (m + L).

    Args:
      num_rows: m >= 0.
      ratio: L >= 1, of the long row's tokens of the class to a short row's.
      norm: a >= 0, of each short row's gradient, at most the clip norm; the unit of the answer.

    Raises:
      ValueError: an argument is outside its range.
    """
    rows = validate.count("num_rows", num_rows)
    if not validate.finite("ratio", ratio) >= 1.0:
        raise ValueError(f"ratio must be at least 1, got {ratio}")
    return validate.non_negative("norm", norm) * rows * (ratio - 1.0) / (rows + ratio)
