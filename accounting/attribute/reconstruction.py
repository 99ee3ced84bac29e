"""Ball from below, by guessing the record from its public view: certified, whatever the records are."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from exactdp.accounting import validate
from exactdp.accounting.clopper_pearson import clopper_pearson
from exactdp.accounting.interval import Interval

Array = NDArray[np.float64]

# Weight of an even spread in the covariance: with fewer records than pixels the sample's own is singular.
_SHRINKAGE = 0.05


@dataclasses.dataclass(frozen=True)
class LinearView:
    """A public view that is affine in the record: u = matrix x + offset, up to rounding.

    Attributes:
      matrix: A, [v, d].
      offset: b, [v].
      precision: s, standard deviation of the rounding of the view, > 0; some 1e-7 of its size in float32.
    """

    matrix: Array
    offset: Array
    precision: float

    def __post_init__(self) -> None:
        validate.positive("precision", self.precision)
        if self.matrix.ndim != 2 or self.offset.shape != self.matrix.shape[:1]:
            raise ValueError(
                f"matrix must be [v, d] and offset [v], got {self.matrix.shape} and {self.offset.shape}"
            )

    def guess(self, views: Array, *, known: Array) -> Array:
        """The best linear guesses of the records behind views, from a sample of other records.

        x_hat = m + C A^T (A C A^T + s^2 I)^-1 (u - A m - b), with their mean m and their covariance C (95 %
        of the sample's, 5 % of an even one). For a blur it is Wiener's deconvolution, for public columns the
        regression on them.

        Args:
          views: [n, v].
          known: [m, d], m >= 2; none of them behind the views.

        Returns:
          [n, d].
        """
        mean = known.mean(axis=0)
        # C = sample^T sample + even I, of low rank but for the even part; no d x d product but A A^T.
        sample = (known - mean) * np.sqrt((1.0 - _SHRINKAGE) / len(known))
        even = _SHRINKAGE * float(np.mean((known - mean) ** 2))
        seen = sample @ self.matrix.T
        inner = seen.T @ seen + even * (self.matrix @ self.matrix.T)
        solved = self._solve(inner, (views - self.matrix @ mean - self.offset).T)
        return mean + (sample.T @ (seen @ solved) + even * (self.matrix.T @ solved)).T

    def moved(self, records: Array, views: Array, *, variance: float) -> Array:
        """Records changed as little as possible so that their views are the given ones, up to rounding.

        x + v A^T (v A A^T + s^2 I)^-1 (u - A x - b). Public columns get the values of u, private ones stay as
        they are; of an image, what the blur lets through becomes that of u.

        Args:
          records: [n, d].
          views: of other records, [n, v].
          variance: v > 0, of a feature.

        Returns:
          [n, d].
        """
        spread = validate.positive("variance", variance)
        missing = (views - records @ self.matrix.T - self.offset).T
        return records + spread * (
            self._solve(spread * (self.matrix @ self.matrix.T), missing).T @ self.matrix
        )

    def _solve(self, inner: Array, right: Array) -> Array:
        """(inner + s^2 I)^-1 right; `inner` is overwritten."""
        # It is singular where the view drops something, nearly so for a blur: besides s^2, as much is added
        # as rounding may have taken.
        rounding = np.finfo(np.float64).eps * float(np.trace(inner))
        inner[np.diag_indices_from(inner)] += self.precision**2 + rounding
        return linalg.cho_solve(linalg.cho_factor(inner, lower=True, overwrite_a=True), right)


def lower_bound(guesses: Array, truths: Array, *, radius: float, confidence: float = 0.95) -> Interval:
    """A lower bound on the mean of Ball(X, Psi(X), d, rho), and so on its largest value, over u.

    A guess g(u) is one centre: Pr[d(X, g(u)) <= rho | Psi(X) = u] <= Ball(X, u, d, rho) for each u. The mean
    over u of the left side is the probability that a guess from a view comes within rho of the record, which
    is counted; whatever the guess is, as long as it was made without the records it is tried on.

    Args:
      guesses: features of the guesses, [n, k].
      truths: features of the records guessed, [n, k]; independent draws from the law of X.
      radius: rho >= 0.
      confidence: in (0, 1).

    Returns:
      [Clopper and Pearson's lower end, 1].

    Raises:
      ValueError: shapes differ or an argument is out of range.
    """
    rho = validate.non_negative("radius", radius)
    if guesses.shape != truths.shape or guesses.ndim != 2:
        raise ValueError(f"guesses and truths must be alike [n, k], got {guesses.shape} and {truths.shape}")
    hits = int((errors(guesses, truths) <= rho).sum())
    return clopper_pearson(hits, trials=len(truths), confidence=confidence, side="lower")


def errors(guesses: Array, truths: Array) -> Array:
    """Distance of each guess from its record, [n]."""
    return np.sqrt(np.sum((guesses - truths) ** 2, axis=1))
