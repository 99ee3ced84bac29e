"""`verify` where the gradients of two passes of a record nearly cancel: rounding passes, a wrong rule not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array

from exactdp.mechanisms import clipping
from exactdp.mechanisms.clipping.rules import dense, rule
from exactdp.mechanisms.clipping.rules.dense import Dense

KEY = jax.random.key(0)
RECORDS, WIDTH = 3, 6


def params() -> Any:
    keys = jax.random.split(KEY, 2)
    return {"w": jax.random.normal(keys[0], (WIDTH, 4)), "v": jax.random.normal(keys[1], (4, 3))}


def batch(apart: float) -> Array:
    """Records beside their views, [records, 2, width]."""
    keys = jax.random.split(jax.random.key(1), 2)
    x = jax.random.normal(keys[0], (RECORDS, 1, WIDTH))
    return jnp.concatenate([x, x + apart * jax.random.normal(keys[1], x.shape)], 1)


def passes(p: Any, pairs: Array) -> Array:
    rows = jnp.tanh(pairs.reshape(-1, WIDTH) @ p["w"]) @ p["v"]
    return jax.nn.logsumexp(rows, -1).reshape(-1, 2) + 1.0


def residual(p: Any, pairs: Array) -> Array:
    both = passes(p, pairs)
    return both[:, 0] - both[:, 1]


def total(p: Any, pairs: Array) -> Array:
    return passes(p, pairs).sum(1)


@pytest.mark.parametrize("apart", [0.0, 1e-6, 1e-3, 1.0])
def test_what_rounding_does_is_accepted(apart: float) -> None:
    clipping.verify(residual, params(), batch(apart), scale=total)


def test_without_the_scale_it_is_refused() -> None:
    with pytest.raises(ValueError, match="clipping must equal"):
        clipping.verify(residual, params(), batch(1e-6))


def test_a_scale_changes_nothing_where_nothing_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    own = rule.gram_norms
    monkeypatch.setattr(rule, "gram_norms", lambda left, right: 1.02 * own(left, right))
    for scale in (None, total):
        with pytest.raises(ValueError, match="got gradient norms off by"):
            clipping.verify(residual, params(), batch(1.0), scale=scale)


@pytest.mark.parametrize("apart", [1e-6, 1.0])
def test_passes_that_do_not_cancel_are_caught(monkeypatch: pytest.MonkeyPatch, apart: float) -> None:
    own = dense.rule.gram

    def without_mixed(value: Array) -> Array:
        return own(value) * jnp.eye(value.shape[2])

    monkeypatch.setattr(dense.rule, "gram", without_mixed)
    with pytest.raises(ValueError, match="got gradient norms off by"):
        clipping.verify(residual, params(), batch(apart), scale=total)


@pytest.mark.parametrize("apart", [1e-2])
def test_norms_that_are_too_small_are_caught(monkeypatch: pytest.MonkeyPatch, apart: float) -> None:
    own = rule.gram_norms
    monkeypatch.setattr(rule, "gram_norms", lambda left, right: 0.98 * own(left, right))
    with pytest.raises(ValueError, match="got (too small )?gradient norms off by"):
        clipping.verify(residual, params(), batch(apart), scale=total)


@pytest.mark.parametrize("apart", [1e-6, 1.0])
def test_sums_that_forget_a_pass_are_caught(monkeypatch: pytest.MonkeyPatch, apart: float) -> None:
    own = Dense.weighted

    def one_pass(self: Dense, operands: Any, outputs: Any, weights: Array) -> list[Array]:
        outputs = [outputs[0].at[:, 1].mul(0.97)] if outputs[0].shape[1] == 2 else outputs
        return own(self, operands, outputs, weights)

    monkeypatch.setattr(Dense, "weighted", one_pass)
    with pytest.raises(ValueError, match="got sum of . off by"):
        clipping.verify(residual, params(), batch(apart), scale=total)
