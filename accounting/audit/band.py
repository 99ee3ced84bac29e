"""Points above a trade-off curve that hold together with a confidence, and what follows from them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.fdp.curve import PiecewiseLinearTradeoff
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.threat import ThreatModel

Array = NDArray[np.float64]

GAUSSIAN = "the trade-off curve is that of a Gaussian mechanism"


@dataclasses.dataclass(frozen=True)
class Band:
    """Upper bounds of both error rates of some tests: fpr <= `fpr_upper` and fnr <= `fnr_upper`.

    All points hold at once with probability at least `confidence` over the trials. So does everything that is
    computed from them, and it may be computed for as many delta as one likes.

    Attributes:
      thresholds: of the tests "in where the score exceeds it", shape [k]; documentation only.
      fpr_upper: in (0, 1], shape [k].
      fnr_upper: in (0, 1], shape [k].
      confidence: in (0, 1).
      trials: number of scores that were used.
      method: what chose the thresholds, in words.

    Raises:
      ValueError: the arrays differ in length, are empty, or hold rates outside (0, 1].
    """

    thresholds: tuple[float, ...]
    fpr_upper: tuple[float, ...]
    fnr_upper: tuple[float, ...]
    confidence: float
    trials: int
    method: str

    def __post_init__(self) -> None:
        validate.open_probability("confidence", self.confidence)
        validate.count("trials", self.trials, minimum=1)
        if not len(self.thresholds) == len(self.fpr_upper) == len(self.fnr_upper) > 0:
            raise ValueError(
                "thresholds, fpr_upper and fnr_upper must have the same length >= 1, got "
                f"{len(self.thresholds)}, {len(self.fpr_upper)} and {len(self.fnr_upper)}"
            )
        for name, values in (("fpr_upper", self.fpr_upper), ("fnr_upper", self.fnr_upper)):
            if not all(0.0 < value <= 1.0 for value in values):
                raise ValueError(f"{name} must be in (0, 1], got {values}")

    def epsilon_lower(self, delta: float) -> float:
        """Lower bound of epsilon at a delta, in nats; 0 where the points show nothing.

            max over the points of log((1 - delta - fnr) / fpr) and log((1 - delta - fpr) / fnr), and 0.

        The second is the first for the opposite test, which says "in" where this one says "out", with the two
        data sets exchanged.

        Args:
          delta: in [0, 1).

        Raises:
          ValueError: `delta` is outside [0, 1).

        Source: Kairouz, Oh, Viswanath 2015 (arXiv 1311.0776): the errors that (epsilon, delta) allows.
        """
        return max(0.0, float(np.max(epsilons(self.fpr_upper, self.fnr_upper, delta=delta))))

    def delta_lower(self, epsilon: float) -> float:
        """Lower bound of delta at an epsilon: max over points of 1 - fnr - e^epsilon fpr, both ways, or 0.

        Args:
          epsilon: in nats, in [0, 700].

        Raises:
          ValueError: `epsilon` is outside [0, 700].
        """
        eps = validate.non_negative("epsilon", epsilon)
        if eps > 700.0:
            raise ValueError(f"epsilon must be at most 700, got {epsilon}")
        x, y = np.array(self.fpr_upper), np.array(self.fnr_upper)
        growth = math.exp(eps)
        return max(0.0, float(np.max(np.maximum(1.0 - y - growth * x, 1.0 - x - growth * y))))

    def mu_lower(self) -> float:
        """Lower bound of every mu for which the mechanism is mu-GDP: max Phi^-1(1 - fpr) - Phi^-1(fnr), or 0.

        Source: Dong, Roth and Su 2022 (arXiv 1905.02383), for mu-GDP; as an audit: Nasr et al. 2023 (arXiv
        2302.07956).
        """
        mu = -special.ndtri(np.array(self.fpr_upper)) - special.ndtri(np.array(self.fnr_upper))
        return max(0.0, float(np.max(mu)))

    def curve(self) -> PiecewiseLinearTradeoff:
        """A curve that the true trade-off curve does not exceed: the convex hull of the points.

        The true curve is convex, so that what it lies below at the points it lies below between them.
        """
        return PiecewiseLinearTradeoff.from_points(self.fpr_upper, self.fnr_upper)

    def result(
        self, *, delta: float, threat_model: ThreatModel, gaussian: bool = False, note: str = ""
    ) -> AuditResult:
        """The lower bound of epsilon as a result to store.

        Args:
          delta: in [0, 1); > 0 for a Gaussian curve, whose epsilon is infinite at 0.
          threat_model: what the attack was on.
          gaussian: whether to take it for granted that the trade-off curve is G_mu for some mu. Then one
            point determines all of it, and the bound is epsilon of G_mu at `mu_lower`. This is no bound for
            a mechanism with another curve, and the result says so.
          note: what to know before quoting it.

        Raises:
          ValueError: `delta` is outside its range.
        """
        mu = self.mu_lower()
        epsilon = gaussian_epsilon(mu, delta=delta) if gaussian else self.epsilon_lower(delta)
        hull = self.curve()
        return AuditResult(
            epsilon_lower=epsilon,
            confidence=self.confidence,
            delta=delta,
            trials=self.trials,
            method=self.method,
            threat_model=threat_model,
            assumption=GAUSSIAN if gaussian else "",
            mu_lower=mu,
            tradeoff=tuple(zip(hull.fpr_knots, hull.fnr_knots, strict=True)),
            note=note,
        )


def gaussian_epsilon(mu: float, *, delta: float) -> float:
    """epsilon of G_mu at a delta in (0, 1).

    Raises:
      ValueError: `delta` is outside (0, 1), or `mu` negative.
    """
    return GaussianTradeoff(mu).epsilon(validate.open_probability("delta", delta))


def epsilons(fpr: tuple[float, ...] | Array, fnr: tuple[float, ...] | Array, *, delta: float) -> Array:
    """max(log((1 - delta - fnr) / fpr), log((1 - delta - fpr) / fnr)) for rates in (0, 1]; may be negative.

    Raises:
      ValueError: `delta` is outside [0, 1), or a rate outside (0, 1].
    """
    if validate.probability("delta", delta) == 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    x, y = np.asarray(fpr, dtype=np.float64), np.asarray(fnr, dtype=np.float64)
    for name, rates in (("fpr", x), ("fnr", y)):
        if not np.all((rates > 0.0) & (rates <= 1.0)):
            raise ValueError(f"{name} must be in (0, 1], got {rates.tolist()}")
    return np.maximum(_log(1.0 - delta - y) - np.log(x), _log(1.0 - delta - x) - np.log(y))


def _log(values: Array) -> Array:
    positive = values > 0.0
    return np.where(positive, np.log(np.where(positive, values, 1.0)), -math.inf)
