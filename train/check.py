"""A model that would not train is refused before the first step."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from exactdp.train.objective import ExampleLosses, Examples
from exactdp.train.state import Parameters


def require_gradient(losses: ExampleLosses, params: Parameters, records: Examples) -> None:
    """Refuses a model whose gradient is zero in every parameter, or not finite, on made-up records.

    Such a model trains on noise alone, and nothing else would show it.

    Args:
      losses: (params, records) -> one loss a record, records as it takes them.
      params: initial parameters.
      records: made up; no private data, so that the refusal tells nothing about any.

    Raises:
      ValueError: it is refused.
    """
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(losses(p, records))))(params)
    leaves = jax.tree.leaves(gradient)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in leaves):
        raise ValueError("model must have a finite gradient on uniform pixels, got infinities or NaN")
    if all(bool(jnp.all(leaf == 0.0)) for leaf in leaves):
        raise ValueError(
            "model must have a gradient: it is zero in all parameters on uniform pixels, so that training "
            "would add up noise alone"
        )
