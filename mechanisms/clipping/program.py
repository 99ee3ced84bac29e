"""A loss of one record as a flat list of operations, sorted by what they depend on.

The loss is traced on a batch of one record, so that no operation can mix records. Nested calls are written
out, and every value gets a kind: constant, parameter (computed from parameters alone) or record (depends on
the record). Operations of the first two kinds are hoisted in front: they are computed once, not once a
record. An operation with a record operand and a parameter operand is a *use* of a parameter; nothing else
can carry a gradient to one, so that listing the uses leaves none out, whatever library the model is written
in.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp

_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_REMATERIALISED = ("checkpoint", "remat", "remat2")
# Longer loops over parameters stay one operation, whose own vjp is used.
_UNROLLED_ITERATIONS = 64
_RANDOM = ("random_bits", "random_fold_in", "random_split", "threefry2x32", "rng_bit_generator")


class Kind(enum.IntEnum):
    """What a value depends on; an operation's result has the largest kind of its operands."""

    CONSTANT = 0
    PARAMETER = 1
    RECORD = 2


@dataclasses.dataclass(frozen=True)
class Operation:
    """One primitive applied to values, or a block that is computed again in the backward pass.

    Attributes:
      name: name of the primitive.
      primitive: what `bind` is called on; None for a block.
      params: its parameters; for a block `policy` and `prevent_cse`.
      inputs: numbers of its operands.
      outputs: numbers of its results.
      layer: the model's layer that called it, where the trace tells.
      body: the operations of a block; empty for a primitive.
    """

    name: str
    primitive: Any
    params: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    layer: str
    body: tuple[Operation, ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """A flat program; values are numbered.

    Attributes:
      shapes: shape and dtype of every value.
      kinds: kind of every value.
      constants: the values known at trace time.
      parameters: numbers of the leaves of `params`, in order.
      records: numbers of the leaves of one record, with a leading axis of 1.
      hoisted: operations on constants and parameters, in order.
      operations: operations on records, in order.
      output: number of the loss.
    """

    shapes: list[jax.ShapeDtypeStruct]
    kinds: list[Kind]
    constants: dict[int, Any]
    parameters: tuple[int, ...]
    records: tuple[int, ...]
    hoisted: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    output: int


def walk(operations: Sequence[Operation]) -> list[Operation]:
    """All primitives in order, those inside blocks too."""
    found: list[Operation] = []
    for operation in operations:
        found.extend(walk(operation.body) if operation.body else [operation])
    return found


class _Builder:
    def __init__(self) -> None:
        self.shapes: list[jax.ShapeDtypeStruct] = []
        self.kinds: list[Kind] = []
        self.constants: dict[int, Any] = {}
        self.hoisted: list[Operation] = []
        self.operations: list[Operation] = []

    def new(self, value: Any, kind: Kind) -> int:
        self.shapes.append(jax.ShapeDtypeStruct(tuple(value.shape), value.dtype))
        self.kinds.append(kind)
        return len(self.shapes) - 1

    def constant(self, value: Any) -> int:
        number = self.new(jax.typeof(value), Kind.CONSTANT)
        self.constants[number] = value
        return number

    def kind(self, numbers: Sequence[int]) -> Kind:
        return max((self.kinds[n] for n in numbers), default=Kind.CONSTANT)

    def uses_parameters(self, numbers: Sequence[int]) -> bool:
        return any(self.kinds[n] == Kind.PARAMETER for n in numbers)

    def closed(self, jaxpr: Any, arguments: Sequence[int]) -> list[int]:
        """Adds a closed jaxpr; returns the numbers of its results."""
        environment = {v: self.constant(c) for v, c in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True)}
        return self.open(jaxpr.jaxpr, environment, arguments)

    def open(self, jaxpr: Any, environment: dict[Any, int], arguments: Sequence[int]) -> list[int]:
        environment.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> int:
            return self.constant(atom.val) if hasattr(atom, "val") else environment[atom]

        for equation in jaxpr.eqns:
            outputs = self.equation(equation, [read(a) for a in equation.invars])
            environment.update(zip(equation.outvars, outputs, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def function(self, function: Callable[..., Any], arguments: Sequence[int]) -> list[int]:
        return self.closed(jax.make_jaxpr(function)(*[self.shapes[n] for n in arguments]), arguments)

    def equation(self, equation: Any, inputs: list[int]) -> list[int]:
        name, kind = equation.primitive.name, self.kind(inputs)
        _refuse_coupling(equation)
        if name in _CALLS:
            return self.closed(_as_closed(equation.params[_CALLS[name]]), inputs)
        if kind == Kind.RECORD and self.uses_parameters(inputs):
            if name in _REMATERIALISED:
                return self.block(equation, inputs)
            if name == "scan" and 1 <= equation.params["length"] <= _UNROLLED_ITERATIONS:
                return self.unrolled(equation, inputs)
        outputs = [self.new(v.aval, kind) for v in equation.outvars]
        operation = Operation(
            name, equation.primitive, equation.params, tuple(inputs), tuple(outputs), layer_of(equation)
        )
        (self.operations if kind == Kind.RECORD else self.hoisted).append(operation)
        return outputs

    def block(self, equation: Any, inputs: list[int]) -> list[int]:
        outside, self.operations = self.operations, []
        outputs = self.open(equation.params["jaxpr"], {}, inputs)
        body, self.operations = tuple(self.operations), outside
        settings = {k: equation.params[k] for k in ("policy", "prevent_cse")}
        if body:
            made = {n for operation in body for n in operation.outputs}
            read = {n for operation in body for n in operation.inputs if self.kinds[n] == Kind.RECORD}
            results = tuple(n for n in dict.fromkeys(outputs) if n in made)
            self.operations.append(
                Operation("checkpoint", None, settings, tuple(sorted(read - made)), results, "", body)
            )
        return outputs

    def unrolled(self, equation: Any, inputs: list[int]) -> list[int]:
        params = equation.params
        fixed, carried = params["num_consts"], params["num_carry"]
        shared, carry, scanned = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
        rows: list[list[int]] = []
        steps = range(params["length"])
        for step in reversed(steps) if params["reverse"] else steps:
            sliced = [self.function(lambda x, i=step: x[i], [n])[0] for n in scanned]
            results = self.closed(params["jaxpr"], [*shared, *carry, *sliced])
            carry = results[:carried]
            rows.append(results[carried:])
        if params["reverse"]:
            rows.reverse()
        stacked = [
            self.function(lambda *xs: jnp.stack(xs), list(column))[0] for column in zip(*rows, strict=True)
        ]
        return [*carry, *stacked]


def _as_closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else jax.extend.core.ClosedJaxpr(jaxpr, ())


def layer_of(equation: Any) -> str:
    """The innermost layer's call in the equation's traceback, `Conv` of `Conv.__call__`; "" where none is."""
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        owner, _, method = frame.function_name.rpartition(".")
        if method == "__call__" and "/jax/" not in frame.file_name and owner and "<locals>" not in owner:
            return owner.rpartition(".")[2]
    return ""


def _refuse_coupling(equation: Any) -> None:
    traceback = equation.source_info.traceback
    names = [frame.function_name for frame in traceback.frames] if traceback is not None else []
    for inner, outer in zip(names, names[1:], strict=False):
        if inner.endswith("_compute_stats") and outer.endswith("BatchNorm.__call__"):
            raise ValueError(
                "loss must not couple records, got BatchNorm with statistics of the batch; use GroupNorm or "
                "LayerNorm, or use_running_average=True with statistics that are public"
            )


def _refuse_shared_randomness(hoisted: Sequence[Operation]) -> None:
    for operation in hoisted:
        drawn = [name for name in (operation.name, *_inner(operation.params)) if name in _RANDOM]
        if drawn:
            raise ValueError(
                "loss must draw no randomness that the records share (dropout with one key for the "
                "batch); put a key a record into the batch instead, "
                f"got {drawn[0]} in {operation.layer or 'the loss'}"
            )


def _inner(params: dict[str, Any]) -> list[str]:
    """Names of the primitives in the jaxprs among an equation's parameters, at any depth."""
    found: list[str] = []
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            for equation in getattr(getattr(part, "jaxpr", part), "eqns", ()):
                found.extend((equation.primitive.name, *_inner(equation.params)))
    return found


def _needed(operations: Sequence[Operation], wanted: set[int]) -> tuple[Operation, ...]:
    """Operations on which a wanted number depends; `wanted` grows by what they read."""
    kept: list[Operation] = []
    for operation in reversed(operations):
        outputs = tuple(n for n in operation.outputs if n in wanted) if operation.body else operation.outputs
        if not wanted.intersection(outputs):
            continue
        if operation.body:
            body = _needed(operation.body, wanted)
            made = {n for part in body for n in part.outputs}
            inputs = tuple(n for n in operation.inputs if n in wanted and n not in made)
            operation = dataclasses.replace(operation, inputs=inputs, outputs=outputs, body=body)
        wanted.update(operation.inputs)
        kept.append(operation)
    return tuple(reversed(kept))


def build(jaxpr: Any, *, differentiable: Sequence[bool]) -> Program:
    """The flat program of a traced loss.

    Args:
      jaxpr: closed jaxpr of the loss: arguments are the leaves of params, then those of one record; one
      result.
      differentiable: for each leaf of params whether it gets a gradient; the others are constants.

    Raises:
      ValueError: the loss holds a BatchNorm in training mode, draws randomness shared between records, or
        does not depend on the record.
    """
    builder = _Builder()
    variables = jaxpr.jaxpr.invars
    kinds = [Kind.PARAMETER if d else Kind.CONSTANT for d in differentiable]
    kinds += [Kind.RECORD] * (len(variables) - len(kinds))
    arguments = [builder.new(v.aval, kind) for v, kind in zip(variables, kinds, strict=True)]
    (output,) = builder.closed(jaxpr, arguments)
    if builder.kinds[output] != Kind.RECORD:
        raise ValueError("loss must depend on the batch, got one that is computed without it")
    wanted = {output}
    operations = _needed(builder.operations, wanted)
    hoisted = _needed(builder.hoisted, wanted)
    _refuse_shared_randomness(hoisted)
    split = len(differentiable)
    return Program(
        shapes=builder.shapes,
        kinds=builder.kinds,
        constants=builder.constants,
        parameters=tuple(arguments[:split]),
        records=tuple(arguments[split:]),
        hoisted=hoisted,
        operations=operations,
        output=output,
    )
