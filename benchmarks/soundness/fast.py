"""Quick references for runs over many random inputs, each with an error estimate."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Generator
from typing import Any

from flint import arb

from exactdp.benchmarks.soundness import contour, families, fast_contour, sampled
from exactdp.benchmarks.soundness.reference import Reference, smooth

FAST_DIGITS = 15
FAST_WORK = 4e6
TOLERANCE = 1e-10  # a quick reference with a larger relative error is refused


def fast_reference(
    mechanisms: list[dict[str, Any]], delta: str, *, seconds: float = 5.0
) -> tuple[str, float] | None:
    """(epsilon(delta) as a decimal string, relative error), or None where no route is certain and quick.

    Args:
      mechanisms: the composition, as in truths.json.
      delta: a decimal string in (0, 1).
      seconds: give up after this much processor time (main thread only: a timer signal is used).
    """
    try:
        with _limited(seconds):
            return _reference(mechanisms, delta)
    except (_ExpiredError, ArithmeticError, ValueError, MemoryError, IndexError, RecursionError):
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        return None


@contextlib.contextmanager
def _limited(seconds: float) -> Generator[None]:
    old_limit, old_handler = contour.WORK_LIMIT[""], signal.signal(signal.SIGPROF, _expired)
    contour.limit_work(FAST_WORK)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, should a callback swallow the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, old_handler)
        contour.limit_work(old_limit)


def _reference(mechanisms: list[dict[str, Any]], delta: str) -> tuple[str, float] | None:
    reference = Reference(mechanisms, FAST_DIGITS)
    if reference.method == "contour" and all(_float_route(m) for m in mechanisms):
        quick = _float_reference(mechanisms, delta, reference.replace)
        if quick is not None:
            return quick
    value = reference.epsilon(delta).epsilon
    error = 1e-13
    if reference.method == "nested quadrature" and value.is_finite() and value > 0:
        again = Reference(mechanisms, FAST_DIGITS, vary=0.87).epsilon(delta).epsilon
        error = max(error, 10 * abs(float((again - value) / value)))
    if not value.is_finite():
        return ("inf", 0.0) if value > 0 else ("0", 0.0)
    if value > 0 and max(error, float(value.rad()) / float(value.mid())) > TOLERANCE:
        return None
    return value.mid().str(FAST_DIGITS + 5, radius=False), error


def _float_route(config: dict[str, Any]) -> bool:
    kinds = (families.Gaussian, sampled.HiddenGaussian, sampled.ReplaceGaussian, sampled.HiddenDirichlet)
    return isinstance(smooth(config), kinds)


def _float_reference(
    mechanisms: list[dict[str, Any]], delta: str, symmetric: bool
) -> tuple[str, float] | None:
    log_delta = float(arb(delta).log())
    steps = [(smooth(m), m["count"]) for m in mechanisms]
    try:
        directions = (False,) if symmetric else (False, True)
        answers = [fast_contour.epsilon_at(steps, add, log_delta) for add in directions]
    except ArithmeticError:
        return None
    epsilon, error = max(answers)
    error = 4 * max(e for _, e in answers) + 4e-15 * abs(epsilon)
    if epsilon < -error:
        return "0", 0.0
    if not error <= TOLERANCE * epsilon:
        return None
    return repr(epsilon), error / epsilon


class _ExpiredError(Exception):
    """No ArithmeticError: a route that gives up must not take it for its own and let the next one start."""


def _expired(*_: object) -> None:
    raise _ExpiredError
