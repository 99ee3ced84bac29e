"""Checks of arguments: each failure is a `ValueError` naming argument, rule and value."""

from __future__ import annotations

import math
from collections.abc import Iterable


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise ValueError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError(f"{name} must be below 1.8e308 in size, got a number beyond all floats") from None
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan")
    return number


def positive(name: str, value: object) -> float:
    """`value` as a float, finite and > 0."""
    number = _number(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {value}")
    return number


def non_negative(name: str, value: object) -> float:
    """`value` as a float, finite and >= 0."""
    number = _number(name, value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value}")
    return number


def finite(name: str, value: object) -> float:
    """`value` as a finite float."""
    number = _number(name, value)
    if math.isinf(number):
        raise ValueError(f"{name} must be finite, got {value}")
    return number


def probability(name: str, value: object) -> float:
    """`value` as a float in [0, 1]."""
    number = _number(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return number


def open_probability(name: str, value: object) -> float:
    """`value` as a float in (0, 1)."""
    number = _number(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be in (0, 1), got {value}")
    return number


def count(name: str, value: object, minimum: int = 0, maximum: int | None = None) -> int:
    """`value` as an integer from `minimum` to `maximum`; a float is accepted when it is whole."""
    number = _number(name, value)
    if math.isinf(number) or number != math.floor(number) or number < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum}, got {value}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum:g}, got {number:g}")
    return int(value)  # type: ignore[call-overload]


def text(name: str, value: object, *, empty: bool = True) -> str:
    """`value` when it is a string, and with `empty` false one that holds more than white space."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {value!r}")
    if not empty and not value.strip():
        raise ValueError(f"{name} must not be empty, got {value!r}")
    return value


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """`value` when it is one of `choices`."""
    allowed = list(choices)
    if value not in allowed:
        shown = map(repr, allowed) if any("," in one for one in allowed) else allowed
        raise ValueError(f"{name} must be one of {', '.join(shown)}, got {value!r}")
    return value
