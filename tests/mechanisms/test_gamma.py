"""Gamma log-samples: law, keys, bad input, lowering; the pathwise slope against 50-digit arithmetic."""

from __future__ import annotations

import math
import time

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax import export
from jax.extend import random as jax_random
from scipy import special, stats

from exactdp.mechanisms import gamma, gamma_gradient, lane_bits

SHAPES = (1e-3, 1e-2, 0.1, 0.5, 1.0, 1.5, 3.0, 30.0, 1e3, 1e4)
DRAWS = 40_000
FAMILY_ERROR = 1e-3  # for all the Kolmogorov-Smirnov tests of this file together


def log_cdf_values(log_x: np.ndarray, a: float) -> np.ndarray:
    """Distribution function of log Gamma(a), also where x underflows."""
    log_x = np.asarray(log_x, np.float64)
    x = np.exp(np.maximum(log_x, -700.0))
    tiny = np.exp(np.minimum(a * log_x - special.gammaln(a + 1.0), 0.0))
    return np.where(log_x < -40.0, tiny, special.gammainc(a, x))


@pytest.fixture(scope="module")
def samples() -> dict[float, np.ndarray]:
    shapes = jnp.broadcast_to(jnp.asarray(SHAPES, jnp.float32), (DRAWS, len(SHAPES)))
    drawn = np.asarray(gamma.log_sample(jax.random.key(20), shapes), np.float64)
    return dict(zip(SHAPES, drawn.T, strict=True))


class TestLaw:
    @pytest.mark.parametrize("a", SHAPES)
    def test_kolmogorov_smirnov(self, samples: dict[float, np.ndarray], a: float) -> None:
        uniform = log_cdf_values(samples[a], float(np.float32(a)))
        assert stats.kstest(uniform, "uniform").pvalue > FAMILY_ERROR / (2 * len(SHAPES))

    @pytest.mark.parametrize("a", SHAPES)
    def test_kolmogorov_smirnov_with_rbg_keys(self, a: float) -> None:
        key = jax.random.key(21, impl="rbg")
        drawn = np.asarray(gamma.log_sample(key, jnp.full((20_000,), a)))
        uniform = log_cdf_values(drawn, float(np.float32(a)))
        assert stats.kstest(uniform, "uniform").pvalue > FAMILY_ERROR / (2 * len(SHAPES))

    @pytest.mark.parametrize("a", SHAPES)
    def test_moments_of_the_logarithm(self, samples: dict[float, np.ndarray], a: float) -> None:
        mean, variance = special.digamma(a), special.polygamma(1, a)
        kurtosis = special.polygamma(3, a) / variance**2 + 3.0
        z_mean = (samples[a].mean() - mean) / math.sqrt(variance / DRAWS)
        z_variance = (samples[a].var() / variance - 1.0) / math.sqrt((kurtosis - 1.0) / DRAWS)
        # 20 statistics; rounding of log X adds 1e-6 absolutely, far below these standard errors.
        assert abs(z_mean) < 4.3
        assert abs(z_variance) < 4.3

    def test_moments_of_the_variable(self, samples: dict[float, np.ndarray]) -> None:
        for a in (0.5, 1.0, 1.5, 3.0, 30.0):
            z = (np.exp(samples[a]).mean() - a) / math.sqrt(a / DRAWS)
            assert abs(z) < 4.0

    def test_tiny_shapes_in_the_log_domain(self, samples: dict[float, np.ndarray]) -> None:
        drawn = samples[1e-3]
        assert np.all(np.isfinite(drawn))
        assert np.median(drawn) == pytest.approx(math.log(0.5) / 1e-3, rel=0.05)
        # -a log X tends to a standard exponential: its far tail is there too.
        assert stats.kstest(-1e-3 * drawn[drawn < -40.0], stats.expon(0.04).cdf).pvalue > 1e-4
        assert drawn.min() < -8000.0

    def test_redrawn_lanes_have_the_same_law(self) -> None:
        # At a = 1 one candidate in twenty is rejected; the lanes where that happened are looked at alone.
        key, n = jax.random.key(5), 320_000
        shape = jnp.ones((n,))
        first = jax.jit(gamma._candidate)(shape, *lane_bits.pair(key, stream=0, lanes=n))  # noqa: SLF001
        rejected = np.asarray(first) == math.inf
        drawn = np.exp(np.asarray(gamma.log_sample(key, shape), np.float64))
        assert 0.04 < rejected.mean() < 0.06
        assert stats.kstest(drawn[rejected], "expon").pvalue > 1e-4
        assert stats.kstest(drawn[~rejected], "expon").pvalue > 1e-4

    def test_lanes_are_independent(self, samples: dict[float, np.ndarray]) -> None:
        ranks = np.stack([stats.rankdata(samples[a]) for a in SHAPES])
        correlation = np.corrcoef(ranks)[np.triu_indices(len(SHAPES), 1)] * math.sqrt(DRAWS)
        assert np.abs(correlation).max() < 4.5
        for a in SHAPES:
            for lag in (1, 31, 32, 33):
                u = stats.rankdata(samples[a])
                assert abs(np.corrcoef(u[lag:], u[:-lag])[0, 1]) * math.sqrt(DRAWS) < 4.8


class TestKeys:
    def test_same_key_same_result(self) -> None:
        a = jnp.full((100,), 0.7)
        key = jax.random.key(1)
        assert np.array_equal(gamma.log_sample(key, a), gamma.log_sample(key, a))
        assert np.array_equal(gamma.log_sample(key, a), jax.jit(gamma.log_sample)(key, a))
        other = gamma.log_sample(jax.random.key(2), a)
        assert not np.any(np.asarray(gamma.log_sample(key, a)) == np.asarray(other))

    @pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
    def test_vmap_over_keys(self, impl: str) -> None:
        keys = jax.random.split(jax.random.key(3, impl=impl), 200)
        a = jnp.full((50,), 1.2)
        drawn = jax.vmap(gamma.log_sample, in_axes=(0, None))(keys, a)
        assert len(np.unique(np.asarray(drawn))) > 0.99 * drawn.size
        uniform = log_cdf_values(np.asarray(drawn).ravel(), float(np.float32(1.2)))
        assert stats.kstest(uniform, "uniform").pvalue > 1e-4
        # Whatever the kind of key, an element draws what its key draws alone.
        alone = jnp.stack([gamma.log_sample(key, a) for key in keys[:5]])
        # To rounding of numbers down to -9, which is not the same on all processors.
        assert np.allclose(drawn[:5], alone, rtol=1e-6, atol=2e-6)

    def test_vmap_over_shapes_shares_the_key(self) -> None:
        shapes = jnp.asarray([0.5, 2.0, 7.0])
        drawn = jax.vmap(lambda a: gamma.log_sample(jax.random.key(4), jnp.full((40,), a)))(shapes)
        alone = gamma.log_sample(jax.random.key(4), jnp.full((40,), 2.0))
        assert np.allclose(drawn[1], alone, rtol=0, atol=2e-6)

    @pytest.mark.parametrize("key", [jax.random.split(jax.random.key(0), 3), jnp.zeros(2, jnp.uint32), 7])
    def test_anything_but_one_typed_key_is_refused(self, key: object) -> None:
        with pytest.raises(ValueError, match="key must be one typed key"):
            gamma.log_sample(key, jnp.ones(3))  # type: ignore[arg-type]


class TestLaneBits:
    @pytest.mark.parametrize(
        ("key", "counter", "answer"),
        [
            ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
            ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
        ],
    )
    def test_published_answers(
        self, key: tuple[int, int], counter: tuple[int, int], answer: tuple[int, int]
    ) -> None:
        # Known answers that come with Random123, the authors' own library.
        words = lane_bits._threefry(*(jnp.uint32(v) for v in (*key, *counter)))  # noqa: SLF001
        assert tuple(int(w) for w in words) == answer

    def test_equals_the_cipher_of_jax(self) -> None:
        key = jax.random.key(123)
        words = lane_bits.pair(key, stream=9, lanes=70)
        counters = jnp.concatenate([jnp.full((70,), 9, jnp.uint32), jnp.arange(70, dtype=jnp.uint32)])
        reference = jax_random.threefry_2x32(jax.random.key_data(key), counters)
        assert np.array_equal(np.concatenate(words), reference)


class TestShapesAndTypes:
    @pytest.mark.parametrize("shape", [(), (3, 0, 2), (32,), (33,), (2, 3, 5)])
    def test_any_shape(self, shape: tuple[int, ...]) -> None:
        drawn = gamma.log_sample(jax.random.key(1), jnp.full(shape, 0.8))
        assert drawn.shape == shape
        assert drawn.dtype == jnp.float32
        assert np.all(np.isfinite(drawn))

    @pytest.mark.parametrize("value", [2, 2.5, [[1.0, 2.0]]])
    def test_array_likes(self, value: object) -> None:
        drawn = gamma.log_sample(jax.random.key(1), value)  # type: ignore[arg-type]
        assert drawn.shape == np.shape(value)

    def test_bfloat16_is_computed_in_float32(self) -> None:
        a = jnp.linspace(0.01, 3.0, 64, dtype=jnp.bfloat16)
        drawn = gamma.log_sample(jax.random.key(1), a)
        assert drawn.dtype == jnp.float32
        assert np.array_equal(drawn, gamma.log_sample(jax.random.key(1), a.astype(jnp.float32)))
        slope = jax.grad(lambda a: gamma.log_sample(jax.random.key(1), a).sum())(a)
        assert slope.dtype == jnp.bfloat16
        assert np.all(np.asarray(slope, np.float32) > 0.0)

    def test_bad_shapes_give_nan_and_touch_nothing_else(self) -> None:
        good = jnp.linspace(0.1, 50.0, 40)
        bad = jnp.asarray([0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 1e-42])
        drawn = gamma.log_sample(jax.random.key(1), jnp.concatenate([good, bad]))
        alone = gamma.log_sample(jax.random.key(1), jnp.concatenate([good, jnp.ones(7)]))
        assert np.all(np.isnan(drawn[40:]))
        assert np.array_equal(drawn[:40], alone[:40])
        slope = jax.grad(lambda a: jnp.nansum(gamma.log_sample(jax.random.key(1), a)))(
            jnp.concatenate([good, bad])
        )
        assert np.all(np.isfinite(slope[:40]))

    def test_far_outside_the_range_stays_finite(self) -> None:
        a = jnp.asarray([1e-36, 1e-30, 1e-10, 1e-5, 1e5, 1e8, 1e20, 1e37], jnp.float32)
        drawn = np.asarray(gamma.log_sample(jax.random.key(1), jnp.tile(a, (500, 1))))
        assert np.all(np.isfinite(drawn))
        assert np.allclose(drawn[:, 5:].mean(0), np.log(np.asarray(a[5:], np.float64)), rtol=1e-5)
        assert -2e36 < np.median(drawn[:, 0]) < -3e35

    def test_large_arrays_compile_in_bounded_time(self) -> None:
        spent = []
        for size in (1 << 12, 1 << 24):
            shape = jax.ShapeDtypeStruct((size,), jnp.float32)
            start = time.perf_counter()
            jax.jit(gamma.log_sample).lower(jax.random.key(0), shape).compile()
            spent.append(time.perf_counter() - start)
        # Nothing is unrolled over lanes: 4096 times the lanes is the same program.
        assert spent[1] < 20.0 + 10.0 * spent[0]

    def test_too_many_lanes_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"shape_parameter must have fewer than 2\^32 elements"):
            jax.eval_shape(
                gamma.log_sample, jax.random.key(0), jax.ShapeDtypeStruct((2**16, 2**16), jnp.float32)
            )

    @pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
    def test_lowers_for_accelerators(self, impl: str) -> None:
        def loss(data: jax.Array, a: jax.Array) -> jax.Array:
            return gamma.log_sample(jax.random.wrap_key_data(data, impl=impl), a).sum()

        data = jax.random.key_data(jax.random.key(0, impl=impl))
        exported = export.export(jax.jit(jax.value_and_grad(loss, argnums=1)), platforms=["cuda", "tpu"])(
            data, jnp.ones((64, 10))
        )
        assert exported.platforms == ("cuda", "tpu")


def exact_slope(a: float, log_x: float) -> float:
    """(1/a) sum_n t_n (psi(a + 1) - log x + H_n), with 60 digits."""
    with mpmath.workdps(60):
        shape, u = mpmath.mpf(a), mpmath.mpf(log_x)
        x, bracket = mpmath.exp(u), mpmath.digamma(shape + 1) - u
        term, total, k = mpmath.mpf(1), bracket, 0
        while True:
            k += 1
            term *= x / (shape + k)
            bracket += 1 / (shape + k)
            total += term * bracket
            if x < 0.9 * (shape + k) and term * abs(bracket) < abs(total) * mpmath.mpf(10) ** -30:
                return float(total / shape)


def log_quantile(a: float, probability: float) -> float:
    x = (
        special.gammaincinv(a, probability)
        if probability <= 0.5
        else special.gammainccinv(a, 1 - probability)
    )
    return (math.log(probability) + special.gammaln(a + 1)) / a if x < 1e-30 else math.log(x)


class TestSlope:
    def test_against_fifty_digits(self) -> None:
        shapes = np.float32([*np.geomspace(1e-3, 1e4, 22), 0.5, 1, 1.5, 2, 3, 3.999, 4, 5, 8, 12])
        levels = (1e-6, 1e-5, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97)
        levels = (*levels, 1 - 1e-3, 1 - 1e-4, 1 - 1e-5, 1 - 1e-6)
        a = np.repeat(shapes, len(levels))
        u = np.float32([log_quantile(float(s), p) for s in shapes for p in levels])
        truth = np.array([exact_slope(float(s), float(v)) for s, v in zip(a, u, strict=True)])
        ours = gamma_gradient.log_sample_slope(jnp.asarray(u), shape_parameter=jnp.asarray(a))
        assert np.max(np.abs(np.asarray(ours, np.float64) / truth - 1.0)) < 1e-5

    def test_where_the_rules_meet(self) -> None:
        a, u = [], []
        for shape in (1e-3, 0.05, 0.1, 0.3, 1.0, 2.5, 3.9999, 4.0, 6.0, 10.0, 30.0):
            edge = math.log(shape + 1.5) if shape < 4.0 else math.log(shape) + 1.0
            places = [edge - 1e-5, edge, edge + 1e-5]
            if shape >= 4.0:
                places += [math.log(shape) - 1.0 - 1e-5, math.log(shape) - 1.0 + 1e-5]
            a += [shape] * len(places)
            u += places
        shapes, logs = np.float32(a), np.float32(u)
        truth = np.array([exact_slope(float(s), float(v)) for s, v in zip(shapes, logs, strict=True)])
        ours = gamma_gradient.log_sample_slope(jnp.asarray(logs), shape_parameter=jnp.asarray(shapes))
        assert np.max(np.abs(np.asarray(ours, np.float64) / truth - 1.0)) < 1e-5

    @pytest.mark.parametrize("a", [1e-2, 0.1, 0.7, 1.0, 2.5, 5.0, 40.0, 1e3])
    def test_against_differences_of_the_quantile_function(self, a: float) -> None:
        levels = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
        step = 1e-5 * a
        rise = np.array([log_quantile(a + step, p) - log_quantile(a - step, p) for p in levels])
        u = np.array([log_quantile(a, p) for p in levels])
        slope = gamma_gradient.log_sample_slope(jnp.float32(u), shape_parameter=jnp.full(5, a, jnp.float32))
        assert np.allclose(slope, rise / (2 * step), rtol=2e-4)

    def test_attached_to_the_sample(self) -> None:
        a = jnp.geomspace(1e-3, 1e4, 50)
        key = jax.random.key(8)
        drawn, forward = jax.jvp(lambda a: gamma.log_sample(key, a), (a,), (jnp.ones_like(a),))
        reverse = jax.grad(lambda a: gamma.log_sample(key, a).sum())(a)
        expected = gamma_gradient.log_sample_slope(drawn, shape_parameter=a)
        assert np.allclose(forward, expected, rtol=1e-6)
        assert np.allclose(reverse, expected, rtol=1e-6)

    @pytest.mark.parametrize("a", [0.05, 0.6, 2.0, 9.0, 200.0])
    def test_mean_is_trigamma(self, a: float) -> None:
        # E log X = psi(a), so that the mean of the slope is psi'(a).
        n = 40_000
        slopes = np.asarray(
            jax.grad(lambda a: gamma.log_sample(jax.random.key(13), a).sum())(jnp.full((n,), a)), np.float64
        )
        error = slopes.std() / math.sqrt(n)
        assert abs(slopes.mean() - special.polygamma(1, a)) < 4.0 * error

    def test_second_derivative(self) -> None:
        # d^2 log x / d a^2 at a fixed quantile, from differences of the first derivative along the quantile.
        for a, p in ((0.4, 0.3), (2.0, 0.95), (9.0, 0.6)):

            def slope(shape: float, p: float = p) -> float:
                return exact_slope(shape, log_quantile(shape, p))

            expected = (slope(a * 1.001) - slope(a * 0.999)) / (0.002 * a)
            u = jnp.float32(log_quantile(a, p))
            second = jax.jit(jax.grad(jax.grad(gamma._attach)))(jnp.float32(a), u)  # noqa: SLF001
            assert float(second) == pytest.approx(expected, rel=5e-3)

    def test_never_nan_for_a_finite_sample(self) -> None:
        a, u = jnp.meshgrid(
            jnp.geomspace(1e-30, 1e30, 61), jnp.asarray([-1e36, -1e5, -50.0, -1.0, 0.0, 1.0, 4.0])
        )
        assert not np.any(np.isnan(gamma_gradient.log_sample_slope(u, shape_parameter=a)))
