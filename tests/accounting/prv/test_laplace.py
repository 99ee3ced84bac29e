"""Equal Laplace releases in closed form, against sums over how many losses sit at either end."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from exactdp.accounting import prv
from exactdp.accounting.pairs.laplace import Laplace
from exactdp.accounting.prv import closed, laplace


def _irwin_hall(k: int, x: mpmath.mpf) -> mpmath.mpf:
    """Density at x of the sum of k uniforms on [0, 1]."""
    terms = [(-1) ** j * mpmath.binomial(k, j) * (x - j) ** (k - 1) for j in range(math.floor(float(x)) + 1)]
    return mpmath.fsum(terms) / mpmath.factorial(k - 1)


def _by_counts(width: float, n: int, at: float) -> mpmath.mpf:
    """delta: i losses at c, j at -c, and k between, whose sum has the density of k uniforms times e^{u/2}."""
    c, epsilon = mpmath.mpf(width), mpmath.mpf(at)
    scale, total = mpmath.exp(-n * c / 2) / 2**n, mpmath.mpf(0)
    for i in range(n + 1):
        for j in range(n + 1 - i):
            k, middle = n - i - j, mpmath.mpf((i - j) * c)
            ways = mpmath.factorial(n) / (mpmath.factorial(i) * mpmath.factorial(j) * mpmath.factorial(k))

            def payoff(u: mpmath.mpf) -> mpmath.mpf:
                return mpmath.exp(u / 2) - mpmath.exp(epsilon - u / 2)

            if k == 0:
                total += ways * max(payoff(middle), 0)
                continue
            knots = [middle + (2 * m - k) * c for m in range(k + 1)]
            ends = [epsilon, *(x for x in knots if x > epsilon)] if epsilon > knots[0] else knots
            if len(ends) < 2:
                continue

            def density(u: mpmath.mpf, middle: mpmath.mpf = middle, k: int = k) -> mpmath.mpf:
                return _irwin_hall(k, (u - middle) / (2 * c) + mpmath.mpf(k) / 2) / (2 * c) * c**k

            total += ways * mpmath.quad(lambda u, f=density, g=payoff: f(u) * g(u), ends)
    return scale * total


@pytest.mark.parametrize("c, n", [(0.3, 1), (1.7, 2), (0.25, 3), (4.0, 3), (0.5, 5)])
def test_sums_over_counts(c: float, n: int) -> None:
    value = laplace.hockey_stick(Fraction(c), n)
    assert value is not None
    with mpmath.workdps(50):
        for share in (-0.6, 0.0, 0.3, 0.77, 0.999):
            epsilon = share * n * c
            delta, error = value(epsilon)
            truth = _by_counts(c, n, epsilon)
            assert abs(mpmath.mpf(delta) - truth) <= error
            assert error <= 1e-13 * delta


def test_one_release_is_the_mechanism_itself() -> None:
    pair = Laplace(noise_multiplier=0.7)
    assert pair.laplace_width == 1 / Fraction(0.7)
    value = laplace.hockey_stick(1 / Fraction(0.7), 1)
    assert value is not None
    for epsilon in np.linspace(-2.0, 1.5, 36):
        (ours, error), (simple, its_error) = value(float(epsilon)), pair.hockey_stick(float(epsilon))
        assert abs(ours - simple) <= error + its_error


@pytest.mark.parametrize(
    "b, n, delta", [(10.0, 20, 1e-5), (1.0, 2, 1e-8), (3.0, 60, 1e-12), (0.5, 50, 1e-300), (100.0, 100, 0.01)]
)
def test_agrees_with_the_lattice_and_keeps_what_it_certifies(b: float, n: int, delta: float) -> None:
    steps = [(Laplace(noise_multiplier=b), n)]
    found, other = (prv.epsilon(steps, delta=delta, engine=e) for e in ("auto", "lattice"))
    assert found.engine == "closed form"
    assert found.width <= 1e-13 * (1.0 + found.upper)
    assert other.lower <= found.upper and found.lower <= other.upper
    value = laplace.hockey_stick(Fraction(1) / Fraction(b), n)
    assert value is not None
    assert sum(value(found.upper)) <= delta < value(found.lower)[0]


def test_the_ends_of_the_range() -> None:
    value = laplace.hockey_stick(Fraction(1, 2), 4)
    assert value is not None
    assert value(2.0) == (0.0, 0.0)
    assert value(math.inf) == (0.0, 0.0)
    beside, error = value(math.nextafter(2.0, 0.0))  # 1/16 of the mass has the loss 2
    assert abs(beside / (math.ulp(1.0) / 16) - 1.0) < 1e-6 and error < 1e-14 * beside
    for far in (-3.0, -2000.0):
        delta, error = value(far)
        assert abs(delta + math.expm1(far)) <= error + 1e-16
    tiny = laplace.hockey_stick(Fraction(4), 100)
    assert tiny is not None
    delta, error = tiny(399.9999)
    assert 0.0 < delta < 1e-30 and error < 1e-12 * delta


def test_long_sums_are_left_to_the_other_engines() -> None:
    assert laplace.hockey_stick(Fraction(1), 101) is None
    assert laplace.hockey_stick(Fraction(501), 1) is None
    assert prv.epsilon([(Laplace(noise_multiplier=10.0), 101)], delta=1e-5).engine != "closed form"


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-3, 0.3, 0.999])
@pytest.mark.parametrize("start", [1e-3, 1.0, 40.0])
def test_inverts_where_the_search_begins_anywhere(delta: float, start: float) -> None:
    calls = []

    def value(epsilon: float) -> tuple[float, float]:
        calls.append(epsilon)
        return 0.9 * math.exp(-3.0 * epsilon), 1e-16

    found = closed.Closed(value, math.inf, start).invert(delta)
    truth = max(0.0, math.log(0.9 / delta) / 3.0)
    if delta > 1e-16:
        assert found.lower <= truth <= found.upper <= truth + 1e-15 * (1.0 + 1.0 / delta)
        assert len(calls) < 60
    else:  # the error alone exceeds delta
        assert found.lower <= truth and found.upper == math.inf
