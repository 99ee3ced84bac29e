"""Noise processes: how much noise is added in training, and what the network predicts of it.

Both are stated for z = y + sigma epsilon, y an image in [-1, 1], epsilon standard normal. The network F sees
c_in z and c_noise, and the denoised image is

    D(z; sigma) = c_skip z + c_out F(c_in z; c_noise).

The loss of one (sigma, epsilon) is lambda |D(z; sigma) - y|^2 a pixel, with lambda = 1 / c_out^2, so that it
is the mean squared error of F against a target of its own.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

from exactdp.accounting import validate


class Process(Protocol):
    """What the objective and the samplers need of a noise process.

    Arrays of sigma broadcast against those of images.
    """

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Float[Array, ...]:
        """Noise levels of training, sigma > 0."""
        ...

    def grid(self, count: int) -> Float[np.ndarray, " count"]:
        """Quantiles (k + 1/2) / count of the noise levels of training, ascending."""
        ...

    def levels(self, num_steps: int) -> Float[np.ndarray, " levels"]:
        """Noise levels at which a sampler of `num_steps` steps stops, descending, the last 0."""
        ...

    def c_in(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        """Scale of the network's input."""
        ...

    def c_noise(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        """The noise level as the network is told it."""
        ...

    def target(
        self, image: Float[Array, ...], noise: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        """What F should be for z = image + sigma noise."""
        ...

    def denoised(
        self, noisy: Float[Array, ...], predicted: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        """D(z; sigma) from z and F."""
        ...


@dataclasses.dataclass(frozen=True)
class EDM:
    """Preconditioning and noise levels of Karras et al.

    With s = sigma_data: c_in = 1 / sqrt(sigma^2 + s^2), c_skip = (s c_in)^2, c_out = sigma s c_in,
    c_noise = ln(sigma) / 4; ln sigma ~ N(log_mean, log_std^2) in training. The target is

        (y - c_skip z) / c_out = c_in (sigma y / s - s epsilon).

    Samplers stop at sigma_k = (max^(1/rho) + k / (n - 1) (min^(1/rho) - max^(1/rho)))^rho, k < n, and 0.

    Args:
      sigma_data: standard deviation of pixels in [-1, 1], a public constant > 0: data must not be asked.
      log_mean: of ln sigma.
      log_std: of ln sigma, > 0.
      sigma_min: least level of the samplers, > 0.
      sigma_max: largest level of the samplers, > sigma_min.
      rho: > 0.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2206.00364, Table 1.
    """

    sigma_data: float = 0.5
    log_mean: float = -1.2
    log_std: float = 1.2
    sigma_min: float = 0.002
    sigma_max: float = 80.0
    rho: float = 7.0

    def __post_init__(self) -> None:
        for name in ("sigma_data", "log_std", "sigma_min", "sigma_max", "rho"):
            validate.positive(name, getattr(self, name))
        validate.finite("log_mean", self.log_mean)
        if self.sigma_max <= self.sigma_min:
            raise ValueError(f"sigma_max must be > sigma_min {self.sigma_min}, got {self.sigma_max}")

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Float[Array, ...]:
        return jnp.exp(self.log_mean + self.log_std * jax.random.normal(key, shape, jnp.float32))

    def grid(self, count: int) -> Float[np.ndarray, " count"]:
        normal = special.ndtri((np.arange(validate.count("count", count, 1)) + 0.5) / count)
        return np.exp(self.log_mean + self.log_std * normal).astype(np.float32)

    def levels(self, num_steps: int) -> Float[np.ndarray, " levels"]:
        most, least = self.sigma_max ** (1.0 / self.rho), self.sigma_min ** (1.0 / self.rho)
        roots = np.linspace(most, least, validate.count("num_steps", num_steps, 2))
        return np.append(roots**self.rho, 0.0).astype(np.float32)

    def c_in(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        return jax.lax.rsqrt(sigma**2 + self.sigma_data**2)

    def c_noise(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        return jnp.log(sigma) / 4.0

    def target(
        self, image: Float[Array, ...], noise: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        # c_skip z is multiplied out: at small sigma, y - c_skip z would be the difference of like numbers.
        return self.c_in(sigma) * (sigma / self.sigma_data * image - self.sigma_data * noise)

    def denoised(
        self, noisy: Float[Array, ...], predicted: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        scale = self.sigma_data * self.c_in(sigma)
        return scale**2 * noisy + sigma * scale * predicted


@dataclasses.dataclass(frozen=True)
class DDPM:
    """The discrete process of Ho et al., whose network predicts the noise.

    beta_t rises linearly over t = 1 ... T, abar_t = prod (1 - beta_i), sigma_t = sqrt((1 - abar_t) / abar_t).
    z_t = x_t / sqrt(abar_t) in the paper's letters: c_in = sqrt(abar_t) = 1 / sqrt(sigma^2 + 1), c_skip = 1,
    c_out = -sigma, so that F's target is epsilon. t is uniform in training. The network is told 2 t / T - 1,
    interpolated in ln sigma between the T levels.

    Args:
      num_levels: T >= 2.
      beta_min: beta_1, in (0, 1).
      beta_max: beta_T, in (beta_1, 1).

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2006.11239, Equation (14) for the loss.
    """

    num_levels: int = 1000
    beta_min: float = 1e-4
    beta_max: float = 0.02

    def __post_init__(self) -> None:
        validate.count("num_levels", self.num_levels, 2)
        validate.open_probability("beta_min", self.beta_min)
        if validate.open_probability("beta_max", self.beta_max) <= self.beta_min:
            raise ValueError(f"beta_max must be > beta_min {self.beta_min}, got {self.beta_max}")

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> Float[Array, ...]:
        return jnp.asarray(self._sigmas)[jax.random.randint(key, shape, 0, self.num_levels)]

    def grid(self, count: int) -> Float[np.ndarray, " count"]:
        quantiles = (np.arange(validate.count("count", count, 1)) + 0.5) / count
        return self._sigmas[(quantiles * self.num_levels).astype(np.int64)]

    def levels(self, num_steps: int) -> Float[np.ndarray, " levels"]:
        if not 2 <= validate.count("num_steps", num_steps) <= self.num_levels:
            raise ValueError(f"num_steps must be in 2 ... {self.num_levels}, got {num_steps}")
        places = np.round(np.linspace(self.num_levels - 1, 0, num_steps)).astype(np.int64)
        return np.append(self._sigmas[places], np.float32(0.0))

    def c_in(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        return jax.lax.rsqrt(sigma**2 + 1.0)

    def c_noise(self, sigma: Float[Array, ...]) -> Float[Array, ...]:
        places = np.linspace(2.0 / self.num_levels - 1.0, 1.0, self.num_levels, dtype=np.float32)
        return jnp.interp(jnp.log(sigma), np.log(self._sigmas), places)

    def target(
        self, image: Float[Array, ...], noise: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        return jnp.broadcast_to(noise, jnp.broadcast_shapes(image.shape, noise.shape, sigma.shape))

    def denoised(
        self, noisy: Float[Array, ...], predicted: Float[Array, ...], sigma: Float[Array, ...]
    ) -> Float[Array, ...]:
        return noisy - sigma * predicted

    @property
    def _sigmas(self) -> Float[np.ndarray, " T"]:
        """sigma_1 ... sigma_T."""
        return _sigmas(self.num_levels, self.beta_min, self.beta_max)


@functools.lru_cache(maxsize=8)
def _sigmas(num_levels: int, beta_min: float, beta_max: float) -> Float[np.ndarray, " T"]:
    kept = np.cumsum(np.log1p(-np.linspace(beta_min, beta_max, num_levels)))  # ln abar_t
    return np.sqrt(np.expm1(-kept)).astype(np.float32)


def scaled_to_unit(pixels: Float[Array, ...], *, pixel_range: tuple[float, float]) -> Float[Array, ...]:
    """Pixels of a range, moved to [-1, 1]."""
    low, high = pixel_range
    return (pixels - low) * (2.0 / (high - low)) - 1.0


def scaled_to_range(image: Float[Array, ...], *, pixel_range: tuple[float, float]) -> Float[Array, ...]:
    """Images in [-1, 1], cut to it, as pixels of a range."""
    low, high = pixel_range
    return low + (jnp.clip(image, -1.0, 1.0) + 1.0) * ((high - low) / 2.0)
