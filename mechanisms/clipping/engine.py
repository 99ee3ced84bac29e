"""One forward and one backward pass over all records, with what clipping needs taken along.

Behind every use a *tap* is put: the identity, with an unused argument of zeros (the slot). Its derivative
rule returns, as the slot's cotangent, what the use's method keeps (a norm, the gradients of the records, or
the output gradients), so that one reverse sweep delivers everything, layer by layer, and what is not kept is
freed on the way, inside rematerialised blocks too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from exactdp.mechanisms.clipping import groups as grouping
from exactdp.mechanisms.clipping.groups import Group, Use
from exactdp.mechanisms.clipping.plan import Choice
from exactdp.mechanisms.clipping.program import Kind, Operation, Program, walk
from exactdp.mechanisms.clipping.rules import rule, tied
from exactdp.mechanisms.clipping.rules.rule import Contraction

_FORMED = ("norms", "gradients")


@dataclasses.dataclass(frozen=True)
class Planned:
    """A loss, analysed: program, uses, groups and the method of each group."""

    program: Program
    uses: list[Use]
    groups: list[Group]
    choices: list[Choice]


@dataclasses.dataclass(frozen=True)
class Captured:
    """What one backward pass leaves.

    Attributes:
      losses: float32[B].
      squared_norms: for every group float32[B].
      kept: for every group what its weighted sum is made of.
      whole: for every use its integer operands, by position.
    """

    losses: Array
    squared_norms: list[Array]
    kept: list[Any]
    whole: list[dict[int, Array]]


class Engine:
    """The passes of one planned loss at given parameters."""

    def __init__(self, planned: Planned, leaves: Sequence[Any]) -> None:
        self.planned = planned
        self.leaves = list(leaves)
        self.environment = grouping.hoisted(planned.program, leaves)
        self._served: list[list[int]] = [[] for _ in planned.uses]
        for g, group in enumerate(planned.groups):
            for use in dict.fromkeys(member.use for member in group.members):
                self._served[use].append(g)
        first = {id(use.operation): k for k, use in enumerate(planned.uses)}
        every = [id(operation) for operation in walk(planned.program.operations)]
        self._use_of = {identity: first.get(identity) for identity in every}

    # Operands of a use: floating ones travel through the tap, integer ones beside it, parameters are at hand.

    def _split(self, use: Use, operands: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
        floats: dict[int, Any] = {}
        whole: dict[int, Any] = {}
        for position, (number, value) in enumerate(zip(use.operation.inputs, operands, strict=True)):
            if self.planned.program.kinds[number] == Kind.RECORD:
                inexact = jnp.issubdtype(value.dtype, jnp.floating)
                (floats if inexact else whole)[position] = value
        return floats, whole

    def _joined(self, use: Use, floats: dict[int, Any], whole: dict[int, Any]) -> list[Any]:
        given = {**floats, **whole}
        return [given[k] if k in given else self.environment[n] for k, n in enumerate(use.operation.inputs)]

    def _roots(self, g: int, k: int, floats: Any, whole: Any, outputs: list[Array]) -> list[Array]:
        """What use k adds to the gradient of each root of group g, for every record."""
        group, use = self.planned.groups[g], self.planned.uses[k]
        gradients = use.rule.restored(use.rule.gradients(self._joined(use, floats, whole), outputs))
        records = outputs[0].shape[0]
        sums: list[Array | None] = [None] * len(group.root_shapes)
        for member in group.members:
            if member.use == k:
                shape = group.root_shapes[member.root]
                pulled = jax.vmap(lambda x, m=member, s=shape: m.pull(x, s))(gradients[member.slot])
                before = sums[member.root]
                sums[member.root] = pulled if before is None else before + pulled
        return [
            jnp.zeros((records, *shape), jnp.float32) if total is None else total
            for total, shape in zip(sums, group.root_shapes, strict=True)
        ]

    def _gradients(self, g: int, k: int, floats: Any, whole: Any, outputs: list[Array]) -> list[Array]:
        """What use k adds to the gradient of each parameter of group g (of its slice), for every record.

        In the rule's own layout where the group is `rearranged`: norms and sums do not depend on it.
        """
        group, use = self.planned.groups[g], self.planned.uses[k]
        if group.rearranged:
            return [use.rule.gradients(self._joined(use, floats, whole), outputs)[group.members[0].slot]]
        roots = self._roots(g, k, floats, whole, outputs)
        if not group.computed:
            return roots
        compute = grouping.computation(self.planned.program, group, self.leaves)
        values, pull = jax.vjp(compute, *[self.leaves[k] for k in group.leaves])
        casts = [x.astype(value.dtype) for x, value in zip(roots, values, strict=True)]
        return [x.astype(jnp.float32) for x in jax.vmap(lambda *xs: pull(list(xs)))(*casts)]

    def _keep(self, k: int, floats: Any, whole: Any, outputs: list[Array]) -> dict[int, Any]:
        """What the tap of use k returns for each group that it serves."""
        use = self.planned.uses[k]
        kept: dict[int, Any] = {}
        for g in self._served[k]:
            group, method = self.planned.groups[g], self.planned.choices[g].method
            single = len({member.use for member in group.members}) == 1
            entry: dict[str, Any] = {}
            if method == "keep":
                entry["gradients"] = self._gradients(g, k, floats, whole, outputs)
                if single:
                    entry["norms"] = _squared(entry["gradients"])
            else:
                entry["floats"], entry["outputs"] = floats, outputs
                if method == "recompute":
                    entry["norms"] = _squared(self._gradients(g, k, floats, whole, outputs))
                elif single and len(group.members) == 1:
                    entry["norms"] = _contraction(use).squared_norms(
                        self._joined(use, floats, whole), outputs
                    )
            kept[g] = entry
        return kept

    def _tap(self, k: int, results: list[Array], operands: Sequence[Array], slot: Any) -> list[Array]:
        use = self.planned.uses[k]
        floats, whole = self._split(use, operands)

        @jax.custom_vjp
        def tap(outputs: list[Array], slot: Any, floats: Any, whole: Any) -> list[Array]:
            return outputs

        def forward(outputs: list[Array], slot: Any, floats: Any, whole: Any) -> tuple[list[Array], Any]:
            return outputs, (floats, whole)

        def backward(*received: Any) -> tuple[Any, Any, None, None]:
            (floats, whole), cotangents = received
            if any(x.dtype.itemsize < 4 for x in (*floats.values(), *cotangents)):
                # The compiler may leave a rounding to few bits out in one place and not in another. Norm
                # and sum
                # must be of the same numbers, or the bound would hold to those few bits only.
                floats, cotangents = lax.optimization_barrier((floats, cotangents))
            kept = self._keep(k, floats, whole, cotangents)
            return cotangents, kept, None, None

        tap.defvjp(forward, backward)
        tapped = tap([results[j] for j in use.float_outputs], slot, floats, whole)
        results = list(results)
        for j, value in zip(use.float_outputs, tapped, strict=True):
            results[j] = value
        return results

    def _slots(self, records: int) -> list[Any]:
        """Zeros in the shape of what every tap returns."""
        shapes = self.planned.program.shapes
        slots: list[Any] = []
        for k, use in enumerate(self.planned.uses):
            operands = [
                jax.ShapeDtypeStruct((records, *shapes[n].shape), shapes[n].dtype)
                for n in use.operation.inputs
            ]
            floats, whole = self._split(use, operands)
            outputs = [operand for operand in (shapes[use.operation.outputs[j]] for j in use.float_outputs)]
            outputs = [jax.ShapeDtypeStruct((records, *o.shape), o.dtype) for o in outputs]
            kept = jax.eval_shape(lambda f, w, o, k=k: self._keep(k, f, w, o), floats, whole, outputs)
            slots.append(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kept))
        return slots

    def _run(
        self, operations: Sequence[Operation], environment: dict[int, Any], slots: dict[int, Any]
    ) -> dict[int, dict[int, Array]]:
        """Runs operations on all records; fills `environment`, returns the integer operands of the uses."""
        whole: dict[int, dict[int, Array]] = {}
        for operation in operations:
            if operation.body:
                whole.update(self._run_block(operation, environment, slots))
                continue
            k = self._use_of[id(operation)]
            values = [environment[n] if n in environment else self.environment[n] for n in operation.inputs]
            if k is None:
                kinds = self.planned.program.kinds
                records = [j for j, n in enumerate(operation.inputs) if kinds[n] == Kind.RECORD]
                results = rule.batched(operation, values, records)
            else:
                use = self.planned.uses[k]
                results = use.rule.forward(values)
                whole[k] = self._split(use, values)[1]
                results = self._tap(k, results, values, slots[k])
            environment.update(zip(operation.outputs, results, strict=True))
        return whole

    def _run_block(
        self, block: Operation, environment: dict[int, Any], slots: dict[int, Any]
    ) -> dict[int, dict[int, Array]]:
        inside = [self._use_of[id(operation)] for operation in walk(block.body)]
        own_slots = {k: slots[k] for k in inside if k is not None}

        def body(inputs: list[Array], own: dict[int, Any]) -> tuple[list[Array], dict[int, dict[int, Array]]]:
            local = dict(zip(block.inputs, inputs, strict=True))
            whole = self._run(block.body, local, own)
            return [local[n] for n in block.outputs], whole

        settings = {"policy": block.params["policy"], "prevent_cse": block.params["prevent_cse"]}
        again: Callable[..., Any] = jax.checkpoint(body, **settings)
        results, whole = again([environment[n] for n in block.inputs], own_slots)
        environment.update(zip(block.outputs, results, strict=True))
        return whole

    def capture(self, batch: Sequence[Array], mask: Array) -> Captured:
        """The backward pass; `mask` says which records count."""
        records = mask.shape[0]
        program = self.planned.program

        def losses(slots: list[Any]) -> tuple[Array, Any]:
            environment = dict(zip(program.records, (x[:, None] for x in batch), strict=True))
            whole = self._run(program.operations, environment, dict(enumerate(slots)))
            return environment[program.output].reshape(records), whole

        values, pull, whole = jax.vjp(losses, self._slots(records), has_aux=True)
        (slots,) = pull(mask.astype(values.dtype))
        kept: list[Any] = []
        norms: list[Array] = []
        for g, group in enumerate(self.planned.groups):
            members = list(dict.fromkeys(member.use for member in group.members))
            entries = [slots[k][g] for k in members]
            norms.append(self._norms(g, members, entries, whole))
            kept.append(self._merged(g, entries))
        ints = [whole.get(k, {}) for k in range(len(self.planned.uses))]
        return Captured(values.astype(jnp.float32), norms, kept, ints)

    def _merged(self, g: int, entries: list[dict[str, Any]]) -> Any:
        if self.planned.choices[g].method != "keep":
            return [(entry["floats"], entry["outputs"]) for entry in entries]
        return [
            sum(parts[1:], parts[0]) for parts in zip(*[entry["gradients"] for entry in entries], strict=True)
        ]

    def _norms(self, g: int, members: list[int], entries: list[dict[str, Any]], whole: Any) -> Array:
        if "norms" in entries[0]:
            return entries[0]["norms"]
        if self.planned.choices[g].method == "keep":
            return _squared(self._merged(g, entries))
        uses = [self.planned.uses[k] for k in members]
        kept = [
            (self._joined(use, entry["floats"], whole[k]), entry["outputs"])
            for use, entry, k in zip(uses, entries, members, strict=True)
        ]
        return tied.squared_norms([use.rule for use in uses], self.planned.groups[g], kept)

    def weighted(self, captured: Captured, weights: Sequence[Array]) -> list[Array]:
        """Sum_i c_i G_i for every leaf, float32; `weights` has one float32[B] for every leaf."""
        totals = [jnp.zeros(jnp.shape(leaf), jnp.float32) for leaf in self.leaves]
        for g, group in enumerate(self.planned.groups):
            sums = self._weighted(g, captured, weights[group.leaves[0]])
            for leaf, total in zip(group.leaves, sums, strict=True):
                if group.box is None:
                    totals[leaf] = total
                else:
                    totals[leaf] = totals[leaf].at[tuple(slice(*side) for side in group.box)].set(total)
        return totals

    def _weighted(self, g: int, captured: Captured, weights: Array) -> list[Array]:
        group, kept = self.planned.groups[g], captured.kept[g]
        if self.planned.choices[g].method == "keep":
            sums = [jnp.tensordot(weights, x, 1, precision=lax.Precision.HIGHEST) for x in kept]
            if group.rearranged:
                (member,) = group.members
                (restored,) = self.planned.uses[member.use].rule.restored([sums[0][None]])
                return [member.pull(restored[0], group.root_shapes[0])]
            return sums
        sums = [jnp.zeros(shape, jnp.float32) for shape in group.root_shapes]
        members = list(dict.fromkeys(member.use for member in group.members))
        for k, (floats, outputs) in zip(members, kept, strict=True):
            use = self.planned.uses[k]
            operands = self._joined(use, floats, captured.whole[k])
            parts = _contraction(use).weighted(operands, outputs, weights)
            for member in group.members:
                if member.use == k:
                    shape = group.root_shapes[member.root]
                    sums[member.root] = sums[member.root] + member.pull(parts[member.slot], shape)
        if not group.computed:
            return sums
        compute = grouping.computation(self.planned.program, group, self.leaves)
        _, pull = jax.vjp(compute, *[self.leaves[k] for k in group.leaves])
        return [x.astype(jnp.float32) for x in pull(sums)]


def _contraction(use: Use) -> Contraction:
    if use.contraction is None:
        raise TypeError(f"use must be planned to keep gradients, as {use.rule.name} has no contraction")
    return use.contraction


def _squared(gradients: Sequence[Array]) -> Array:
    """Sum of squares over everything but records."""
    return sum((rule.squared(x) for x in gradients), jnp.float32(0.0))
