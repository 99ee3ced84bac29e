"""Inner products of a record's positions: of two in their own way, of more as matrix products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import clipping
from exactdp.mechanisms.clipping.rules import rule


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("positions", [2, 3])
def test_inner_products_of_positions(positions: int, dtype: str) -> None:
    rows = np.random.default_rng(positions).normal(size=(4, 3, positions, 50))
    value = jnp.asarray(rows, dtype)
    exact = np.asarray(value, np.float64)
    found = rule.gram(value)
    assert found.dtype == jnp.float32 and found.shape == (4, 3, positions, positions)
    np.testing.assert_allclose(found, np.einsum("bhtk,bhsk->bhts", exact, exact), rtol=1e-5, atol=1e-4)


def test_two_positions_that_cancel_stay_within_the_clip_norm() -> None:
    """A record beside a public view that is nearly the record: its gradient is their small difference."""
    random = np.random.default_rng(1)
    own = random.normal(size=(8, 1, 700)).astype(np.float32)
    # The records differ from their views by nothing, by little and by much.
    apart = np.array([0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0], np.float32)[:, None, None]
    pairs = np.concatenate([own, own + apart * random.normal(size=own.shape).astype(np.float32)], 1)
    bound = 1e-3

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        both = jnp.tanh(x @ w).sum(2)
        return both[:, 0] - both[:, 1]

    w = jnp.asarray(0.01 * random.normal(size=(700, 40)), jnp.float32)
    clipped = jax.jit(
        clipping.clipped_grad(loss, clip_norm=bound, method="ghost"),
        compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
    )
    slopes = 1.0 - np.tanh(pairs.astype(np.float64) @ np.asarray(w, np.float64)) ** 2
    exact = np.einsum("btk,btn->bkn", pairs * np.array([1.0, -1.0])[:, None], slopes)
    norms = np.linalg.norm(exact.reshape(8, -1), axis=1)
    for place in range(8):
        found = clipped(w, jnp.asarray(pairs), jnp.arange(8) == place)
        assert np.linalg.norm(np.asarray(found.sum, np.float64)) <= bound
        assert float(found.norms[place]) >= norms[place] * (1.0 - 1e-5)
        # Where the two cancel, the room for rounding is most of the norm; where they do not, next to nothing.
        if place == 7:
            assert float(found.norms[place]) <= norms[place] * (1.0 + 1e-4)
