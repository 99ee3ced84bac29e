"""One-run audits against a whole trade-off curve.

m canaries are each in the run with probability one half, independently. From the output alone the guesser
makes r guesses, r fixed beforehand; N of them are correct. Let p_i = Pr[N = i] and f the symmetric trade-off
curve of the presence of one canary.

Fix a canary j and the other coins. "The guess about j is `in`, and at least c - 1 guesses about others are
correct" is an event of the output, so its probability with j present is at most 1 - f of the one with j
absent; the same holds for `out`. Averaging over coins and canaries, by concavity of 1 - f,

    sum_{i >= c} i p_i / m  <=  1 - f( sum_{i >= c - 1} (r - i) p_i / m ),           c = 1, ..., r,

as a correct guess about j makes c correct ones, and a wrong one leaves c - 1. Let Pr[N >= v] >= tau. Then
each tail P_c = Pr[N >= c] is at least that of the sequence which has p_v = tau and, downwards from c = v - 1,
the least p_c that the inequality for c + 1 allows. By induction: the left side, c P_c + sum_{j > c} P_j up to
a factor, grows with the tails above, and the inequality bounds (r - c) P_c - sum_{j > c} P_j from below by
what grows with them too. If the sequence has P_0 > 1, there is no such mechanism, and Pr[N >= v] < tau.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from exactdp.accounting import validate
from exactdp.accounting.audit import one_run
from exactdp.accounting.audit.band import GAUSSIAN, gaussian_epsilon
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.fdp.curve import TradeoffCurve, from_epsilon_delta
from exactdp.accounting.fdp.gaussian import GaussianTradeoff
from exactdp.accounting.threat import ThreatModel

_LARGEST_MU = 30.0
_LARGEST_EPSILON = 300.0
# Relative; far above the rounding of the curves, and makes the test refuse to refute in doubt.
_SLACK = 1e-9


def refuted(curve: TradeoffCurve, *, num_canaries: int, guesses: int, correct: int, error: float) -> bool:
    """Whether a mechanism with this trade-off curve has Pr[N >= correct] < `error`.

    Args:
      curve: f, of the presence of one canary in either direction; must be symmetric (equal to its inverse),
        as `fdp.tradeoff` of the worst direction is.
      num_canaries: m >= 1.
      guesses: r in [0, m], fixed before the scores are seen.
      correct: v in [0, r].
      error: in (0, 1).

    Raises:
      ValueError: an argument is out of range, or `curve` is not symmetric at one of a few points.

    Source: Mahloujifar, Melis, Chaudhuri 2024 (arXiv 2410.22235) for question and recursion; the proof in the
    module's docstring is ours.
    """
    m, r, v = one_run.counts(num_canaries, guesses, correct)
    alpha = validate.open_probability("error", error)
    inverse = _symmetric(curve)
    return _impossible(inverse, m, r, v, alpha)


def p_value(curve: TradeoffCurve, *, num_canaries: int, guesses: int, correct: int) -> float:
    """Upper bound of Pr[N >= correct] for any mechanism with this trade-off curve; see `refuted`.

    Args:
      curve: as in `refuted`.
      num_canaries: as in `refuted`.
      guesses: as in `refuted`.
      correct: as in `refuted`.

    Returns:
      A number in (0, 1], to a relative accuracy of 1e-6, rounded upwards; 1e-12 at least.

    Raises:
      ValueError: as `refuted`.
    """
    m, r, v = one_run.counts(num_canaries, guesses, correct)
    inverse = _symmetric(curve)
    low, high = 1e-12, 1.0
    if _impossible(inverse, m, r, v, low):
        return low
    if not _impossible(inverse, m, r, v, 1.0):
        return 1.0
    while high > low * (1.0 + 1e-6):  # impossible at `high`, not at `low`
        middle = (low * high) ** 0.5
        low, high = (low, middle) if _impossible(inverse, m, r, v, middle) else (middle, high)
    return high


def parameter_lower(
    family: Callable[[float], TradeoffCurve],
    *,
    largest: float,
    num_canaries: int,
    guesses: int,
    correct: int,
    confidence: float = 0.95,
) -> float:
    """Lower bound of the parameter of a family of curves, each above all those of larger parameters.

    Args:
      family: parameter in [0, `largest`] -> symmetric curve, decreasing in the parameter.
      largest: where the search ends, > 0.
      num_canaries: as in `refuted`.
      guesses: as in `refuted`.
      correct: as in `refuted`.
      confidence: in (0, 1).

    Returns:
      A parameter whose curve is refuted, next to one whose curve is not; 0 if none is. With probability at
      least `confidence` it is below every parameter whose curve the mechanism satisfies, for the reason given
      in `one_run.epsilon_lower`.

    Raises:
      ValueError: an argument is out of range.
    """
    error = 1.0 - validate.open_probability("confidence", confidence)
    end = validate.positive("largest", largest)

    def test(parameter: float) -> bool:
        return refuted(
            family(parameter), num_canaries=num_canaries, guesses=guesses, correct=correct, error=error
        )

    return one_run.largest_refuted(test, largest=end)


def mu_lower(*, num_canaries: int, guesses: int, correct: int, confidence: float = 0.95) -> float:
    """Lower bound of every mu for which the mechanism is mu-GDP; arguments as in `parameter_lower`."""
    return parameter_lower(
        GaussianTradeoff,
        largest=_LARGEST_MU,
        num_canaries=num_canaries,
        guesses=guesses,
        correct=correct,
        confidence=confidence,
    )


def epsilon_lower(
    *, delta: float, num_canaries: int, guesses: int, correct: int, confidence: float = 0.95
) -> float:
    """Lower bound of epsilon at a delta with nothing assumed: the family of curves f_{epsilon, delta}.

    Args:
      delta: in [0, 1).
      num_canaries: as in `refuted`.
      guesses: as in `refuted`.
      correct: as in `refuted`.
      confidence: in (0, 1).

    Raises:
      ValueError: an argument is out of range.
    """
    if validate.probability("delta", delta) == 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    return parameter_lower(
        lambda epsilon: from_epsilon_delta(epsilon, delta=delta),
        largest=_LARGEST_EPSILON,
        num_canaries=num_canaries,
        guesses=guesses,
        correct=correct,
        confidence=confidence,
    )


def result(
    *,
    delta: float,
    num_canaries: int,
    guesses: int,
    correct: int,
    threat_model: ThreatModel,
    confidence: float = 0.95,
    gaussian: bool = False,
    note: str = "",
) -> AuditResult:
    """The lower bound of epsilon as a result to store.

    Args:
      delta: in [0, 1); > 0 for a Gaussian curve, whose epsilon is infinite at 0.
      num_canaries: as in `refuted`.
      guesses: as in `refuted`.
      correct: as in `refuted`.
      threat_model: what was attacked.
      confidence: in (0, 1).
      gaussian: take it for granted that the curve is G_mu: epsilon of G_mu at `mu_lower`. Else nothing is
        assumed.
      note: what to know before quoting it.

    Raises:
      ValueError: an argument is out of range.
    """
    mu = mu_lower(num_canaries=num_canaries, guesses=guesses, correct=correct, confidence=confidence)
    if gaussian:
        epsilon = gaussian_epsilon(mu, delta=delta)
    else:
        epsilon = epsilon_lower(
            delta=delta, num_canaries=num_canaries, guesses=guesses, correct=correct, confidence=confidence
        )
    return AuditResult(
        epsilon_lower=epsilon,
        confidence=confidence,
        delta=delta,
        trials=num_canaries,
        method=f"one run, f-DP, {correct} of {guesses} guesses correct (arXiv 2410.22235)",
        threat_model=threat_model,
        assumption=GAUSSIAN if gaussian else "",
        mu_lower=mu,
        note=note,
    )


def _symmetric(curve: TradeoffCurve) -> TradeoffCurve:
    inverse = curve.inverse()
    for fpr in (0.0, 0.01, 0.1, 0.3, 0.5, 0.8):
        there, back = curve.fnr(fpr), inverse.fnr(fpr)
        if abs(there - back) > 1e-6:
            raise ValueError(
                f"curve must be symmetric (hold in both directions), got f({fpr}) = {there} and "
                f"f^-1({fpr}) = {back}"
            )
    return inverse


def _impossible(inverse: TradeoffCurve, m: int, r: int, v: int, tau: float) -> bool:
    """Whether Pr[N >= v] >= tau would make more than probability 1 of N."""
    if v == 0:
        return False
    # `right` and `wrong` are sum i p_i / m and sum (r - i) p_i / m over the tail so far.
    right, wrong = tau * v / m, tau * (r - v) / m
    limit = r / m * (1.0 + _SLACK)
    for c in range(v - 1, -1, -1):
        if right > 1.0:
            return True
        least = inverse.fnr(min(math.nextafter(1.0 - right, 2.0), 1.0)) * (1.0 - _SLACK)
        if least <= wrong:
            return False  # nothing need be added, here or further down
        right += (least - wrong) * c / (r - c)
        wrong = least
        if right + wrong > limit:
            return True
    return False
