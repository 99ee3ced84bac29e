"""Values that approximate and bound nothing."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Approximation:
    """A number without a guarantee: the truth may lie on either side. Never quote it as a privacy bound.

    It is a type of its own, with no ends and no comparison, so that it cannot be taken for an `Interval`.

    Attributes:
      value: the approximate value.
      method: what was approximated by what.
      source: where the approximation comes from.
    """

    value: float
    method: str
    source: str
