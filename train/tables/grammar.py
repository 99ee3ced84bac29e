"""The rows of a schema as an automaton over tokens: what a constrained decoder may write."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactdp.train.gpt2.automaton import Automaton
from exactdp.train.tables import template
from exactdp.train.tables.number_texts import LETTERS, NumberTexts, Place
from exactdp.train.tables.schema import MISSING, Column
from exactdp.train.tables.tokens import RowTokens, Tokenizer

# A number column of at most so many values is a list of texts, like a category.
_LISTED = 1_000


@dataclasses.dataclass(frozen=True, eq=False)
class Grammar:
    """The rows of a schema, and nothing else, as paths.

    Attributes:
      automaton: its start is before the start token, so that `automaton.follow(rows.prompt(code))` is where
        the rest of a row begins; a row ends, with the end-of-text token, in the one final state.
      longest: tokens of the longest path. Not below `RowTokens.longest`: see `build`.
    """

    automaton: Automaton
    longest: int


@dataclasses.dataclass(frozen=True, eq=False)
class _Block:
    """Part of an automaton: states from 0, where it begins, to `states` - 1.

    Attributes:
      edges: int64[3, edges]: sources, tokens, targets.
      accepting: states where a value may end.
      longest: tokens of the longest value.
    """

    edges: np.ndarray
    accepting: np.ndarray
    states: int
    longest: int


def build(rows: RowTokens) -> Grammar:
    """The grammar of a template: its keys in its order, and for each column the values of its domain.

    Categories, and numbers of a short range, are a tree of the tokens that the tokenizer gives them. Numbers
    of a long range are read digit by digit, by any tokens whose letters are next: a text may then have more
    than one path, that of the tokenizer among them, and be longer than the tokenizer would make it.

    Every path is a row that `Template.parse` accepts, and every row of the domain, as `RowTokens.encode`
    gives it in the template's order, is a path.
    """
    letters = _tree_of_letters(rows.tokenizer)
    known: dict[Any, _Block] = {}
    end = rows.tokenizer.end
    edges = [np.array([[0], [end], [1]], np.int64)]
    current, states, longest = 1, 2, 1
    for place in rows.template.places:
        column = rows.template.schema.columns[place]
        # What the values' texts depend on.
        like = dataclasses.replace(column, name="x")
        if like not in known:
            known[like] = _block(rows, place, column, letters)
        block = known[like]
        fixed = (*rows.keys[place], rows.is_token)
        chain = [current, *range(states, states + len(fixed))]
        edges.append(np.array([chain[:-1], fixed, chain[1:]], np.int64))
        begin = chain[-1]
        after = begin + block.states
        shift = np.array([[begin], [0], [begin]])
        edges.append(block.edges + shift)
        separator = end if place == rows.template.places[-1] else rows.comma_token
        accepting = block.accepting + begin
        edges.append(
            np.stack([accepting, np.full_like(accepting, separator), np.full_like(accepting, after)])
        )
        current, states = after, after + 1
        longest += len(fixed) + block.longest + 1
    return Grammar(_automaton(np.concatenate(edges, 1), states), longest)


def _automaton(edges: np.ndarray, states: int) -> Automaton:
    sources, tokens, targets = edges[:, np.lexsort((edges[1], edges[0]))]
    counts = np.bincount(sources, minlength=states)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Automaton(starts=starts, tokens=tokens, targets=targets, start=0, widest=int(counts.max()))


def _block(rows: RowTokens, place: int, column: Column, letters: dict[int, Any]) -> _Block:
    if column.kind != "category" and column.size > _LISTED:
        return _numbers(rows, column, letters)
    codes = np.arange(column.low, column.high + 1)
    if column.missing:
        codes = np.append(codes, MISSING)
    return _tree(rows.values(place, codes), rows.tokenizer.vocabulary)


def _tree(values: Sequence[tuple[int, ...]], vocabulary: int) -> _Block:
    """Values that begin alike share their first states."""
    lengths = np.array([len(value) for value in values])
    flat = np.concatenate([np.array(value, np.int64) for value in values])
    begins = np.cumsum(lengths) - lengths
    at = np.zeros(len(values), np.int64)
    active = np.arange(len(values))
    edges: list[np.ndarray] = []
    states, depth = 1, 0
    while active.size:
        # All values of `active` have more than `depth` tokens.
        both = at[active] * vocabulary + flat[begins[active] + depth]
        distinct, places = np.unique(both, return_inverse=True)
        fresh = states + np.arange(len(distinct))
        edges.append(np.stack([distinct // vocabulary, distinct % vocabulary, fresh]))
        at[active] = fresh[places]
        states += len(distinct)
        depth += 1
        active = active[lengths[active] > depth]
    return _Block(np.concatenate(edges, 1), at, states, depth)


def _numbers(rows: RowTokens, column: Column, letters: dict[int, Any]) -> _Block:
    texts = NumberTexts(column)
    number_of: dict[Place, int] = {texts.begin: 0}
    places = [texts.begin]
    steps: dict[tuple[int, int], int] = {}
    edges: list[tuple[int, int, int]] = []

    def step(state: int, letter: int) -> int:
        found = steps.get((state, letter))
        if found is None:
            place = texts.step(places[state], letter)
            if place is None:
                found = -1
            else:
                found = number_of.setdefault(place, len(places))
                if found == len(places):
                    places.append(place)
            steps[state, letter] = found
        return found

    def walk(source: int, state: int, tree: dict[int, Any]) -> None:
        for letter, (token, more) in tree.items():
            target = step(state, letter)
            if target >= 0:
                if token >= 0:
                    edges.append((source, token, target))
                if more:
                    walk(source, target, more)

    state = 0
    while state < len(places):
        walk(state, state, letters)
        state += 1
    accepting = np.array([state for state, place in enumerate(places) if texts.accepts(place)])
    ends = [column.low, column.high, *([MISSING] if column.missing else [])]
    longest = max(map(len, template.values(column, np.array(ends))))
    return _Block(np.array(edges, np.int64).T, accepting, len(places), longest)


def _tree_of_letters(tokenizer: Tokenizer) -> dict[int, Any]:
    """The tokens that numbers are made of: letter -> (token or -1, the same of what follows)."""
    root: dict[int, Any] = {}
    for token in range(tokenizer.vocabulary):
        text = tokenizer.token_bytes(token)
        if token == tokenizer.end or not text or text.strip(LETTERS):
            continue
        tree = root
        for letter in text[:-1]:
            tree = tree.setdefault(letter, (-1, {}))[1]
        tree[text[-1]] = (token, tree.get(text[-1], (-1, {}))[1])
    return root
