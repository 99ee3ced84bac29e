"""Samplers: from noise to images, by a function that denoises.

All work on z = y + sigma epsilon and start from z ~ N(0, sigma_max^2 I), the largest of their levels. A
sampler is a frozen dataclass, so that compiled functions can be keyed by it; `run` is a pure function, to be
jitted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy import ndarray

from exactdp.accounting import validate

Denoise = Callable[[Float[Array, "n ..."], Float[Array, ""]], Float[Array, "n ..."]]
"""(z, sigma) -> E[y | z]."""


class Sampler(Protocol):
    """A way from noise to samples."""

    @property
    def num_steps(self) -> int:
        """Steps, each from one noise level to the next."""
        ...

    def run(
        self, denoise: Denoise, levels: Float[ndarray, " levels"], *, key: jax.Array, shape: tuple[int, ...]
    ) -> Float[Array, "n ..."]:
        """Samples of `shape`, whose first axis counts them.

        Args:
          denoise: (z, sigma) -> E[y | z].
          levels: noise levels, descending; num_steps + 1 of them, the last 0.
          key: a typed key.
          shape: of all samples together.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Stochastic:
    """Heun's method with fresh noise before each step.

    At a level sigma in [least, most], noise raises it to sigma^ = (1 + gamma) sigma,
    gamma = min(churn / num_steps, sqrt(2) - 1); a step of Heun's method for dz / dsigma = (z - D) / sigma
    goes from there to the next level. The last step, to 0, is one of Euler's.

    Args:
      num_steps: >= 2.
      churn: >= 0.
      least: least level at which noise is added, >= 0.
      most: largest, > least; may be infinite.
      inflation: standard deviation of the noise added, > 0.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2206.00364, Algorithm 2; the defaults are its own for CIFAR-10 (VP), with churn /
    num_steps kept at 30 / 256, as it was with 256 steps.
    """

    num_steps: int = 64
    churn: float = 7.5
    least: float = 0.01
    most: float = 1.0
    inflation: float = 1.007

    def __post_init__(self) -> None:
        validate.count("num_steps", self.num_steps, 2)
        validate.non_negative("churn", self.churn)
        validate.non_negative("least", self.least)
        validate.positive("inflation", self.inflation)
        if not self.most > self.least:
            raise ValueError(f"most must be > least {self.least}, got {self.most}")

    def run(
        self, denoise: Denoise, levels: Float[ndarray, " levels"], *, key: jax.Array, shape: tuple[int, ...]
    ) -> Float[Array, "n ..."]:
        first, rest = jax.random.split(key)
        ladder = jnp.asarray(levels, jnp.float32)
        gamma = min(self.churn / self.num_steps, math.sqrt(2.0) - 1.0)

        def slope(z: Array, sigma: Array) -> Array:
            return (z - denoise(z, sigma)) / sigma

        def churned(z: Array, sigma: Array, number: Array) -> tuple[Array, Array]:
            if self.churn == 0.0:
                return z, sigma
            added = jnp.where((sigma >= self.least) & (sigma <= self.most), gamma, 0.0)
            raised = (1.0 + added) * sigma
            fresh = jax.random.normal(jax.random.fold_in(rest, number), shape, jnp.float32)
            # raised^2 - sigma^2, without the difference
            return z + jnp.sqrt(added * (2.0 + added)) * sigma * self.inflation * fresh, raised

        def step(z: Array, here: tuple[Array, Array, Array]) -> tuple[Array, None]:
            number, sigma, following = here
            z, sigma = churned(z, sigma, number)
            direction = slope(z, sigma)
            ahead = z + (following - sigma) * direction
            mean = 0.5 * (direction + slope(ahead, following))
            return z + (following - sigma) * mean, None

        start = ladder[0] * jax.random.normal(first, shape, jnp.float32)
        numbers = jnp.arange(len(levels) - 2)
        z, _ = jax.lax.scan(step, start, (numbers, ladder[:-2], ladder[1:-1]))
        z, sigma = churned(z, ladder[-2], jnp.int32(len(levels) - 2))
        return z - sigma * slope(z, sigma)


@dataclasses.dataclass(frozen=True)
class Heun:
    """Heun's method for the probability flow: samples are a function of the first noise.

    Args:
      num_steps: >= 2; 2 num_steps - 1 calls of `denoise`.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2206.00364 (the deterministic sampler).
    """

    num_steps: int = 18

    def __post_init__(self) -> None:
        validate.count("num_steps", self.num_steps, 2)

    def run(
        self, denoise: Denoise, levels: Float[ndarray, " levels"], *, key: jax.Array, shape: tuple[int, ...]
    ) -> Float[Array, "n ..."]:
        without = Stochastic(self.num_steps, churn=0.0)
        return without.run(denoise, levels, key=key, shape=shape)


@dataclasses.dataclass(frozen=True)
class Ancestral:
    """Steps of the posterior q(z_next | z, y) with the denoised image in place of y.

        z_next = D + (s / sigma)^2 (z - D) + s sqrt(1 - (s / sigma)^2) epsilon,    s = next level.

    For neighbouring levels of `DDPM` it is the paper's sampler with the variance beta~_t, written for
    z = x / sqrt(abar).

    Args:
      num_steps: >= 2.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2006.11239, Algorithm 2.
    """

    num_steps: int = 250

    def __post_init__(self) -> None:
        validate.count("num_steps", self.num_steps, 2)

    def run(
        self, denoise: Denoise, levels: Float[ndarray, " levels"], *, key: jax.Array, shape: tuple[int, ...]
    ) -> Float[Array, "n ..."]:
        first, rest = jax.random.split(key)
        ladder = jnp.asarray(levels, jnp.float32)

        def step(z: Array, here: tuple[Array, Array, Array]) -> tuple[Array, None]:
            number, sigma, following = here
            clean = denoise(z, sigma)
            fresh = jax.random.normal(jax.random.fold_in(rest, number), shape, jnp.float32)
            kept = (following / sigma) ** 2
            return clean + kept * (z - clean) + following * jnp.sqrt(1.0 - kept) * fresh, None

        start = ladder[0] * jax.random.normal(first, shape, jnp.float32)
        z, _ = jax.lax.scan(step, start, (jnp.arange(len(levels) - 1), ladder[:-1], ladder[1:]))
        return z
