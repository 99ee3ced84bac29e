"""Samplers on a Gaussian, whose denoiser is known: E[y | z] = m + S (S + sigma^2 I)^-1 (z - m)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.train.diffusion.processes import DDPM, EDM
from exactdp.train.diffusion.samplers import Ancestral, Heun, Sampler, Stochastic

KEY = jax.random.key(21)
MEAN = np.array([0.5, -0.2, 0.1])
# One direction hardly varies: covariance with eigenvalues 0.3, 0.05 and 1e-4.
AXES = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
VARIANCES = np.array([0.3, 0.05, 1e-4])
COVARIANCE = (AXES * VARIANCES) @ AXES.T
COUNT = 20_000


def denoise(z: jax.Array, sigma: jax.Array) -> jax.Array:
    axes, mean = jnp.asarray(AXES, jnp.float32), jnp.asarray(MEAN, jnp.float32)
    shrink = jnp.asarray(VARIANCES, jnp.float32) / (jnp.asarray(VARIANCES, jnp.float32) + sigma**2)
    return mean + ((z - mean) @ axes * shrink) @ axes.T


def drawn(sampler: Sampler, levels: np.ndarray, count: int = COUNT) -> np.ndarray:
    run = jax.jit(lambda key: sampler.run(denoise, levels, key=key, shape=(count, 3)))
    return np.asarray(run(KEY), np.float64)


def exact(sampler: Sampler, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variances along `AXES` of what the sampler gives, as its steps are affine on a Gaussian."""
    sigmas = np.asarray(levels, np.float64)
    mean, variance = -(AXES.T @ MEAN), np.full(3, sigmas[0] ** 2)  # of z - m

    def shrink(sigma: float) -> np.ndarray:
        return VARIANCES / (VARIANCES + sigma**2)

    for sigma, following in zip(sigmas, sigmas[1:], strict=False):
        if isinstance(sampler, Ancestral):
            kept = (following / sigma) ** 2
            factor, added = shrink(sigma) + kept * (1.0 - shrink(sigma)), following**2 * (1.0 - kept)
            mean, variance = factor * mean, factor**2 * variance + added
            continue
        if isinstance(sampler, Stochastic) and sampler.least <= sigma <= sampler.most:
            gamma = min(sampler.churn / sampler.num_steps, np.sqrt(2.0) - 1.0)
            variance = variance + ((1.0 + gamma) ** 2 - 1.0) * sigma**2 * sampler.inflation**2
            sigma = (1.0 + gamma) * sigma
        slope = (1.0 - shrink(sigma)) / sigma
        step = following - sigma
        factor = 1.0 + step * slope
        if following > 0.0:
            factor = 1.0 + 0.5 * step * (slope + (1.0 - shrink(following)) / following * factor)
        mean, variance = factor * mean, factor**2 * variance
    return mean, variance


@pytest.mark.parametrize(
    ("sampler", "levels", "bias"),
    [
        (Heun(40), EDM().levels(40), 0.03),
        (Stochastic(40, churn=20.0), EDM().levels(40), 0.12),
        (Stochastic(100, churn=30.0, least=0.0, most=np.inf, inflation=1.0), EDM().levels(100), 0.03),
        (Ancestral(1000), DDPM().levels(1000), 0.04),
        (Ancestral(100), EDM().levels(100), 0.14),
    ],
)
def test_samples_follow_the_recursion_and_the_truth(
    sampler: Sampler, levels: np.ndarray, bias: float
) -> None:
    samples = (drawn(sampler, levels) - MEAN) @ AXES
    mean, variance = exact(sampler, levels)
    # Five standard errors of mean and variance, and rounding.
    np.testing.assert_array_less(np.abs(samples.mean(0) - mean), 5.0 * np.sqrt(variance / COUNT) + 2e-5)
    np.testing.assert_array_less(
        np.abs(samples.var(0) - variance), 5.0 * variance * np.sqrt(2.0 / COUNT) + 1e-8
    )
    between = np.abs(np.corrcoef(samples.T) - np.eye(3))
    assert between.max() < 5.0 / np.sqrt(COUNT)
    # `bias` is what so many steps leave of the error against the Gaussian itself. The least variance is of
    # the order of the last level's, where the last step takes the mean.
    np.testing.assert_allclose(variance[:2], VARIANCES[:2], rtol=bias)
    np.testing.assert_allclose(mean, 0.0, atol=0.01)


def test_more_steps_bring_the_recursion_to_the_truth() -> None:
    """Heun's error is of second order, the ancestral sampler's of first."""

    def error(sampler: Sampler) -> float:
        found = exact(sampler, EDM().levels(sampler.num_steps))[1]
        return float(np.abs(found[:2] / VARIANCES[:2] - 1.0).max())

    heun = [error(Heun(n)) for n in (40, 80, 160)]
    assert heun[0] > 3.0 * heun[1] > 9.0 * heun[2] and heun[2] < 2e-3
    ancestral = [error(Ancestral(n)) for n in (100, 200, 400)]
    assert ancestral[0] > 1.7 * ancestral[1] > 2.9 * ancestral[2]


def test_heun_maps_each_noise_to_its_point_of_the_flow() -> None:
    """The flow of a Gaussian is z(0) = m + sqrt(v / (v + sigma_max^2)) (z - m) along each axis."""
    levels = EDM().levels(160)
    samples = (drawn(Heun(160), levels, count=50) - MEAN) @ AXES
    first, _ = jax.random.split(KEY)
    start = (80.0 * np.asarray(jax.random.normal(first, (50, 3)), np.float64) - MEAN) @ AXES
    expected = np.sqrt(VARIANCES / (VARIANCES + 80.0**2)) * start
    np.testing.assert_allclose(samples[:, :2], expected[:, :2], rtol=5e-3, atol=2e-4)
    np.testing.assert_allclose(samples[:, 2], expected[:, 2], atol=1e-3)


def test_samples_are_a_function_of_the_key() -> None:
    sampler, levels = Stochastic(8), EDM().levels(8)
    run = jax.jit(lambda key: sampler.run(denoise, levels, key=key, shape=(6, 3)))
    first, second, other = run(KEY), run(KEY), run(jax.random.key(1))
    np.testing.assert_array_equal(first, second)
    assert np.all(np.asarray(first != other))
    without = Stochastic(8, churn=0.0).run(denoise, levels, key=KEY, shape=(6, 3))
    np.testing.assert_allclose(without, Heun(8).run(denoise, levels, key=KEY, shape=(6, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Heun(1), "num_steps must be"),
        (lambda: Ancestral(0), "num_steps must be"),
        (lambda: Stochastic(churn=-1.0), "churn must be"),
        (lambda: Stochastic(least=2.0, most=1.0), "most must be > least 2.0, got 1.0"),
        (lambda: Stochastic(inflation=0.0), "inflation must be"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
