"""Clipped sums beside those of single records' gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from exactdp.mechanisms import clipping

# What is tested does not depend on how well the code is optimised; compiling it does.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def check(loss: Any, params: Any, records: Array, *, method: Any = None) -> None:
    """The clipped sum of all but the last record is that of `vmap(grad)`, clipped."""
    count = len(records)

    def one(params: Any, record: Array) -> Array:
        return loss(params, record[None])[0]

    single = quick_jit(jax.vmap(jax.grad(one), (None, 0)))(params, records)
    norms = np.sqrt(sum(np.sum(np.reshape(x, (count, -1)) ** 2, 1) for x in jax.tree.leaves(single)))
    clip_norm = float(np.median(norms))
    weights = np.minimum(1.0, clip_norm / norms)
    weights[-1] = 0.0
    mask = jnp.arange(count) < count - 1
    clipped = quick_jit(clipping.clipped_grad(loss, clip_norm=clip_norm, method=method))(
        params, records, mask
    )
    for found, gradient in zip(jax.tree.leaves(clipped.sum), jax.tree.leaves(single), strict=True):
        np.testing.assert_allclose(found, np.tensordot(weights, gradient, 1), atol=2e-4 * clip_norm)
