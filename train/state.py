"""The state of a run: one pytree, which a checkpoint holds whole."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

Parameters: TypeAlias = Any
"""Any pytree of float32 arrays."""


class State(NamedTuple):
    """Everything that a step reads and writes, beside the data.

    All random numbers of step `step` are functions of (`key`, `step`) alone, so that a resumed run repeats
    the uninterrupted one.

    Attributes:
      params: the trained parameters.
      opt_state: the optimiser's.
      ema: exponential moving average of `params`; an empty tuple where none is kept.
      step: steps done, int32.
      key: the run key, a typed PRNG key. It is as secret as the data: whoever has it can take the noise off.
    """

    params: Parameters
    opt_state: optax.OptState
    ema: Parameters
    step: Int[Array, ""]
    key: jax.Array

    @property
    def weights(self) -> Parameters:
        """What to evaluate and release: the average where one is kept, else the parameters."""
        return self.params if isinstance(self.ema, tuple) and not self.ema else self.ema


def initial(
    params: Parameters, *, optimiser: optax.GradientTransformation, average: bool, key: jax.Array
) -> State:
    """The state before the first step.

    Args:
      params: initial parameters.
      optimiser: makes its own state.
      average: whether an exponential moving average is kept.
      key: the run key.
    """
    ema = jax.tree.map(jnp.copy, params) if average else ()
    return State(params, optimiser.init(params), ema, jnp.int32(0), key)
