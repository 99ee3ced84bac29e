"""Generation: equal to the whole forward pass, its distribution, automata, ends."""

from __future__ import annotations

import functools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import stats

from exactdp.train.gpt2 import cache, model
from exactdp.train.gpt2.automaton import Automaton
from exactdp.train.gpt2.config import Config
from exactdp.train.gpt2.generate import generate
from tests.train.gpt2.single_gradients import quick_jit

KEY = jax.random.key(2)
END = 0
SIZES = Config(vocabulary=23, positions=48, width=16, layers=2, heads=2)
GRAPH, _PARAMS = model.build(SIZES, key=KEY)
# Away from the start, where every token mostly predicts itself.
PARAMS = jax.tree.map(lambda x: x * (30.0 if x.ndim == 2 else 1.0), _PARAMS)
LOGITS = quick_jit(functools.partial(model.logits, GRAPH))
PROMPTS = np.array([[3, 4, 5, 6], [7, 8, 0, 0], [9, 0, 0, 0], [0, 2, 2, 0]])
LENGTHS = np.array([4, 2, 1, 3])


def texts(**settings: Any) -> np.ndarray:
    """Generated with the defaults of these tests."""
    chosen: dict[str, Any] = {
        "prompts": PROMPTS, "prompt_lengths": LENGTHS, "max_tokens": 20, "key": KEY, "temperature": 1.0,
        "end": END,
    }  # fmt: skip
    return np.asarray(generate(GRAPH, PARAMS, **{**chosen, **settings}))


def with_edges(edges: dict[int, dict[int, int]], start: int = 0) -> Automaton:
    """An automaton from state -> token -> target."""
    sizes = [len(edges[state]) for state in range(len(edges))]
    rows = [pair for state in range(len(edges)) for pair in sorted(edges[state].items())]
    return Automaton(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array([token for token, _ in rows], np.int32),
        np.array([target for _, target in rows], np.int32),
        start,
        max(sizes),
    )


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_step_with_the_cache_is_the_whole_pass(dtype: Any) -> None:
    graph, _ = model.abstract(SIZES, dtype=dtype)
    tokens = jax.random.randint(KEY, (3, 9), 0, 23)
    tolerance = 2e-4 if dtype == jnp.float32 else 0.3
    expected = quick_jit(functools.partial(model.logits, graph))(PARAMS, tokens)

    @quick_jit
    def steps(params: model.Parameters, tokens: jax.Array) -> jax.Array:
        gpt2 = nnx.merge(graph, params)
        # Positions from 4 on are of another text: they must not be read.
        kept = cache.prefill(gpt2, jnp.flip(tokens, 1).at[:, :4].set(tokens[:, :4])).extended(11)
        found: list[jax.Array] = []
        for time in range(4, 9):
            features, kept = cache.step(gpt2, kept, tokens[:, time], jnp.int32(time))
            found.append(gpt2.head(features))
        return jnp.stack(found, 1)

    found = steps(PARAMS, tokens)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected[:, 4:], atol=tolerance * float(jnp.max(jnp.abs(expected))))


def test_greedy_is_the_largest_of_the_whole_pass() -> None:
    # So many that the cache grows.
    found = texts(temperature=0.0, max_tokens=40)
    assert found.shape == (4, 40) and found.dtype == np.int32
    assert len(np.unique(found)) > 4
    likely = np.asarray(jnp.argmax(LOGITS(PARAMS, found), axis=-1))
    for row, (prompt, length) in enumerate(zip(PROMPTS, LENGTHS, strict=True)):
        assert found[row, :length].tolist() == prompt[:length].tolist()
        ends = np.flatnonzero(found[row, length:] == END)
        last = length + int(ends[0]) if len(ends) else 39
        assert found[row, length : last + 1].tolist() == likely[row, length - 1 : last].tolist()
        assert (found[row, last + 1 :] == END).all()
    # The prompt of the last row begins with `end`, which does not end it.
    assert found[3, 1] == 2


def test_rows_end() -> None:
    free = texts(temperature=0.0, end=22)
    stop = int(free[0, 6])
    first = 4 + int(np.flatnonzero(free[0, 4:] == stop)[0])
    found = texts(temperature=0.0, end=stop)
    assert found[0, : first + 1].tolist() == free[0, : first + 1].tolist()
    assert (found[0, first:] == stop).all()


def test_a_row_is_drawn_as_if_alone() -> None:
    together = texts()
    assert not np.array_equal(together, texts(key=jax.random.key(3)))
    chosen = np.array([2, 0, 3])
    fewer = texts(prompts=PROMPTS[chosen], prompt_lengths=LENGTHS[chosen], numbers=chosen)
    np.testing.assert_array_equal(fewer, together[chosen])


@pytest.mark.parametrize("settings", [{"top_k": 5}, {"automaton": True}])
def test_groups_of_rows_are_drawn_as_all_at_once(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the same name as the function, which hides the module as an attribute of its package.
    module = sys.modules["exactdp.train.gpt2.generate"]
    rows = 23
    asked: dict[str, Any] = {
        "prompts": np.tile(PROMPTS, (6, 1))[:rows],
        "prompt_lengths": np.tile(LENGTHS, 6)[:rows],
        **settings,
    }
    if "automaton" in settings:
        choices = {token: 1 + token % 2 for token in range(1, 23)}
        asked["automaton"] = with_edges({0: choices, 1: choices, 2: {3: 0, 7: 3}, 3: {}})
        asked["states"] = np.arange(rows) % 4
    monkeypatch.setattr(module, "_at_once", lambda rows: rows)
    together = texts(**asked)
    assert len(np.unique(together, axis=0)) > 15
    # The last of the three groups is one row short.
    monkeypatch.setattr(module, "_at_once", lambda rows: 8)
    np.testing.assert_array_equal(texts(**asked), together)


@pytest.mark.parametrize(("rows", "cores", "at_once"), [(1, 1, 1), (16, 1, 16), (17, 1, 9), (256, 2, 32)])
def test_rows_at_once_on_a_cpu(rows: int, cores: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["exactdp.train.gpt2.generate"]
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert module._at_once(rows) == at_once


@pytest.mark.parametrize("settings", [{}, {"top_k": 5}, {"top_p": 0.8, "temperature": 6.0}])
def test_distribution_of_two_tokens(settings: dict[str, Any]) -> None:
    rows = 6000
    found = texts(prompts=np.full((rows, 1), 4), prompt_lengths=np.ones(rows, int), max_tokens=3, **settings)
    temperature = settings.get("temperature", 1.0)

    def probabilities(tokens: np.ndarray) -> np.ndarray:
        scaled = np.asarray(LOGITS(PARAMS, tokens)[:, -1], np.float64) / temperature
        weights = np.exp(scaled - scaled.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        order = np.argsort(-weights, axis=1)
        ranked = np.take_along_axis(weights, order, 1)
        left = (np.cumsum(ranked, 1) - ranked >= settings.get("top_p", 2.0)) | (
            np.arange(23) >= settings.get("top_k", 23)
        )
        np.put_along_axis(weights, order, np.where(left, 0.0, ranked), 1)
        return weights / weights.sum(1, keepdims=True)

    first = probabilities(np.array([[4]]))[0]
    second = probabilities(np.stack([np.full(23, 4), np.arange(23)], 1))
    second[END] = np.eye(23)[END]
    expected = (first[:, None] * second).ravel() * rows
    counts = np.bincount(found[:, 1] * 23 + found[:, 2], minlength=23 * 23)
    assert not counts[expected == 0].any()
    common = expected > 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    kept = wanted > 0
    assert stats.chisquare(observed[kept], wanted[kept]).pvalue > 1e-3


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_never_off_the_automaton(temperature: float) -> None:
    generator = np.random.default_rng(0)
    edges = {
        s: {int(t): int(generator.integers(12)) for t in generator.choice(22, 1 + s % 5, replace=False) + 1}
        for s in range(11)
    }
    edges[11] = {}
    automaton = with_edges(edges, start=2)
    states = np.array([2, 5, 11, 7])
    found = texts(automaton=automaton, states=states, temperature=temperature)
    np.testing.assert_array_equal(found[2, 1:], END)
    for row, length in enumerate(LENGTHS):
        drawn = found[row, length:].tolist()
        path = drawn[: drawn.index(END)] if END in drawn else drawn
        final = automaton.follow(path, state=int(states[row]))
        assert final is not None
        assert automaton.final(final) or END not in drawn
    default = texts(automaton=automaton, states=np.full(4, 2), temperature=temperature)
    np.testing.assert_array_equal(default, texts(automaton=automaton, temperature=temperature))


@pytest.mark.parametrize("choices", [(3, 9), (1, 3, 4, 9, 11, 20)])
def test_distribution_along_an_automaton(choices: tuple[int, ...]) -> None:
    rows = 5000
    automaton = with_edges({0: {token: 1 for token in choices}, 1: {}})
    prompts = {"prompts": np.full((rows, 2), 4), "prompt_lengths": np.full(rows, 2), "max_tokens": 5}
    found = texts(automaton=automaton, temperature=2.0, **prompts)
    assert (found[:, 3:] == END).all()
    scores = np.asarray(LOGITS(PARAMS, np.array([[4, 4]]))[0, -1], np.float64)[list(choices)] / 2.0
    expected = np.exp(scores - scores.max())
    expected *= rows / expected.sum()
    counts = np.array([(found[:, 2] == token).sum() for token in choices])
    assert counts.sum() == rows
    # The rarest in one class, as a chi-square test wants five of each.
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())[: len(choices) - rare.sum() + rare.any()]
    wanted = np.append(expected[~rare], expected[rare].sum())[: len(observed)]
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


AUTOMATON = with_edges({0: {3: 1}, 1: {}})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompts": np.zeros((4, 0), int)}, "prompts must be integers"),
        ({"prompts": PROMPTS * 1.0}, "prompts must be integers"),
        ({"prompts": PROMPTS + 20}, "prompts must hold ids below the vocabulary = 23"),
        ({"prompt_lengths": LENGTHS - 1}, "prompt_lengths must be from 1 to 4, got 0 to 3"),
        ({"prompt_lengths": LENGTHS + 1}, "prompt_lengths must be from 1 to 4, got 2 to 5"),
        ({"prompt_lengths": LENGTHS[:3]}, "prompt_lengths must be 4 integers"),
        ({"max_tokens": 3}, "max_tokens must be from the width of prompts = 4 to the model's positions = 48"),
        ({"max_tokens": 49}, "max_tokens must be from"),
        ({"temperature": -1.0}, "temperature must be finite and >= 0"),
        ({"end": 23}, "end must be below the vocabulary = 23, got 23"),
        ({"top_k": 0}, "top_k must be a whole number >= 1"),
        ({"top_p": 0.0}, "top_p must be in"),
        ({"top_p": 1.1}, "top_p must be in"),
        ({"key": jax.random.PRNGKey(0)}, "key must be a typed key"),
        ({"states": np.zeros(4, int)}, "states must be None without an automaton"),
        ({"automaton": AUTOMATON, "states": np.full(4, 2)}, "states must be below 2, got 2"),
        ({"automaton": AUTOMATON, "states": np.full(3, 0)}, "states must be 4 integers"),
        (
            {"automaton": with_edges({0: {23: 1}, 1: {}})},
            "automaton must have tokens below the vocabulary = 23",
        ),
        ({"numbers": -LENGTHS}, "numbers must be >= 0, got -4"),
    ],
)
def test_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        texts(**changed)
