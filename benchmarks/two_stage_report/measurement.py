"""A number of a report that is no metric of the table: a perplexity, a speed."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One more number.

    Attributes:
      name: what it is, with its unit.
      value: the number.
      computed_on: which rows or what run it comes from.
    """

    name: str
    value: float
    computed_on: str
