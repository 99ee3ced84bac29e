"""Moment generating functions of privacy losses in ball arithmetic, on vertical lines of the complex plane.

Every family gives M(z) = E_P[exp(z L)], L = log dP/dQ, for the direction "remove" (P against Q). The
direction "add" needs no second function: E_Q[exp(-z L)] = M(-1 - z).

Nothing here uses `exactdp`: the references are meant to test it. Needs python-flint.
"""

from __future__ import annotations

import math

import numpy as np
from flint import acb, arb, arb_mat, ctx
from scipy import special

LN10 = math.log(10.0)
HALF = arb(1) / 2


def set_digits(digits: float) -> None:
    """Sets the working precision to `digits` decimal digits and some guard bits."""
    ctx.prec = int(digits * 3.3219281) + 32


class Mechanism:
    """One step of a mechanism through its moment generating function.

    Attributes:
      order_low, order_high: M(s) is finite for order_low < s < order_high.
      atom_at_zero: a mass at loss 0 that the contour engine may split off (visible coins), as `arb` or 0.
      decays: whether |M(s + iy)| tends to 0 (no atoms other than `atom_at_zero`).
    """

    order_low = -math.inf
    order_high = math.inf
    decays = True

    def atom_at_zero(self) -> arb:
        """Mass of the loss at exactly 0 that is known in closed form."""
        return arb(0)

    def loss_bound(self, add: bool) -> float:
        """An upper bound of the loss in one direction, above which delta is 0."""
        del add
        return math.inf

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """log M(s) and its first two derivatives, in float64 (only guides the contour)."""
        raise NotImplementedError

    def line(self, s: arb, step: arb, start: int, count: int, digits: float) -> list[acb]:
        """M(s + i step j) for j = start, ..., start + count - 1, to `digits` digits of M(s)."""
        raise NotImplementedError


def hidden_bound(q: float, add: bool) -> float:
    """Loss bound of Q against (1 - q) Q + q P."""
    return -math.log1p(-q) if add else math.inf


class ClosedForm(Mechanism):
    """A family with M(z) in closed form: `value(z)`."""

    def value(self, z: acb) -> acb:
        raise NotImplementedError

    def line(self, s: arb, step: arb, start: int, count: int, digits: float) -> list[acb]:
        return [self.value(acb(s, step * j)) for j in range(start, start + count)]


class Gaussian(ClosedForm):
    """N(1, sigma^2) against N(0, sigma^2): log M(z) = z (z + 1) / (2 sigma^2)."""

    def __init__(self, noise_multiplier: float) -> None:
        self.sigma = float(noise_multiplier)

    def cumulant(self, s: float) -> tuple[float, float, float]:
        v = self.sigma**-2
        return s * (s + 1) * v / 2, (2 * s + 1) * v / 2, v

    def value(self, z: acb) -> acb:
        return (z * (z + 1) / (2 * arb(self.sigma) ** 2)).exp()


class Laplace(ClosedForm):
    """Laplace noise of scale b against its shift by 1, in closed form; the loss has atoms at +-1/b."""

    decays = False

    def __init__(self, noise_multiplier: float) -> None:
        self.width = 1.0 / float(noise_multiplier)
        self.noise_multiplier = float(noise_multiplier)

    def loss_bound(self, add: bool) -> float:
        del add
        return self.width

    def cumulant(self, s: float) -> tuple[float, float, float]:
        d = self.width
        x, w = np.polynomial.legendre.leggauss(60)
        u = np.concatenate([d * x, [d, -d]])
        logw = np.concatenate([np.log(w * d / 4) + (d * x - d) / 2, [math.log(0.5), math.log(0.5) - d]])
        return moments(logw, u, s)

    def value(self, z: acb) -> acb:
        d = 1 / arb(self.noise_multiplier)
        a, b, t = (z * d).exp(), (-(z + 1) * d).exp(), 1 / (1 + 2 * z)
        return (a * (1 + t) + b * (1 - t)) / 2


class Dirichlet(ClosedForm):
    """Vertex pair of the Dirichlet mechanism: L = r logit(B), B ~ Beta(alpha + r, alpha) under P."""

    def __init__(self, scaling: float, offset: float) -> None:
        self.r, self.alpha = float(scaling), float(offset)
        self.order_high = self.alpha / self.r
        self.order_low = -1.0 - self.order_high
        self._norm: tuple[int, arb] | None = None

    def cumulant(self, s: float) -> tuple[float, float, float]:
        a, r = self.alpha, self.r
        lo, hi = a - s * r, a + r + s * r
        k = special.gammaln(lo) + special.gammaln(hi) - special.gammaln(a) - special.gammaln(a + r)
        first = r * (special.digamma(hi) - special.digamma(lo))
        second = r * r * (special.polygamma(1, hi) + special.polygamma(1, lo))
        return float(k), float(first), float(second)

    def value(self, z: acb) -> acb:
        a, r = arb(self.alpha), arb(self.r)
        if self._norm is None or self._norm[0] != ctx.prec:
            self._norm = (ctx.prec, a.lgamma() + (a + r).lgamma())
        return ((a - z * r).lgamma() + (a + r + z * r).lgamma() - self._norm[1]).exp()


class Visible(Mechanism):
    """Poisson sampling with visible coins: the erasure mixture, M = 1 - q + q M_base."""

    def __init__(self, base: Mechanism, sampling_probability: float) -> None:
        self.base, self.q = base, float(sampling_probability)
        self.order_low, self.order_high, self.decays = base.order_low, base.order_high, base.decays

    def atom_at_zero(self) -> arb:
        return 1 - arb(self.q)

    def loss_bound(self, add: bool) -> float:
        return self.base.loss_bound(add)

    def cumulant(self, s: float) -> tuple[float, float, float]:
        k, k1, k2 = self.base.cumulant(s)
        total = float(np.logaddexp(math.log1p(-self.q) if self.q < 1 else -math.inf, math.log(self.q) + k))
        share = math.exp(math.log(self.q) + k - total)
        return total, share * k1, share * (k2 + k1 * k1) - (share * k1) ** 2

    def line(self, s: arb, step: arb, start: int, count: int, digits: float) -> list[acb]:
        q = arb(self.q)
        return [1 - q + q * m for m in self.base.line(s, step, start, count, digits)]


def moments(logw: np.ndarray, loss: np.ndarray, s: float) -> tuple[float, float, float]:
    """log sum w exp(s l), and the mean and variance of l under the tilted weights."""
    g = logw + s * loss
    top = float(np.max(g))
    w = np.exp(g - top)
    total = float(np.sum(w))
    mean = float(np.sum(w * loss)) / total
    return top + math.log(total), mean, float(np.sum(w * (loss - mean) ** 2)) / total


class Quadrature(Mechanism):
    """M(z) = integral of p(x) exp(z L(x)) dx by the trapezoid rule in x (exponentially convergent)."""

    slope = 1.0  # bound of |dL/dx|
    half_width = 1.0  # half-width of a strip in which the integrand is analytic
    growth = 0.0  # log of the growth of the density at the strip's edge

    def floats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p(x) and L(x)."""
        raise NotImplementedError

    def exact(self, x: arb) -> tuple[arb, arb]:
        """p(x) and L(x)."""
        raise NotImplementedError

    def span(self, s: float, digits: float) -> tuple[float, float]:
        """A range of x outside which p exp(s L) is below 10^-digits of its peak."""
        raise NotImplementedError

    def spacing(self, s: float, height: float, digits: float) -> float:
        """A step in x that serves |Im z| <= height."""
        a = self.half_width
        rate = digits * LN10 + self.growth + height * self.slope * a + max(0.0, -(s + 1)) * 0.7
        return 2 * math.pi * a / rate

    def indices(self, s: float, height: float, digits: float) -> tuple[float, np.ndarray]:
        h = self.spacing(s, height, digits)
        low, high = self.span(s, digits)
        k = np.arange(math.floor(low / h), math.ceil(high / h) + 1)
        logp, loss = self.floats(k * h)
        g = logp + s * loss
        return h, k[g > np.max(g) - digits * LN10 - 3]

    def cumulant(self, s: float) -> tuple[float, float, float]:
        h, k = self.indices(s, 0.0, 17)
        logp, loss = self.floats(k * h)
        return moments(logp + math.log(h), loss, s)

    def nodes(self, s: float, height: float, digits: float) -> tuple[list[arb], list[arb]]:
        """Weights under P and losses that serve |Im z| <= height."""
        h, k = self.indices(s, height, digits)
        step = arb(h)
        pairs = [self.exact(step * int(i)) for i in k]
        return [p * step for p, _ in pairs], [loss for _, loss in pairs]

    def line(self, s: arb, step: arb, start: int, count: int, digits: float) -> list[acb]:
        height = float(step) * (start + count)
        key = (ctx.prec, str(s))
        cached = self.__dict__.get("_nodes")
        if cached is None or cached[0] != key or not height <= cached[1] <= 3 * height:
            height *= 1.5
            w, loss = self.nodes(float(s), height, digits)
            cached = (key, height, [a * (s * b).exp() for a, b in zip(w, loss, strict=True)], loss)
            self.__dict__["_nodes"] = cached
        return exponential_sums(cached[2], cached[3], step, start, count)

    def cost(self, s: float, height: float, digits: float) -> int:
        """Number of nodes that `line` would use."""
        low, high = self.span(s, digits)
        return int((high - low) / self.spacing(s, height, digits))


def exponential_sums(weights: list[arb], losses: list[arb], step: arb, start: int, count: int) -> list[acb]:
    """sum_k w_k exp(i step j l_k) for j = start, ..., start + count - 1 (baby steps times giant steps)."""
    baby = max(1, math.isqrt(count))
    giant = -(-count // baby)
    n = len(weights)
    small_re, small_im, large_re, large_im = [], [], [], []
    for w, loss in zip(weights, losses, strict=True):
        angle = step * loss
        rot = acb(angle.cos(), angle.sin())
        z = acb(1)
        for _ in range(baby):
            small_re.append(z.real)
            small_im.append(z.imag)
            z = (z * rot).mid()
        first = angle * start
        y = w * acb(first.cos(), first.sin())
        for _ in range(giant):
            large_re.append(y.real)
            large_im.append(y.imag)
            y = (y * z).mid()
    sr, si = arb_mat(n, baby, small_re), arb_mat(n, baby, small_im)
    lr, li = arb_mat(n, giant, large_re).transpose(), arb_mat(n, giant, large_im).transpose()
    re, im = (lr * sr - li * si).entries(), (lr * si + li * sr).entries()
    return [acb(a, b) for a, b in zip(re, im, strict=True)][:count]
