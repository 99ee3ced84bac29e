"""Dirichlet log-samples: marginals, log domain, bad input, devices, and the pathwise gradient."""

from __future__ import annotations

import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from scipy import special, stats

from exactdp.mechanisms import dirichlet

SHAPES = (1e-3, 1e-2, 0.1, 0.5, 1.0, 1.5, 3.0, 30.0, 1e3, 1e4)
DRAWS = 20_000


class TestLaw:
    @pytest.mark.parametrize("a", SHAPES)
    def test_marginals_are_beta(self, a: float) -> None:
        # Three classes of shapes a, a, 2 a: rho_0 ~ Beta(a, 3 a), rho_2 ~ Beta(2 a, 2 a).
        concentration = jnp.tile(jnp.float32([a, a, 2 * a]), (DRAWS, 1))
        log_rho = np.asarray(dirichlet.log_sample(jax.random.key(30), concentration), np.float64)
        a = float(np.float32(a))
        for index, (b, c) in ((0, (a, 3 * a)), (2, (2 * a, 2 * a))):
            u = log_rho[:, index]
            tiny = np.exp(np.minimum(b * u - math.log(b) - special.betaln(b, c), 0.0))
            uniform = np.where(u < -60.0, tiny, special.betainc(b, c, np.exp(np.maximum(u, -700.0))))
            # Near rho = 1 float32 has few logarithms left: the atom there is looked at by its mass.
            inside = u < -1e-5
            top = special.betainc(b, c, math.exp(-1e-5))
            share = inside.mean()
            assert abs(share - top) < 4.5 * math.sqrt(top * (1.0 - top) / DRAWS) + 1e-3
            assert stats.kstest(uniform[inside] / top, "uniform").pvalue > 1e-3 / 20

    def test_moments(self) -> None:
        a = np.array([0.3, 1.0, 2.5, 6.0])
        rho = np.asarray(
            dirichlet.sample(jax.random.key(31), jnp.tile(jnp.float32(a), (DRAWS, 1))), np.float64
        )
        total = a.sum()
        variance = a * (total - a) / (total**2 * (total + 1))
        assert np.all(np.abs(rho.mean(0) - a / total) < 4.0 * np.sqrt(variance / DRAWS))
        covariance = -np.outer(a, a) / (total**2 * (total + 1)) + np.diag(a / (total * (total + 1)))
        assert np.allclose(np.cov(rho.T), covariance, atol=8e-4)
        assert np.allclose(rho.sum(1), 1.0, atol=1e-5)

    def test_tiny_concentrations_do_not_underflow(self) -> None:
        log_rho = np.asarray(dirichlet.log_sample(jax.random.key(32), jnp.full((2000, 10), 1e-3)))
        assert np.all(np.isfinite(log_rho))
        assert np.median(log_rho) < -500.0
        assert np.allclose(special.logsumexp(log_rho.astype(np.float64), axis=1), 0.0, atol=1e-5)
        # The mean of log rho is psi(a) - psi(K a).
        expected = special.digamma(1e-3) - special.digamma(1e-2)
        assert log_rho.mean() == pytest.approx(expected, rel=0.03)


class TestShapesAndKeys:
    @pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 4), (1,), (2, 3, 5)])
    def test_any_shape(self, shape: tuple[int, ...]) -> None:
        log_rho = dirichlet.log_sample(jax.random.key(1), jnp.full(shape, 0.7))
        assert log_rho.shape == shape
        assert log_rho.dtype == jnp.float32
        assert np.all(np.isfinite(log_rho))
        if shape == (1,):
            assert np.all(np.asarray(log_rho) == 0.0)

    def test_one_class_has_no_gradient(self) -> None:
        slope = jax.grad(lambda a: dirichlet.log_sample(jax.random.key(1), a).sum())(jnp.full((4, 1), 0.7))
        assert np.all(np.asarray(slope) == 0.0)

    def test_a_scalar_is_refused(self) -> None:
        with pytest.raises(ValueError, match="concentration must have a class axis, got a scalar"):
            dirichlet.log_sample(jax.random.key(1), 2.0)

    def test_a_bad_entry_makes_its_row_nan(self) -> None:
        a = jnp.ones((5, 3)).at[1, 0].set(jnp.nan).at[2, 1].set(-1.0).at[3, 2].set(jnp.inf)
        rows = np.isnan(np.asarray(dirichlet.log_sample(jax.random.key(1), a)))
        assert np.array_equal(rows, np.repeat([[False], [True], [True], [True], [False]], 3, axis=1))

    def test_bfloat16(self) -> None:
        log_rho = dirichlet.log_sample(jax.random.key(1), jnp.full((3, 4), 0.5, jnp.bfloat16))
        assert log_rho.dtype == jnp.float32

    @pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
    def test_vmap_over_keys_equals_one_at_a_time(self, impl: str) -> None:
        keys = jax.random.split(jax.random.key(3, impl=impl), 8)
        a = jnp.full((10,), 1.1)
        together = jax.vmap(dirichlet.log_sample, in_axes=(0, None))(keys, a)
        alone = jnp.stack([dirichlet.log_sample(key, a) for key in keys])
        assert np.allclose(together, alone, rtol=1e-5, atol=1e-5)
        slopes = jax.vmap(jax.grad(lambda a, k: dirichlet.log_sample(k, a)[0]), in_axes=(None, 0))(a, keys)
        assert np.all(np.isfinite(slopes))

    def test_lowers_for_accelerators(self) -> None:
        def loss(a: jax.Array) -> jax.Array:
            return -dirichlet.log_sample(jax.random.key(1), a)[:, 0].mean()

        exported = export.export(jax.jit(jax.grad(loss)), platforms=["cuda", "tpu"])(jnp.ones((256, 1000)))
        assert exported.platforms == ("cuda", "tpu")

    def test_eight_devices_draw_what_one_draws(self) -> None:
        program = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from exactdp.mechanisms import dirichlet
def loss(a, key):
    return -dirichlet.log_sample(key, a)[:, 0].mean()
f = jax.jit(jax.value_and_grad(loss))
a, key = jnp.linspace(0.2, 4.0, 640).reshape(64, 10), jax.random.key(1)
one = f(a, key)
rows = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
eight = f(jax.device_put(a, rows), key)
assert len(jax.devices()) == 8
np.testing.assert_allclose(one[0], eight[0], rtol=1e-5)
np.testing.assert_allclose(one[1], eight[1], rtol=1e-4, atol=1e-7)
mapped = jax.pmap(jax.grad(loss))(a.reshape(8, 8, 10), jax.random.split(key, 8))
assert bool(jnp.isfinite(mapped).all())
"""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env={
                "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
                "JAX_PLATFORMS": "cpu",
                "PYTHONPATH": ":".join(sys.path),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]


class TestGradient:
    @pytest.mark.parametrize("a", [(0.05, 0.1, 0.3), (0.7, 1.0, 2.0, 5.0), (3.0, 3.2, 3.1), (30.0, 100.0)])
    def test_mean_is_the_derivative_of_the_mean(self, a: tuple[float, ...]) -> None:
        # E log rho_0 = psi(a_0) - psi(sum a).
        n = 30_000
        concentration = jnp.tile(jnp.float32(a), (n, 1))
        slopes = np.asarray(
            jax.grad(lambda c: dirichlet.log_sample(jax.random.key(40), c)[:, 0].sum())(concentration),
            np.float64,
        )
        expected = -special.polygamma(1, sum(a)) * np.ones(len(a))
        expected[0] += special.polygamma(1, a[0])
        error = slopes.std(0) / math.sqrt(n)
        assert np.all(np.abs(slopes.mean(0) - expected) < 4.2 * error)

    def test_mean_for_a_function_that_is_not_a_logarithm(self) -> None:
        # E rho_0^2 = a_0 (a_0 + 1) / (A (A + 1)).
        n, a = 40_000, np.array([0.8, 1.7, 2.2])

        def second_moment(c: np.ndarray) -> float:
            total = c.sum()
            return float(c[0] * (c[0] + 1) / (total * (total + 1)))

        step = 1e-5
        expected = [
            (second_moment(a + step * e) - second_moment(a - step * e)) / (2 * step) for e in np.eye(3)
        ]
        slopes = np.asarray(
            jax.grad(lambda c: (dirichlet.sample(jax.random.key(41), c)[:, 0] ** 2).sum())(
                jnp.tile(jnp.float32(a), (n, 1))
            ),
            np.float64,
        )
        assert np.all(np.abs(slopes.mean(0) - expected) < 4.2 * slopes.std(0) / math.sqrt(n))

    def test_forward_and_reverse_agree(self) -> None:
        a, key = jnp.asarray([0.01, 0.5, 3.0, 50.0]), jax.random.key(1)
        forward = jax.jacfwd(lambda a: dirichlet.log_sample(key, a))(a)
        reverse = jax.jacrev(lambda a: dirichlet.log_sample(key, a))(a)
        assert np.allclose(forward, reverse, rtol=1e-4, atol=1e-6)
        # rho sums to 1, whatever the concentration.
        rho = dirichlet.sample(key, a)
        assert np.allclose(rho @ forward, 0.0, atol=1e-3 * float(jnp.abs(forward).max()))
