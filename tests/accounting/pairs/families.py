"""One instance of every family, and references for them at 40 digits."""

from __future__ import annotations

import functools
import math

import mpmath as mp
import numpy as np
from scipy import special

from exactdp.accounting.pairs import (
    approximate,
    base,
    custom,
    dirichlet,
    discrete_gaussian,
    discrete_laplace,
    finite,
    gaussian,
    laplace,
    pure,
)

mp.mp.dps = 40


def logistic(sensitivity: float) -> custom.Custom:
    """Logistic noise of scale 1: the worked example of docs/accountants/pairs.md."""
    return custom.from_cdf(
        lambda x: special.expit(x - sensitivity),
        special.expit,
        sf_p=lambda x: special.expit(sensitivity - x),
        sf_q=lambda x: special.expit(-x),
        loss=lambda x: 4.0 * np.arctanh(math.tanh(sensitivity / 4) * np.tanh((x - sensitivity / 2) / 2)),
        loss_support=(-sensitivity, sensitivity),
        symmetric=True,
    )


def student(degrees: float, sensitivity: float) -> custom.Custom:
    """Student-t noise: a loss that rises, then falls on either side."""
    log_c = (
        special.gammaln((degrees + 1) / 2) - special.gammaln(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    )

    def log_density(x: np.ndarray) -> np.ndarray:
        return log_c - (degrees + 1) / 2 * np.log1p(np.minimum(np.abs(x), 1e150) ** 2 / degrees)

    def loss(x: np.ndarray) -> np.ndarray:
        x = np.clip(x, -1e150, 1e150)
        d = sensitivity
        return (degrees + 1) / 2 * np.log1p(d * (2 * x - d) / (degrees + (x - d) ** 2))

    half = math.sqrt(sensitivity**2 / 4 + degrees)
    return custom.from_density(
        lambda x: log_density(x - sensitivity),
        log_density,
        loss=loss,
        turning_points=[sensitivity / 2 - half, sensitivity / 2 + half],
        symmetric=True,
    )


PAIRS: dict[str, base.Pair] = {
    "gaussian": gaussian.Gaussian(1.3),
    "laplace": laplace.Laplace(0.7),
    "laplace_wide": laplace.Laplace(0.05),
    "laplace_flat": laplace.Laplace(50.0),
    "dirichlet": dirichlet.Dirichlet(0.235, 3.0),
    "dirichlet_steep": dirichlet.Dirichlet(4.0, 0.5),
    "dirichlet_flat": dirichlet.Dirichlet(1e-6, 1.0),
    "dirichlet_narrow": dirichlet.Dirichlet(3.0, 1e4),
    "pure": pure.PureDP(0.8),
    "approximate": approximate.ApproximateDP(0.5, 1e-3),
    "categories": pure.randomised_response(0.6, categories=5),
    "finite": finite.Finite(p=(0.5, 0.2, 0.2, 0.1, 0.0), q=(0.25, 0.3, 0.1, 0.0, 0.35)),
    "discrete_gaussian": discrete_gaussian.DiscreteGaussian(1.5, 2),
    "discrete_gaussian_wide": discrete_gaussian.DiscreteGaussian(3e4, 7000),
    "discrete_laplace": discrete_laplace.DiscreteLaplace(2.0, 3),
    "logistic": logistic(0.9),
    "student": student(3.0, 1.0),
}


def _atoms(name: str) -> tuple[list, list]:
    """Masses under P and Q of each outcome, from the definitions."""
    one = mp.mpf(1)
    if name == "pure":
        a = one / (1 + mp.exp(-mp.mpf(0.8)))
        p, q = [1 - a, a], [a, 1 - a]
    elif name == "approximate":
        delta = mp.mpf(1e-3)
        a = one / (1 + mp.exp(-mp.mpf(0.5)))
        p, q = (
            [(1 - delta) * (1 - a), (1 - delta) * a, delta, 0],
            [(1 - delta) * a, (1 - delta) * (1 - a), 0, delta],
        )
    elif name == "categories":
        keep = mp.mpf(0.6)
        p, q = [keep] + 4 * [(1 - keep) / 4], [(1 - keep) / 4, keep] + 3 * [(1 - keep) / 4]
    elif name == "finite":
        pair = PAIRS[name]
        p = [mp.mpf(x) / sum(map(mp.mpf, pair.p)) for x in pair.p]
        q = [mp.mpf(x) / sum(map(mp.mpf, pair.q)) for x in pair.q]
    elif name == "discrete_gaussian":
        w = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(1.5) ** 2)) for x in range(-90, 91)}
        total = mp.fsum(w.values())
        xs = range(-85, 86)
        p, q = [w[x - 2] / total for x in xs], [w[x] / total for x in xs]
    else:
        b = mp.mpf(2)
        point = (1 - mp.exp(-1 / b)) / (1 + mp.exp(-1 / b))
        xs = range(-300, 301)
        p, q = [point * mp.exp(-abs(x - 3) / b) for x in xs], [point * mp.exp(-abs(x) / b) for x in xs]
    return p, q


def _dirichlet_tail(pair: dirichlet.Dirichlet, x: mp.mpf, first: mp.mpf, second: mp.mpf) -> mp.mpf:
    """Pr[logit B > x] for B ~ Beta(first, second), by integrating e^(first x) (1 + e^x)^-(first + second)."""
    y = 1 / (1 + mp.exp(x))
    if first + second < 2000:
        return mp.betainc(second, first, 0, y, regularized=True)
    mode = mp.log(first / second)
    scale = mp.sqrt(1 / first + 1 / second)
    log_f = lambda t: first * t - (first + second) * mp.log1p(mp.exp(t))  # noqa: E731
    start = max(x, mode - 12 * scale)
    end = max(start, mode) + 12 * scale
    knots = mp.linspace(start, end, 9)
    shift = mp.loggamma(first) + mp.loggamma(second) - mp.loggamma(first + second)
    return mp.quad(lambda t: mp.exp(log_f(t) - shift), knots)


def hockey_stick(name: str, epsilon: float, reverse: bool = False) -> mp.mpf:
    """H(e^epsilon) of `PAIRS[name]`, independent of the package."""
    listed = name in ("pure", "approximate", "categories", "finite", "discrete_gaussian", "discrete_laplace")
    # The continuous families are symmetric by x -> sensitivity - x or B -> 1 - B.
    return _hockey_stick(name, epsilon, reverse and listed, mp.mp.dps)


@functools.cache
def _hockey_stick(name: str, epsilon: float, reverse: bool, digits: int) -> mp.mpf:
    pair, e = PAIRS[name], mp.mpf(epsilon)
    if isinstance(pair, gaussian.Gaussian):
        mu = 1 / mp.mpf(pair.noise_multiplier)
        return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
    if isinstance(pair, laplace.Laplace):
        c = 1 / mp.mpf(pair.noise_multiplier)
        return mp.mpf(0) if e >= c else 1 - mp.exp((e - c) / 2) if e > -c else 1 - mp.exp(e)
    if isinstance(pair, dirichlet.Dirichlet):
        if e < 0:  # the mirrored tail keeps its digits
            return 1 - mp.exp(e) + mp.exp(e) * hockey_stick(name, -e)
        r, alpha = mp.mpf(pair.scaling), mp.mpf(pair.offset)
        tails = _dirichlet_tail(pair, e / r, alpha + r, alpha), _dirichlet_tail(pair, e / r, alpha, alpha + r)
        return tails[0] - mp.exp(e) * tails[1]
    if name == "discrete_gaussian_wide":
        sigma, d = mp.mpf(pair.noise_multiplier), mp.mpf(pair.sensitivity)
        start = mp.floor(e * sigma**2 / d + d / 2) + 1
        # Euler-Maclaurin with more terms than the package uses, at another point (x instead of x - 1/2).
        f = lambda x: mp.npdf(x / sigma) / sigma  # noqa: E731

        def tail(k: mp.mpf) -> mp.mpf:
            z = k / sigma
            d1 = -z * f(k) / sigma
            d3 = -(z**3 - 3 * z) * f(k) / sigma**3
            d5 = -(z**5 - 10 * z**3 + 15 * z) * f(k) / sigma**5
            return mp.ncdf(-z) + f(k) / 2 - d1 / 12 + d3 / 720 - d5 / 30240

        return tail(start - d) - mp.exp(e) * tail(start)
    if name == "logistic":
        d = mp.mpf(0.9)
        if e >= d:
            return mp.mpf(0)
        if e <= -d:
            return 1 - mp.exp(e)
        x = d / 2 + 2 * mp.atanh(mp.tanh(e / 4) / mp.tanh(d / 4))
        return 1 / (1 + mp.exp(x - d)) - mp.exp(e) / (1 + mp.exp(x))
    if name == "student":
        f = lambda x: (1 + x * x / 3) ** -2 * 2 / (mp.pi * mp.sqrt(3))  # noqa: E731

        def cdf(x: mp.mpf) -> mp.mpf:
            if mp.isinf(x):
                return mp.mpf(1 if x > 0 else 0)
            y = x / mp.sqrt(3)
            return mp.mpf(1) / 2 + (y / (1 + y * y) + mp.atan(y)) / mp.pi

        # (3 + x^2) = k (3 + (x - 1)^2), k = e^(eps/2): a quadratic in x.
        k = mp.exp(e / 2)
        root = 4 * k * k - 4 * (1 - k) * (3 - 4 * k)
        roots = (
            []
            if root < 0
            else sorted((-2 * k + sign * mp.sqrt(root)) / (2 * (1 - k)) for sign in (1, -1) if k != 1)
        )
        if k == 1:
            roots = [mp.mpf(1) / 2]
        cuts = [-mp.inf, *roots, mp.inf]
        total = mp.mpf(0)
        for low, high in zip(cuts[:-1], cuts[1:], strict=True):
            inner = (
                (low + high) / 2 if mp.isfinite(low + high) else (high - 1 if mp.isfinite(high) else low + 1)
            )
            if len(roots) == 0:
                inner = mp.mpf(0)
            if f(inner - 1) > mp.exp(e) * f(inner):
                total += cdf(high - 1) - cdf(low - 1) - mp.exp(e) * (cdf(high) - cdf(low))
        return total
    p, q = _atoms(name)
    if reverse:
        p, q = q, p
    return mp.fsum(max(x - mp.exp(e) * y, 0) for x, y in zip(p, q, strict=True))


def moment(name: str, slope: complex) -> mp.mpc | None:
    """E_Q[exp(slope u); u finite] in closed form; None where this file has none."""
    pair, s = PAIRS[name], mp.mpc(slope)
    if isinstance(pair, gaussian.Gaussian):
        mu = 1 / mp.mpf(pair.noise_multiplier)
        return mp.exp(mu**2 * (s * s - s) / 2)
    if isinstance(pair, laplace.Laplace):
        c = 1 / mp.mpf(pair.noise_multiplier)
        t = s - mp.mpf(1) / 2
        inner = mp.exp(-c / 2) / 4 * (2 * mp.sinh(c * t) / t if t != 0 else 2 * c)
        return mp.exp(-c * s) / 2 + mp.exp(c * s - c) / 2 + inner
    if isinstance(pair, dirichlet.Dirichlet):
        r, a = mp.mpf(pair.scaling), mp.mpf(pair.offset)
        g = mp.loggamma
        return mp.exp(g(a + r * s) + g(a + r - r * s) - g(a) - g(a + r))
    if name in ("discrete_gaussian_wide", "logistic", "student"):
        return None
    p, q = _atoms(name)
    return mp.fsum(y * mp.exp(s * mp.log(x / y)) for x, y in zip(p, q, strict=True) if x > 0 and y > 0)
