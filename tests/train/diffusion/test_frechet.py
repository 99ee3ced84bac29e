"""Fréchet distance against closed forms, for singular covariances too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from exactdp.train.diffusion.frechet import Moments, frechet_distance, moments

RNG = np.random.default_rng(8)


def rotation(size: int) -> np.ndarray:
    return np.linalg.qr(RNG.normal(size=(size, size)))[0]


def test_covariances_that_commute() -> None:
    """|m_1 - m_2|^2 + sum (sqrt(a_k) - sqrt(b_k))^2 on common axes, also where some are zero."""
    axes = rotation(6)
    a, b = np.array([4.0, 1.0, 0.25, 1e-6, 0.0, 9.0]), np.array([1.0, 1.0, 2.25, 0.0, 0.0, 16.0])
    first, second = RNG.normal(size=6), RNG.normal(size=6)
    found = frechet_distance(Moments(first, axes * a @ axes.T), Moments(second, axes * b @ axes.T))
    expected = np.sum((first - second) ** 2) + np.sum((np.sqrt(a) - np.sqrt(b)) ** 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_two_dimensions_by_hand() -> None:
    """tr sqrt(M) = sqrt(tr M + 2 sqrt(det M)) for 2 x 2 matrices M = S_1 S_2."""
    root = RNG.normal(size=(2, 2))
    a, b = np.array([[2.0, 0.7], [0.7, 1.0]]), root @ root.T
    product = a @ b
    trace = np.sqrt(np.trace(product) + 2.0 * np.sqrt(np.linalg.det(product)))
    expected = np.trace(a) + np.trace(b) - 2.0 * trace
    zero = np.zeros(2)
    np.testing.assert_allclose(frechet_distance(Moments(zero, a), Moments(zero, b)), expected, rtol=1e-10)


def test_orthogonal_ranges_have_no_shared_part() -> None:
    axes = rotation(40)
    a = axes[:, :20] @ axes[:, :20].T
    b = 4.0 * axes[:, 20:] @ axes[:, 20:].T
    zero = np.zeros(40)
    np.testing.assert_allclose(frechet_distance(Moments(zero, a), Moments(zero, b)), 20.0 + 80.0, rtol=1e-9)


def test_it_is_a_distance_of_sets_that_are_smaller_than_their_features() -> None:
    x, y = RNG.normal(size=(30, 100)), 1.5 * RNG.normal(size=(40, 100)) + 0.2
    a, b = moments(x), moments(y)
    assert frechet_distance(a, a) < 1e-10
    np.testing.assert_allclose(frechet_distance(a, b), frechet_distance(b, a), rtol=1e-12)
    # A rotation and a shift of both sets change nothing; a scale s changes it by s^2.
    turn = rotation(100)
    moved = frechet_distance(moments(3.0 * x @ turn + 7.0), moments(3.0 * y @ turn + 7.0))
    np.testing.assert_allclose(moved, 9.0 * frechet_distance(a, b), rtol=1e-9)
    np.testing.assert_allclose(frechet_distance(a, moments(x + 0.5)), 25.0, rtol=1e-9)


def test_it_agrees_with_the_root_of_the_product_where_that_is_regular() -> None:
    x, y = RNG.normal(size=(300, 12)) @ RNG.normal(size=(12, 12)), RNG.normal(size=(300, 12))
    a, b = moments(x), moments(y)
    root = linalg.sqrtm(a.covariance @ b.covariance)
    expected = np.sum((a.mean - b.mean) ** 2) + np.trace(a.covariance + b.covariance - 2.0 * np.real(root))
    np.testing.assert_allclose(frechet_distance(a, b), expected, rtol=1e-8)
    np.testing.assert_allclose(a.covariance, np.cov(x.T), rtol=1e-10)


def test_samples_of_known_gaussians() -> None:
    x, y = RNG.normal(size=(40_000, 3)), 2.0 * RNG.normal(size=(40_000, 3)) + 1.0
    np.testing.assert_allclose(frechet_distance(moments(x), moments(y)), 3.0 + 3.0, rtol=0.03)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: moments(np.zeros((1, 3))), "rows of features must be"),
        (lambda: moments(np.zeros(3)), "features must be numbers"),
        (lambda: moments(np.full((4, 2), np.nan)), "features must be finite"),
        (lambda: Moments(np.zeros(2), np.zeros((3, 3))), "mean and covariance must be"),
        (lambda: Moments(np.zeros(2), np.full((2, 2), np.inf)), "mean and covariance must be finite"),
        (lambda: Moments(np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]])), "covariance must be symmetric"),
        (
            lambda: frechet_distance(Moments(np.zeros(2), np.eye(2)), Moments(np.zeros(3), np.eye(3))),
            "second must have as many features as first, 2, got 3",
        ),
        (
            lambda: frechet_distance(*[Moments(np.zeros(2), np.diag([1.0, -0.1]))] * 2),
            "covariance of first must be positive semidefinite",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
