"""Ball from neighbours and from guesses, on a Gaussian where everything is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from exactdp.accounting.attribute import reconstruction
from exactdp.accounting.attribute.nearest import Neighbourhoods, Neighbours
from exactdp.accounting.attribute.reconstruction import LinearView
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.fdp.risk import attribute_advantage

# X = (u, v), Psi(X) = u, v = u + N(0, 0.5^2): given u, v is Gaussian about u.
SPREAD = 0.5


def records(generator: np.random.Generator, n: int) -> np.ndarray:
    u = generator.normal(size=n)
    return np.stack([u, u + SPREAD * generator.normal(size=n)], axis=1)


def of(features: np.ndarray) -> Neighbours:
    """Neighbours as they are."""
    return lambda anchor, places: features[places]


def ball(radius: float) -> float:
    return 2 * stats.norm.cdf(radius / SPREAD) - 1


def test_neighbours_of_a_smooth_view() -> None:
    x = records(np.random.default_rng(0), 4000)
    anchors = [int(np.argmin(abs(x[:, 0] - at))) for at in (-0.5, 0.0, 0.5)]
    found = Neighbourhoods.find(x[:, :1], of(x[:, 1:]), anchors=anchors, neighbours=300)
    assert found.bandwidth < 0.2 * found.typical
    for radius in (0.2, 0.5, 1.0):
        estimate = found.ball(radius)
        assert estimate.lower <= ball(radius) <= estimate.upper
        assert abs(estimate.estimate - ball(radius)) < 0.1
        assert not estimate.certified and "not certified" in estimate.statement


def test_neighbours_mislead_where_the_view_tells_all_and_guesses_do_not() -> None:
    """An invertible view: Ball is 1. Neighbours do not see it, the guess proves it."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(400, 6))
    mixing = generator.normal(size=(6, 6))
    views = x @ mixing.T
    blind = Neighbourhoods.find(views, of(x), anchors=range(10), neighbours=60).ball(0.3)
    assert blind.upper < 0.5
    guess = LinearView(mixing, np.zeros(6), precision=1e-9).guess(views[200:], known=x[:200])
    assert reconstruction.lower_bound(guess, x[200:], radius=0.3).lower > 0.98


def test_neighbours_moved_to_the_view_see_it() -> None:
    """The same invertible view: moved to it, all neighbours are the record itself."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(400, 6))
    mixing = generator.normal(size=(6, 6))
    view = LinearView(mixing, np.zeros(6), precision=1e-6)

    def moved(anchor: int, places: np.ndarray) -> np.ndarray:
        return view.moved(x[places], np.tile(x[anchor] @ mixing.T, (len(places), 1)), variance=1.0)

    assert Neighbourhoods.find(x @ mixing.T, moved, anchors=range(10), neighbours=60).ball(0.01).lower > 0.7


def test_moving_keeps_what_is_private() -> None:
    x = np.random.default_rng(8).normal(size=(5, 4))
    view = LinearView(np.diag([1.0, 0.0, 1.0, 0.0]), np.zeros(4), precision=1e-6)
    moved = view.moved(x, np.tile([7.0, 0.0, 8.0, 0.0], (5, 1)), variance=1.0)
    np.testing.assert_allclose(moved[:, [0, 2]], [[7.0, 8.0]] * 5, atol=1e-6)
    np.testing.assert_allclose(moved[:, [1, 3]], x[:, [1, 3]], atol=1e-12)
    with pytest.raises(ValueError, match="variance must be finite and > 0"):
        view.moved(x, x, variance=0.0)


def test_strata_are_kept_apart() -> None:
    x = np.random.default_rng(2).normal(size=(100, 3))
    labels = np.arange(100) % 2
    shifted = x + 100.0 * labels[:, None]
    found = Neighbourhoods.find(x, of(shifted), anchors=[0, 1], neighbours=49, strata=labels)
    assert found.ball(20.0).lower > 0.8
    with pytest.raises(ValueError, match="each stratum must have 5 records, that of 0 has 4"):
        Neighbourhoods.find(x, of(x), anchors=[0], neighbours=10, strata=(np.arange(100) >= 4).astype(int))


def test_linear_guess_is_the_regression() -> None:
    generator = np.random.default_rng(3)
    x = records(generator, 5000)
    view = LinearView(np.array([[1.0, 0.0]]), np.zeros(1), precision=1e-6)
    guess = view.guess(x[2500:, :1], known=x[:2500])
    np.testing.assert_allclose(guess[:, 0], x[2500:, 0], atol=0.02)
    # Shrinkage takes a little from the slope of 1.
    slope = np.polyfit(x[2500:, 0], guess[:, 1], 1)[0]
    assert 0.9 < slope < 1.02
    for radius in (0.2, 0.5, 1.0):
        bound = reconstruction.lower_bound(guess, x[2500:], radius=radius)
        assert ball(radius) - 0.06 < bound.lower < ball(radius) and bound.upper == 1.0


def test_coverage_of_the_lower_bound() -> None:
    """At 90 % it exceeds the truth (Ball, here the same for all u) in at most 10 % of the samples."""
    generator = np.random.default_rng(4)
    exceeded = 0
    for _ in range(300):
        x = records(generator, 40)
        perfect = np.stack([x[:, 0], x[:, 0]], axis=1)
        exceeded += reconstruction.lower_bound(perfect, x, radius=0.5, confidence=0.9).lower > ball(0.5)
    assert exceeded <= stats.binom.ppf(0.999, 300, 0.1)


def test_offset_and_dropped_directions() -> None:
    """An affine view that drops a direction: that one is guessed by its mean."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(600, 3)) + np.array([1.0, 2.0, 3.0])
    view = LinearView(np.diag([1.0, 1.0, 0.0]), np.array([5.0, 0.0, 0.0]), precision=1e-6)
    guess = view.guess(x[300:] * [1, 1, 0] + [5, 0, 0], known=x[:300])
    np.testing.assert_allclose(guess[:, :2], x[300:, :2], atol=1e-4)
    assert abs(guess[:, 2] - 3.0).max() < 0.5


def test_theorem_4_takes_the_interval() -> None:
    x = records(np.random.default_rng(6), 500)
    estimate = Neighbourhoods.find(x[:, :1], of(x[:, 1:]), anchors=[0, 1], neighbours=100).ball(0.2)
    curve = GaussianTradeoff(1.0)
    bound = attribute_advantage(curve, ball=estimate.interval)
    assert bound.lower == pytest.approx(1.0 - curve.fnr(estimate.lower))
    assert bound.upper == pytest.approx(stats.norm.cdf(stats.norm.ppf(estimate.upper) + 1.0))


def test_refused() -> None:
    x = np.zeros((20, 2))
    with pytest.raises(ValueError, match="neighbours must be at most 19, of one anchor at least, got 20"):
        Neighbourhoods.find(x, of(x), anchors=[0], neighbours=20)
    with pytest.raises(ValueError, match="neighbours must be a whole number >= 4, got 3"):
        Neighbourhoods.find(x, of(x), anchors=[0], neighbours=3)
    with pytest.raises(ValueError, match="of one anchor at least"):
        Neighbourhoods.find(x, of(x), anchors=[], neighbours=5)
    with pytest.raises(ValueError, match="must be as many, got 20 and 19"):
        Neighbourhoods.find(x, of(x), anchors=[0], neighbours=5, strata=np.zeros(19, np.int64))
    with pytest.raises(ValueError, match="precision must be finite and > 0"):
        LinearView(np.eye(2), np.zeros(2), precision=0.0)
    with pytest.raises(ValueError, match=r"offset \[v\], got \(2, 2\) and \(3,\)"):
        LinearView(np.eye(2), np.zeros(3), precision=1.0)
    with pytest.raises(ValueError, match=r"must be alike \[n, k\]"):
        reconstruction.lower_bound(x, x[1:], radius=1.0)
