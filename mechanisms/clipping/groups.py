"""Which uses add up to the gradient of which parameters.

Most operands are a parameter itself, seen through a chain of linear re-arrangements (a cast, a reshape, a
broadcast). Where an operand is computed in another way (a weight-standardised kernel, a product of two
parameters), the gradient of a record is brought back to the parameters by the vector-Jacobian product of that
computation, and all parameters involved form one group. Disjoint slices of a parameter (the layers of an
unrolled scan) are groups of their own: their squared norms add. Overlapping uses (tied weights) share a group
and their gradients are added before the norm is taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from exactdp.mechanisms.clipping.program import Kind, Operation, Program, walk
from exactdp.mechanisms.clipping.rules import conv, dense, embed, own, rule
from exactdp.mechanisms.clipping.rules.rule import Contraction, Rule

_REARRANGEMENTS = (
    "convert_element_type",
    "reshape",
    "transpose",
    "squeeze",
    "expand_dims",
    "broadcast_in_dim",
    "slice",
    "rev",
    "copy",
    "copy_p",
)
_PERMUTATIONS = ("convert_element_type", "reshape", "transpose", "squeeze", "expand_dims", "copy", "copy_p")
Box = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Use:
    """An operation with a parameter operand, and its rule."""

    operation: Operation
    rule: Rule
    float_outputs: tuple[int, ...]

    @property
    def contraction(self) -> Contraction | None:
        """The rule, if it gives norms without gradients."""
        return self.rule if isinstance(self.rule, (dense.Dense, conv.Conv, embed.Embed)) else None


@dataclasses.dataclass(frozen=True)
class Member:
    """One parameter operand of one use.

    Attributes:
      use: number of the use.
      slot: which of the use's parameter operands.
      root: number among the group's roots.
      chain: re-arrangements from the root to the operand.
    """

    use: int
    slot: int
    root: int
    chain: tuple[Operation, ...]

    def pull(self, gradient: Array, shape: Sequence[int]) -> Array:
        """The operand's gradient brought back to the root of that shape; linear, in float32."""
        if not self.chain:
            return gradient

        def rearranged(value: Array) -> Array:
            for operation in self.chain:
                if operation.name != "convert_element_type":
                    value = rule.bind(operation, (value,))[0]
            return value

        return jax.linear_transpose(rearranged, jax.ShapeDtypeStruct(tuple(shape), jnp.float32))(gradient)[0]


@dataclasses.dataclass(frozen=True)
class Group:
    """Uses whose gradients are added before norms are taken.

    Attributes:
      leaves: positions of the parameters among the leaves of params.
      box: the slice of the one parameter that is meant, as (start, limit) an axis; None for whole parameters.
      roots: values from which the operands are re-arranged; for a computed group results of `computation`.
      root_shapes: their shapes.
      computed: are the roots computed from the leaves by more than re-arrangements?
      members: the uses.
    """

    leaves: tuple[int, ...]
    box: Box | None
    roots: tuple[int, ...]
    root_shapes: tuple[tuple[int, ...], ...]
    computed: bool
    members: tuple[Member, ...]

    @property
    def rearranged(self) -> bool:
        """Is there one operand only, with the numbers of the parameter in another order?"""
        if self.computed or len(self.members) != 1:
            return False
        return all(operation.name in _PERMUTATIONS for operation in self.members[0].chain)


def _rule(program: Program, operation: Operation) -> Rule | None:
    positions = tuple(k for k, n in enumerate(operation.inputs) if program.kinds[n] == Kind.PARAMETER)
    floats = _inexact_outputs(program, operation)
    if not positions or not floats:
        return None
    shapes = [program.shapes[n].shape for n in operation.inputs]
    result = program.shapes[operation.outputs[0]].shape
    real = not any(jnp.issubdtype(program.shapes[n].dtype, jnp.complexfloating) for n in operation.inputs)
    found = real and (
        dense.recognised(operation, positions, shapes)
        or conv.recognised(operation, positions, shapes, result)
        or embed.recognised(operation, positions, shapes)
    )
    if found:
        return found
    work = sum(rule.size(program.shapes[n].shape) for n in operation.outputs)
    records = tuple(k for k, n in enumerate(operation.inputs) if program.kinds[n] == Kind.RECORD)
    return own.Own(operation, positions, records, floats, work)


def _inexact_outputs(program: Program, operation: Operation) -> tuple[int, ...]:
    return tuple(
        k for k, n in enumerate(operation.outputs) if jnp.issubdtype(program.shapes[n].dtype, jnp.inexact)
    )


def uses(program: Program) -> list[Use]:
    """All uses of parameters, in the order of the operations."""
    found: list[Use] = []
    for operation in walk(program.operations):
        chosen = _rule(program, operation)
        if chosen is not None:
            found.append(Use(operation, chosen, _inexact_outputs(program, operation)))
    return found


@dataclasses.dataclass(frozen=True)
class _Operand:
    use: int
    slot: int
    root: int
    chain: tuple[Operation, ...]


class _Sources:
    """Where the parameter operands come from."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made_by = {n: operation for operation in program.hoisted for n in operation.outputs}
        self.leaf_of = {n: k for k, n in enumerate(program.parameters)}

    def root(self, number: int) -> tuple[int, tuple[Operation, ...]]:
        """The value from which `number` is re-arranged, and how."""
        chain: list[Operation] = []
        while number in self.made_by and self._rearranges(self.made_by[number]):
            chain.append(self.made_by[number])
            number = self.made_by[number].inputs[0]
        return number, tuple(reversed(chain))

    def _rearranges(self, operation: Operation) -> bool:
        if operation.name not in _REARRANGEMENTS or len(operation.inputs) != 1:
            return False
        numbers = (*operation.inputs, *operation.outputs)
        return all(jnp.issubdtype(self.program.shapes[n].dtype, jnp.floating) for n in numbers)

    def leaves(self, number: int) -> frozenset[int]:
        """Parameters on which a value depends."""
        found: set[int] = set()
        pending, seen = [number], {number}
        while pending:
            current = pending.pop()
            if current in self.leaf_of:
                if self.program.kinds[current] == Kind.PARAMETER:
                    found.add(self.leaf_of[current])
            elif current in self.made_by:
                new = set(self.made_by[current].inputs) - seen
                seen |= new
                pending.extend(new)
        return frozenset(found)


def _components(sets: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    merged: list[frozenset[int]] = []
    for current in sets:
        touching = [m for m in merged if m & current]
        merged = [m for m in merged if not m & current]
        merged.append(current.union(*touching))
    return merged


def _box(operand: _Operand, shape: Sequence[int]) -> tuple[Box | None, tuple[Operation, ...]]:
    """The slice of the parameter that an operand starts from, and the chain after it."""
    chain = [operation for operation in operand.chain if operation.name != "convert_element_type"]
    if not chain or chain[0].name != "slice":
        return None, operand.chain
    params = chain[0].params
    if params["strides"] is not None and any(stride != 1 for stride in params["strides"]):
        return None, operand.chain
    box = tuple(zip(params["start_indices"], params["limit_indices"], strict=True))
    whole = all(start == 0 and limit == n for (start, limit), n in zip(box, shape, strict=True))
    return (None, operand.chain) if whole else (box, tuple(chain[1:]))


def _disjoint(first: Box, second: Box) -> bool:
    return any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(first, second, strict=True))


def _of_leaf(program: Program, leaf: int, operands: Sequence[_Operand]) -> list[Group]:
    number = program.parameters[leaf]
    shape = program.shapes[number].shape
    boxes = [_box(operand, shape) for operand in operands]
    distinct = list(dict.fromkeys(box for box, _ in boxes))
    apart = None not in distinct and all(
        _disjoint(a, b)
        for k, a in enumerate(distinct)
        for b in distinct[:k]
        if a is not None and b is not None
    )
    if not apart:
        members = tuple(Member(o.use, o.slot, 0, o.chain) for o in operands)
        return [Group((leaf,), None, (number,), (shape,), False, members)]
    groups: list[Group] = []
    for box in distinct:
        extents = tuple(limit - start for start, limit in box or ())
        members = tuple(
            Member(o.use, o.slot, 0, chain)
            for o, (own_box, chain) in zip(operands, boxes, strict=True)
            if own_box == box
        )
        groups.append(Group((leaf,), box, (number,), (extents,), False, members))
    return groups


def keeps_norms(program: Program, member: Member) -> bool:
    """Does the operand hold every number of the root at most once? A broadcast repeats it: gradients add."""
    shapes = program.shapes
    return not any(
        operation.name == "broadcast_in_dim"
        and rule.size(shapes[operation.outputs[0]].shape) > rule.size(shapes[operation.inputs[0]].shape)
        for operation in member.chain
    )


def groups(program: Program, found: Sequence[Use]) -> list[Group]:
    """The uses sorted into groups; parameters in no group have gradient zero."""
    sources = _Sources(program)
    operands: list[_Operand] = []
    for k, use in enumerate(found):
        for slot, position in enumerate(use.rule.positions):
            root, chain = sources.root(use.operation.inputs[position])
            operands.append(_Operand(k, slot, root, chain))
    depends = [sources.leaves(operand.root) for operand in operands]
    result: list[Group] = []
    for component in _components(depends):
        own_operands = [o for o, d in zip(operands, depends, strict=True) if d <= component]
        roots = tuple(dict.fromkeys(o.root for o in own_operands))
        if len(component) == 1 and all(root in sources.leaf_of for root in roots):
            result.extend(_of_leaf(program, next(iter(component)), own_operands))
            continue
        shapes = tuple(program.shapes[root].shape for root in roots)
        members = tuple(Member(o.use, o.slot, roots.index(o.root), o.chain) for o in own_operands)
        result.append(Group(tuple(sorted(component)), None, roots, shapes, True, members))
    return result


def computation(program: Program, group: Group, leaves: Sequence[Any]) -> Callable[..., list[Array]]:
    """The function from the group's parameters to its roots, the other parameters fixed at `leaves`."""

    def roots(*values: Array) -> list[Array]:
        arguments = list(leaves)
        for position, value in zip(group.leaves, values, strict=True):
            arguments[position] = value
        environment = hoisted(program, arguments)
        return [environment[n] for n in group.roots]

    return roots


def hoisted(program: Program, leaves: Sequence[Any]) -> dict[int, Any]:
    """The values of constants, parameters and what is computed from them."""
    environment = dict(program.constants)
    environment.update(zip(program.parameters, leaves, strict=True))
    for operation in program.hoisted:
        results = rule.bind(operation, [environment[n] for n in operation.inputs])
        environment.update(zip(operation.outputs, results, strict=True))
    return environment
