"""Sums of clipped gradients of the records of a batch, without forming the gradient of every record.

For losses l_i and gradients G_i = grad l_i of B records, masks m_i and clip norm C,

    sum = sum_i m_i c_i G_i,   c_i = min(1, C / |G_i|),

from one forward and one backward pass, whatever model the loss calls (Flax NNX, Flax Linen, plain JAX).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer
from jaxtyping import Bool, Float32

from exactdp.accounting import validate
from exactdp.mechanisms.clipping import factors as factoring
from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping import rounding
from exactdp.mechanisms.clipping.engine import Engine, Planned
from exactdp.mechanisms.clipping.factors import Flat, Rescaling
from exactdp.mechanisms.clipping.loss import Grouping, Loss, PyTree
from exactdp.mechanisms.clipping.plan import Method
from exactdp.mechanisms.clipping.rules import rule

ClipNorm = float | Array | Mapping[str, float | Array]
# Up to this many micro-batches are written out; more run in a loop.
_WRITTEN_OUT = 8


class Clipped(NamedTuple):
    """What a clipped backward pass returns.

    Attributes:
      sum: sum of the clipped gradients, float32, structured like params (zero for leaves without gradient).
      losses: loss of every record, 0 where masked, float32[B].
      norms: gradient norm of every record before clipping, 0 where masked, inf where not finite, float32[B].
      group_norms: the same for every clipping group, float32[B, groups].
    """

    sum: PyTree
    losses: Float32[Array, " records"]
    norms: Float32[Array, " records"]
    group_norms: Float32[Array, "records groups"]


ClippedGradient = Callable[[PyTree, PyTree, Bool[Array, " records"]], Clipped]


def clipped_grad(
    loss: Loss,
    *,
    clip_norm: ClipNorm,
    grouping: Grouping = "global",
    rescaling: Rescaling | None = None,
    microbatch: int | None = None,
    byte_budget: float | None = None,
    method: Method | None = None,
    added_up: int | None = None,
) -> ClippedGradient:
    """The function (params, batch, mask) -> `Clipped`, to be jitted.

    Formula: sum_i m_i c_i G_i with c_i = min(1, clip_norm / |G_i|) and masks m_i; see `factors` for the
    others.

    Guarantees: a record's contribution has at most the Euclidean norm `clip_norm` after rounding in float32
    (with groups: the root of the sum of their squared clip norms), whatever the loss is, since the loss is
    traced for one record alone. Adding or removing a record changes the exact sum by no more. Rounding of
    norms, weights and products is covered by undercutting the clip norm, with a proof for the method "keep"
    and for dense layers at one position, by measurement for the rest (see `rounding`). The sum of B
    contributions rounds too, and differently without one of them: clip norms are undercut by B 2^-24 for
    that, about three times what was measured at worst; it is not proven, as nothing useful can be. A record
    that is masked out, or whose gradient is not finite, contributes exactly zero, and is not spread to the
    others. Norms and sums are computed in float32 for parameters and activations of any floating type.

    The result is that of `vmap(grad)` clipping to rounding. The loss sees one record at a time: where its
    value for a batch depends on other records (statistics of the batch), it is another function, which
    `verify` detects.

    Args:
      loss: (params, batch) -> real[B], one loss a record; batch is a pytree of arrays with first axis B.
      clip_norm: C > 0, may be traced. With groups, a number is split evenly in square (C / sqrt(groups)
      each),
        or a mapping gives every group its own.
      grouping: "global", "per_layer", "per_parameter", or a function from a parameter's path to a group name.
      rescaling: `Flat()` (the default) or `Automatic()`.
      microbatch: records in memory at a time; None for the whole batch.
      byte_budget: most bytes kept from the backward pass besides activations; None for a quarter of them. The
        leanest methods are taken where it cannot be met.
      method: "keep", "ghost" or "recompute" wherever possible, instead of the planned ones.
      added_up: B, where the sum is one of several that the caller adds up: how many records they have in
        all. None for those of the batch.

    Raises:
      ValueError: an argument is out of range; when called, as `loss.analyse` says.
    """
    for name, value in clip_norm.items() if isinstance(clip_norm, Mapping) else [("clip_norm", clip_norm)]:
        if not isinstance(value, Tracer):
            validate.positive(name, value)
    if microbatch is not None:
        microbatch = validate.count("microbatch", microbatch, minimum=1)
    if added_up is not None:
        added_up = validate.count("added_up", added_up, minimum=1)
    if byte_budget is not None:
        validate.non_negative("byte_budget", byte_budget)
    if method is not None:
        validate.one_of("method", method, ("keep", "ghost", "recompute"))
    chosen = Flat() if rescaling is None else rescaling

    def gradient(params: PyTree, batch: PyTree, mask: Bool[Array, " records"]) -> Clipped:
        records = losses.record_count(batch)
        if jnp.shape(mask) != (records,):
            raise ValueError(f"mask must have the shape ({records},) of the records, got {jnp.shape(mask)}")
        analysed = losses.analyse(loss, params, batch)
        names, group_of_leaf = losses.clip_groups(analysed, grouping)
        size = records if microbatch is None else min(microbatch, records)
        planned = analysed.planned(records=size, byte_budget=byte_budget, method=method)
        share = rounding.share(rounding.roundings(planned))
        rounded = records if added_up is None else max(records, added_up)
        norms = factoring.undercut(losses.clip_norms(clip_norm, names), records=rounded, norm_share=share)
        leaves, structure = jax.tree.flatten(params)

        def one(values: list[Array], record: list[Array]) -> Array:
            batched = jax.tree.unflatten(jax.tree.structure(batch), [x[None] for x in record])
            return loss(jax.tree.unflatten(structure, values), batched)[0]

        def part(rows: list[Array], chosen_mask: Array) -> Clipped:
            def again(usable: Array) -> list[Array]:
                return _one_by_one(one, leaves, rows, usable, group_of_leaf, norms, chosen)

            return _part(planned, leaves, rows, chosen_mask, group_of_leaf, norms, chosen, again)

        rows = [jnp.asarray(x) for x in jax.tree.leaves(batch)]
        result = _in_parts(part, rows, mask.astype(bool), size, _loops(planned))
        return result._replace(sum=jax.tree.unflatten(structure, result.sum))

    return gradient


def _part(
    planned: Planned,
    leaves: list[Any],
    rows: list[Array],
    mask: Array,
    group_of_leaf: list[int],
    clip_norms: Array,
    rescaling: Rescaling,
    again: Callable[[Array], list[Array]],
) -> Clipped:
    """A whole micro-batch; `sum` is a list of leaves; `again` is the sum over the records it is told."""
    engine = Engine(planned, leaves)
    captured = engine.capture(rows, mask)
    squares = [jnp.zeros(mask.shape, jnp.float32) for _ in clip_norms]
    for group, norms in zip(planned.groups, captured.squared_norms, strict=True):
        squares[group_of_leaf[group.leaves[0]]] += norms
    squared = jnp.stack(squares, 1)
    weights, finite = factoring.factors(squared, mask, clip_norms=clip_norms, rescaling=rescaling)
    columns = [weights[:, k] for k in group_of_leaf]

    total = engine.weighted(captured, columns)
    # A weight of zero does not stop a NaN, which is rare: only then the sum is taken again, record by record.
    # The sum is looked at too: how a device computes it may read numbers that no gradient depends on.
    sound = functools.reduce(jnp.logical_and, [jnp.all(jnp.isfinite(x)) for x in total], jnp.all(finite))
    total = lax.cond(sound, lambda x: x, lambda _: again(finite & mask), total)
    infinite = jnp.where(finite[:, None], jnp.sqrt(squared), jnp.inf)
    group_norms = jnp.where(mask[:, None], infinite, 0.0)
    norms = jnp.where(mask, jnp.where(finite, jnp.sqrt(jnp.sum(squared, 1)), jnp.inf), 0.0)
    values = jnp.where(mask, captured.losses, 0.0)
    sums = [
        x if _differentiable(leaf) else jnp.zeros_like(leaf) for x, leaf in zip(total, leaves, strict=True)
    ]
    return Clipped(sums, values, norms, group_norms)


def _one_by_one(
    one: Callable[[list[Array], list[Array]], Array],
    leaves: list[Any],
    rows: list[Array],
    usable: Array,
    group_of_leaf: list[int],
    clip_norms: Array,
    rescaling: Rescaling,
) -> list[Array]:
    """The clipped sum over the usable records, one after the other."""
    places = [k for k, leaf in enumerate(leaves) if _differentiable(leaf)]

    def of_floats(values: list[Array], record: list[Array]) -> Array:
        arguments = list(leaves)
        for k, value in zip(places, values, strict=True):
            arguments[k] = value
        return one(arguments, record)

    def step(total: list[Array], current: tuple[list[Array], Array]) -> tuple[list[Array], None]:
        record, chosen = current
        found = jax.grad(of_floats)([leaves[k] for k in places], record)
        found = [jnp.where(chosen, x.astype(jnp.float32), 0.0) for x in found]
        squares = [jnp.zeros(1, jnp.float32) for _ in clip_norms]
        for k, x in zip(places, found, strict=True):
            squares[group_of_leaf[k]] += rule.squared(x[None])
        weights, finite = factoring.factors(
            jnp.stack(squares, 1), chosen[None], clip_norms=clip_norms, rescaling=rescaling
        )
        total = list(total)
        for k, x in zip(places, found, strict=True):
            total[k] += jnp.where(finite[0], weights[0, group_of_leaf[k]] * x, 0.0)
        return total, None

    start = [jnp.zeros(jnp.shape(leaf), jnp.float32) for leaf in leaves]
    return lax.scan(step, start, (rows, usable))[0]


def _differentiable(leaf: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating))


def _loops(planned: Planned) -> bool:
    """May micro-batches run in a loop? A convolution inside one is many times slower on a CPU."""
    convolves = any(use.rule.name == "conv" for use in planned.uses)
    return not convolves or jax.default_backend() != "cpu"


def _adds(value: Array) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.floating) or jnp.issubdtype(value.dtype, jnp.integer))


def _in_parts(
    part: Callable[[list[Array], Array], Clipped], rows: list[Array], mask: Array, size: int, loops: bool
) -> Clipped:
    records = mask.shape[0]
    if size >= records:
        return part(rows, mask)
    parts = -(-records // size)
    missing = parts * size - records
    padded = [jnp.concatenate([x, jnp.broadcast_to(x[:1], (missing, *x.shape[1:]))]) for x in rows]
    padded = [x.reshape(parts, size, *x.shape[1:]) for x in padded]
    masks = jnp.concatenate([mask, jnp.zeros(missing, bool)]).reshape(parts, size)
    if loops and parts > _WRITTEN_OUT:
        first = jax.eval_shape(part, [x[0] for x in padded], masks[0])
        start = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), first.sum)

        def step(total: list[Array], current: tuple[list[Array], Array]) -> tuple[list[Array], Clipped]:
            result = part(*current)
            total = [a + b for a, b in zip(total, result.sum, strict=True)]
            return total, result._replace(sum=())

        total, rest = lax.scan(step, start, (padded, masks))
        joined = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:records], rest)
        return joined._replace(sum=total)
    results: list[Clipped] = []
    total: list[Array] = []
    for k in range(parts):
        current = [x[k] for x in padded]
        if total:
            # One micro-batch starts after the last has ended, so that only one is in memory. (See
            # `rule.after`.)
            zero = 0.0 * jnp.sum(jnp.stack([x.ravel()[0].astype(jnp.float32) for x in total if x.size]))
            current = [x + zero.astype(x.dtype) if _adds(x) else x for x in current]
        result = part(current, masks[k])
        total = [a + b for a, b in zip(total, result.sum, strict=True)] if total else result.sum
        results.append(result._replace(sum=()))
    joined = jax.tree.map(lambda *xs: jnp.concatenate(xs)[:records], *results)
    return joined._replace(sum=total)
