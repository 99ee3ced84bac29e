"""Random schemas and tables for tests: every kind of column, names and values that need escapes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from exactdp.train.tables.schema import MISSING, Column, Schema

_NASTY = st.sampled_from(
    [
        " is",
        "is",
        ",",
        "\\",
        "\\?",
        '"',
        "\n",
        "\r",
        " ",
        "  is ",
        "<|endoftext|>",
        "<|",
        "|",
        "?",
        "é",
        "🙂",
        "\\is",
        "i",
        "s",
        "0",
    ]
)
_TEXT = st.one_of(
    st.lists(_NASTY, min_size=1, max_size=5).map("".join),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=8),
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(_TEXT, min_size=1, max_size=5, unique=True))
    columns = [draw(_columns(name)) for name in names]
    return Schema(tuple(columns), draw(st.sampled_from([None, *names])))


@st.composite
def _columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(["category", "integer", "float"]))
    missing = draw(st.booleans())
    if kind == "category":
        values = draw(st.lists(_TEXT, min_size=0 if missing else 1, max_size=6, unique=True))
        return Column(name, kind, values=tuple(values), missing=missing)
    scale = draw(st.sampled_from([3, 100, 10**6, 10**15]))
    low, high = sorted([draw(st.integers(-scale, scale)), draw(st.integers(-scale, scale))])
    decimals = draw(st.integers(1, 12)) if kind == "float" else 0
    return Column(name, kind, minimum=low, maximum=high, decimals=decimals, missing=missing)


def codes(schema: Schema, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform in the domain, a fifth missing where that may be."""
    found = np.full((rows, len(schema.columns)), MISSING)
    for place, column in enumerate(schema.columns):
        if column.size:
            found[:, place] = rng.integers(column.low, column.high, rows, endpoint=True)
            if column.missing:
                found[rng.random(rows) < 0.2, place] = MISSING
    return found
