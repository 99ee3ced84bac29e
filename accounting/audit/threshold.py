"""Many-trial audits: from scores of runs with and without a record to a band of error rates.

The attack gives each run a score; it says "in" where the score exceeds a threshold. A threshold chosen on
the data that also bound its error rates would make the bound too good. There are three ways to pay for the
choice: `held_out` chooses on some trials and bounds on the rest; `fixed_thresholds` splits the error among
thresholds known before; `order_statistics` splits it among ranks, whose thresholds adapt to the data. The
last is about as sharp as the first for one epsilon, steadier, and gives mu and the whole curve as well.

Runs must be independent, all "in" runs of one law, all "out" runs of another. Nothing else is assumed: ties
and infinite scores are fine, and no law of the scores is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from exactdp.accounting import clopper_pearson, validate
from exactdp.accounting.audit import band
from exactdp.accounting.audit.band import Band

Array = NDArray[np.floating[Any]]
Target = Literal["epsilon", "mu"]

TARGETS: tuple[str, ...] = get_args(Target)
_RARE_SHARE = 0.9  # of the error: for the rare error rate, on whose logarithm epsilon depends
_LEAST_RATIO = 1.01
_RATIO = 1.08  # of neighbouring ranks where a threshold is searched for


def held_out(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    delta: float,
    seed: int,
    confidence: float = 0.95,
    target: Target = "epsilon",
    selection_share: float = 0.2,
) -> Band:
    """One threshold chosen on a random part of the trials, its error rates bounded on the rest.

    The choice is the threshold whose bound on the first part is best, out of quantiles of either sample. As
    it does not depend on the rest, the bound is that of one fixed test: with probability at least
    `confidence` both rates are at most those returned. For epsilon nine tenths of the error go to the rate in
    the denominator of the formula that was best, for mu half to either.

    Args:
      scores_in: one score for each run with the record, shape [n], n >= 2, in any order; higher means "in".
      scores_out: of the runs without it, shape [m], m >= 2.
      delta: in [0, 1), at which epsilon is to be bounded; unused for mu.
      seed: of the split alone, >= 0; to be fixed before the scores are seen.
      confidence: in (0, 1).
      target: what the threshold is chosen for.
      selection_share: share of the trials on which it is chosen, in (0, 1).

    Returns:
      A band of one point.

    Raises:
      ValueError: a score is NaN, a sample holds fewer than two, or an argument is out of range.
    """
    inside, outside = _scores("scores_in", scores_in, 2), _scores("scores_out", scores_out, 2)
    error = 1.0 - validate.open_probability("confidence", confidence)
    share = validate.open_probability("selection_share", selection_share)
    validate.one_of("target", target, TARGETS)
    if validate.probability("delta", delta) == 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    generator = np.random.default_rng(validate.count("seed", seed))
    (first_in, rest_in), (first_out, rest_out) = (_split(s, share, generator) for s in (inside, outside))
    threshold, fpr_share = _chosen(first_in, first_out, delta=delta, error=error, target=target)
    return from_counts(
        false_positives=[int(np.count_nonzero(rest_out > threshold))],
        negatives=len(rest_out),
        false_negatives=[int(np.count_nonzero(rest_in <= threshold))],
        positives=len(rest_in),
        thresholds=[float(threshold)],
        confidence=confidence,
        fpr_share=fpr_share,
        method=f"Clopper-Pearson, threshold held out for {target}",
    )


def fixed_thresholds(
    scores_in: ArrayLike, scores_out: ArrayLike, *, thresholds: Sequence[float], confidence: float = 0.95
) -> Band:
    """Error rates at thresholds that do not depend on the scores, by a union bound over them.

    Args:
      scores_in: as in `held_out`, shape [n], n >= 1.
      scores_out: as in `held_out`, shape [m], m >= 1.
      thresholds: shape [k], k >= 1; known before the scores were seen.
      confidence: in (0, 1), for all thresholds together.

    Returns:
      A band of k points.

    Raises:
      ValueError: as in `held_out`.
    """
    inside, outside = _scores("scores_in", scores_in, 1), _scores("scores_out", scores_out, 1)
    points = np.array([validate.finite("thresholds", value) for value in thresholds])
    above = [int(np.count_nonzero(outside > t)) for t in points]
    below = [int(np.count_nonzero(inside <= t)) for t in points]
    return from_counts(
        false_positives=above,
        negatives=len(outside),
        false_negatives=below,
        positives=len(inside),
        thresholds=points.tolist(),
        confidence=confidence,
    )


def pilot_thresholds(
    scores_in: ArrayLike, scores_out: ArrayLike, *, ratio: float = 4.0, least_rank: int = 4
) -> list[float]:
    """Thresholds from a pilot sample, to be used on other trials: the large "out" and the small "in" scores.

    Args:
      scores_in: as in `held_out`, shape [n], n >= 1; none of them may be counted later.
      scores_out: as in `held_out`, shape [m], m >= 1.
      ratio: of neighbouring ranks, >= 1.01.
      least_rank: the first rank, >= 1; a threshold at a lower one has an uncertain tail.

    Returns:
      Increasing thresholds, for `fixed_thresholds` or `from_counts`. With many trials they need not be kept:
      counting errors at these thresholds is enough.

    Raises:
      ValueError: as in `held_out`.
    """
    inside = np.sort(_scores("scores_in", scores_in, 1))
    outside = np.sort(_scores("scores_out", scores_out, 1))
    if not validate.finite("ratio", ratio) >= _LEAST_RATIO:
        raise ValueError(f"ratio must be at least {_LEAST_RATIO:g}, got {ratio}")
    least = validate.count("least_rank", least_rank, minimum=1)
    high = outside[len(outside) - _from(_ranks(len(outside), ratio), least)]
    low = inside[_from(_ranks(len(inside), ratio), least) - 1]
    return np.unique(np.concatenate([high, low]).astype(np.float64)).tolist()


def from_counts(
    *,
    false_positives: Sequence[int],
    negatives: int,
    false_negatives: Sequence[int],
    positives: int,
    thresholds: Sequence[float],
    confidence: float = 0.95,
    fpr_share: float = 0.5,
    method: str = "Clopper-Pearson, union bound over fixed thresholds",
) -> Band:
    """The band of fixed tests of which only the numbers of errors are known.

    Args:
      false_positives: runs without the record that were called "in", by test, shape [k].
      negatives: runs without it, >= 1.
      false_negatives: runs with the record that were called "out", shape [k].
      positives: runs with it, >= 1.
      thresholds: of the tests, shape [k]; not chosen on these runs.
      confidence: in (0, 1), for all tests together.
      fpr_share: share of the error spent on false-positive rates, in (0, 1); not chosen on these runs.
      method: how the tests were chosen.

    Raises:
      ValueError: an argument is out of range, or the sequences differ in length.
    """
    error = (1.0 - validate.open_probability("confidence", confidence)) / max(len(thresholds), 1)
    share = validate.open_probability("fpr_share", fpr_share)
    fpr = clopper_pearson.upper(false_positives, trials=negatives, error=error * share)
    fnr = clopper_pearson.upper(false_negatives, trials=positives, error=error * (1.0 - share))
    return Band(
        thresholds=tuple(thresholds),
        fpr_upper=tuple(fpr.tolist()),
        fnr_upper=tuple(fnr.tolist()),
        confidence=confidence,
        trials=negatives + positives,
        method=method,
    )


def order_statistics(
    scores_in: ArrayLike, scores_out: ArrayLike, *, seed: int, confidence: float = 0.95, ratio: float = 4.0
) -> Band:
    """Error rates at thresholds of fixed rank in one sample, by a union bound over ranks; uses all trials.

    Let t be the k-th largest of the m "out" scores. Then Pr[out > t], as a random variable, is distributed as
    Beta(k, m - k + 1), whatever the continuous law of the scores; and given t, the number of "in" scores at
    most t is binomial, as t depends on the other sample alone. So both rates have exact bounds at a threshold
    that adapts to the data. The same holds for ranks in the "in" sample with the roles exchanged. Equal
    scores are put in a random order, which makes any law continuous: of a random number for each score only
    those decide that are compared with the threshold's, and their counts are drawn.

    Ranks are 1, ..., up to the whole sample in geometric progression; each gets an equal part of the error,
    of which nine tenths go to the rate of the sample that has the rank.

    Args:
      scores_in: as in `held_out`, shape [n], n >= 1.
      scores_out: as in `held_out`, shape [m], m >= 1.
      seed: of the order of equal scores alone, >= 0; to be fixed before the scores are seen. Without equal
        scores the result does not depend on it.
      confidence: in (0, 1), for all points together.
      ratio: of neighbouring ranks, >= 1.01. Fewer ranks have sharper bounds, more of them a better choice.

    Returns:
      A band of about log(n m) / log(ratio) points.

    Raises:
      ValueError: as in `held_out`.

    Source: derived; the law of the coverage is that of tolerance limits (Wilks 1941).
    """
    inside = np.sort(_scores("scores_in", scores_in, 1))
    outside = np.sort(_scores("scores_out", scores_out, 1))
    error = 1.0 - validate.open_probability("confidence", confidence)
    if not validate.finite("ratio", ratio) >= _LEAST_RATIO:
        raise ValueError(f"ratio must be at least {_LEAST_RATIO:g}, got {ratio}")
    generator = np.random.default_rng(validate.count("seed", seed))
    n, m = len(inside), len(outside)
    top, bottom = _ranks(m, ratio), _ranks(n, ratio)
    each = error / (len(top) + len(bottom))
    rare, common = each * _RARE_SHARE, each * (1.0 - _RARE_SHARE)
    # "in" above the k-th largest "out" score; "out" below the k-th smallest "in" score, which is the same
    # with signs and samples exchanged.
    t_out, missed = _beyond(outside, inside, top, generator)
    t_in, false = _beyond(-inside[::-1], -outside[::-1], bottom, generator)
    fpr = (
        clopper_pearson.upper(top - 1, trials=m, error=rare),
        clopper_pearson.upper(false, trials=m, error=common),
    )
    fnr = (
        clopper_pearson.upper(missed, trials=n, error=common),
        clopper_pearson.upper(bottom - 1, trials=n, error=rare),
    )
    return Band(
        thresholds=(*t_out.tolist(), *(-t_in).tolist()),
        fpr_upper=tuple(np.concatenate(fpr).tolist()),
        fnr_upper=tuple(np.concatenate(fnr).tolist()),
        confidence=confidence,
        trials=n + m,
        method="Clopper-Pearson at fixed ranks, union bound",
    )


def _scores(name: str, values: ArrayLike, least: int) -> Array:
    scores = np.asarray(values)
    if scores.ndim != 1 or len(scores) < least:
        raise ValueError(f"{name} must be a list of at least {least} numbers, got shape {scores.shape}")
    if scores.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be real numbers, got {scores.dtype}")
    if scores.dtype.kind != "f":
        scores = scores.astype(np.float64)
    if np.isnan(np.min(scores)):  # NaN if there is one
        raise ValueError(f"{name} must not hold NaN, got {int(np.isnan(scores).sum())} of them")
    return scores


def _split(scores: Array, share: float, generator: np.random.Generator) -> tuple[Array, Array]:
    """A random part, of at least one score on either side; who is in it does not depend on the scores."""
    chosen = generator.random(len(scores), dtype=np.float32) < share
    if chosen.all() or not chosen.any():
        chosen[int(generator.integers(len(scores)))] ^= True
    return scores[chosen], scores[~chosen]


def _beyond(
    own: Array, other: Array, ranks: NDArray[np.int64], generator: np.random.Generator
) -> tuple[Array, NDArray[np.int64]]:
    """The k-th largest of the sorted `own` scores for each rank k, and how many of `other` do not exceed it.

    Equal scores are in a random order: each has a uniform number of its own. That of the k-th largest is the
    (k - a)-th largest of e numbers where a scores are larger and e equal.
    """
    t = own[len(own) - ranks]
    first, last = np.searchsorted(own, t, side="left"), np.searchsorted(own, t, side="right")
    among = ranks - (len(own) - last)
    uniform = generator.beta(last - first - among + 1, among)
    below, upto = np.searchsorted(other, t, side="left"), np.searchsorted(other, t, side="right")
    return t, below + generator.binomial(upto - below, uniform)


def _ranks(size: int, ratio: float) -> NDArray[np.int64]:
    """1, ..., size in geometric progression, each once."""
    steps = int(np.floor(np.log(size) / np.log(ratio)))
    return np.unique(np.minimum(np.rint(ratio ** np.arange(steps + 1)), size).astype(np.int64))


def _from(ranks: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """The ranks that are at least `least`, or the last one."""
    return ranks[min(int(np.searchsorted(ranks, least)), len(ranks) - 1) :]


def _chosen(
    inside: Array, outside: Array, *, delta: float, error: float, target: Target
) -> tuple[float, float]:
    """The threshold whose bound on these scores is best, and the error to spend on its fpr."""
    inside, outside = np.sort(inside), np.sort(outside)
    high = outside[len(outside) - _ranks(len(outside), _RATIO)]
    low = inside[_ranks(len(inside), _RATIO) - 1]
    candidates = np.unique(np.concatenate([high, low]))
    fp = len(outside) - np.searchsorted(outside, candidates, side="right")
    fn = np.searchsorted(inside, candidates, side="right")
    options: list[tuple[float, float, float]] = []
    for share in (0.5,) if target == "mu" else (_RARE_SHARE, 1.0 - _RARE_SHARE):
        fpr = clopper_pearson.upper(fp, trials=len(outside), error=error * share)
        fnr = clopper_pearson.upper(fn, trials=len(inside), error=error * (1.0 - share))
        if target == "mu":
            promise = -special.ndtri(fpr) - special.ndtri(fnr)
        else:
            promise = band.epsilons(fpr, fnr, delta=delta)
        best = int(np.argmax(promise))
        options.append((float(promise[best]), float(candidates[best]), share))
    _, threshold, share = max(options)
    return threshold, share
