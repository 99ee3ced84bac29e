"""Low-rank pairs: the start, the merged model, clipping."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array

from exactdp.mechanisms import clipping
from exactdp.train.gpt2 import lora, model, weights
from exactdp.train.gpt2.config import Config
from tests.train.gpt2 import single_gradients
from tests.train.gpt2.single_gradients import quick_jit

SIZES = Config(vocabulary=31, positions=12, width=16, layers=1, heads=2)
KEY = jax.random.key(5)
TOKENS = jax.random.randint(jax.random.key(6), (4, 10), 0, 31)


def moved(pairs: Any) -> Any:
    """Pairs away from their start."""
    return jax.tree.map(
        lambda x: x + 0.1 * jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape), pairs
    )


def test_start_and_merged(tmp_path: Path) -> None:
    graph, params = model.build(SIZES, key=KEY)
    plain = quick_jit(functools.partial(model.logits, graph))(params, TOKENS)
    wide, pairs, frozen = lora.attach(graph, params, rank=3, key=KEY, alpha=6.0)
    run = quick_jit(lambda pairs: model.logits(wide, lora.join(pairs, frozen), TOKENS))
    np.testing.assert_allclose(run(pairs), plain, atol=1e-6)
    assert sum(x.size for x in jax.tree.leaves(pairs)) == 3 * ((16 + 48) + (16 + 16) + 2 * (16 + 64))
    pairs = moved(pairs)
    changed = run(pairs)
    assert float(jnp.max(jnp.abs(changed - plain))) > 0.01
    merged_graph, merged = lora.merged(wide, pairs, frozen)
    assert merged_graph == graph
    np.testing.assert_allclose(
        quick_jit(functools.partial(model.logits, graph))(merged, TOKENS), changed, atol=1e-5
    )
    weights.save(tmp_path, merged, config=SIZES)
    with pytest.raises(ValueError, match="without pairs"):
        weights.save(tmp_path, lora.join(pairs, frozen), config=SIZES)


def test_some_layers() -> None:
    graph, params = model.build(SIZES, key=KEY)
    wide, pairs, frozen = lora.attach(graph, params, rank=2, key=KEY, layers=["qkv"])
    names = {jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(pairs)}
    assert len(names) == 2 and all("qkv" in name for name in names)
    jax.tree.map(
        np.testing.assert_array_equal,
        jax.tree.leaves(lora.merged(wide, pairs, frozen)[1]),
        jax.tree.leaves(params),
    )


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_clipping(dtype: Any) -> None:
    graph, params = model.build(SIZES, key=KEY, dtype=dtype)
    wide, pairs, frozen = lora.attach(graph, params, rank=3, key=KEY)

    def loss(pairs: model.Parameters, tokens: Array) -> Array:
        logits = model.logits(wide, lora.join(pairs, frozen), tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean(1)

    table = str(clipping.explain(loss, pairs, TOKENS))
    assert table.count("dense") == 2 * 4
    assert "vmap" not in table and "embed" not in table
    if dtype == jnp.float32:
        single_gradients.check(loss, moved(pairs), TOKENS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rank": 0}, "rank must be a whole number >= 1, got 0"),
        ({"alpha": 0.0}, "alpha must be finite and > 0"),
        ({"layers": []}, "layers must be some of qkv, out, up, down, got none"),
        ({"layers": ["head"]}, "layers must be one of qkv, out, up, down, got 'head'"),
        ({"key": jax.random.PRNGKey(0)}, "key must be a typed key"),
    ],
)
def test_refused(changed: dict[str, Any], message: str) -> None:
    graph, params = model.build(SIZES, key=KEY)
    settings: dict[str, Any] = {"rank": 2, "key": KEY, **changed}
    with pytest.raises(ValueError, match=message):
        lora.attach(graph, params, **settings)


def test_no_pairs_on_pairs() -> None:
    graph, params = model.build(SIZES, key=KEY)
    wide, pairs, frozen = lora.attach(graph, params, rank=2, key=KEY)
    with pytest.raises(ValueError, match="graph must be of a model without pairs"):
        lora.attach(wide, lora.join(pairs, frozen), rank=2, key=KEY)
