"""The quantile update, and the noise multipliers of Andrew et al."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import clipping

KEY = jax.random.key(2)


def test_the_clip_norm_converges_to_the_quantile():
    quantile = clipping.Quantile(0.7, learning_rate=0.2, count_std=5.0, expected_batch_size=200.0)
    update = jax.jit(lambda c, n, m, k: quantile.update(c, n, m, key=k))
    clip_norm, mask = jnp.float32(0.01), jnp.arange(250) < 200
    for k in jax.random.split(KEY, 150):
        norms = jax.random.exponential(k, (250,))
        clip_norm = update(clip_norm, norms, mask, jax.random.fold_in(k, 1))
    np.testing.assert_allclose(clip_norm, -np.log(0.3), rtol=0.15)


def test_one_step_by_hand():
    quantile = clipping.Quantile(0.5, learning_rate=1.0, count_std=1e-6, expected_batch_size=4.0)
    norms, mask = jnp.array([0.5, 2.0, jnp.inf, 0.1]), jnp.array([True, True, True, False])
    found = quantile.update(jnp.float32(1.0), norms, mask, key=KEY)
    np.testing.assert_allclose(found, np.exp(-(-0.5 / 4.0 + 0.5 - 0.5)), rtol=1e-5)


def test_noise_multipliers_add_in_inverse_square():
    together = clipping.effective_noise_multiplier(gradient_noise_multiplier=1.2, count_noise_multiplier=10.0)
    np.testing.assert_allclose(together**-2, 1.2**-2 + 10.0**-2)
    back = clipping.gradient_noise_multiplier(noise_multiplier=together, count_noise_multiplier=10.0)
    np.testing.assert_allclose(back, 1.2)
    with pytest.raises(ValueError, match="count_noise_multiplier must be > noise_multiplier"):
        clipping.gradient_noise_multiplier(noise_multiplier=1.0, count_noise_multiplier=1.0)
    assert clipping.Quantile(0.5, 0.2, 7.0, 100.0).count_noise_multiplier == 14.0


@pytest.mark.parametrize(
    "bad", [(1.5, 0.2, 1.0, 1.0), (0.5, 0.0, 1.0, 1.0), (0.5, 0.2, 0.0, 1.0), (0.5, 0.2, 1.0, 0.0)]
)
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match="must be"):
        clipping.Quantile(*bad)
