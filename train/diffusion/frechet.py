"""Fréchet distance between Gaussians fitted to features, in float64."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Num
from scipy import linalg

from exactdp.accounting import validate


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance of features.

    Attributes:
      mean: float64 [d].
      covariance: float64 [d, d], symmetric, positive semidefinite; it may be singular.

    Raises:
      ValueError: shapes that do not fit, values that are not finite, or a matrix that is not symmetric.
    """

    mean: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"]

    def __post_init__(self) -> None:
        size = self.mean.shape[0] if self.mean.ndim == 1 else -1
        if self.covariance.shape != (size, size):
            raise ValueError(
                "mean and covariance must be [d] and [d, d], got "
                f"{self.mean.shape} and {self.covariance.shape}"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.covariance).all()):
            raise ValueError("mean and covariance must be finite, got NaN or infinity")
        skew = np.abs(self.covariance - self.covariance.T).max(initial=0.0)
        if skew > 1e-9 * np.abs(self.covariance).max(initial=0.0):
            raise ValueError(f"covariance must be symmetric, got entries that differ by {skew:.3g}")


def moments(features: Num[np.ndarray, "n d"]) -> Moments:
    """Mean and unbiased covariance of features, one row an image.

    Raises:
      ValueError: features that are no [n, d] with n >= 2, or not finite.
    """
    checked("features", features, least=2)
    rows = np.asarray(features, np.float64)
    mean = rows.mean(0)
    centred = rows - mean
    return Moments(mean, centred.T @ centred / (len(rows) - 1))


def frechet_distance(first: Moments, second: Moments) -> float:
    """The squared 2-Wasserstein distance of two Gaussians.

        |m_1 - m_2|^2 + tr(S_1) + tr(S_2) - 2 tr((S_1^(1/2) S_2 S_1^(1/2))^(1/2))

    The last trace is the sum of the singular values of S_1^(1/2) S_2^(1/2), the roots taken by symmetric
    eigendecomposition with eigenvalues below d 2.2e-16 of the largest set to 0. So nothing is inverted, no
    root of a non-symmetric matrix is taken and nothing is added to the diagonal: singular covariances, of
    fewer images than features, are no special case. The error is of the order d 1e-16 of the traces.

    The estimate from n images is biased upwards, by more for fewer images: compare equal numbers only.

    Args:
      first: moments of one set.
      second: moments of the other, of features of the same number.

    Returns:
      The distance, >= 0.

    Raises:
      ValueError: the numbers of features differ, or a covariance has a clearly negative eigenvalue.

    Source: Dowson and Landau 1982; for images arXiv 1706.08500.
    """
    if first.mean.shape != second.mean.shape:
        raise ValueError(
            f"second must have as many features as first, {first.mean.size}, got {second.mean.size}"
        )
    shift = float(np.sum((first.mean - second.mean) ** 2))
    product = _root("first", first.covariance) @ _root("second", second.covariance)
    shared = float(np.sum(linalg.svdvals(product)))
    traces = float(np.trace(first.covariance) + np.trace(second.covariance))
    return shift + max(traces - 2.0 * shared, 0.0)


def checked(name: str, features: Num[np.ndarray, "n d"], *, least: int) -> None:
    """Refuses what are no features.

    Args:
      name: of the argument.
      features: one row an image.
      least: rows there must be.

    Raises:
      ValueError: they are refused.
    """
    if features.ndim != 2 or features.dtype.kind not in "iuf" or not features.shape[1]:
        raise ValueError(f"{name} must be numbers [n, d], got {features.dtype} of shape {features.shape}")
    validate.count(f"rows of {name}", len(features), least)
    if not np.isfinite(features).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")


def _root(name: str, covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    values, vectors = linalg.eigh(covariance)
    noise = len(values) * float(np.finfo(np.float64).eps) * float(np.abs(values).max(initial=0.0))
    # Covariances of float32 features, or read from files, may be off by more than rounding in float64.
    if values.size and values[0] < -max(noise, 1e-6 * float(values[-1])):
        raise ValueError(
            f"covariance of {name} must be positive semidefinite, got eigenvalue {values[0]:.3g}"
        )
    return (vectors * np.sqrt(np.where(values > noise, values, 0.0))) @ vectors.T
