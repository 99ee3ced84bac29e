"""What a certified interval says about a claim."""

from __future__ import annotations

import dataclasses
import math

TIGHT = 1.01
"""A claim within 1 % of the exact value is tight."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The outcome of one check.

    Attributes:
      kind: `"holds"`, `"violated"` or `"undecided"`.
      text: the verdict in words, for example `"holds, loose by 1.43"`.
      ratio: claimed over exact value; infinite where the exact value is 0, None where there is none.
      reason: why it is undecided, or by how much it is violated; empty otherwise.
    """

    kind: str
    text: str
    ratio: float | None
    reason: str = ""


def undecided(reason: str) -> Verdict:
    """No verdict, and why."""
    return Verdict("undecided", "undecided", None, reason)


def of_loss(value: float, *, rounding: float, lower: float, upper: float) -> Verdict:
    """Verdict on a claimed epsilon or delta, of which [lower, upper] holds the exact value.

    A claim promises that the exact value is at most `value + rounding`. It is tight when it is at most 1 %
    above the exact value, or equals it to within `rounding`.
    """
    ceiling = value + rounding
    if lower > ceiling:
        share = math.inf if value == 0.0 else lower / value
        reason = f"the exact value is at least {lower:.6g}, {_share(share)} times the claim"
        return Verdict("violated", "violated", _ratio(value, lower), reason)
    if upper > ceiling:
        return Verdict(
            "undecided",
            "undecided",
            None,
            f"the claim {value:.6g} (rounded by up to {rounding:.3g}) lies inside the certified interval "
            f"[{lower:.9g}, {upper:.9g}]; ask for a smaller tolerance",
        )
    ratio = _ratio(value, upper)
    if ratio <= TIGHT or value - upper <= rounding:
        return Verdict("holds", "holds, tight", ratio)
    return Verdict("holds", f"holds, loose by {_share(ratio)}", ratio)


def of_noise(
    value: float, *, rounding: float, epsilon: float, lower: float, upper: float, needed: float | None
) -> Verdict:
    """Verdict on a noise multiplier that is said to suffice for `epsilon`.

    Args:
      value: the claimed noise multiplier.
      rounding: how far above `value` the one that was meant may be.
      epsilon: the target.
      lower: certified lower end of the exact epsilon at `value + rounding`.
      upper: certified upper end there.
      needed: the least noise multiplier that suffices; None where it is not known.
    """
    ratio = None if needed is None else _ratio(value, needed)
    if lower > epsilon:
        reason = f"with this noise the exact epsilon is at least {lower:.6g}, above {epsilon:.6g}"
        if needed is not None:
            reason += f"; the noise multiplier needed is {needed:.6g}"
        return Verdict("violated", "violated", ratio, reason)
    if upper > epsilon:
        return Verdict(
            "undecided",
            "undecided",
            ratio,
            f"the target {epsilon:.6g} lies inside the certified interval [{lower:.9g}, {upper:.9g}]; "
            "ask for a smaller tolerance",
        )
    if needed is None:
        return Verdict("holds", "holds", None, "the noise multiplier needed is not known")
    if ratio is not None and ratio <= TIGHT or value - needed <= rounding:
        return Verdict("holds", "holds, tight", ratio)
    return Verdict("holds", f"holds, loose by {_share(ratio or math.inf)}", ratio)


def _ratio(claimed: float, exact: float) -> float:
    return math.inf if exact == 0.0 else claimed / exact


def _share(ratio: float) -> str:
    """A ratio in three digits, but never so few that it reads as 1."""
    if math.isinf(ratio):
        return "inf"
    return f"{ratio:#.3g}".rstrip(".") if ratio >= 1.01 else f"{ratio:.6g}"
