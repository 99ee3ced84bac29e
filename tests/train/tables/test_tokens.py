"""Rows as tokens, their classes, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.train.tables import csv_file, tokens
from exactdp.train.tables.schema import MISSING, Column, Schema
from exactdp.train.tables.template import Template
from exactdp.train.tables.tokens import KEY, OTHER, PADDING, VALUE, RowTokens
from tests.train.tables import byte_level, random_tables, real_tables

SCHEMA = Schema(
    (
        Column("age", "integer", minimum=-5, maximum=90),
        Column("island", "float", minimum=-150, maximum=12_345, decimals=2, missing=True),
        Column("income", "category", values=("<=50K", "is, it", "<|endoftext|>"), missing=True),
    ),
    "income",
)
CODES = np.array([[39, MISSING, 1], [-5, 12_345, 2], [7, -5, MISSING]])
both = pytest.mark.parametrize("make", [byte_level.small, byte_level.gpt2], ids=["small", "gpt2"])
Make = Callable[[], byte_level.ByteLevel]


def one_by_one(rows: RowTokens, codes: list[int]) -> list[int]:
    tokenizer, template = rows.tokenizer, rows.template
    found = [tokenizer.end]
    for piece in template.row_text(codes).split(","):
        name, value = piece.split(" is", maxsplit=1)
        for part in (name, " is", value, ","):
            found += tokenizer.encode(part)
    return [*found[:-1], tokenizer.end]


@both
def test_tokens_of_rows(make: Make) -> None:
    rows = RowTokens(Template(SCHEMA), make())
    found = rows.encode(CODES)
    assert found.dtype == np.uint16 and found.shape == (3, rows.longest)
    for row, codes in zip(found.tolist(), CODES.tolist(), strict=True):
        expected = one_by_one(rows, codes)
        assert row == expected + [rows.tokenizer.end] * (rows.longest - len(expected))
        assert tuple(row[: len(rows.prompt(codes[2]))]) == rows.prompt(codes[2])
    assert rows.texts(found) == rows.template.row_texts(CODES)


@both
@settings(max_examples=40)
@given(schema=random_tables.schemas(), seed=st.integers(0, 2**32 - 1))
def test_every_table_comes_back(make: Make, schema: Schema, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = RowTokens(Template(schema), make())
    codes = random_tables.codes(schema, 6, rng)
    found = rows.encode(codes)
    texts = rows.template.row_texts(codes)
    assert rows.texts(found) == texts
    counts = (found[:, 1:] != rows.tokenizer.end).sum(1) + 2
    assert counts.max() <= rows.longest
    for ids, row, text in zip(found, codes.tolist(), texts, strict=True):
        assert ids[: len(one_by_one(rows, row))].tolist() == one_by_one(rows, row)
        # As many separators as columns, whatever names and values hold.
        assert (ids == rows.is_token).sum() == len(schema.columns)
        assert (ids == rows.comma_token).sum() == len(schema.columns) - 1
        assert rows.tokenizer.decode(ids[1 : 1 + counts.max()].tolist()).startswith(text)


@both
def test_the_longest_row_is_of_the_domain(make: Make) -> None:
    for maximum, decimals in ((12, 1), (4_000, 0), (10**9, 0), (10**9, 3)):
        column = Column(
            "n", "float" if decimals else "integer", minimum=-7, maximum=maximum, decimals=decimals
        )
        rows = RowTokens(Template(Schema((column,))), make())
        codes = np.unique(np.geomspace(1, maximum + 1, 500).astype(np.int64) - 1)
        lengths = [len(one_by_one(rows, [code])) for code in codes.tolist()]
        assert max(lengths) <= rows.longest
        if maximum < 5_000:
            every = np.arange(-7, maximum + 1)[:, None]
            assert rows.longest == int((rows.encode(every)[:, 1:] != rows.tokenizer.end).sum(1).max()) + 2


def test_a_fixed_length() -> None:
    rows = RowTokens(Template(SCHEMA), byte_level.small())
    np.testing.assert_array_equal(rows.encode(CODES, length=100)[:, : rows.longest], rows.encode(CODES))
    with pytest.raises(ValueError, match="row 1 has more than 20"):
        rows.encode(CODES, length=20)
    needed = len(one_by_one(rows, CODES[2].tolist()))
    assert rows.encode(CODES[2:], length=needed)[0, -1] == rows.tokenizer.end
    with pytest.raises(ValueError, match="row 1 has more"):
        rows.encode(CODES[2:], length=needed - 1)
    with pytest.raises(ValueError, match="column 'age': code must be in"):
        rows.encode(np.array([[91, 0, 0]]))
    assert rows.encode(np.empty((0, 3), np.int64)).shape == (0, rows.longest)


def test_rows_do_not_depend_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = random_tables.codes(SCHEMA, 300, np.random.default_rng(0))
    rows = RowTokens(Template(SCHEMA), byte_level.small())
    whole = rows.encode(codes)
    monkeypatch.setattr(tokens, "_ROWS", 7)
    monkeypatch.setattr(tokens, "_REMEMBERED", 100)
    other = RowTokens(Template(SCHEMA), byte_level.small())
    np.testing.assert_array_equal(other.encode(codes), whole)
    np.testing.assert_array_equal(np.concatenate([other.encode(row[None]) for row in codes]), whole)
    assert other.texts(whole) == rows.texts(whole) == rows.template.row_texts(codes)


def test_shuffled_columns() -> None:
    rows = RowTokens(Template(SCHEMA), byte_level.small())
    codes = random_tables.codes(SCHEMA, 50, np.random.default_rng(0))
    orders = rows.template.shuffled(50, rng=np.random.default_rng(1))
    found = rows.encode(codes, orders=orders)
    assert rows.texts(found) == rows.template.row_texts(codes, orders=orders)
    np.testing.assert_array_equal(rows.template.parse_rows(rows.texts(found)).codes, codes)


def test_a_row_that_does_not_end_has_no_text() -> None:
    rows = RowTokens(Template(SCHEMA), byte_level.small())
    found = rows.encode(CODES, length=80)
    cut = found[:, : len(one_by_one(rows, CODES[0].tolist())) - 1]
    assert rows.texts(cut)[0] == ""
    assert rows.template.parse("").reason == "malformed"


def test_texts_of_any_tokens() -> None:
    rows = RowTokens(Template(SCHEMA), byte_level.gpt2())
    found = np.random.default_rng(0).integers(0, rows.tokenizer.vocabulary, (50, 30))
    found[:, 20] = rows.tokenizer.end
    for ids, text in zip(found.tolist(), rows.texts(found), strict=True):
        stop = ids.index(rows.tokenizer.end, 1)
        joined = b"".join(rows.tokenizer.token_bytes(token) for token in ids[1:stop])
        assert text == joined.decode(errors="replace")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_classes(dtype: type) -> None:
    is_token, comma, end = 1, 2, 0
    row = [0, 9, 8, 1, 7, 7, 2, 9, 1, 7, 0, 0, 0]
    expected = [OTHER, KEY, KEY, OTHER, VALUE, VALUE, OTHER, KEY, OTHER, VALUE, OTHER, PADDING, PADDING]
    odd = [0, 1, 1, 9, 2, 2, 5, 0, 1, 9, 2, 9, 0]  # as a model might write
    of_odd = [OTHER, OTHER, OTHER, VALUE, OTHER, OTHER, KEY, OTHER, *[PADDING] * 5]
    find = jax.jit(lambda tokens_: tokens.classes(tokens_, is_token=is_token, comma_token=comma, end=end))
    found = find(np.array([row, odd], dtype))
    assert found.dtype == np.int8
    assert found.tolist() == [expected, of_odd]
    assert find(np.array(row, dtype)).tolist() == expected
    assert find(np.array([[row], [odd]], dtype)).tolist() == [[expected], [of_odd]]


@both
def test_classes_of_rows(make: Make) -> None:
    rows = RowTokens(Template(SCHEMA), make())
    found = tokens.classes(
        rows.encode(CODES), is_token=rows.is_token, comma_token=rows.comma_token, end=rows.tokenizer.end
    )
    for row, codes in zip(np.asarray(found), CODES, strict=True):
        values = sum(len(rows.values(place, codes[[place]])[0]) for place in range(3))
        assert (row == KEY).sum() == sum(map(len, rows.keys))
        assert (row == VALUE).sum() == values
        assert (row == OTHER).sum() == 1 + 3 + 3


class Changed(byte_level.ByteLevel):
    """Reads a text in lower case."""

    def __init__(self) -> None:
        self.__dict__ |= byte_level.small().__dict__

    def encode(self, text: str) -> tuple[int, ...]:
        return super().encode(text.lower())


class Special(Changed):
    """Reads a special token in a text."""

    def encode(self, text: str) -> tuple[int, ...]:
        return (self.end,) if "end" in text else byte_level.ByteLevel.encode(self, text)


class Split(Changed):
    """Has no " is"."""

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(token for letter in text for token in byte_level.ByteLevel.encode(self, letter))


def test_unfit_tokenizers_are_refused() -> None:
    schema = Schema((Column("A", "category", values=("x", "the end")),))
    with pytest.raises(ValueError, match="column 'A': tokenizer must give a text's own bytes"):
        RowTokens(Template(schema), Changed())
    with pytest.raises(ValueError, match="column 'A': tokenizer must give"):
        RowTokens(Template(schema), Special()).encode(np.array([[1]]))
    with pytest.raises(ValueError, match="must have ' is' as one token, got 3"):
        RowTokens(Template(schema), Split())


@both
def test_real_tables(make: Make, tmp_path: Path) -> None:
    for name, label in (("adult", "income"), ("airline", "Satisfaction")):
        raw = csv_file.read(getattr(real_tables, name)(tmp_path / "real.csv"))
        rows = RowTokens(Template(real_tables.declared(raw, label=label)), make())
        codes = csv_file.encode(raw, rows.template.schema).codes[:5_000]
        found = rows.encode(codes)
        np.testing.assert_array_equal(rows.template.parse_rows(rows.texts(found)).codes, codes)
