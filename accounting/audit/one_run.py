"""One-run audits: many canaries in one run, each in or out by its own coin; what correct guesses say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from exactdp.accounting import validate
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.threat import ThreatModel

Array = NDArray[np.float64]

_LARGEST_EPSILON = 700.0


def correct_guesses(
    scores: ArrayLike, included: ArrayLike, *, positive_guesses: int, negative_guesses: int
) -> int:
    """Number of correct guesses when the highest scores are called "in" and the lowest "out".

    How many guesses are made must be fixed before the scores are seen; the rest of the canaries gets none.
    Ties at the edge are broken by position, so the order of the canaries must not depend on who is in.

    Args:
      scores: one for each canary, shape [m]; higher means "in".
      included: which were in the run, booleans, shape [m].
      positive_guesses: how many of the highest to call "in", >= 0.
      negative_guesses: how many of the lowest to call "out", >= 0; at most m guesses together.

    Raises:
      ValueError: a score is NaN, the shapes differ, or there are more guesses than canaries.
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    if values.ndim != 1 or truth.shape != values.shape or truth.dtype != np.bool_:
        raise ValueError(
            "scores and included must be numbers and booleans of one shape [m], got "
            f"{values.shape} and {truth.dtype} {truth.shape}"
        )
    if np.any(np.isnan(values)):
        raise ValueError(f"scores must not hold NaN, got {int(np.isnan(values).sum())} of them")
    high = validate.count("positive_guesses", positive_guesses)
    low = validate.count("negative_guesses", negative_guesses)
    if high + low > len(values):
        raise ValueError(f"guesses must be at most the {len(values)} canaries, got {high} + {low}")
    order = np.argsort(values, kind="stable")
    return int(np.count_nonzero(truth[order[len(order) - high :]]) + np.count_nonzero(~truth[order[:low]]))


def p_value(epsilon: float, *, delta: float, num_canaries: int, guesses: int, correct: int) -> float:
    """Upper bound of the probability of at least `correct` correct guesses under (epsilon, delta)-DP.

        p = beta + 2 m delta alpha,  beta = Pr[W >= v],  alpha = max_{1 <= i <= v} Pr[v - i <= W < v] / i,

    where W ~ Bin(r, 1 / (1 + e^-epsilon)), m = `num_canaries`, r = `guesses` and v = `correct`.

    Each canary is in the run with probability one half, independently of all else, and (epsilon, delta)-DP is
    about the presence of one of them. The guesser sees the output alone and abstains on m - r canaries, r
    being fixed beforehand.

    Args:
      epsilon: in nats, in [0, 700].
      delta: in [0, 1].
      num_canaries: m >= 1.
      guesses: r in [0, m].
      correct: v in [0, r].

    Returns:
      A number in [0, 1].

    Raises:
      ValueError: an argument is out of range.

    Source: Steinke, Nasr, Jagielski 2023 (arXiv 2305.08846), Appendix D.
    """
    eps = validate.non_negative("epsilon", epsilon)
    if eps > _LARGEST_EPSILON:
        raise ValueError(f"epsilon must be at most {_LARGEST_EPSILON:g}, got {epsilon}")
    mass = validate.probability("delta", delta)
    m, r, v = counts(num_canaries, guesses, correct)
    if v == 0:
        return 1.0
    # Correct with probability e^eps / (1 + e^eps); counted by failures, which stay precise near 1.
    wrong = float(special.expit(-eps))
    beta = float(stats.binom.cdf(r - v, r, wrong))
    if mass == 0.0:
        return min(beta, 1.0)
    i = np.arange(1, v + 1)
    between = stats.binom.sf(r - v, r, wrong) - stats.binom.sf(r - v + i, r, wrong)
    alpha = float(np.max(between / i))
    return min(beta + 2.0 * m * mass * alpha, 1.0)


def epsilon_lower(
    *, delta: float, num_canaries: int, guesses: int, correct: int, confidence: float = 0.95
) -> float:
    """Lower bound of epsilon at a delta: a value that the p-value refutes at error 1 - confidence, or 0.

    The true epsilon is below it with probability at most 1 - confidence. For if epsilon_0 is true, then so is
    every larger one; hence each value of `correct` at which some larger epsilon is refuted has p-value at
    most 1 - confidence, and so has the least of them.

    Args:
      delta: as in `p_value`.
      num_canaries: as in `p_value`.
      guesses: as in `p_value`.
      correct: as in `p_value`.
      confidence: in (0, 1).

    Raises:
      ValueError: an argument is out of range.

    Source: as in `p_value`.
    """
    error = 1.0 - validate.open_probability("confidence", confidence)

    def refuted(eps: float) -> bool:
        p = p_value(eps, delta=delta, num_canaries=num_canaries, guesses=guesses, correct=correct)
        return p <= error

    return largest_refuted(refuted, largest=_LARGEST_EPSILON)


def result(
    *,
    delta: float,
    num_canaries: int,
    guesses: int,
    correct: int,
    threat_model: ThreatModel,
    confidence: float = 0.95,
    note: str = "",
) -> AuditResult:
    """`epsilon_lower` as a result to store; arguments as there.

    Raises:
      ValueError: an argument is out of range.
    """
    return AuditResult(
        epsilon_lower=epsilon_lower(
            delta=delta, num_canaries=num_canaries, guesses=guesses, correct=correct, confidence=confidence
        ),
        confidence=confidence,
        delta=delta,
        trials=num_canaries,
        method=f"one run, {correct} of {guesses} guesses correct (arXiv 2305.08846)",
        threat_model=threat_model,
        note=note,
    )


def counts(num_canaries: int, guesses: int, correct: int) -> tuple[int, int, int]:
    """The three counts, checked.

    Raises:
      ValueError: not 0 <= correct <= guesses <= num_canaries, or no canary.
    """
    m = validate.count("num_canaries", num_canaries, minimum=1)
    r = validate.count("guesses", guesses)
    v = validate.count("correct", correct)
    if not v <= r <= m:
        raise ValueError(f"counts must be correct <= guesses <= num_canaries, got {v}, {r}, {m}")
    return m, r, v


def largest_refuted(refuted: Callable[[float], bool], *, largest: float) -> float:
    """A parameter that is refuted, next to one that is not, within 1e-7 of it (relative); 0 if 0 is not.

    Args:
      refuted: of a parameter in [0, `largest`].
      largest: where the search ends.
    """
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, min(1.0, largest)
    while refuted(high):
        low = high
        if high >= largest:
            return low
        high = min(2.0 * high, largest)
    while high - low > 1e-7 * max(high, 1e-3):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
