"""The one return type of an exact query: a certified interval."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Interval:
    """A closed interval that contains the true value.

    `lower <= truth <= upper` is what every exact query of this package guarantees, discretisation,
    truncation, aliasing and rounding included. Both ends may be `math.inf`.

    Attributes:
      lower: certified lower end.
      upper: certified upper end; the one to quote as a privacy guarantee.
      engine: what produced it, for example `"contour"`, `"lattice"` or `"closed form"`.

    Raises:
      ValueError: an end is NaN, or `lower > upper`.
    """

    lower: float
    upper: float
    engine: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise ValueError(f"Interval: lower and upper must be numbers, got {self.lower}, {self.upper}")
        if self.lower > self.upper:
            raise ValueError(f"Interval: lower must be <= upper, got {self.lower} > {self.upper}")

    @property
    def width(self) -> float:
        """`upper - lower`; 0 where both ends are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """The middle of the interval (infinite where an end is)."""
        return 0.5 * (self.lower + self.upper)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def maximum(self, other: Interval) -> Interval:
        """The interval of max(x, y) for x in `self` and y in `other`."""
        engine = self.engine if self.upper >= other.upper else other.engine
        return Interval(max(self.lower, other.lower), max(self.upper, other.upper), engine)

    def intersect(self, other: Interval) -> Interval:
        """The interval common to two certified intervals of one quantity.

        Raises:
          ArithmeticError: they are disjoint, so that one of them is not certified.
        """
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        if lower > upper:
            raise ArithmeticError(f"two certified intervals are disjoint: {self} and {other}")
        engine = self.engine if self.width <= other.width else other.engine
        return Interval(lower, upper, engine)
