"""One-run audits from scores: several numbers of guesses are tried, and the choice is paid for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from exactdp.accounting import validate
from exactdp.accounting.audit import one_run, one_run_fdp
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.threat import ThreatModel

Bound = Literal["dp", "f-dp", "gaussian"]

BOUNDS: tuple[str, ...] = get_args(Bound)
_LEAST_GUESSES = 8
_RATIO = 4


def result(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    threat_model: ThreatModel,
    bound: Bound = "f-dp",
    guesses: Sequence[tuple[int, int]] | None = None,
    confidence: float = 0.95,
    note: str = "",
) -> AuditResult:
    """The best lower bound of epsilon over some numbers of guesses, by a union bound over them.

    Few guesses are surer, many of them count more; which is better depends on the mechanism. Each number of
    guesses gets an equal part of the error, so the best of the bounds is too high with probability at most
    1 - confidence.

    Args:
      scores: one for each canary, shape [m], m >= 1; higher means "in". Each canary must have been in or out
        by a fair coin of its own.
      included: which were in, booleans, shape [m].
      delta: in [0, 1); > 0 for `"gaussian"`.
      threat_model: what the scores are computed from.
      bound: `"dp"`: `one_run`; `"f-dp"`: `one_run_fdp` with nothing assumed, better at delta > 0;
        `"gaussian"`: `one_run_fdp` taking it for granted that the trade-off curve is a Gaussian one.
      guesses: (how many highest to call "in", how many lowest to call "out"), fixed before the scores are
        seen; None: half each of m, m / 4, m / 16 and so on, down to 8.
      confidence: in (0, 1).
      note: what to know before quoting it.

    Raises:
      ValueError: an argument is out of range.
    """
    validate.one_of("bound", bound, BOUNDS)
    values, truth = np.asarray(scores), np.asarray(included)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"scores must be a list of at least one number, got shape {values.shape}")
    error = 1.0 - validate.open_probability("confidence", confidence)
    choices = default_guesses(len(values)) if guesses is None else list(guesses)
    if not choices:
        raise ValueError("guesses must hold at least one pair of numbers, got none")
    found = [
        _rule(bound)(
            delta=delta,
            num_canaries=len(values),
            guesses=high + low,
            correct=one_run.correct_guesses(values, truth, positive_guesses=high, negative_guesses=low),
            threat_model=threat_model,
            confidence=1.0 - error / len(choices),
            note=note,
        )
        for high, low in choices
    ]
    best = max(found, key=lambda one: one.epsilon_lower)
    mus = [one.mu_lower for one in found if one.mu_lower is not None]
    return dataclasses.replace(
        best,
        confidence=confidence,
        mu_lower=max(mus) if mus else None,
        method=f"{best.method}, best of {len(choices)} numbers of guesses",
    )


def default_guesses(num_canaries: int) -> list[tuple[int, int]]:
    """Half each of m, m / 4, m / 16, ..., while there are at least 8; the first always.

    Raises:
      ValueError: there is no canary.
    """
    left = validate.count("num_canaries", num_canaries, minimum=1)
    sizes = [left]
    while (left := left // _RATIO) >= _LEAST_GUESSES:
        sizes.append(left)
    return [(size - size // 2, size // 2) for size in sizes]


def _rule(bound: Bound) -> Callable[..., AuditResult]:
    if bound == "dp":
        return one_run.result
    return functools.partial(one_run_fdp.result, gaussian=bound == "gaussian")
