"""What the numbers of an audit come to, in words."""

from __future__ import annotations

import dataclasses

from exactdp.accounting.interval import Interval
from exactdp.train.attacks import Reidentification

UNSAFE, DOUBTFUL, NOTHING = "not safe to call public", "doubtful", "no attack of these succeeded"

# Shares of records from which on an attack is said to work: on every second, on one in twenty.
_MOST, _SOME = 0.5, 0.05
_EMPTY = 0.99


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The judgement.

    Attributes:
      text: `UNSAFE`, `DOUBTFUL` or `NOTHING`; the last is no proof of safety.
      reasons: one sentence each, the gravest first.
    """

    text: str
    reasons: tuple[str, ...]


def judge(
    *,
    ball: Interval,
    without_view: Interval,
    refuted: bool,
    radius: float,
    matches: list[Reidentification],
    is_image: bool,
    advantage: Interval | None,
    confidence: float,
) -> Verdict:
    """Judges a map.

    It is not safe where a linear guess (or one centre) is within the radius of at least half of the records,
    or where a sharp but altered copy of a picture is told from all others for at least half; doubtful where
    this holds of one in twenty, where a table's public columns single out records, or where nothing bounds
    Ball below one half.

    Args:
      ball: Ball with the view.
      without_view: Ball without it, which is no fault of the map.
      refuted: whether guesses proved the estimate of Ball wrong.
      radius: rho.
      matches: re-identification with altered copies.
      is_image: whether records are images.
      advantage: Theorem 4's bound, where a release is claimed.
      confidence: of the intervals.
    """
    grave: list[str] = []
    light: list[str] = []
    if ball.lower >= _MOST and ball.lower > without_view.upper:
        grave.append(
            f"{ball.lower:.0%} of the records at least are guessed within {radius:.3g} from the public view"
        )
    elif ball.lower >= _SOME and ball.lower > without_view.upper:
        light.append(
            f"{ball.lower:.1%} of the records at least are guessed within {radius:.3g} from the view"
        )
    best = max(matches, key=lambda match: match.rate(1))
    # The best of several attacks: the confidence is that of all of them together.
    rate = best.interval(1, confidence=1.0 - (1.0 - confidence) / len(matches)).lower
    how = f"by {'the view of' if best.matcher == 'view' else ''} an altered copy ({best.distance})".replace(
        "  ", " "
    )
    if rate >= _SOME and rate > best.chance(1):
        text = (
            f"{best.rate(1):.1%} of the public views lead to their record among {best.candidates} {how}; "
            f"chance is {best.chance(1):.2g}"
        )
        (grave if is_image and rate >= _MOST else light).append(text)
    if refuted:
        light.append("guesses do better than nearest views allow: that estimate of Ball is refuted here")
    elif ball.upper >= _MOST > ball.lower:
        light.append(f"nothing bounds Ball below one half: it is in [{ball.lower:.3g}, {ball.upper:.3g}]")
    if advantage is not None and advantage.upper >= _EMPTY:
        light.append("Theorem 4 says nothing for this claim: its bound is 1 within a hundredth")
    text = UNSAFE if grave else DOUBTFUL if light else NOTHING
    return Verdict(text, (*grave, *light))
