"""What a trade-off curve says about attacks: membership, attribute inference, reconstruction.

Each function takes the curve that is guaranteed (the lower one of a `TradeoffBracket`) and returns an upper
bound on what any attack reaches.
"""

from __future__ import annotations

import math
from typing import overload

from exactdp.accounting import validate
from exactdp.accounting.fdp.curve import TradeoffCurve
from exactdp.accounting.interval import Interval


def membership_tpr(curve: TradeoffCurve, *, fpr: float) -> float:
    """Largest true-positive rate of a membership test at `fpr`: 1 - f(fpr).

    Raises:
      ValueError: `fpr` is outside [0, 1].

    Source: Dong, Roth and Su 2022 (arXiv 1905.02383), Definition 2.1.
    """
    return 1.0 - curve.fnr(fpr)


def membership_advantage(curve: TradeoffCurve) -> float:
    """Largest tpr - fpr of a membership test: max_x 1 - x - f(x), total variation.

    Source: Yeom et al. 2018 (arXiv 1709.01604), for the advantage.
    """
    return curve.advantage


def membership_accuracy(curve: TradeoffCurve, *, prior: float) -> float:
    """Largest share of right answers when a record is present with probability `prior`.

    max_x prior (1 - f(x)) + (1 - prior)(1 - x) = 1 - prior + prior * delta(log((1 - prior) / prior)).

    Raises:
      ValueError: `prior` is outside [0, 1].
    """
    share = validate.probability("prior", prior)
    if share in (0.0, 1.0):
        return 1.0
    return 1.0 - share + share * curve.delta(math.log1p(-share) - math.log(share))


def membership_ppv(curve: TradeoffCurve, *, fpr: float, prior: float) -> float:
    """Largest precision of a membership test at `fpr`: prior tpr / (prior tpr + (1 - prior) fpr).

    Args:
      curve: the guaranteed trade-off curve.
      fpr: false-positive rate in [0, 1].
      prior: share of present records among the tested, in [0, 1].

    Returns:
      The bound; 1 where no record that is absent is ever reported (`fpr` 0 or `prior` 1), 0 where `prior` is
      0 and `fpr` is positive.

    Raises:
      ValueError: an argument is outside [0, 1].

    Source: Jayaraman et al. 2021 (arXiv 2005.10881), for the measure.
    """
    rate, share = validate.probability("fpr", fpr), validate.probability("prior", prior)
    wrong = (1.0 - share) * rate
    if wrong == 0.0:
        return 1.0
    right = share * membership_tpr(curve, fpr=rate)
    return right / (right + wrong)


@overload
def attribute_advantage(curve: TradeoffCurve, *, ball: float) -> float: ...
@overload
def attribute_advantage(curve: TradeoffCurve, *, ball: Interval) -> Interval: ...
def attribute_advantage(curve: TradeoffCurve, *, ball: float | Interval) -> float | Interval:
    """Upper bound on an attribute-inference adversary's advantage under feature DP: 1 - f(Ball).

    Ball(X, u, d, rho) is the largest mass that the attribute's law given the public features puts in a ball
    of radius rho: what a guess hits without the release. The bound is empty as Ball approaches 1.

    Args:
      curve: trade-off curve guaranteed under feature DP.
      ball: Ball in [0, 1], or an interval of it.

    Returns:
      The bound; for an interval, the bounds at its two ends (1 - f increases). An interval that holds with
      some confidence gives bounds that hold with the same confidence; the upper one is the one to quote.

    Raises:
      ValueError: `ball` is outside [0, 1].

    Source: Mahloujifar, Guo, Suh and Chaudhuri 2025 (arXiv 2506.19836), Theorem 4.
    """
    return _one_minus_f(curve, "ball", ball)


@overload
def reconstruction_success(curve: TradeoffCurve, *, prior_success: float) -> float: ...
@overload
def reconstruction_success(curve: TradeoffCurve, *, prior_success: Interval) -> Interval: ...
def reconstruction_success(curve: TradeoffCurve, *, prior_success: float | Interval) -> float | Interval:
    """Upper bound on the success of reconstructing a record: 1 - f(kappa) (reconstruction robustness).

    Args:
      curve: the guaranteed trade-off curve, null hypothesis "without the record".
      prior_success: kappa in [0, 1], the success of the best guess without the release, or an interval of it.

    Raises:
      ValueError: `prior_success` is outside [0, 1].

    Source: Kaissis et al. 2023 (arXiv 2307.03928); Hayes et al. 2023 (arXiv 2302.07225).
    """
    return _one_minus_f(curve, "prior_success", prior_success)


def _one_minus_f(curve: TradeoffCurve, name: str, value: float | Interval) -> float | Interval:
    if isinstance(value, Interval):
        low, high = (validate.probability(name, end) for end in (value.lower, value.upper))
        return Interval(1.0 - curve.fnr(low), 1.0 - curve.fnr(high), value.engine)
    return 1.0 - curve.fnr(validate.probability(name, value))
