"""Noisy counts, with noise from OpenDP's exact samplers, seeded by the operating system.

A vector of counts gets independent integer noise, discrete Laplace or discrete Gaussian:

    noisy_i = count_i + noise_i,    Pr[noise_i = x] ~ exp(-|x| / b)    or    exp(-x^2 / (2 sigma^2))

with b or sigma = `noise_multiplier` of the pair that says which noise it is. Where adding or removing a
record changes one count by 1, the very same pair accounts for the release.

Source: Canonne, Kamath and Steinke 2020 (arXiv 2004.00010) for the samplers; OpenDP, `make_laplace` and
`make_gaussian`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, cast

import numpy as np
import opendp.prelude
from jaxtyping import Int

from exactdp.accounting import validate
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace

Noise = DiscreteLaplace | DiscreteGaussian
"""The noise of a vector of counts, and what accounts for it."""

LARGEST_COUNT = 2**53
_LARGEST_NOISE = 1e8  # so that no sum comes near the ends of 64 bits

_dp: Any = opendp.prelude  # exports without saying so
_dp.enable_features("contrib")  # OpenDP's own name for measurements whose proofs are under review


def noisy(counts: Int[np.ndarray, "*shape"], *, noise: Noise) -> Int[np.ndarray, "*shape"]:
    """The counts with independent noise added to each.

    Guarantee: if a record's presence changes one count by 1 and no other, the release is dominated by
    `noise`, in both directions of add/remove. Negative answers are left as they are.

    Args:
      counts: >= 0 and <= 2^53, of any shape.
      noise: of sensitivity 1 and a noise multiplier of 1e8 at most.

    Returns:
      int64, of the same shape.

    Raises:
      ValueError: `noise` has another sensitivity or is too large, or `counts` are no counts.
    """
    _require_noise(noise)
    counts = np.asarray(counts)
    if not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"counts must be whole numbers, got {counts.dtype}")
    if counts.size == 0:
        return counts.astype(np.int64)
    if counts.min() < 0 or counts.max() > LARGEST_COUNT:
        raise ValueError(f"counts must be in 0 ... 2^53, got others in an array of shape {counts.shape}")
    scale = float(noise.noise_multiplier)
    domain = _dp.vector_domain(_dp.atom_domain(T="i64"))
    if isinstance(noise, DiscreteLaplace):
        measurement = _dp.m.make_laplace(domain, _dp.l1_distance(T="i64"), scale=scale)
    else:
        measurement = _dp.m.make_gaussian(domain, _dp.l2_distance(T="f64"), scale=scale)
    answer: list[int] = measurement(counts.astype(np.int64).ravel().tolist())
    return np.array(answer, np.int64).reshape(counts.shape)


def tail(noise: Noise, least: int) -> float:
    """An upper bound, sharp to rounding, of Pr[noise >= least] for a whole number `least` >= 1.

    Discrete Laplace: e^(-least / b) / (1 + e^(-1 / b)). Discrete Gaussian: from the pair's certified masses.

    Raises:
      ValueError: `least` is below 1, or `noise` is as in `noisy`.
    """
    _require_noise(noise)
    k = validate.count("least", least, minimum=1)
    scale = float(noise.noise_multiplier)
    if isinstance(noise, DiscreteLaplace):
        return math.exp(-k / scale) / (1.0 + math.exp(-1.0 / scale)) * (1.0 + 1e-12) + 5e-324
    # Under Q the noise is centred at 0; its loss at x is (x - 1/2) / sigma^2: this edge parts k - 1 from k.
    masses = noise.masses(np.array([(k - 1.0) / scale**2]))
    return min(float(masses.q[-1]) + float(masses.q_error[-1]), 1.0)


def quantile(noise: Noise, probability: float) -> int:
    """The least whole number t >= 1 with Pr[noise >= t] <= `probability`, by `tail`.

    Raises:
      ValueError: `probability` is outside (0, 1), or `noise` is as in `noisy`.
    """
    _require_noise(noise)
    return _quantile(noise, validate.open_probability("probability", probability))


@functools.lru_cache(maxsize=256)
def _quantile(noise: Noise, probability: float) -> int:
    high = 1
    while tail(noise, high) > probability:
        high *= 2
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(noise, middle) <= probability else (middle, high)
    return high


def _require_noise(noise: Noise) -> None:
    if not isinstance(cast("object", noise), (DiscreteLaplace, DiscreteGaussian)):
        raise ValueError(f"noise must be a DiscreteLaplace or a DiscreteGaussian, got {noise!r}")
    if noise.sensitivity != 1 or noise.noise_multiplier > _LARGEST_NOISE:
        raise ValueError(
            f"noise must have sensitivity 1 and a noise multiplier <= {_LARGEST_NOISE:g}, got {noise!r}"
        )
