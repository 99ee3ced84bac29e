"""Quick references, good to at least 1e-13 relative, for runs over many random inputs."""

from __future__ import annotations

import signal
from typing import Any

from benchmarks.soundness import contour
from benchmarks.soundness.reference import Reference

FAST_DIGITS = 15
FAST_WORK = 4e6


def fast_reference(mechanisms: list[dict[str, Any]], delta: str, *, seconds: float = 5.0) -> str | None:
    """epsilon(delta) to 15 digits as a decimal string, or None where no route is certain and quick.

    Args:
      mechanisms: the composition, as in truths.json.
      delta: a decimal string in (0, 1).
      seconds: give up after this long (main thread only: a timer signal is used).
    """
    old_limit, old_handler = contour.WORK_LIMIT[""], signal.signal(signal.SIGALRM, _expired)
    contour.limit_work(FAST_WORK)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        value = Reference(mechanisms, FAST_DIGITS).epsilon(delta).epsilon
    except (ArithmeticError, ValueError, MemoryError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old_handler)
        contour.limit_work(old_limit)
    if not value.is_finite():
        return "inf" if value > 0 else "0"
    if value > 0 and float(value.rad()) > 1e-14 * float(value.mid()):
        return None
    return value.mid().str(FAST_DIGITS + 5, radius=False)


def _expired(*_: object) -> None:
    raise contour.OutOfReachError("took too long")
