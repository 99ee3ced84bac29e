"""Whole numbers from command lines and files may have any length: those beyond the floats are refused."""

from __future__ import annotations

import math
import sys

LARGEST = f"{sys.float_info.max:.2g}"


def representable(name: str, value: float) -> float:
    """`value` as it is.

    Raises:
      ValueError: it is a whole number beyond the largest float.
    """
    try:
        float(value)
    except OverflowError:
        sign = "-" if value < 0 else ""
        # Not in full: hundreds of digits say no more, and beyond some thousands Python refuses to print them.
        about = f"{sign}10**{math.floor(math.log10(abs(value)))}"
        raise ValueError(f"{name} must be a number below {LARGEST}, got about {about}") from None
    return value
