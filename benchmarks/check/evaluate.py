"""Computes the exact value behind each claim and judges it."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Protocol

from exactdp.accounting.interval import Interval
from exactdp.benchmarks.check import verdict as verdicts
from exactdp.benchmarks.check.claims import Claim
from exactdp.benchmarks.check.verdict import Verdict
from exactdp.benchmarks.setting.setting import Setting


class Exact(Protocol):
    """Where the exact values come from."""

    def epsilon(self, setting: Setting, delta: float) -> Interval:
        """Certified epsilon of `setting` at `delta`."""
        ...

    def delta(self, setting: Setting, epsilon: float) -> Interval:
        """Certified delta of `setting` at `epsilon`."""
        ...

    def noise_multiplier(self, setting: Setting, epsilon: float, delta: float) -> float:
        """The least noise multiplier with which `setting` is (epsilon, delta)-DP, on the safe side."""
        ...


class PrvExact:
    """The prv accountant at its default tolerance."""

    def epsilon(self, setting: Setting, delta: float) -> Interval:
        from exactdp.accounting import prv

        return prv.epsilon(setting.composition(), delta=delta)

    def delta(self, setting: Setting, epsilon: float) -> Interval:
        from exactdp.accounting import prv

        return prv.delta(setting.composition(), epsilon=epsilon)

    def noise_multiplier(self, setting: Setting, epsilon: float, delta: float) -> float:
        from exactdp.benchmarks.setting import calibration

        return calibration.solve(setting, "noise_multiplier", epsilon=epsilon, delta=delta).value


@dataclasses.dataclass(frozen=True)
class Result:
    """A judged claim.

    Attributes:
      claim: what was claimed.
      verdict: what was found.
      exact: certified interval of the claimed quantity (epsilon or delta); for a noise multiplier, of the
        epsilon that the claimed one gives. None where there is none.
      needed: for a noise multiplier, the least that suffices; else None.
      seconds: time taken.
    """

    claim: Claim
    verdict: Verdict
    exact: Interval | None
    needed: float | None
    seconds: float

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        claim, setting = self.claim, self.claim.setting
        exact = None if self.exact is None else {"lower": self.exact.lower, "upper": self.exact.upper}
        answer: dict[str, object] = {
            "name": claim.name,
            "verdict": self.verdict.text,
            "kind": self.verdict.kind,
            "quantity": claim.quantity,
            "claimed": claim.value,
            "rounding": claim.rounding,
            "ratio": self.verdict.ratio,
            "exact_delta" if claim.quantity == "delta" else "exact_epsilon": exact,
        }
        if claim.quantity == "noise_multiplier":
            answer["needed_noise_multiplier"] = self.needed
        return {
            **answer,
            "epsilon": claim.epsilon,
            "delta": claim.delta,
            "parameters": None if setting is None else setting.as_dict(),
            "threat_model": None if setting is None else setting.threat_model().as_dict(),
            "reason": self.verdict.reason,
            "source": claim.source,
            "note": claim.note,
            "seconds": self.seconds,
        }


def evaluate(claim: Claim, exact: Exact) -> Result:
    """Judges one claim; trouble in an accountant leaves it undecided, never decided."""
    start = time.perf_counter()

    def result(verdict: Verdict, interval: Interval | None = None, needed: float | None = None) -> Result:
        return Result(claim, verdict, interval, needed, time.perf_counter() - start)

    if claim.setting is None:
        return result(verdicts.undecided(claim.reason))
    try:
        if claim.quantity == "noise_multiplier":
            return result(*_noise(claim, claim.setting, exact))
        if claim.quantity == "delta":
            interval = exact.delta(claim.setting, _there(claim.epsilon))
        else:
            interval = exact.epsilon(claim.setting, _there(claim.delta))
    except ArithmeticError as error:
        return result(verdicts.undecided(f"no certified value: {error}"))
    judged = verdicts.of_loss(
        claim.value, rounding=claim.rounding, lower=interval.lower, upper=interval.upper
    )
    return result(judged, interval)


def _noise(claim: Claim, setting: Setting, exact: Exact) -> tuple[Verdict, Interval, float | None]:
    delta, epsilon = _there(claim.delta), _there(claim.epsilon)
    shown = exact.epsilon(setting, delta)
    most = shown
    if claim.rounding > 0.0:
        most = exact.epsilon(setting.replaced(noise_multiplier=claim.value + claim.rounding), delta)
    try:
        needed = exact.noise_multiplier(setting, epsilon, delta)
    except ArithmeticError:  # the verdict does not depend on it
        needed = None
    judged = verdicts.of_noise(
        claim.value,
        rounding=claim.rounding,
        epsilon=epsilon,
        lower=most.lower,
        upper=most.upper,
        needed=needed,
    )
    return judged, shown, needed


def _there(value: float | None) -> float:
    if value is None:
        raise ValueError("a claim must carry the epsilon or delta that it is made at, got none")
    return value


def evaluate_all(claims: Sequence[Claim], exact: Exact, *, progress: bool = True) -> list[Result]:
    """Judges all claims, in order, with a line on stderr for each."""
    results: list[Result] = []
    for i, claim in enumerate(claims):
        results.append(evaluate(claim, exact))
        if progress:
            done = results[-1]
            print(f"[{i + 1}/{len(claims)}] {claim.name}: {done.verdict.text}", file=sys.stderr, flush=True)
    return results
