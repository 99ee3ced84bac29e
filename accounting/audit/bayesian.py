"""Credible intervals of epsilon from the error counts of one attack."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from exactdp.accounting import validate
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.interval import Interval
from exactdp.accounting.threat import ThreatModel

Array = NDArray[np.float64]
Prior = Literal["jeffreys", "uniform"]

PRIORS: tuple[str, ...] = get_args(Prior)
_REACH = 36.0  # of the logit: what lies beyond has a posterior probability of 1e-15
_EDGES = _REACH * np.sinh(np.linspace(-3.0, 3.0, 65)) / math.sinh(3.0)  # dense in the middle
_ABSCISSAE, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_LARGEST_EPSILON = 700.0


@dataclasses.dataclass(frozen=True)
class Posterior:
    """The posterior of the error rates of one fixed test, and what it says about epsilon.

    The two rates are independent a priori and Beta distributed: Beta(1/2, 1/2) each for `"jeffreys"`,
    Beta(1, 1) for `"uniform"`. Epsilon of the test at a delta is

        max(log((1 - delta - fnr) / fpr), log((1 - delta - fpr) / fnr), 0),

    the least with which the mechanism could allow these rates; epsilon of the mechanism is no smaller.

    Unlike the other bounds of this package these are statements about a posterior: for one given mechanism
    the share of audits whose interval misses is not bounded by 1 - confidence. In return they are shorter.

    Args:
      false_positives: runs without the record called "in", in [0, `negatives`].
      negatives: runs without it, >= 1.
      false_negatives: runs with the record called "out", in [0, `positives`].
      positives: runs with it, >= 1.
      prior: `"jeffreys"` or `"uniform"`.

    Raises:
      ValueError: an argument is out of range.

    Source: Zanella-Béguelin et al. 2023 (arXiv 2206.05199); the quadrature is ours.
    """

    false_positives: int
    negatives: int
    false_negatives: int
    positives: int
    prior: Prior = "jeffreys"

    def __post_init__(self) -> None:
        validate.one_of("prior", self.prior, PRIORS)
        for name, total in (("false_positives", "negatives"), ("false_negatives", "positives")):
            all_of_them = validate.count(total, getattr(self, total), minimum=1)
            if validate.count(name, getattr(self, name)) > all_of_them:
                raise ValueError(f"{name} must be at most {total} = {all_of_them}, got {getattr(self, name)}")

    def probability(self, epsilon: float, *, delta: float) -> float:
        """Posterior probability that epsilon of the test at `delta` is at most `epsilon`.

            integral over fpr of its density times Pr[fnr >= max(1 - delta - e^eps fpr,
            e^-eps (1 - delta - fpr))],

        by Gauss-Legendre rules in the logit of the distribution function of fpr, on either side of where the
        two terms of the maximum cross; to about 1e-7.

        Raises:
          ValueError: `epsilon` is outside [0, 700] or `delta` outside [0, 1).
        """
        eps, rest = validate.non_negative("epsilon", epsilon), 1.0 - _delta(delta)
        if eps > _LARGEST_EPSILON:
            raise ValueError(f"epsilon must be at most {_LARGEST_EPSILON:g}, got {epsilon}")
        fpr, weights = self._nodes(rest * float(special.expit(-eps)))
        a, b = self._shape(self.false_negatives, self.positives)
        least = np.maximum(rest - math.exp(eps) * fpr, math.exp(-eps) * (rest - fpr))
        tail = special.betaincc(a, b, np.clip(least, 0.0, 1.0))
        return min(1.0, float(np.sum(weights * tail)))

    def lower(self, *, delta: float, confidence: float = 0.95) -> float:
        """The epsilon that is exceeded with posterior probability `confidence`; 0 if there is none.

        Raises:
          ValueError: `delta` is outside [0, 1) or `confidence` outside (0, 1).
        """
        return self._quantile(1.0 - validate.open_probability("confidence", confidence), delta)

    def interval(self, *, delta: float, confidence: float = 0.95) -> Interval:
        """The equal-tailed credible interval.

        Raises:
          ValueError: as `lower`.
        """
        tail = 0.5 * (1.0 - validate.open_probability("confidence", confidence))
        return Interval(self._quantile(tail, delta), self._quantile(1.0 - tail, delta), f"{self.prior} prior")

    def result(
        self, *, delta: float, threat_model: ThreatModel, confidence: float = 0.95, note: str = ""
    ) -> AuditResult:
        """`lower` as a result to store, marked as credible.

        Raises:
          ValueError: as `lower`.
        """
        return AuditResult(
            epsilon_lower=self.lower(delta=delta, confidence=confidence),
            confidence=confidence,
            delta=delta,
            trials=self.negatives + self.positives,
            method=f"Bayesian, {self.prior} prior, fixed threshold (arXiv 2206.05199)",
            threat_model=threat_model,
            certainty="credible",
            note=note,
        )

    def _quantile(self, probability: float, delta: float) -> float:
        _delta(delta)
        if self.probability(0.0, delta=delta) >= probability:
            return 0.0
        low, high = 0.0, 1.0
        while self.probability(high, delta=delta) < probability:
            if high == _LARGEST_EPSILON:
                return math.inf
            low, high = high, min(2.0 * high, _LARGEST_EPSILON)

        def excess(epsilon: float) -> float:
            return self.probability(epsilon, delta=delta) - probability

        return float(optimize.brentq(excess, low, high, xtol=1e-9, rtol=1e-9))

    def _shape(self, errors: int, total: int) -> tuple[float, float]:
        add = 0.5 if self.prior == "jeffreys" else 1.0
        return errors + add, total - errors + add

    def _nodes(self, kink: float) -> tuple[Array, Array]:
        """Values of fpr, and posterior weights that sum to 1 up to rounding; no panel contains `kink`."""
        a, b = self._shape(self.false_positives, self.negatives)
        with np.errstate(divide="ignore"):
            at = np.log(special.betainc(a, b, kink)) - np.log(special.betaincc(a, b, kink))
        edges = np.unique(np.append(_EDGES, min(max(float(at), -_REACH), _REACH)))
        half = 0.5 * np.diff(edges)[:, None]
        z = (edges[:-1, None] + half + half * _ABSCISSAE).ravel()
        below, above = special.expit(z), special.expit(-z)
        fpr = np.where(z <= 0.0, special.betaincinv(a, b, below), special.betainccinv(a, b, above))
        return fpr, (half * _WEIGHTS).ravel() * below * above


def _delta(delta: float) -> float:
    if validate.probability("delta", delta) == 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    return float(delta)
