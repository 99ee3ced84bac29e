"""What a Rényi accountant returns: an upper bound and the order that gave it."""

from __future__ import annotations

import dataclasses
import math

from exactdp.accounting import validate


@dataclasses.dataclass(frozen=True)
class UpperBound:
    """An upper bound on ε or δ; never a two-sided statement.

    A Rényi curve determines ε only up to the conversion, so that the true value may be far below.

    Attributes:
      value: the bound, >= 0; `math.inf` where no order gives a finite one.
      order: the Rényi order it was obtained at; NaN where no order is admissible.

    Raises:
      ValueError: `value` is negative or NaN.
    """

    value: float
    order: float

    def __post_init__(self) -> None:
        if not self.value >= 0.0:
            raise ValueError(f"value must be >= 0, got {self.value}")


def check_order(order: object) -> float:
    """`order` as a float, finite and > 1.

    Raises:
      ValueError: it is not; orders in (0, 1] have no conversion here.
    """
    number = validate.finite("order", order)
    if number <= 1.0:
        raise ValueError(f"order must be > 1, got {order}")
    return number


def check_integer_order(order: object) -> int:
    """`order` as an integer >= 2.

    Raises:
      ValueError: it is not.
    """
    return validate.count("order", order, minimum=2)


def check_renyi(renyi: object) -> float:
    """A Rényi divergence as a float >= 0, infinity included.

    Raises:
      ValueError: it is negative or NaN. A negative divergence is a numerical failure upstream, so that
        it is refused rather than answered with ε = 0.
    """
    number = float(renyi)  # type: ignore[arg-type]
    if not number >= 0.0:
        raise ValueError(f"renyi must be >= 0, got {renyi}")
    return number


def next_up(value: float, *, relative: float) -> float:
    """`value` moved up by `relative` of itself: covers the stated rounding error of a formula."""
    return value if math.isinf(value) else value * (1.0 + relative)
