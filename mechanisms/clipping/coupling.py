"""Losses in which the records of a batch meet, found in the trace for many records.

The loss is traced once more for a prime number p of records, p dividing no extent that the trace for one
record shows. An extent that p divides is then an axis of records, whatever the loss does with its axes, and a
value computed from the batch whose size p does not divide once was computed from several records: a mean, a
maximum, a matrix of all pairs.

What is not seen: look-ups along the axis of records (`x[permutation]`), and what happens inside operations
that this file does not open. `verify` runs the loss, and sees those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.mechanisms.clipping.program import layer_of

_PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049)
_CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "checkpoint",
    "remat",
    "remat2",
    "custom_jvp_call",
    "custom_vjp_call",
)
_BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_RUNNING = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
_WINDOWS = ("reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min")


def prime(shapes: Sequence[jax.ShapeDtypeStruct]) -> int:
    """A number of records that no extent of the shapes is a multiple of."""
    extents = {n for shape in shapes for n in shape.shape if n}
    return next((p for p in _PRIMES if all(n % p for n in extents)), 1_000_003)


def refuse(one: Any, many: Any, *, leaves: int, records: int) -> None:
    """Refuses a loss that couples records.

    Args:
      one: closed jaxpr of the loss of one record; arguments are the leaves of params, then of the batch.
      many: the same for `records` of them.
      leaves: number of leaves of params.
      records: of `prime`.

    Raises:
      ValueError: the loss couples records, or counts them.
    """
    jaxpr = many.jaxpr
    tainted = [False] * leaves + [True] * (len(jaxpr.invars) - leaves)
    _Check(records).run(jaxpr, tainted, [True] * len(jaxpr.outvars))
    _compare(one.jaxpr, jaxpr, [True] * len(jaxpr.outvars))


def _fail(equation: Any, what: str) -> None:
    raise ValueError(
        f"loss must not couple records, got {equation.primitive.name} in {layer_of(equation) or 'the loss'} "
        f"that {what}"
    )


def _live(jaxpr: Any, wanted: Sequence[bool]) -> list[tuple[Any, list[bool]]]:
    """The equations on which a wanted result depends, and which results of each are wanted."""
    needed = {id(v) for v, use in zip(jaxpr.outvars, wanted, strict=True) if use}
    found: list[tuple[Any, list[bool]]] = []
    for equation in reversed(jaxpr.eqns):
        if any(id(v) in needed for v in equation.outvars):
            found.append((equation, [id(v) in needed for v in equation.outvars]))
            needed.update(id(v) for v in equation.invars)
    return found[::-1]


class _Check:
    def __init__(self, records: int) -> None:
        self.records = records

    def _marked(self, extent: int) -> bool:
        return extent > 0 and extent % self.records == 0

    def run(self, jaxpr: Any, tainted: Sequence[bool], wanted: Sequence[bool]) -> list[bool]:
        """Which results depend on the batch."""
        depends = {id(v) for v, taint in zip(jaxpr.invars, tainted, strict=True) if taint}
        for equation, used in _live(jaxpr, wanted):
            inputs = [id(v) in depends for v in equation.invars]
            if any(inputs):
                outputs = self._equation(equation, inputs, used)
                depends.update(id(v) for v, taint in zip(equation.outvars, outputs, strict=True) if taint)
        return [id(v) in depends for v in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[bool], used: list[bool]) -> list[bool]:
        name, params = equation.primitive.name, equation.params
        outputs = [True] * len(equation.outvars)
        body = _body(equation) if name in _CALLS else None
        if body is not None:
            outputs = self.run(body, inputs, used)
        elif name == "scan":
            outputs = self._scan(equation, inputs)
        elif name == "while":
            outputs = self._while(equation, inputs)
        elif name == "cond":
            branches = [self.run(branch.jaxpr, inputs[1:], used) for branch in params["branches"]]
            outputs = [inputs[0] or any(taints) for taints in zip(*branches, strict=True)]
        self._axes(equation, inputs)
        for variable, taint in zip(equation.outvars, outputs, strict=True):
            size = int(np.prod(variable.aval.shape, dtype=object))
            if taint and size and size % self.records:
                _fail(equation, f"makes {list(variable.aval.shape)} of all records")
            if taint and size and size % self.records**2 == 0:
                _fail(equation, "pairs records with one another")
        return outputs

    def _scan(self, equation: Any, inputs: list[bool]) -> list[bool]:
        params = equation.params
        fixed, carried = params["num_consts"], params["num_carry"]
        # A loop over the records themselves has bodies without an axis of records.
        over_records = self._marked(params["length"])
        check = _Propagation(self.records) if over_records else self
        body, wanted = params["jaxpr"].jaxpr, [True] * len(equation.outvars)
        shared, carry, scanned = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
        while True:
            outputs = check.run(body, [*shared, *carry, *scanned], wanted)
            grown = [a or b for a, b in zip(carry, outputs[:carried], strict=True)]
            if grown == carry:
                break
            carry = grown
        if over_records and any(carry):
            _fail(equation, "carries something from record to record")
        return outputs

    def _while(self, equation: Any, inputs: list[bool]) -> list[bool]:
        params = equation.params
        tested, fixed = params["cond_nconsts"], params["body_nconsts"]
        shared, carry = inputs[tested : tested + fixed], inputs[tested + fixed :]
        while True:
            # A condition of one record each is joined to one for all: it is followed, not checked.
            taints = [*inputs[:tested], *carry]
            if any(_Propagation(self.records).run(params["cond_jaxpr"].jaxpr, taints, [True])):
                return [True] * len(carry)
            outputs = self.run(params["body_jaxpr"].jaxpr, [*shared, *carry], [True] * len(carry))
            grown = [a or b for a, b in zip(carry, outputs, strict=True)]
            if grown == carry:
                return carry
            carry = grown

    def _axes(self, equation: Any, inputs: list[bool]) -> None:
        """Operations that keep the axis of records and mix along it."""
        name, params = equation.primitive.name, equation.params
        shape = next(tuple(v.aval.shape) for v, taint in zip(equation.invars, inputs, strict=True) if taint)
        result = tuple(equation.outvars[0].aval.shape)
        marked = [k for k, extent in enumerate(shape) if self._marked(extent)]
        mixed: Sequence[int] = ()
        if name == "sort":
            mixed = (params["dimension"],)
        elif name == "top_k":
            mixed = (params.get("axis", len(shape) - 1) % len(shape),)
        elif name in _RUNNING:
            mixed = (params["axis"],)
        elif name == "rev":
            mixed = params["dimensions"]
        elif name == "fft":
            mixed = range(len(shape) - len(params["fft_lengths"]), len(shape))
        elif name in _WINDOWS:
            mixed = [k for k, extent in enumerate(params["window_dimensions"]) if extent > 1]
        elif name == "conv_general_dilated" and inputs[0]:
            mixed = params["dimension_numbers"].lhs_spec[2:]
        elif name == "dynamic_slice" and inputs[0]:
            mixed = [k for k, n in enumerate(params["slice_sizes"]) if n != shape[k]]
        elif name == "reshape" and len(marked) == 1 and shape[marked[0]] == self.records:
            moved = [k for k, extent in enumerate(result) if extent == self.records]
            if moved and _before(shape, marked[0]) != _before(result, moved[0]):
                mixed = marked
        elif name == "dot_general":
            contracted, _ = params["dimension_numbers"]
            mixed = contracted[inputs.index(True)]
        if set(mixed) & set(marked):
            _fail(equation, "mixes along the axis of records")


class _Propagation(_Check):
    """Follows dependence alone."""

    def _equation(self, equation: Any, inputs: list[bool], used: list[bool]) -> list[bool]:
        return [True] * len(equation.outvars)


def _before(shape: Sequence[int], axis: int) -> int:
    return int(np.prod(shape[:axis], dtype=object))


def _compare(one: Any, many: Any, wanted: Sequence[bool]) -> None:
    """Refuses numbers that depend on how many records there are, where the traces run in parallel."""
    pairs = list(zip(_live(one, wanted), _live(many, wanted), strict=False))
    if any(first.primitive is not second.primitive for (first, _), (second, _) in pairs):
        return
    for (first, _), (second, used) in pairs:
        for a, b in zip(first.invars, second.invars, strict=True):
            if _is_number(a) and _is_number(b) and not np.array_equal(a.val, b.val, equal_nan=True):
                _fail(second, f"uses the number of records ({a.val:g} for one, {b.val:g} for many)")
        body = _body(first), _body(second)
        if first.primitive.name in _CALLS and None not in body:
            _compare(*body, used)


def _is_number(atom: Any) -> bool:
    return hasattr(atom, "val") and np.shape(atom.val) == () and jnp.issubdtype(atom.aval.dtype, jnp.floating)


def _body(equation: Any) -> Any:
    """The jaxpr that a call runs; None where there is none."""
    found = next((equation.params[k] for k in _BODIES if k in equation.params), None)
    return getattr(found, "jaxpr", found)
