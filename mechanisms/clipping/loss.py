"""A loss over a batch, traced for one record and analysed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from exactdp.mechanisms.clipping import coupling
from exactdp.mechanisms.clipping import groups as grouping
from exactdp.mechanisms.clipping import plan as planning
from exactdp.mechanisms.clipping import program as programs
from exactdp.mechanisms.clipping.engine import Planned
from exactdp.mechanisms.clipping.plan import Method

PyTree: TypeAlias = Any
Loss: TypeAlias = Callable[[PyTree, PyTree], Array]
# This share of what the activations of the plain backward pass take, and at least so much.
_LEAST_BUDGET = 32 * 2**20
_BUDGET_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class Analysed:
    """A loss on one record.

    Attributes:
      program: its operations.
      uses: its uses of parameters.
      groups: how they add up to gradients.
      names: path of every leaf of params.
    """

    program: programs.Program
    uses: list[grouping.Use]
    groups: list[grouping.Group]
    names: list[str]

    def planned(self, *, records: int, byte_budget: float | None, method: Method | None) -> Planned:
        """With a method for each group, for a batch or micro-batch of that size."""
        if byte_budget is None:
            budget, freed = (
                self.default_budget(records),
                planning.freed_bytes(self.program, self.uses, records),
            )
        else:
            budget, freed = byte_budget, [0.0] * len(self.uses)
        chosen = planning.plan(
            self.program,
            self.uses,
            self.groups,
            records=records,
            byte_budget=budget,
            freed=freed,
            method=method,
        )
        return Planned(self.program, self.uses, self.groups, chosen)

    def default_budget(self, records: int) -> float:
        """A share of the bytes of all activations of the batch."""
        total = 0
        for operation in programs.walk(self.program.operations):
            for n in operation.outputs:
                shape = self.program.shapes[n]
                if jnp.issubdtype(shape.dtype, jnp.floating):
                    total += int(np.prod(shape.shape)) * np.dtype(shape.dtype).itemsize
        return max(_BUDGET_SHARE * total * records, _LEAST_BUDGET)


def record_count(batch: PyTree) -> int:
    """B, the extent of the first axis of every leaf.

    Raises:
      ValueError: the batch has no leaves, or their first axes differ or are empty.
    """
    leaves = jax.tree.leaves(batch)
    extents = {jnp.shape(leaf)[0] if jnp.ndim(leaf) else 0 for leaf in leaves}
    if len(extents) != 1 or 0 in extents:
        raise ValueError(
            f"batch must be arrays with one common first axis >= 1, got extents {sorted(extents)}"
        )
    return extents.pop()


def analyse(loss: Loss, params: PyTree, batch: PyTree) -> Analysed:
    """Traces `loss` for one record and finds its uses of parameters.

    Args:
      loss: (params, batch) -> one loss a record.
      params: pytree of arrays or shapes; leaves that are not floating get no gradient.
      batch: pytree of arrays or shapes with a first axis of records.

    Raises:
      ValueError: the loss does not return one real loss a record, couples records, changes the state of a
        module, or draws randomness that records share; or params have complex leaves.
    """
    record_count(batch)
    paths, structure = jax.tree_util.tree_flatten_with_path(params)
    leaves = [leaf for _, leaf in paths]
    batch_leaves, batch_structure = jax.tree.flatten(batch)
    shapes = [
        jax.ShapeDtypeStruct(jnp.shape(x), jax.dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True))
        for x in leaves
    ]

    def of(records: int) -> list[jax.ShapeDtypeStruct]:
        return [jax.ShapeDtypeStruct((records, *jnp.shape(x)[1:]), x.dtype) for x in batch_leaves]

    def of_leaves(leaves: Sequence[Array], record: Sequence[Array]) -> Array:
        return loss(jax.tree.unflatten(structure, leaves), jax.tree.unflatten(batch_structure, record))

    try:
        jaxpr = jax.make_jaxpr(of_leaves)(shapes, of(1))
    except Exception as error:
        if "BatchNorm" in _called(error) or type(error).__name__ == "TraceContextError":
            raise ValueError(
                "loss must not couple records or change a module's state, as BatchNorm in training mode "
                f"does; use GroupNorm or LayerNorm, got {type(error).__name__}: {str(error).splitlines()[0]}"
            ) from error
        raise
    (result,) = jaxpr.out_avals if len(jaxpr.out_avals) == 1 else (None,)
    if result is None or result.shape != (1,) or not jnp.issubdtype(result.dtype, jnp.floating):
        found = [f"{x.dtype}{list(x.shape)}" for x in jaxpr.out_avals]
        raise ValueError(f"loss must return one real loss a record, shape [1] for one record, got {found}")
    if any(jnp.issubdtype(x.dtype, jnp.complexfloating) for x in shapes):
        raise ValueError("params must be real (real and imaginary parts apart), got a complex leaf")
    differentiable = [bool(jnp.issubdtype(x.dtype, jnp.floating)) for x in shapes]
    program = programs.build(jaxpr, differentiable=differentiable)
    records = coupling.prime(program.shapes)
    many = jax.make_jaxpr(of_leaves)(shapes, of(records))
    if [x.shape for x in many.out_avals] != [(records,)]:
        found = [f"{x.dtype}{list(x.shape)}" for x in many.out_avals]
        raise ValueError(f"loss must return one real loss a record, got {found} for {records} records")
    coupling.refuse(jaxpr, many, leaves=len(leaves), records=records)
    uses = grouping.uses(program)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
    return Analysed(program, uses, grouping.groups(program, uses), names)


def _called(error: BaseException) -> str:
    """Names of the methods in the traceback."""
    names: list[str] = []
    traceback = error.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_qualname)
        traceback = traceback.tb_next
    return " ".join(names)


Grouping: TypeAlias = str | Callable[[str], str]


def clip_groups(analysed: Analysed, grouping_rule: Grouping) -> tuple[list[str], list[int]]:
    """Names of the clipping groups and, for every leaf, the number of its own.

    Args:
      analysed: the loss.
      grouping_rule: "global" (one group), "per_layer" (parameters with the same parent), "per_parameter", or
      a
        function from a parameter's path to its group's name.

    Raises:
      ValueError: parameters whose gradients are computed together are in different groups.
    """
    if grouping_rule == "global":
        labels = ["all"] * len(analysed.names)
    elif grouping_rule == "per_layer":
        labels = [layer_name(name) for name in analysed.names]
    elif grouping_rule == "per_parameter":
        labels = list(analysed.names)
    elif callable(grouping_rule):
        labels = [grouping_rule(name) for name in analysed.names]
    else:
        raise ValueError(
            f"grouping must be global, per_layer, per_parameter or a function, got {grouping_rule!r}"
        )
    for group in analysed.groups:
        if len({labels[leaf] for leaf in group.leaves}) > 1:
            names = [analysed.names[leaf] for leaf in group.leaves]
            raise ValueError(
                f"grouping must keep parameters together that one operand is made of, got {names}"
            )
    names = list(dict.fromkeys(labels))
    return names, [names.index(label) for label in labels]


def layer_name(name: str) -> str:
    """Path of the layer that a parameter belongs to."""
    parts = [part for part in name.split("/") if part not in ("value", ".value")]
    return "/".join(parts[:-1]) or name


def clip_norms(value: float | Array | Mapping[str, float | Array], names: Sequence[str]) -> Array:
    """A clip norm for every group: the mapping's, or C / sqrt(groups) each, so that together they bound by C.

    Raises:
      ValueError: a mapping that does not name exactly the groups.
    """
    if isinstance(value, Mapping):
        if set(value) != set(names):
            raise ValueError(f"clip_norm must name the groups {sorted(names)}, got {sorted(value)}")
        return jnp.stack([jnp.asarray(value[name], jnp.float32) for name in names])
    return jnp.full(len(names), 1.0, jnp.float32) * jnp.asarray(value, jnp.float32) / np.sqrt(len(names))
