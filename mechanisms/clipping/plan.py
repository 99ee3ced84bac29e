"""Which method each group of uses gets: by byte budget, then by time.

- keep: the gradient of each record is formed once in the backward pass and kept; the weighted sum reads it.
- ghost: the norm comes from activations and output gradients without the gradient of a record; both are kept
  for the weighted contraction, which costs what the gradient of the batch costs.
- recompute: as ghost, but the gradient of a record is formed for its norm and dropped.

Time is counted in floating-point operations, a number moved to or from memory as `_TRAFFIC` of them. Every
group first gets its fastest method; while what is kept exceeds the budget, the group that saves most bytes
for the time it loses changes to a leaner method. By default what is kept may take the place of activations
that the backward pass has done with; a budget that the user sets bounds the sum of all that is kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np

from exactdp.mechanisms.clipping import groups as grouping
from exactdp.mechanisms.clipping.groups import Group, Use
from exactdp.mechanisms.clipping.program import Kind, Program
from exactdp.mechanisms.clipping.rules import rule, tied

Method = Literal["keep", "ghost", "recompute"]
# Floating-point operations that take as long as moving one number between memory and processor.
_TRAFFIC = 16.0
# What a byte kept may cost in operations: a method that keeps more for less than this in time is not taken.
_WORTH = 2.0


@dataclasses.dataclass(frozen=True)
class Choice:
    """A method for a group, with its cost for the whole batch.

    Attributes:
      method: keep, ghost or recompute.
      flops: floating-point operations beyond the plain backward pass to the activations.
      kept_bytes: kept from the backward pass to the weighted sum, activations not counted.
      passing_bytes: held while the norm is computed.
      time: flops plus what memory traffic costs.
    """

    method: Method
    flops: float
    kept_bytes: float
    passing_bytes: float
    time: float


def output_bytes(program: Program, use: Use) -> float:
    """Bytes of the output gradient of one record."""
    total = 0.0
    for k in use.float_outputs:
        shape = program.shapes[use.operation.outputs[k]]
        total += rule.size(shape.shape) * np.dtype(shape.dtype).itemsize
    return total


def group_floats(program: Program, group: Group) -> int:
    """Numbers in the gradient of one record with respect to the group's parameters."""
    if group.box is not None:
        return rule.size(group.root_shapes[0])
    return sum(rule.size(program.shapes[program.parameters[leaf]].shape) for leaf in group.leaves)


def choices(program: Program, uses: Sequence[Use], group: Group, records: int) -> list[Choice]:
    """All methods that the group can have."""
    members = [uses[member.use] for member in group.members]
    gradient = sum(use.rule.gradient_flops for use in members)
    gradients = sum(output_bytes(program, use) for use in members)
    formed = float(group_floats(program, group))

    def choice(method: Method, flops: float, moved: float, kept: float, passing: float) -> Choice:
        flops, time = flops * records, (flops + _TRAFFIC * moved) * records
        return Choice(method, flops, kept * records, passing * records, time)

    found = [choice("keep", gradient + 4.0 * formed, 3.0 * formed, 4.0 * formed, 0.0)]
    if len(members) > 1:
        pairs = tied.ghost_cost([use.rule for use in members], group)
        if pairs is not None:
            flops, floats = pairs
            found.append(choice("ghost", flops + gradient, 3.0 * floats, gradients, 4.0 * floats))
        return found
    (use,), (member,) = members, group.members
    contraction = use.contraction
    if contraction is None:
        return found
    if not group.computed and grouping.keeps_norms(program, member):
        floats = contraction.ghost_floats
        found.append(
            choice("ghost", contraction.ghost_flops + gradient, 3.0 * floats, gradients, 4.0 * floats)
        )
    # A sum rounded to a narrow format on its way to the parameters would not be a sum of bounded terms.
    exact = all(program.shapes[n].dtype == np.float32 for n in group.roots) or not group.computed
    if exact:
        flops = 2.0 * gradient + 2.0 * formed
        found.append(choice("recompute", flops, 2.0 * formed, gradients, 4.0 * formed))
    return found


def freed_bytes(program: Program, uses: Sequence[Use], records: int) -> list[float]:
    """For every use the bytes of activations that only it and later ones read, free once its norm is known.

    Those that the gradient is contracted from, and which are therefore in memory until then.
    """
    seen: set[int] = set()
    found: list[float] = []
    for use in uses:
        total = 0.0
        for n in use.operation.inputs if use.contraction is not None else ():
            shape = program.shapes[n]
            if (
                program.kinds[n] == Kind.RECORD
                and n not in seen
                and jnp.issubdtype(shape.dtype, jnp.floating)
            ):
                total += rule.size(shape.shape) * np.dtype(shape.dtype).itemsize
                seen.add(n)
        found.append(total * records)
    return found


def first_use(group: Group) -> int:
    """The use at which the backward pass has all of the group's gradient."""
    return min(member.use for member in group.members)


def most_kept(groups: Sequence[Group], chosen: Sequence[Choice], freed: Sequence[float]) -> tuple[float, int]:
    """The most that the backward pass holds of what it keeps, less what it has freed, and at which use."""
    gained = [0.0] * len(freed)
    for group, choice in zip(groups, chosen, strict=True):
        gained[first_use(group)] += choice.kept_bytes
    most, place, held = 0.0, 0, 0.0
    for k in reversed(range(len(freed))):
        held += gained[k]
        if held > most:
            most, place = held, k
        held -= freed[k]
    return most, place


def plan(
    program: Program,
    uses: Sequence[Use],
    groups: Sequence[Group],
    *,
    records: int,
    byte_budget: float,
    freed: Sequence[float],
    method: Method | None = None,
) -> list[Choice]:
    """A choice for every group.

    Args:
      program: the loss.
      uses: its uses of parameters.
      groups: how they belong together.
      records: batch or micro-batch size.
      byte_budget: most bytes to keep besides the activations; the leanest choices where it cannot be met.
      freed: for every use the bytes that what is kept may take up again; zeros where only the sum counts.
      method: taken wherever a group can have it, regardless of the budget.
    """
    every = [choices(program, uses, group, records) for group in groups]
    if method is not None:
        every = [[c for c in options if c.method == method] or options for options in every]
    chosen = [min(options, key=lambda c: c.time + _WORTH * c.kept_bytes) for options in every]
    while True:
        most, place = most_kept(groups, chosen, freed)
        if most <= byte_budget:
            return chosen
        best: tuple[float, int, Choice] | None = None
        for k, options in enumerate(every):
            for other in options if first_use(groups[k]) >= place else ():
                saved = chosen[k].kept_bytes - other.kept_bytes
                if saved > 0.0:
                    rate = saved / max(other.time - chosen[k].time, 1.0)
                    if best is None or rate > best[0]:
                        best = (rate, k, other)
        if best is None:
            return chosen
        chosen[best[1]] = best[2]
