"""Rows as texts, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.train.tables import csv_file
from exactdp.train.tables.schema import MISSING, Column, Schema
from exactdp.train.tables.template import REASONS, Template, escape, unescape
from tests.train.tables import random_tables, real_tables

SCHEMA = Schema(
    (
        Column("age", "integer", minimum=-5, maximum=90),
        Column("pay", "float", minimum=-150, maximum=12_345, decimals=2, missing=True),
        Column("income", "category", values=("<=50K", "is, it"), missing=True),
    ),
    "income",
)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("alphabetical", r" income is \is\c it, age is 39, pay is \?"),
        ("header", r" income is \is\c it, age is 39, pay is \?"),
        (("pay", "income", "age"), r" pay is \?, income is \is\c it, age is 39"),
    ],
)
def test_text_of_a_row(order: str | tuple[str, ...], text: str) -> None:
    template = Template(SCHEMA, order)
    assert template.row_text([39, MISSING, 1]) == text
    assert template.parse(text).codes == (39, MISSING, 1)


def test_orders() -> None:
    columns = tuple(Column(name, "integer", minimum=0, maximum=9) for name in ("b", "c", "A", "a"))
    assert Template(Schema(columns, "c")).places == (1, 2, 3, 0)
    assert Template(Schema(columns, "c"), "header").places == (1, 0, 2, 3)
    assert Template(Schema(columns)).places == (2, 3, 0, 1)
    assert Template(Schema(columns), "header").places == (0, 1, 2, 3)
    with pytest.raises(ValueError, match="order must be one of"):
        Template(Schema(columns), "random")
    with pytest.raises(ValueError, match="order must name each column once"):
        Template(Schema(columns), ("b", "c", "A"))


def test_prompt() -> None:
    template = Template(SCHEMA)
    assert template.prompt(0) == " income is <=50K,"
    assert template.row_text([1, 2, 0]).startswith(template.prompt(0))
    with pytest.raises(ValueError, match="domain"):
        template.prompt(2)


@given(
    st.text(st.characters(blacklist_categories=["Cs"]))
    | st.lists(st.sampled_from("\\is ,ncr|<\n")).map("".join)
)
def test_escapes(text: str) -> None:
    escaped = escape(text)
    assert unescape(escaped) == text
    assert not {",", "\n", "\r"} & set(escaped)
    assert " is" not in " " + escaped and "<|" not in escaped and escaped != r"\?"


@given(st.lists(st.sampled_from("\\is ,ncr|<\n")).map("".join))
def test_only_escaped_texts_are_unescaped(text: str) -> None:
    found = unescape(text)
    assert found is None or escape(found) == text


@settings(max_examples=150)
@given(random_tables.schemas(), st.sampled_from(["alphabetical", "header"]), st.integers(0, 2**32 - 1))
def test_every_table_comes_back(schema: Schema, order: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    template = Template(schema, order)
    codes = random_tables.codes(schema, 8, rng)
    texts = template.row_texts(codes)
    assert not any("\n" in text for text in texts)
    found = template.parse_rows(texts)
    assert found.valid.all() and sum(found.reasons.values()) == 0
    np.testing.assert_array_equal(found.codes, codes)
    assert [template.row_text(row) for row in codes.tolist()] == texts
    mixed = template.row_texts(codes, orders=template.shuffled(8, rng=rng))
    np.testing.assert_array_equal(template.parse_rows(mixed).codes, codes)


def test_a_shuffled_row_begins_with_the_label() -> None:
    template = Template(SCHEMA)
    orders = template.shuffled(200, rng=np.random.default_rng(0))
    assert set(map(tuple, orders.tolist())) == {(2, 0, 1), (2, 1, 0)}
    codes = np.tile([39, 150, 0], (200, 1))
    assert set(template.row_texts(codes, orders=orders)) == {
        " income is <=50K, age is 39, pay is 1.50",
        " income is <=50K, pay is 1.50, age is 39",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "malformed"),
        (" income is <=50K, age is 39,", "malformed"),
        (" income is <=50K,age is 39, pay is 1.00", "malformed"),
        (" income is <=50K, age 39, pay is 1.00", "malformed"),
        (" income is <=50K, age is39, pay is 1.00", "malformed"),
        (r" income is <=50K, age is 39, pay is \x", "malformed"),
        (" income is <=50K, age is 39, p\\", "malformed"),
        (" income is <=50K, age is 39", "missing column"),
        (" income is <=50K, age is 39, age is 39, pay is 1.00", "repeated column"),
        (" income is <=50K, age is 39, wage is 1.00", "unknown column"),
        (r" income is <=50K, age is \?, pay is 1.00", "missing value"),
        (" income is <=50k, age is 39, pay is 1.00", "unknown category"),
        (" income is , age is 39, pay is 1.00", "unknown category"),
        (r" income is \\?, age is 39, pay is 1.00", "unknown category"),
        (" income is <=50K, age is thirty, pay is 1.00", "not a number"),
        (" income is <=50K, age is , pay is 1.00", "not a number"),
        (" income is <=50K, age is 39, pay is ", "not a number"),
        (" income is <=50K, age is 91, pay is 1.00", "out of range"),
        (" income is <=50K, age is 39.5, pay is 1.00", "out of range"),
        (" income is <=50K, age is 39, pay is -9e9", "out of range"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    template = Template(SCHEMA)
    for _ in range(2):  # the second time it is remembered
        parsed = template.parse(text)
        assert (parsed.codes, parsed.reason) == (None, reason)
    found = template.parse_rows([text, template.row_text([1, 2, 0]), text])
    assert found.codes.tolist() == [[1, 2, 0]]
    assert found.valid.tolist() == [False, True, False]
    assert found.reasons == {**dict.fromkeys(REASONS, 0), reason: 2}


def test_numbers_are_read_with_their_columns_precision() -> None:
    parsed = Template(SCHEMA).parse(" income is <=50K, age is 39.0, pay is .5")
    assert parsed.codes == (39, 50, 0)


@given(
    st.text()
    | st.lists(st.sampled_from([" income", " age", " is", " 3", ",", "9", "\\", "\\?"])).map("".join)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    parsed = Template(SCHEMA).parse(text)
    assert (parsed.codes is None) == (parsed.reason in REASONS)


def test_codes_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="codes must have 3 columns"):
        Template(SCHEMA).row_texts(np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match="column 'age': code must be"):
        Template(SCHEMA).row_text([91, 0, 0])


@pytest.mark.parametrize(("name", "label"), [("adult", "income"), ("airline", "Satisfaction")])
def test_real_tables_come_back(tmp_path: Path, name: str, label: str) -> None:
    raw = csv_file.read(getattr(real_tables, name)(tmp_path / "real.csv"))
    template = Template(real_tables.declared(raw, label=label))
    codes = csv_file.encode(raw, template.schema).codes[:20_000]
    np.testing.assert_array_equal(template.parse_rows(template.row_texts(codes)).codes, codes)
