"""Texts from GPT-2, many rows at once, freely or along an automaton."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from exactdp.accounting import validate
from exactdp.train.gpt2 import cache as caches
from exactdp.train.gpt2 import sample
from exactdp.train.gpt2.automaton import Automaton, Edges
from exactdp.train.gpt2.cache import Cache
from exactdp.train.gpt2.model import GPT2, Graph, Parameters

# The cache begins with this room and grows by half of what it has, or by as much again: steps read all room,
# also that which is still empty, and each length is compiled apart.
_FIRST_LENGTH = 32
# Up to this share of the vocabulary, logits of a state's candidates alone are cheaper than all.
_FEW = 16
# Rows at once for each core of a CPU, one such group after the other: keys and values of more push the
# weights out of the core's cache. Other devices take all rows at once.
_ROWS_PER_CORE = 16
# Up to so many rows a CPU is faster at logits with the rows as columns: the table is then read as it lies.
_FEW_ROWS = 64


class _State(NamedTuple):
    """What a step changes; `texts` is [max_tokens, rows]."""

    time: Int[Array, ""]
    texts: Int[Array, "time rows"]
    done: Bool[Array, " rows"]
    states: Int[Array, " rows"]
    cache: Cache


def generate(
    graph: Graph,
    params: Parameters,
    *,
    prompts: Int[Array | np.ndarray, "rows prompt"],
    prompt_lengths: Int[Array | np.ndarray, " rows"],
    max_tokens: int,
    key: jax.Array,
    temperature: float,
    end: int,
    top_k: int | None = None,
    top_p: float | None = None,
    automaton: Automaton | None = None,
    states: Int[Array | np.ndarray, " rows"] | None = None,
    numbers: Int[Array | np.ndarray, " rows"] | None = None,
) -> Int[Array, "rows max_tokens"]:
    """Texts that begin with the prompts.

    Position t of row b is prompts[b, t] for t < prompt_lengths[b]; from there on tokens are drawn by the
    model's logits given those before, until `end` is drawn. What follows a row's `end` is `end`. Rows end
    together when all have ended or have `max_tokens` tokens.

    With an automaton a row's first drawn token is one of its state's candidates, its second one of the state
    that the first leads to, and so on; softmax, `top_k` and `top_p` are over the candidates alone. In a final
    state `end` follows. So a row is a path of the automaton, or the beginning of one where `max_tokens` is
    too short.

    The tokens of row b depend on (key, numbers[b]), its own prompt and state alone, not on the rows that it
    is generated with; but for rounding of the logits, which may differ between shapes.

    Args:
      graph: of the model.
      params: of the model.
      prompts: ids, padded by any.
      prompt_lengths: of each row, from 1 to the width of `prompts`.
      max_tokens: tokens a row, prompt included, from the width of `prompts` to the model's positions.
      key: a typed JAX key.
      temperature: divides the logits; 0 for the most likely token.
      end: the id that ends a text.
      top_k: draw among that many largest logits; None for all.
      top_p: draw among the most likely tokens that together have this probability, in (0, 1]; None for all.
      automaton: which tokens may follow; None for all.
      states: where each row's first drawn token begins; None for the automaton's start.
      numbers: of the rows, >= 0; None for 0, 1, ...

    Raises:
      ValueError: an argument outside of what is said above; before any work.
    """
    model = nnx.merge(graph, params)
    prompts, lengths = _checked_prompts(prompts, prompt_lengths, model, max_tokens)
    validate.non_negative("temperature", temperature)
    if not 0 <= validate.count("end", end) < model.config.vocabulary:
        raise ValueError(f"end must be below the vocabulary = {model.config.vocabulary}, got {end}")
    if top_k is not None:
        validate.count("top_k", top_k, 1)
    if top_p is not None and not 0.0 < validate.probability("top_p", top_p):
        raise ValueError(f"top_p must be in (0, 1], got {top_p}")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key must be a typed key as jax.random.key makes, got an array of {key.dtype}")
    rows = len(prompts)
    first = _checked_states(automaton, states, rows, model.config.vocabulary)
    own = np.arange(rows) if numbers is None else _integers("numbers", numbers, rows)
    return _run(
        graph,
        params,
        jnp.asarray(prompts),
        jnp.asarray(lengths),
        jnp.asarray(own, jnp.uint32),
        None if automaton is None else automaton.device(),
        jnp.asarray(first),
        key,
        jnp.float32(temperature if temperature > 0 else 1.0),
        None if top_p is None else jnp.float32(top_p),
        max_tokens=max_tokens,
        end=end,
        top_k=top_k,
        greedy=temperature == 0,
        widest=0 if automaton is None else automaton.widest,
        at_once=_at_once(rows),
    )


def _at_once(rows: int) -> int:
    """How many rows are generated together."""
    if jax.default_backend() != "cpu":
        return rows
    # Of the cores that this process may use, as XLA's own threads are.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    groups = -(-rows // (_ROWS_PER_CORE * cores))
    return -(-rows // groups)


_STATIC = ("graph", "max_tokens", "end", "top_k", "greedy", "widest", "at_once")


@functools.partial(jax.jit, static_argnames=_STATIC)
def _run(
    graph: Graph,
    params: Parameters,
    prompts: Int[Array, "rows prompt"],
    lengths: Int[Array, " rows"],
    numbers: Int[Array, " rows"],
    edges: Edges | None,
    states: Int[Array, " rows"],
    key: jax.Array,
    temperature: Float[Array, ""],
    top_p: Float[Array, ""] | None,
    *,
    max_tokens: int,
    end: int,
    top_k: int | None,
    greedy: bool,
    widest: int,
    at_once: int,
) -> Int[Array, "rows max_tokens"]:
    def of(group: tuple[Array, Array, Array, Array]) -> Array:
        prompts, lengths, numbers, states = group
        return _together(
            graph, params, prompts, lengths, numbers, edges, states, key, temperature, top_p,
            max_tokens=max_tokens, end=end, top_k=top_k, greedy=greedy, widest=widest,
        )  # fmt: skip

    rows = prompts.shape[0]
    if at_once == rows:
        return of((prompts, lengths, numbers, states))
    # The last group is filled up with the last row again, which ends when that one does.
    missing = -rows % at_once

    def grouped(x: Array) -> Array:
        filled = jnp.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)), mode="edge")
        return jnp.reshape(filled, (-1, at_once, *x.shape[1:]))

    texts = jax.lax.map(of, tuple(grouped(x) for x in (prompts, lengths, numbers, states)))
    return jnp.reshape(texts, (-1, max_tokens))[:rows]


def _together(
    graph: Graph,
    params: Parameters,
    prompts: Int[Array, "rows prompt"],
    lengths: Int[Array, " rows"],
    numbers: Int[Array, " rows"],
    edges: Edges | None,
    states: Int[Array, " rows"],
    key: jax.Array,
    temperature: Float[Array, ""],
    top_p: Float[Array, ""] | None,
    *,
    max_tokens: int,
    end: int,
    top_k: int | None,
    greedy: bool,
    widest: int,
) -> Int[Array, "rows max_tokens"]:
    model = nnx.merge(graph, params)
    rows, given = prompts.shape
    own_keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
    # All numbers at once: a draw for each step costs more than the step's small operations.
    uniforms = jax.vmap(lambda k: jax.random.uniform(k, (max_tokens,)), out_axes=1)(own_keys)

    def choose(scores: Array, uniform: Array) -> Array:
        if greedy:
            return sample.largest(scores)
        return sample.choose(scores, uniform, temperature=temperature, top_k=top_k, top_p=top_p)

    def drawn(features: Array, states: Array, uniform: Array) -> tuple[Array, Array]:
        """Tokens and the states they lead to."""
        if edges is None:
            return choose(_logits(model, features), uniform), states
        if widest == 0:
            return jnp.full((rows,), end, jnp.int32), states
        tokens, targets, real = edges.candidates(states, widest=widest)
        scores = jnp.where(real, _candidate_logits(model, features, tokens), -jnp.inf)
        place = choose(scores, uniform)[:, None]
        token, target = (jnp.take_along_axis(x, place, axis=1)[:, 0] for x in (tokens, targets))
        final = ~real[:, 0]
        return jnp.where(final, end, token), jnp.where(final, states, target)

    def body(state: _State) -> _State:
        now, following = (
            jax.lax.dynamic_index_in_dim(state.texts, t, keepdims=False) for t in (state.time, state.time + 1)
        )
        features, cache = caches.step(model, state.cache, now, state.time)
        uniform = jax.lax.dynamic_index_in_dim(uniforms, state.time + 1, keepdims=False)
        token, target = drawn(features, state.states, uniform)
        free = (state.time + 1 >= lengths) & ~state.done
        token = jnp.where(free, token, jnp.where(state.done, end, following))
        texts = jax.lax.dynamic_update_index_in_dim(state.texts, token, state.time + 1, 0)
        done = state.done | (free & (token == end))
        return _State(state.time + 1, texts, done, jnp.where(free, target, state.states), cache)

    texts = jnp.full((max_tokens, rows), end, jnp.int32).at[:given].set(prompts.T)
    # What a row's own prompt does not fill is `end` until it is drawn.
    texts = jnp.where(jnp.arange(max_tokens)[:, None] < lengths, texts, end)
    state = _State(
        jnp.min(lengths) - 1, texts, jnp.zeros((rows,), bool), states, caches.prefill(model, prompts)
    )
    for length in _lengths(given, max_tokens):
        state = state._replace(cache=state.cache.extended(length))
        limit = min(length, max_tokens - 1)
        state = jax.lax.while_loop(functools.partial(_going_on, limit=limit), body, state)
    return state.texts.T


def _going_on(state: _State, *, limit: int) -> Bool[Array, ""]:
    return (state.time < limit) & ~jnp.all(state.done)


def _lengths(given: int, max_tokens: int) -> list[int]:
    """The lengths that the cache has, one after the other; the last token is never read."""
    needed = max(max_tokens - 1, given)
    found = [min(max(_FIRST_LENGTH, given), needed)]
    while found[-1] < needed:
        found.append(min(found[-1] + max(_FIRST_LENGTH, found[-1] // 2), needed))
    return found


def _logits(model: GPT2, features: Float[Array, "rows width"]) -> Float[Array, "rows vocabulary"]:
    """As `model.head`, to rounding."""
    if len(features) > _FEW_ROWS:
        return model.head(features)
    table = model.tokens.embedding[...].astype(features.dtype)
    found = jnp.einsum("vd,bd->vb", table, features, preferred_element_type=jnp.float32)
    # XLA would else turn the product back, as its transpose.
    return jax.lax.optimization_barrier(found).T


def _candidate_logits(
    model: GPT2, features: Float[Array, "rows width"], tokens: Int[Array, "rows widest"]
) -> Float[Array, "rows widest"]:
    if tokens.shape[1] * _FEW > model.config.vocabulary:
        return jnp.take_along_axis(_logits(model, features), tokens, axis=1)
    table = model.tokens.embedding[...].astype(features.dtype)
    return jnp.einsum("bd,bwd->bw", features, table[tokens], preferred_element_type=jnp.float32)


def _integers(name: str, values: Int[Array | np.ndarray, " rows"], rows: int) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (rows,) or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be {rows} integers, one a row, got {array.dtype} {array.shape}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must be >= 0, got {array.min()}")
    return array


def _checked_prompts(
    prompts: Int[Array | np.ndarray, "rows prompt"],
    lengths: Int[Array | np.ndarray, " rows"],
    model: GPT2,
    max_tokens: int,
) -> tuple[np.ndarray, np.ndarray]:
    texts = np.asarray(prompts)
    if texts.ndim != 2 or not texts.size or not np.issubdtype(texts.dtype, np.integer):
        raise ValueError(f"prompts must be integers [rows, tokens], got {texts.dtype} {texts.shape}")
    rows, given = texts.shape
    counts = _integers("prompt_lengths", lengths, rows)
    if counts.min() < 1 or counts.max() > given:
        raise ValueError(f"prompt_lengths must be from 1 to {given}, got {counts.min()} to {counts.max()}")
    inside = texts[np.arange(given) < counts[:, None]]
    if inside.min() < 0 or inside.max() >= model.config.vocabulary:
        raise ValueError(f"prompts must hold ids below the vocabulary = {model.config.vocabulary}")
    if not given <= validate.count("max_tokens", max_tokens, 1) <= model.config.positions:
        raise ValueError(
            f"max_tokens must be from the width of prompts = {given} to the model's positions = "
            f"{model.config.positions}, got {max_tokens}"
        )
    texts = np.where(np.arange(given) < counts[:, None], texts, 0)
    return texts.astype(np.int32), counts.astype(np.int32)


def _checked_states(
    automaton: Automaton | None,
    states: Int[Array | np.ndarray, " rows"] | None,
    rows: int,
    vocabulary: int,
) -> np.ndarray:
    if automaton is None:
        if states is not None:
            raise ValueError("states must be None without an automaton, got an array")
        return np.zeros(rows, np.int32)
    if len(automaton.tokens) and int(automaton.tokens.max()) >= vocabulary:
        raise ValueError(f"automaton must have tokens below the vocabulary = {vocabulary}, got a larger one")
    if states is None:
        return np.full(rows, automaton.start, np.int32)
    found = _integers("states", states, rows)
    if found.max() >= automaton.states:
        raise ValueError(f"states must be below {automaton.states}, got {found.max()}")
    return found.astype(np.int32)
