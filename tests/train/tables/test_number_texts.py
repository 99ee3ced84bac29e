"""The automaton of numbers' texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.train.tables.number_texts import LETTERS, NumberTexts, Place
from exactdp.train.tables.schema import MISSING, Column


def accepted(texts: NumberTexts, text: str) -> bool:
    place: Place | None = texts.begin
    for letter in text.encode():
        place = texts.step(place, letter)
        if place is None:
            return False
    return texts.accepts(place)


def language(texts: NumberTexts) -> set[str]:
    """All texts, by walking; no place may be a dead end."""
    found: set[str] = set()
    walks = [("", texts.begin)]
    while walks:
        text, place = walks.pop()
        nexts = [(text + chr(letter), texts.step(place, letter)) for letter in LETTERS]
        ways = [(longer, after) for longer, after in nexts if after is not None]
        if texts.accepts(place):
            found.add(text)
        else:
            assert ways
        walks += ways
    return found


@settings(max_examples=120)
@given(st.integers(-1_200, 1_200), st.integers(-1_200, 1_200), st.integers(0, 4), st.booleans())
def test_exactly_the_texts_of_the_domain(first: int, second: int, decimals: int, missing: bool) -> None:
    low, high = sorted([first, second])
    kind = "float" if decimals else "integer"
    column = Column("n", kind, minimum=low, maximum=high, decimals=decimals, missing=missing)
    expected = {" " + column.text(code) for code in range(low, high + 1)}
    assert language(NumberTexts(column)) == expected | ({r" \?"} if missing else set())


@pytest.mark.parametrize("decimals", [0, 3, 12])
@given(data=st.data())
def test_long_ranges(decimals: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(-(10**15), 10**15))
    high = data.draw(st.integers(low, 10**15))
    kind = "float" if decimals else "integer"
    texts = NumberTexts(Column("n", kind, minimum=low, maximum=high, decimals=decimals))
    every = Column("n", kind, minimum=-(10**15), maximum=10**15, decimals=decimals)
    for near, change in itertools.product((low, high, 0, -low, 10**12), (-1, 0, 1, 1_000)):
        code = max(-(10**15), min(near + change, 10**15))
        assert accepted(texts, " " + every.text(code)) == (low <= code <= high)
    code = data.draw(st.integers(low, high))
    assert accepted(texts, " " + every.text(code))


@pytest.mark.parametrize(
    "text", ["5", " 05", " -0", " +5", " 5.", " 5.0", "  5", " 5 ", " -5 ", " ", " -", " 1e1", r" \?", " 00"]
)
def test_other_ways_to_write_a_number(text: str) -> None:
    assert not accepted(NumberTexts(Column("n", "integer", minimum=-9, maximum=99)), text)


@pytest.mark.parametrize("text", [" 5", " .50", " 5.5", " 05.50", " -0.00", " 5.500", " 5."])
def test_other_ways_to_write_a_float(text: str) -> None:
    assert not accepted(NumberTexts(Column("n", "float", minimum=-900, maximum=900, decimals=2)), text)


def test_places_are_few() -> None:
    texts = NumberTexts(
        Column("n", "float", minimum=-987_654_321_012, maximum=10**12, decimals=3, missing=True)
    )
    places = {texts.begin}
    fresh = [texts.begin]
    while fresh:
        place = fresh.pop()
        nexts = {texts.step(place, letter) for letter in LETTERS} - {None} - places
        places |= nexts
        fresh += nexts
    assert len(places) < 120
    assert MISSING not in {rest.low for place in places for rest in place.rests}
