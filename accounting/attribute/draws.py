"""Ball from draws of X given Psi(X) = u: certified bounds on both sides, for every centre."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting import validate
from exactdp.accounting.attribute import distances
from exactdp.accounting.attribute.ball import Ball
from exactdp.accounting.clopper_pearson import clopper_pearson

Array = NDArray[np.float64]

LEAST = 4
"""Fewest draws that an estimate is made from."""

_STATEMENT = (
    "this u alone; both ends hold for independent draws from the law given u, whatever that law is; centres "
    "are points of the space of features"
)


class ConditionalDraws:
    """Independent draws of X given Psi(X) = u, as features of a distance.

    *Lower end.* The centre is chosen on the first half of the draws: that draw whose ball of radius rho holds
    most of them. The second half, independent of the choice, is then a binomial count of its mass, and Ball
    is at least that mass: Clopper and Pearson's lower end.

    *Upper end, for every centre.* Let c be a centre whose ball has the largest mass p (or one within any
    tolerance of it). c is a property of the law, not of the draws, so no draw falls into its ball with
    probability (1 - p)^n. If one does, z_i say, the ball of radius rho about c lies in the one of radius
    2 rho about z_i by the triangle inequality, and p <= Pr[d(X, z_i) <= 2 rho]. Given z_i, the other n - 1
    draws are independent of it, and their count within 2 rho is binomial. Hence

      Ball <= max(1 - (a/2)^(1/n), max_i upper end of Clopper-Pearson(count_i, n - 1, confidence 1 - a/(2n)))

    with probability at least 1 - a, half of a for either step. The price is the factor 2 of the radius: the
    end does not come below the largest mass of a ball of radius 2 rho about a point of the law, however many
    draws there are.

    *One feature.* On the line the balls are the intervals of length 2 rho, and Massart's form of the
    Dvoretzky-Kiefer-Wolfowitz inequality covers all of them at once without that factor:

      Ball <= (largest share of the draws in a closed interval of length 2 rho) + 2 sqrt(log(2/a) / (2n)).

    Both are computed at 1 - a/2 there and the smaller one is taken.

    Args:
      features: one draw a row, [n, k], from `exactdp.accounting.attribute.distances.features`; n >= 4. Rows
        must be in no order that depends on their values: shuffle what comes from a file.

    Raises:
      ValueError: fewer draws, or features that are not finite.
    """

    def __init__(self, features: Array) -> None:
        x = np.asarray(features, dtype=np.float64)
        if x.ndim != 2 or len(x) < LEAST:
            raise ValueError(f"features must be [n, k] with n >= {LEAST} draws, got shape {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError("features must be finite, got NaN or infinity")
        self._features = x
        self._distances = distances.between(x, x)

    def __len__(self) -> int:
        return len(self._features)

    def ball(self, radius: float, *, confidence: float = 0.95) -> Ball:
        """Ball at a radius.

        Args:
          radius: rho >= 0, in the distance's own units.
          confidence: of both ends together, in (0, 1); half of the rest goes to either.

        Raises:
          ValueError: an argument is out of range.
        """
        rho = validate.non_negative("radius", radius)
        each = (1.0 - validate.open_probability("confidence", confidence)) / 2.0
        lower, estimate = self._lower(rho, miss=each)
        return Ball(
            radius=rho,
            lower=lower,
            upper=self._upper(rho, miss=each),
            estimate=estimate,
            confidence=confidence,
            certified=True,
            statement=_STATEMENT,
        )

    def _lower(self, rho: float, *, miss: float) -> tuple[float, float]:
        half = len(self) // 2
        near = self._distances <= rho
        centre = int(np.argmax(near[:half, :half].sum(axis=1)))
        hits, trials = int(near[centre, half:].sum()), len(self) - half
        return clopper_pearson(hits, trials=trials, confidence=1.0 - miss, side="lower").lower, hits / trials

    def _upper(self, rho: float, *, miss: float) -> float:
        line = self._features.shape[1] == 1
        share = miss / 2.0 if line else miss
        n = len(self)
        # A draw lies within 2 rho of itself and is not counted.
        most = int((self._distances <= 2.0 * rho).sum(axis=1).max()) - 1
        covered = clopper_pearson(most, trials=n - 1, confidence=1.0 - share / (2.0 * n), side="upper").upper
        # The end of Clopper and Pearson grows with the count, so the largest count decides.
        bound = max(-math.expm1(math.log(share / 2.0) / n), covered)
        if line:
            ordered = np.sort(self._features[:, 0])
            inside = np.searchsorted(ordered, ordered + 2.0 * rho, side="right") - np.arange(n)
            bound = min(bound, inside.max() / n + 2.0 * math.sqrt(math.log(2.0 / share) / (2.0 * n)))
        return min(1.0, float(bound))
