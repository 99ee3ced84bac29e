"""GPT-2's function, start, precision and clipping."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array

from exactdp.mechanisms import clipping
from exactdp.train.gpt2 import model
from exactdp.train.gpt2.config import Config
from tests.train.gpt2 import single_gradients
from tests.train.gpt2.single_gradients import quick_jit

SIZES = Config(vocabulary=31, positions=12, width=16, layers=1, heads=2)
KEY = jax.random.key(5)
TOKENS = jax.random.randint(jax.random.key(6), (4, 10), 0, 31)


def cross_entropy(logits: Array, tokens: Array) -> Array:
    """The mean over the positions of each record."""
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean(1)


def test_start() -> None:
    graph, params = model.build(Config(400, 100, width=64, layers=2, heads=4), key=KEY)
    flat = {jax.tree_util.keystr(path): np.asarray(x) for path, x in jax.tree.leaves_with_path(params)}
    for name, value in flat.items():
        assert value.dtype == np.float32
        if "bias" in name:
            assert not value.any()
        elif "scale" in name:
            assert (value == 1).all()
        else:
            small = "['out']" in name or "['down']" in name
            assert np.std(value) == pytest.approx(0.01 if small else 0.02, rel=0.05), name
            assert abs(np.mean(value)) < 0.001
    again = model.build(Config(400, 100, width=64, layers=2, heads=4), key=KEY)
    assert again[0] == graph and hash(again[0]) == hash(graph)
    jax.tree.map(np.testing.assert_array_equal, again[1], params)


def test_positions_and_causality() -> None:
    graph, params = model.build(SIZES, key=KEY)
    run = quick_jit(functools.partial(model.logits, graph))
    plain = run(params, TOKENS)
    assert plain.shape == (4, 10, 31) and plain.dtype == jnp.float32
    places = jnp.broadcast_to(jnp.arange(10), TOKENS.shape)
    np.testing.assert_allclose(run(params, TOKENS, places), plain, atol=1e-6)
    assert not np.allclose(run(params, TOKENS, places + 2), plain, atol=1e-3)
    later = run(params, TOKENS.at[:, 6:].set(0))
    np.testing.assert_allclose(later[:, :6], plain[:, :6], atol=1e-6)
    with pytest.raises(ValueError, match="tokens must have at most 12 positions, got 13"):
        model.logits(graph, params, jnp.zeros((1, 13), jnp.int32))


def test_an_id_outside_shows() -> None:
    graph, params = model.build(SIZES, key=KEY)
    assert np.isnan(
        quick_jit(functools.partial(model.logits, graph))(params, jnp.array([[1, 31]]))[0, 1]
    ).all()


def test_bfloat16() -> None:
    graph, params = model.build(SIZES, key=KEY)
    narrow, same = model.build(SIZES, key=KEY, dtype=jnp.bfloat16)
    jax.tree.map(np.testing.assert_array_equal, same, params)
    params = jax.tree.map(lambda x: 4 * x, params)
    wide_logits = quick_jit(functools.partial(model.logits, graph))(params, TOKENS)
    narrow_logits = quick_jit(functools.partial(model.logits, narrow))(params, TOKENS)
    assert narrow_logits.dtype == jnp.float32
    error = float(jnp.linalg.norm(narrow_logits - wide_logits) / jnp.linalg.norm(wide_logits))
    assert 1e-4 < error < 0.03
    text = str(jax.make_jaxpr(functools.partial(model.logits, narrow))(params, TOKENS))
    assert "exp" in text and not any(":bf16" in line for line in text.splitlines() if "= exp" in line)


def test_refused() -> None:
    with pytest.raises(ValueError, match="dtype must be float32 or bfloat16, got float16"):
        model.build(SIZES, key=KEY, dtype=jnp.float16)
    with pytest.raises(ValueError, match="key must be a typed key"):
        model.build(SIZES, key=jax.random.PRNGKey(0))


@pytest.mark.parametrize("given_positions", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_every_layer_is_clipped_by_a_rule(given_positions: bool, dtype: Any) -> None:
    graph, params = model.build(SIZES, key=KEY, dtype=dtype)
    places = jnp.broadcast_to(jnp.arange(10), TOKENS.shape)

    def loss(params: model.Parameters, batch: Any) -> Array:
        tokens, where = batch
        return cross_entropy(model.logits(graph, params, tokens, where if given_positions else None), tokens)

    table = str(clipping.explain(loss, params, (TOKENS, places)))
    assert "vmap" not in table
    assert "embed + dense" in table


@pytest.mark.parametrize("method", ["keep", "ghost"])
def test_clipped_sum_is_that_of_single_gradients(method: Any) -> None:
    graph, params = model.build(SIZES, key=KEY)

    def loss(params: model.Parameters, tokens: Array) -> Array:
        return cross_entropy(model.logits(graph, params, tokens), tokens)

    single_gradients.check(loss, params, TOKENS, method=method)
