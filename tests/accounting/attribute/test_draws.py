"""Ball from conditional draws: coverage where Ball is known, and how close the ends are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.attribute.draws import ConditionalDraws

Law = Callable[[np.random.Generator, int], np.ndarray]


def uniform(generator: np.random.Generator, n: int) -> np.ndarray:
    return generator.uniform(size=(n, 1))


def gaussian(generator: np.random.Generator, n: int) -> np.ndarray:
    return generator.normal(size=(n, 2))


def atoms(generator: np.random.Generator, n: int) -> np.ndarray:
    """Two atoms, far apart: Ball is the larger mass until it holds both."""
    return (generator.uniform(size=(n, 1)) < 0.7).astype(float) * np.array([[1.0, 2.0, 3.0]])


def plane_uniform(generator: np.random.Generator, n: int) -> np.ndarray:
    """Uniform on a circle line of radius 1: the ball of radius rho about a point of the line."""
    angle = generator.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


CASES = [
    (uniform, 0.1, 0.2),
    (uniform, 0.3, 0.6),
    (uniform, 0.6, 1.0),
    (gaussian, 0.5, stats.chi2.cdf(0.25, 2)),
    (gaussian, 1.5, stats.chi2.cdf(2.25, 2)),
    (atoms, 0.5, 0.7),
    # A disc of radius rho < 1 cuts the most from the circle where its diameter is a chord.
    (plane_uniform, 0.4, 2 * np.arcsin(0.4) / (2 * np.pi)),
]


@pytest.mark.parametrize(("law", "radius", "truth"), CASES)
@pytest.mark.parametrize("n", [12, 80])
def test_coverage(law: Law, radius: float, truth: float, n: int) -> None:
    """Of 400 repetitions at 90 %, each end misses at most the 5 % that it is given, up to chance."""
    generator = np.random.default_rng(11)
    missed = np.zeros(2, int)
    for _ in range(400):
        ball = ConditionalDraws(law(generator, n)).ball(radius, confidence=0.9)
        assert 0.0 <= ball.lower <= ball.estimate <= 1.0 and ball.lower <= ball.upper
        missed += [ball.lower > truth, ball.upper < truth]
    # 99.9 % quantile of Bin(400, 0.05).
    assert missed.max() <= stats.binom.ppf(0.999, 400, 0.05)


def test_ends_close_in_where_the_factor_two_costs_nothing() -> None:
    generator = np.random.default_rng(1)
    line = ConditionalDraws(uniform(generator, 1500)).ball(0.1)
    assert line.lower > 0.15 and line.upper < 0.33
    far = ConditionalDraws(atoms(generator, 1500)).ball(0.5)
    assert far.lower > 0.66 and far.upper < 0.78


def test_upper_end_covers_centres_between_the_draws() -> None:
    """Draws on a sphere of many dimensions: each is far from all, the centre of the sphere near to all."""
    points = np.random.default_rng(2).normal(size=(100, 200))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    ball = ConditionalDraws(points).ball(1.0)
    # Ball(1) is 1, by the centre; no draw has another within 1. The lower end may miss it, the upper not.
    assert ball.lower < 0.1 and ball.upper == 1.0


def test_the_lower_end_is_not_the_best_of_many() -> None:
    """The centre is chosen on other draws: in a space where nothing is near, no luck is reported."""
    points = np.random.default_rng(3).normal(size=(200, 500))
    ball = ConditionalDraws(points).ball(1.0)
    assert ball.lower == ball.estimate == 0.0
    assert ball.upper < 0.06


def test_larger_radii_and_confidence() -> None:
    draws = ConditionalDraws(gaussian(np.random.default_rng(4), 60))
    balls = [draws.ball(radius) for radius in (0.0, 0.3, 1.0, 3.0, 100.0)]
    assert all(a.upper <= b.upper for a, b in zip(balls, balls[1:], strict=False))
    assert balls[0].lower == 0.0 and balls[-1].upper == 1.0 and balls[-1].lower > 0.85
    narrow, wide = draws.ball(1.0, confidence=0.5), draws.ball(1.0, confidence=0.999)
    assert wide.lower < narrow.lower and narrow.upper < wide.upper
    assert balls[2].interval.upper == balls[2].upper and balls[2].certified


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"n >= 4 draws, got shape \(3, 2\)"):
        ConditionalDraws(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="features must be finite"):
        ConditionalDraws(np.full((5, 1), np.nan))
    draws = ConditionalDraws(np.zeros((5, 1)))
    with pytest.raises(ValueError, match="radius must be finite and >= 0, got -1"):
        draws.ball(-1.0)
    with pytest.raises(ValueError, match="confidence must be in .0, 1., got 1"):
        draws.ball(1.0, confidence=1.0)
