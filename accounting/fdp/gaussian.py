"""mu-GDP: the Gaussian trade-off curves G_mu, their composition, and the central limit approximation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.fdp.approximation import Approximation
from exactdp.accounting.fdp.curve import TradeoffCurve


@dataclasses.dataclass(frozen=True)
class GaussianTradeoff(TradeoffCurve):
    """G_mu(x) = Phi(Phi^-1(1 - x) - mu), the curve of N(0, 1) against N(mu, 1). It is its own inverse.

    Args:
      mu: >= 0; sensitivity over noise standard deviation.

    Raises:
      ValueError: `mu` is negative or not finite.

    Source: Dong, Roth and Su 2022 (arXiv 1905.02383), Corollary 2.13 for delta.
    """

    mu: float

    def __post_init__(self) -> None:
        validate.non_negative("mu", self.mu)

    def fnr(self, fpr: float) -> float:
        return float(special.ndtr(-special.ndtri(validate.probability("fpr", fpr)) - self.mu))

    def inverse(self) -> GaussianTradeoff:
        return self

    def delta(self, epsilon: float) -> float:
        eps, mu = validate.finite("epsilon", epsilon), self.mu
        if mu == 0.0:
            return max(0.0, -math.expm1(eps)) if eps < 0.0 else 0.0
        first = float(special.log_ndtr(0.5 * mu - eps / mu))
        second = eps + float(special.log_ndtr(-0.5 * mu - eps / mu))
        return math.exp(first) * -math.expm1(second - first) if second < first else 0.0

    def epsilon(self, delta: float) -> float:
        if validate.probability("delta", delta) == 1.0:
            raise ValueError(f"delta must be in [0, 1), got {delta}")
        if self.delta(0.0) <= delta:
            return 0.0
        if delta == 0.0:
            return math.inf
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2.0 * high
        while high - low > 1e-15 * high:  # the safe end is returned
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


def compose_gaussian(mus: Iterable[float]) -> GaussianTradeoff:
    """G_mu with mu = sqrt(sum mu_i^2): exact for composed Gaussian mechanisms without sampling.

    Source: Dong, Roth and Su 2022 (arXiv 1905.02383), Corollary 3.3.
    """
    return GaussianTradeoff(math.hypot(*(validate.non_negative("mu", mu) for mu in mus)))


def poisson_clt(noise_multiplier: float, *, sampling_probability: float, num_steps: int) -> Approximation:
    """mu of the limit of the Poisson-subsampled Gaussian: q sqrt(T (e^{1/sigma^2} - 1)). No bound.

    The limit is taken at q sqrt(T) constant; at finite T the true curve may be on either side of G_mu.

    Args:
      noise_multiplier: sigma > 0.
      sampling_probability: q in [0, 1].
      num_steps: T >= 0.

    Raises:
      ValueError: an argument is out of range.

    Source: Bu, Dong, Long and Su 2020 (arXiv 1911.11607).
    """
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    q = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps)
    exponent = sigma**-2
    growth = math.sqrt(math.expm1(exponent)) if exponent < 700.0 else math.exp(min(0.5 * exponent, 709.0))
    return Approximation(
        q * math.sqrt(steps) * growth,
        "mu of the central limit, Poisson sampling",
        "arXiv 1911.11607",
    )


def uniform_clt(noise_multiplier: float, *, sampling_probability: float, num_steps: int) -> Approximation:
    """mu of the limit of the Gaussian under uniform sampling, made symmetric at every step. No bound.

    mu = sqrt(2) q sqrt(T) sqrt(e^{1/sigma^2} Phi(1.5 / sigma) + 3 Phi(-0.5 / sigma) - 2).

    Args:
      noise_multiplier: sigma > 0.
      sampling_probability: q in [0, 1], batch size over data set size.
      num_steps: T >= 0.

    Raises:
      ValueError: an argument is out of range.

    Source: Dong, Roth and Su 2022 (arXiv 1905.02383), on noisy SGD.
    """
    sigma = validate.positive("noise_multiplier", noise_multiplier)
    q = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps)
    exponent = sigma**-2
    if exponent > 700.0:
        growth = math.exp(min(0.5 * exponent, 709.0))
    elif exponent < 1e-6:
        # The closed form cancels: with t = 1/sigma it is t^2 (1/2 + t / sqrt(2 pi) + t^2/4 + O(t^3)).
        growth = math.sqrt(exponent * (0.5 + 1.0 / (sigma * math.sqrt(2.0 * math.pi)) + 0.25 * exponent))
    else:
        first = math.exp(exponent) * float(special.ndtr(1.5 / sigma))
        growth = math.sqrt(max(first + 3.0 * float(special.ndtr(-0.5 / sigma)) - 2.0, 0.0))
    return Approximation(
        math.sqrt(2.0) * q * math.sqrt(steps) * growth,
        "mu of the central limit, uniform sampling",
        "arXiv 1905.02383",
    )
