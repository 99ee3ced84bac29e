"""The automaton of a template: every path is a row of the domain, every row is a path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.train.gpt2.automaton import Automaton
from exactdp.train.tables import grammar
from exactdp.train.tables.schema import Column, Schema
from exactdp.train.tables.template import Template
from exactdp.train.tables.tokens import RowTokens
from tests.train.tables import byte_level, random_tables

both = pytest.mark.parametrize("make", [byte_level.small, byte_level.gpt2], ids=["small", "gpt2"])
Make = Callable[[], byte_level.ByteLevel]
SCHEMA = Schema(
    (
        Column("age", "integer", minimum=-5, maximum=90),
        Column("island", "float", minimum=-98_765, maximum=10**12, decimals=3, missing=True),
        Column("income", "category", values=("<=50K", "<=50", "is, it"), missing=True),
    ),
    "income",
)


def sampled(automaton: Automaton, rng: np.random.Generator) -> list[int]:
    """Tokens of a random path from the start to a final state."""
    state, found = automaton.start, []
    while not automaton.final(state):
        edge = rng.integers(automaton.starts[state], automaton.starts[state + 1])
        found.append(int(automaton.tokens[edge]))
        state = int(automaton.targets[edge])
    return found


def accepts(automaton: Automaton, rows: RowTokens, tokens: np.ndarray) -> bool:
    ids = tokens.tolist()
    state = automaton.follow(ids[: ids.index(rows.tokenizer.end, 1) + 1])
    return state is not None and automaton.final(state)


def check(rows: RowTokens, rng: np.random.Generator, *, count: int) -> None:
    built = grammar.build(rows)
    assert sum(built.automaton.final(state) for state in range(built.automaton.states)) == 1
    codes = random_tables.codes(rows.template.schema, count, rng)
    assert all(accepts(built.automaton, rows, tokens) for tokens in rows.encode(codes))
    paths = [sampled(built.automaton, rng) for _ in range(count)]
    assert max(map(len, paths)) <= built.longest
    assert rows.longest <= built.longest
    whole = np.full((count, built.longest), rows.tokenizer.end)
    for row, path in zip(whole, paths, strict=True):
        row[: len(path)] = path
    texts = rows.texts(whole)
    assert rows.template.parse_rows(texts).valid.all()
    # And in the one way in which the template writes them.
    assert rows.template.row_texts(rows.template.parse_rows(texts).codes) == texts


@both
@settings(max_examples=30)
@given(schema=random_tables.schemas(), seed=st.integers(0, 2**32 - 1))
def test_paths_are_rows_and_rows_are_paths(make: Make, schema: Schema, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(RowTokens(Template(schema), make()), rng, count=10)


@both
def test_many_paths(make: Make) -> None:
    check(RowTokens(Template(SCHEMA, "header"), make()), np.random.default_rng(0), count=400)


@both
def test_after_a_prompt(make: Make) -> None:
    rows = RowTokens(Template(SCHEMA), make())
    automaton = grammar.build(rows).automaton
    states = {automaton.follow(rows.prompt(code)) for code in (0, 1, 2)}
    (state,) = states - {None}
    first, last = automaton.starts[state], automaton.starts[state + 1]
    assert automaton.tokens[first:last].tolist() == [rows.keys[0][0]]
    assert automaton.follow((rows.tokenizer.end, *rows.keys[0])) is None


def test_multi_digit_tokens() -> None:
    rows = RowTokens(Template(Schema((Column("n", "integer", minimum=0, maximum=5_000),))), byte_level.gpt2())
    automaton = grammar.build(rows).automaton
    encode = rows.tokenizer.encode
    prefix = (rows.tokenizer.end, *encode(" n"), rows.is_token)
    for pieces, fits in (
        ((" 1234",), True),
        ((" 12", "34"), True),
        ((" ", "1", "2", "3", "4"), True),
        ((" 5000",), True),
        ((" 50", "01"), False),
        ((" 0", "1"), False),
        ((" 999", "9"), False),
    ):
        tokens = [token for piece in pieces for token in encode(piece)]
        state = automaton.follow((*prefix, *tokens, rows.tokenizer.end))
        assert (state is not None) == fits


@both
def test_large_domains(make: Make) -> None:
    columns = (
        Column("word", "category", values=tuple(f"w{i * 7919 % 100_003} {i}" for i in range(100_000))),
        Column("n", "integer", minimum=-(10**12), maximum=10**12, missing=True),
    )
    check(RowTokens(Template(Schema(columns)), make()), np.random.default_rng(0), count=20)


@both
def test_wide_tables(make: Make) -> None:
    kinds = (
        Column("x", "integer", minimum=0, maximum=10**12),
        Column("x", "float", minimum=-5, maximum=99_999, decimals=2, missing=True),
        Column("x", "category", values=("a", "b")),
    )
    names = [f"column {i}" for i in range(200)]
    columns = [
        Column(name, kind.kind, kind.values, kind.minimum, kind.maximum, kind.decimals, kind.missing)
        for name, kind in zip(names, kinds * 67, strict=False)
    ]
    check(RowTokens(Template(Schema(tuple(columns))), make()), np.random.default_rng(0), count=3)
