"""Any operation, by its own vector-Jacobian product, one record at a time under `vmap`.

Exact whatever the operation does. For an elementwise one (a bias, a scale) it costs what the gradient itself
costs; for a loop or a call with its own derivative it is `vmap(grad)` of that operation alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from exactdp.mechanisms.clipping.program import Operation
from exactdp.mechanisms.clipping.rules import rule

_ELEMENTWISE = ("add", "add_any", "sub", "mul", "div", "select_n", "max", "min", "convert_element_type")


@dataclasses.dataclass(frozen=True)
class Own:
    """The rule of every operation that has no other.

    Attributes:
      operation: the use.
      positions: its parameter operands.
      records: its record operands.
      float_outputs: which results carry a gradient.
      work: numbers in the results.
    """

    operation: Operation
    positions: tuple[int, ...]
    records: tuple[int, ...]
    float_outputs: tuple[int, ...]
    work: int

    @property
    def name(self) -> str:
        return "elementwise" if self.operation.name in _ELEMENTWISE else f"vmap({self.operation.name})"

    def forward(self, operands: Sequence[Array]) -> list[Array]:
        return rule.batched(self.operation, operands, self.records)

    def gradients(self, operands: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        def one(values: list[Array], cotangents: list[Array]) -> list[Array]:
            def of_parameters(*parameters: Array) -> list[Array]:
                arguments = list(values)
                for position, parameter in zip(self.positions, parameters, strict=True):
                    arguments[position] = parameter
                results = rule.bind(self.operation, arguments)
                return [results[k] for k in self.float_outputs]

            _, pull = jax.vjp(of_parameters, *[values[k] for k in self.positions])
            # Complex only where the parameter operand is, which was computed from parameters.
            return [x.astype(jnp.promote_types(x.dtype, jnp.float32)) for x in pull(cotangents)]

        axes = [0 if k in self.records else None for k in range(len(operands))]
        return jax.vmap(one, in_axes=(axes, 0))(list(operands), list(outputs))

    def restored(self, gradients: Sequence[Array]) -> list[Array]:
        return list(gradients)

    @property
    def gradient_flops(self) -> float:
        return 2.0 * self.work
