"""EDM and DDPM: the network's target and the denoised image invert one another; levels and their laws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from exactdp.train.diffusion import processes
from exactdp.train.diffusion.processes import DDPM, EDM

KEY = jax.random.key(9)
RNG = np.random.default_rng(0)
IMAGE = jnp.asarray(RNG.uniform(-1, 1, (5, 3, 3, 1)), jnp.float32)
NOISE = jnp.asarray(RNG.normal(size=(5, 3, 3, 1)), jnp.float32)
BOTH = pytest.mark.parametrize("process", [EDM(), EDM(sigma_data=0.3), DDPM(), DDPM(num_levels=50)])


@BOTH
def test_a_perfect_prediction_denoises_exactly(process: processes.Process) -> None:
    for sigma in process.grid(6):
        level = jnp.float32(sigma)
        noisy = IMAGE + level * NOISE
        clean = process.denoised(noisy, process.target(IMAGE, NOISE, level), level)
        np.testing.assert_allclose(clean, IMAGE, atol=3e-6 * (1.0 + sigma))


def test_the_loss_is_the_weighted_denoising_error() -> None:
    """|F - target|^2 = lambda |D - y|^2 with lambda as printed, and c_skip, c_out, c_noise as in Table 1."""
    process, predicted = EDM(), jnp.asarray(RNG.normal(size=IMAGE.shape), jnp.float32)
    for sigma in (0.02, 0.3, 4.0):
        data = process.sigma_data
        weight = (sigma**2 + data**2) / (sigma * data) ** 2
        c_skip = data**2 / (sigma**2 + data**2)
        c_out = sigma * data / np.sqrt(sigma**2 + data**2)
        level, noisy = jnp.float32(sigma), IMAGE + sigma * NOISE
        clean = process.denoised(noisy, predicted, level)
        np.testing.assert_allclose(clean, c_skip * noisy + c_out * predicted, rtol=2e-5, atol=1e-6)
        direct = (predicted - process.target(IMAGE, NOISE, level)) ** 2
        np.testing.assert_allclose(direct, weight * (clean - IMAGE) ** 2, rtol=1e-2, atol=1e-4)
        np.testing.assert_allclose(process.c_noise(level), np.log(sigma) / 4.0, rtol=1e-5)
        np.testing.assert_allclose(process.c_in(level), 1.0 / np.sqrt(sigma**2 + data**2), rtol=1e-5)


def test_edm_draws_and_quantiles_are_log_normal() -> None:
    process = EDM(log_mean=-0.7, log_std=0.9)
    drawn = np.log(np.asarray(process.draw(KEY, (4000,)), np.float64))
    assert stats.kstest(drawn, stats.norm(-0.7, 0.9).cdf).pvalue > 0.01
    expected = stats.norm(-0.7, 0.9).ppf((np.arange(8) + 0.5) / 8)
    np.testing.assert_allclose(np.log(process.grid(8)), expected, rtol=1e-5, atol=1e-6)


def test_edm_levels_follow_equation_5() -> None:
    levels = EDM().levels(18)
    assert len(levels) == 19 and levels[-1] == 0.0
    np.testing.assert_allclose(levels[[0, 17]], [80.0, 0.002], rtol=1e-5)
    k = np.arange(18)
    expected = (80 ** (1 / 7) + k / 17 * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7
    np.testing.assert_allclose(levels[:-1], expected, rtol=1e-5)


def test_ddpm_levels_are_those_of_its_betas() -> None:
    process = DDPM()
    betas = np.linspace(1e-4, 0.02, 1000)
    kept = np.cumprod(1.0 - betas)
    sigmas = np.sqrt((1.0 - kept) / kept)
    np.testing.assert_allclose(process.levels(1000)[:-1], sigmas[::-1], rtol=1e-6)
    sub = process.levels(10)
    np.testing.assert_allclose(sub[[0, 9, 10]], [sigmas[-1], sigmas[0], 0.0], rtol=1e-6)
    assert np.all(np.diff(sub) < 0.0)
    drawn = np.asarray(process.draw(KEY, (2000,)))
    places = np.searchsorted(sigmas, drawn * 0.999999)
    assert stats.kstest(places / 1000.0, "uniform").pvalue > 0.01
    told = np.asarray(process.c_noise(jnp.asarray(sigmas, jnp.float32)))
    np.testing.assert_allclose(told, 2.0 * np.arange(1, 1001) / 1000.0 - 1.0, atol=1e-4)
    np.testing.assert_allclose(process.target(IMAGE, NOISE, jnp.float32(0.1)), NOISE)
    np.testing.assert_allclose(process.c_in(jnp.float32(sigmas[600])), np.sqrt(kept[600]), rtol=1e-5)


def test_pixels_there_and_back() -> None:
    pixels = jnp.array([0.0, 0.25, 1.0])
    unit = processes.scaled_to_unit(pixels, pixel_range=(0.0, 1.0))
    np.testing.assert_allclose(unit, [-1.0, -0.5, 1.0])
    np.testing.assert_allclose(processes.scaled_to_range(unit, pixel_range=(0.0, 1.0)), pixels)
    cut = processes.scaled_to_range(jnp.array([-3.0, 3.0]), pixel_range=(10.0, 20.0))
    np.testing.assert_allclose(cut, [10.0, 20.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EDM(sigma_data=0.0), "sigma_data must be"),
        (lambda: EDM(log_std=-1.0), "log_std must be"),
        (lambda: EDM(sigma_max=0.001), "sigma_max must be > sigma_min"),
        (lambda: EDM(log_mean=float("nan")), "log_mean must be"),
        (lambda: EDM().levels(1), "num_steps must be"),
        (lambda: EDM().grid(0), "count must be"),
        (lambda: DDPM(num_levels=1), "num_levels must be"),
        (lambda: DDPM(beta_max=1e-5), "beta_max must be > beta_min"),
        (lambda: DDPM(num_levels=20).levels(21), "num_steps must be in 2 ... 20, got 21"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
