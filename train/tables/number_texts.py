"""The texts of a number column's domain, letter by letter: a deterministic automaton."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from exactdp.train.tables.schema import Column
from exactdp.train.tables.template import MISSING_TEXT

LETTERS = b" -.0123456789" + MISSING_TEXT.encode()
"""All letters of these texts."""

_SPACE, _MINUS, _POINT, _ZERO = b" -.0"


class Rest(NamedTuple):
    """What may still follow: `digits` more, which as a number are in low ... high."""

    digits: int
    low: int
    high: int


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a reader stands in a text; equal places are continued alike.

    Attributes:
      kind: "begin"; "sign", after the space; "first", after the minus; "whole" and "fraction", after a digit
        before and after the point (or the point itself); "missing", inside its text; "end" of that text.
      rests: what may follow; of "whole" one for each number of digits, those after the point counted too.
      read: letters of the missing value's text.
    """

    kind: str
    rests: tuple[Rest, ...] = ()
    read: int = 0


@dataclasses.dataclass(frozen=True)
class NumberTexts:
    """Reads " " and a number of the domain as `Column.text` writes it, or " " and the missing value's text.

    No zero stands before another digit of the whole part, -0 is written 0, and a float has all its decimals.
    The places are few (tens): a place is told by how the digits read compare with those of the range's ends.

    Attributes:
      column: of kind integer or float.
    """

    column: Column

    @property
    def begin(self) -> Place:
        """Before the space."""
        return Place("begin")

    def accepts(self, place: Place) -> bool:
        """Whether the text may end here."""
        return place.kind == "end" or (
            (place.kind == "fraction" or (place.kind == "whole" and self.column.decimals == 0))
            and any(rest.digits == 0 for rest in place.rests)
        )

    def step(self, place: Place, letter: int) -> Place | None:
        """The place after one more letter; None where no text goes on so."""
        match place.kind:
            case "begin":
                return Place("sign") if letter == _SPACE else None
            case "sign" if letter == _MINUS:
                return Place("first") if self.column.low < 0 else None
            case "sign" if self.column.missing and letter == MISSING_TEXT.encode()[0]:
                return Place("missing", read=1)
            case "sign":
                return self._first(letter, max(0, self.column.low), self.column.high)
            case "first":
                return self._first(letter, max(1, -self.column.high), -self.column.low)
            case "whole" if letter == _POINT:
                rests = tuple(rest for rest in place.rests if rest.digits == self.column.decimals > 0)
                return Place("fraction", rests) if rests else None
            case "whole":
                return _digit(place, letter, least=self.column.decimals)
            case "fraction":
                return _digit(place, letter, least=0)
            case "missing":
                text = MISSING_TEXT.encode()
                if letter != text[place.read]:
                    return None
                return Place("missing", read=place.read + 1) if place.read + 1 < len(text) else Place("end")
            case _:
                return None

    def _first(self, letter: int, low: int, high: int) -> Place | None:
        digit = letter - _ZERO
        if not 0 <= digit <= 9 or low > high:
            return None
        decimals = self.column.decimals
        # A zero is the whole part's only digit.
        most = decimals if digit == 0 else max(decimals, len(str(high)) - 1)
        rests = (
            _rest(digits, low - digit * 10**digits, high - digit * 10**digits)
            for digits in range(decimals, most + 1)
        )
        kept = tuple(rest for rest in rests if rest is not None)
        return Place("whole", kept) if kept else None


def _digit(place: Place, letter: int, *, least: int) -> Place | None:
    digit = letter - _ZERO
    if not 0 <= digit <= 9:
        return None
    rests = (
        _rest(
            rest.digits - 1,
            rest.low - digit * 10 ** (rest.digits - 1),
            rest.high - digit * 10 ** (rest.digits - 1),
        )
        for rest in place.rests
        if rest.digits > least
    )
    kept = tuple(rest for rest in rests if rest is not None)
    return Place(place.kind, kept) if kept else None


def _rest(digits: int, low: int, high: int) -> Rest | None:
    low, high = max(0, low), min(high, 10**digits - 1)
    return Rest(digits, low, high) if low <= high else None
