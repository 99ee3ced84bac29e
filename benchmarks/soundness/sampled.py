"""Families whose moment generating function is a quadrature: hidden sampling coins and replacement."""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from scipy import special

from exactdp.benchmarks.soundness import families
from exactdp.benchmarks.soundness.families import LN10, Quadrature


def log_ratio(q: float, u: np.ndarray) -> np.ndarray:
    """log(1 - q + q e^u), with a small relative error also where it is near 0."""
    near = np.log1p(q * np.expm1(np.minimum(u, 30.0)))
    return np.where(u < 30.0, near, np.logaddexp(math.log1p(-q), math.log(q) + u))


_STEEPEST = 3000.0  # slope of an exponent over the width of a Laplace release's loss


class HiddenGaussian(Quadrature):
    """(1 - q) N(0, sigma^2) + q N(1, sigma^2) against N(0, sigma^2)."""

    def __init__(self, noise_multiplier: float, sampling_probability: float) -> None:
        self.sigma, self.q = float(noise_multiplier), float(sampling_probability)
        self.slope = self.sigma**-2

    def loss_bound(self, add: bool) -> float:
        return families.hidden_bound(self.q, add)

    def spacing(self, s: float, height: float, digits: float) -> float:
        theta = min(2.5, math.sqrt(2 * digits * LN10) / self.sigma)
        self.half_width = theta * self.sigma**2
        self.growth = theta * theta * self.sigma**2 / 2
        return super().spacing(s, height, digits)

    def span(self, s: float, digits: float) -> tuple[float, float]:
        # for s + 1 < 0 the ratio, at least 1 - q, favours the left tail by this factor and no more
        gain = max(0.0, -(s + 1)) * math.log1p(self.q / (1 - self.q) * math.exp(-0.5 * self.sigma**-2))
        reach = self.sigma * (math.sqrt(2 * (digits * LN10 + 5 + gain)) + 1)
        return -reach, max(1.0, s + 1) + reach

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = self.sigma**-2
        loss = log_ratio(self.q, (2 * x - 1) * v / 2)
        return -x * x * v / 2 - math.log(self.sigma * math.sqrt(2 * math.pi)) + loss, loss

    def exact(self, x: arb) -> tuple[arb, arb]:
        v, q = 1 / arb(self.sigma) ** 2, arb(self.q)
        ratio = 1 - q + q * ((2 * x - 1) * v / 2).exp()
        return (-x * x * v / 2).exp() / (arb(self.sigma) * (2 * arb.pi()).sqrt()) * ratio, ratio.log()


class ReplaceGaussian(Quadrature):
    """(1 - q) N(0, sigma^2) + q N(1, sigma^2) against (1 - q) N(0, sigma^2) + q N(-1, sigma^2)."""

    def __init__(self, noise_multiplier: float, sampling_probability: float) -> None:
        self.sigma, self.q = float(noise_multiplier), float(sampling_probability)
        self.slope = 2 * self.sigma**-2

    def spacing(self, s: float, height: float, digits: float) -> float:
        theta = min(2.0, math.sqrt(2 * digits * LN10) / self.sigma)
        self.half_width = theta * self.sigma**2
        self.growth = theta * theta * self.sigma**2 / 2 + 0.7 * (abs(s) + 1)
        return super().spacing(s, height, digits)

    def span(self, s: float, digits: float) -> tuple[float, float]:
        reach = self.sigma * (math.sqrt(2 * (digits * LN10 + 5)) + 1) + 2 * abs(s) + 2
        return -reach, reach

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = self.sigma**-2
        up = log_ratio(self.q, (2 * x - 1) * v / 2)
        down = log_ratio(self.q, -(2 * x + 1) * v / 2)
        return -x * x * v / 2 - math.log(self.sigma * math.sqrt(2 * math.pi)) + up, up - down

    def exact(self, x: arb) -> tuple[arb, arb]:
        v, q = 1 / arb(self.sigma) ** 2, arb(self.q)
        up = 1 - q + q * ((2 * x - 1) * v / 2).exp()
        down = 1 - q + q * ((-2 * x - 1) * v / 2).exp()
        return (-x * x * v / 2).exp() / (arb(self.sigma) * (2 * arb.pi()).sqrt()) * up, (up / down).log()


class HiddenDirichlet(Quadrature):
    """Dirichlet vertex pair under Poisson sampling with hidden coins; x = logit of the Beta variable."""

    def __init__(self, scaling: float, offset: float, sampling_probability: float) -> None:
        self.r, self.alpha, self.q = float(scaling), float(offset), float(sampling_probability)
        self.order_high = self.alpha / self.r
        self.order_low = -math.inf
        self.slope = self.r
        self.half_width = min(2.5, 2.5 / self.r)
        self.growth = 0.6 * (2 * self.alpha + self.r)

    def loss_bound(self, add: bool) -> float:
        return families.hidden_bound(self.q, add)

    def span(self, s: float, digits: float) -> tuple[float, float]:
        reach = digits * LN10 + 10 + 0.7 * (2 * self.alpha + self.r) + abs(s)
        below = self.alpha
        above = max(self.alpha - self.r * s, 0.002 * self.alpha) if s > -1 else self.alpha + self.r
        shift = max(0.0, -math.log(self.q)) / self.r
        return -reach / below, reach / above + shift

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, r = self.alpha, self.r
        loss = log_ratio(self.q, r * x)
        return a * x - (2 * a + r) * np.logaddexp(0.0, x) - special.betaln(a, a + r) + loss, loss

    def exact(self, x: arb) -> tuple[arb, arb]:
        a, r, q = arb(self.alpha), arb(self.r), arb(self.q)
        ratio = 1 - q + q * (r * x).exp()
        density = (a * x - (2 * a + r) * x.exp().log1p() - self._log_beta(a, r)).exp()
        return density * ratio, ratio.log()

    def _log_beta(self, a: arb, r: arb) -> arb:
        key = families.ctx.prec
        cached = self.__dict__.get("_beta")
        if cached is None or cached[0] != key:
            cached = (key, a.lgamma() + (a + r).lgamma() - (2 * a + r).lgamma())
            self.__dict__["_beta"] = cached
        return cached[1]


class HiddenLaplace(Quadrature):
    """Laplace pair under Poisson sampling with hidden coins: two atoms and a density between them."""

    decays = False

    def __init__(self, noise_multiplier: float, sampling_probability: float) -> None:
        self.noise_multiplier, self.q = float(noise_multiplier), float(sampling_probability)
        self.width = 1.0 / self.noise_multiplier

    def loss_bound(self, add: bool) -> float:
        return families.hidden_bound(self.q, add)

    def _order(self, s: float, height: float, digits: float) -> int:
        return int(1.2 * (digits * 1.2 + (height + abs(s) + 1) * self.width) / 2 * 1.5) + 12

    def cumulant(self, s: float) -> tuple[float, float, float]:
        d, q = self.width, self.q
        if abs(s) * d > _STEEPEST:  # the rule alone would take minutes, in one call that no signal ends
            raise OverflowError(f"too steep: {abs(s) * d:.3g}")
        x, w = np.polynomial.legendre.leggauss(60 + int(abs(s) * d))
        u = np.concatenate([d * x, [d, -d]])
        logq = np.concatenate([np.log(w * d / 4) - (d * x + d) / 2, [math.log(0.5) - d, math.log(0.5)]])
        loss = np.logaddexp(math.log1p(-q), math.log(q) + u)
        return families.moments(logq + loss, loss, s)

    def nodes(self, s: float, height: float, digits: float) -> tuple[list[arb], list[arb]]:
        d, q = 1 / arb(self.noise_multiplier), arb(self.q)
        n = self._order(s, height, digits)
        weights, losses = [], []
        for u, w in [(d * x, d * w / 4 * (-(d * x + d) / 2).exp()) for x, w in legendre(n)] + [
            (d, families.HALF * (-d).exp()),
            (-d, families.HALF),
        ]:
            ratio = 1 - q + q * u.exp()
            weights.append(w * ratio)
            losses.append(ratio.log())
        return weights, losses

    def cost(self, s: float, height: float, digits: float) -> int:
        return self._order(s, height, digits)


_LEGENDRE: dict[tuple[int, int], list[tuple[arb, arb]]] = {}


def legendre(order: int) -> list[tuple[arb, arb]]:
    """Gauss-Legendre nodes and weights on [-1, 1] at the working precision."""
    key = (order, families.ctx.prec)
    if key not in _LEGENDRE:
        _LEGENDRE[key] = [arb.legendre_p_root(order, k, True) for k in range(order)]
    return _LEGENDRE[key]
