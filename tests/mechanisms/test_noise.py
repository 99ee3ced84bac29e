"""Gaussian noise: its law to the far tails, one stream a leaf, the same however arrays are sharded."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.mechanisms import keys, noise

KEY = jax.random.key(2024)


def test_the_law_is_normal() -> None:
    z = np.asarray(noise.standard_normal(KEY, (400_000,)), np.float64)
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1.0) < 5 * np.sqrt(2.0 / z.size)
    assert abs((z**4).mean() - 3.0) < 5 * np.sqrt(96.0 / z.size)
    for at in (2.0, 3.0, 3.5):
        expected = z.size * stats.norm.sf(at)
        for count in ((z > at).sum(), (z < -at).sum()):
            assert abs(count - expected) < 5 * np.sqrt(expected)


def test_the_tails_reach_nine_standard_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    # The least and the greatest words, and tail probabilities in between, against SciPy's quantiles.
    high = np.array([0, 1, 2, 3, 2**5, 2**20 + 1, 2**32 - 1, 2**32 - 2], np.uint32)
    low = np.array([0, 0, 2**31, 2**32 - 1, 5, 7, 2**32 - 1, 2**32 - 1], np.uint32)
    monkeypatch.setattr(noise.keys, "words", lambda key, shape: (jnp.asarray(high), jnp.asarray(low)))
    # Unjitted, so that no cache keeps these words.
    z = np.asarray(noise.standard_normal.__wrapped__(KEY, (8,)), np.float64)
    tail = ((high >> 1).astype(np.float64) + (low + 0.5) / 2.0**32) / 2.0**32
    want = np.where(high & 1, -1.0, 1.0) * stats.norm.ppf(tail)
    np.testing.assert_allclose(z, want, rtol=2e-6, atol=2e-7)
    assert abs(z).max() > 9.0 and np.all(np.isfinite(z))


def test_noise_is_added_with_the_dtype_kept() -> None:
    tree = {
        "a": jnp.ones((300, 200)),
        "b": [jnp.zeros((5,), jnp.bfloat16), jnp.float16(1.0)],
        "c": jnp.zeros((0, 3)),
    }
    noisy = noise.gaussian(KEY, tree, std=3.0)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), noisy) == jax.tree.map(
        lambda x: (x.shape, x.dtype), tree
    )
    residual = np.asarray(noisy["a"] - 1.0) / 3.0
    assert stats.kstest(residual.ravel(), "norm").pvalue > 1e-3
    same = noise.gaussian(KEY, tree, std=0.0)
    np.testing.assert_array_equal(np.asarray(same["a"]), np.asarray(tree["a"]))


def test_bfloat16_is_rounded_once_after_adding_in_float32() -> None:
    leaf = jnp.linspace(-4.0, 4.0, 64).astype(jnp.bfloat16)
    rounded = noise.gaussian(KEY, leaf, std=1.0)
    exact = noise.gaussian(KEY, leaf.astype(jnp.float32), std=1.0)
    np.testing.assert_array_equal(np.asarray(rounded), np.asarray(exact.astype(jnp.bfloat16)))


def test_leaves_have_independent_noise_that_follows_their_path() -> None:
    zeros = jnp.zeros((20_000,))
    one = noise.gaussian(KEY, {"a": zeros, "b": {"a": zeros}}, std=1.0)
    a, b = np.asarray(one["a"]), np.asarray(one["b"]["a"])
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(a.size)
    more = noise.gaussian(KEY, {"0": zeros, "a": zeros, "b": {"a": zeros, "z": zeros}}, std=1.0)
    np.testing.assert_array_equal(np.asarray(more["a"]), a)
    np.testing.assert_array_equal(np.asarray(more["b"]["a"]), b)


def test_the_same_jitted_and_with_a_traced_std() -> None:
    tree = {"a": jnp.zeros((64,)), "b": jnp.ones((3, 5))}
    jitted = jax.jit(lambda std: noise.gaussian(KEY, tree, std=std))(jnp.float32(0.7))
    for got, want in zip(
        jax.tree.leaves(jitted), jax.tree.leaves(noise.gaussian(KEY, tree, std=0.7)), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6, atol=1e-6)


def test_another_step_has_independent_noise() -> None:
    zeros = jnp.zeros((20_000,))
    one, two = (
        np.asarray(noise.gaussian(keys.step_key(KEY, step=step, purpose="noise"), zeros, std=1.0))
        for step in (3, 4)
    )
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / np.sqrt(one.size)


def test_bad_arguments_are_refused() -> None:
    for std in (-1.0, float("nan"), float("inf"), np.float32(-0.5)):
        with pytest.raises(ValueError, match="std must be finite and >= 0"):
            noise.gaussian(KEY, jnp.zeros(3), std=std)
    with pytest.raises(ValueError, match=r"floating-point leaves, got int32 at \['n'\]"):
        noise.gaussian(KEY, {"n": jnp.arange(3)}, std=1.0)
    with pytest.raises(ValueError, match="key must be one typed key"):
        noise.gaussian(jax.random.PRNGKey(0), jnp.zeros(3), std=1.0)


def test_leaves_whose_paths_hash_alike_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_fold", lambda name: (1, 2))
    with pytest.raises(ValueError, match="paths of different hashes"):
        noise.gaussian(KEY, {"a": jnp.zeros(3), "b": jnp.zeros(3)}, std=1.0)


SHARDED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from exactdp.mechanisms import keys, noise
from exactdp.mechanisms.batches import Batch, FixedSize, Poisson

assert jax.device_count() == 8
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
key = keys.run_key(1)
tree = {"w": jnp.zeros((64, 32)), "b": jnp.zeros((32,))}
samplers = Poisson(1000, 0.05, 64), Poisson(1000, 0.05, 40), FixedSize(4000, 64)

def draws(tree, step):
    noisy = noise.gaussian(key, tree, std=1.0)
    return noisy, keys.words(key, (64, 32)), [sampler.draw(key, step=step) for sampler in samplers]

want = jax.jit(draws)(tree, jnp.int32(3))
for spec in (P("data", "model"), P(("data", "model"))):
    sharding = NamedSharding(mesh, spec)
    rows = NamedSharding(mesh, P(spec[0]))
    placed = dict(tree, w=jax.device_put(tree["w"], sharding))
    batches = [Batch(rows, rows, NamedSharding(mesh, P()))] * 3
    shardings = dict(w=sharding, b=rows), (sharding, sharding), batches
    got = jax.jit(draws, out_shardings=shardings)(placed, jnp.int32(3))
    for name in tree:
        assert got[0][name].sharding.num_devices == 8
        np.testing.assert_allclose(np.asarray(got[0][name]), np.asarray(want[0][name]), rtol=1e-6, atol=1e-6)
    for one, two in zip(jax.tree.leaves(got[1:]), jax.tree.leaves(want[1:]), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
print("same")
"""


def test_eight_devices_draw_the_same_noise_and_batches() -> None:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "same"
