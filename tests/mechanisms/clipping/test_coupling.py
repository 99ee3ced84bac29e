"""Losses in which records meet are refused from the trace; what the trace cannot show, by running them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from jax import lax

from exactdp.mechanisms import clipping
from exactdp.mechanisms.clipping import coupling
from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping.verify import verify

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 5, 4)), jnp.float32)
W = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)


def base(w, x):
    return jnp.sin(x @ w).sum((1, 2))


def contrastive(w, x):
    features = (x @ w).mean(1)
    return -jnp.diagonal(jax.nn.log_softmax(features @ features.T))


def batch_norm(w, x):
    layer = nn.BatchNorm(use_running_average=False)
    statistics = {"mean": jnp.zeros(3), "var": jnp.ones(3)}
    weights = {"scale": jnp.ones(3), "bias": jnp.zeros(3)}
    found = layer.apply({"params": weights, "batch_stats": statistics}, x @ w, mutable=["batch_stats"])[0]
    return jnp.sin(found).sum((1, 2))


def running_sum(w, x):
    def step(total, record):
        total = total + jnp.sin(record @ w).sum()
        return total, total

    return lax.scan(step, 0.0, x)[1]


def neighbours(w, x):
    kernel = jnp.ones((3, 1, 1))
    numbers = ("NWC", "WIO", "NWC")
    rows = base(w, x)[None, :, None]
    return lax.conv_general_dilated(rows, kernel, (1,), "SAME", dimension_numbers=numbers)[0, :, 0]


def swapped(carry, _):
    """The first carry depends on the batch from the second iteration on."""
    first, second = carry
    return (second, first - first.mean(0)), None


def counted(limit):
    return lax.while_loop(lambda c: c < limit, lambda c: c + 1.0, 0.0)


COUPLED = {
    "mean of the batch": lambda w, x: base(w, x - x.mean(0)),
    "mean of the losses": lambda w, x: base(w, x) - base(w, x).mean(),
    "stopped mean": lambda w, x: base(w, x - lax.stop_gradient(x).mean(0)),
    "batch norm": batch_norm,
    "softmax over records": lambda w, x: jax.nn.softmax(x @ w, 0).sum((1, 2)),
    "contrastive": contrastive,
    "sort": lambda w, x: jnp.sort(x @ w, 0).sum((1, 2)),
    "rank": lambda w, x: base(w, x) * jnp.argsort(x[:, 0, 0]),
    "longest row": lambda w, x: base(w, x) * jnp.max(jnp.sum(x[:, :, 0] > 0.0, 1)),
    "roll": lambda w, x: base(w, x) + base(w, jnp.roll(x, 2, 0)),
    "reverse": lambda w, x: base(w, x) + base(w, x[::-1]),
    "first record": lambda w, x: base(w, x - x[:1]),
    "cumulative sum": lambda w, x: jnp.cumsum(base(w, x)),
    "largest record": lambda w, x: base(w, x) * (jnp.arange(len(x)) == jnp.argmax(x[:, 0, 0])),
    "count": lambda w, x: base(w, x) / len(x),
    "count inside jit": lambda w, x: jax.jit(lambda y: y * (1.0 / len(y)))(base(w, x)),
    "carry over records": running_sum,
    "mixing reshape": lambda w, x: base(w, x.reshape(x.shape[1], x.shape[0], 4).swapaxes(0, 1)),
    "convolution along records": neighbours,
    "matrix of constants": lambda w, x: jnp.tri(len(x)) @ base(w, x),
    "attention among records": lambda w, x: jnp.einsum(
        "ij,jtk->i", jax.nn.softmax(x[:, 0] @ x[:, 0].T), x @ w
    ),
    "mean in a long loop": lambda w, x: base(w, lax.fori_loop(0, 99, lambda i, y: y - y.mean(0), x)),
    "a mean that comes late": lambda w, x: base(w, lax.scan(swapped, (jnp.zeros_like(x), x), None, 99)[0][0]),
    "mean in a while loop": lambda w, x: base(
        w,
        lax.while_loop(
            lambda c: c[0] < w.sum() + 99.0, lambda c: (c[0] + 1.0, c[1] - c[1].mean(0)), (0.0, x)
        )[1],
    ),
    "condition on all": lambda w, x: lax.cond(jnp.any(x > 2.0), lambda: base(w, x), lambda: -base(w, x)),
    "loop to a maximum": lambda w, x: (
        base(w, x) * lax.while_loop(lambda c: c < jnp.max(x), lambda c: c + 1.0, 0.0)
    ),
    "one key": lambda w, x: base(w, x * jax.random.bernoulli(jax.random.key(0), 0.5, x.shape)),
    "one loss for all": lambda w, x: base(w, x).mean(keepdims=True),
}
# These records do not happen to meet.
SILENT = {"condition on all", "loop to a maximum"}
HIDDEN = {
    "permutation": lambda w, x: base(w, x[(2 * jnp.arange(len(x)) + 1) % len(x)]),
    "number of the record": lambda w, x: base(w, x) * jnp.arange(1, len(x) + 1),
    "another loss for many": lambda w, x: base(w, x) if len(x) > 1 else 2.0 * base(w, x),
}
SOUND = {
    "statistics of a record": lambda w, x: base(w, x - x.mean(1, keepdims=True)),
    "scan over records": lambda w, x: lax.map(lambda r: jnp.sin(r @ w).sum(), x),
    "scan over time": lambda w, x: lax.scan(
        lambda c, t: (jnp.tanh(c + t @ w), None), jnp.zeros((len(x), 3)), x.swapaxes(0, 1)
    )[0].sum(1),
    "merged axes": lambda w, x: jnp.sin(x.reshape(-1, 4) @ w).reshape(len(x), -1).sum(1),
    "two views": lambda w, x: sum(jnp.split(base(w, jnp.concatenate([x, 2.0 * x])), 2)),
    "chosen by label": lambda w, x: (x @ w).sum(1)[jnp.arange(len(x)), jnp.argmax(x[:, 0, :3], -1)],
    "loop of a record": lambda w, x: base(w, x) + jax.vmap(counted)(x[:, 0, 0]),
    "loop with a counter": lambda w, x: base(
        w,
        lax.while_loop(lambda c: c[0] < jnp.abs(w).sum(), lambda c: (c[0] + 1.0, c[1] * 0.9), (0.0, x))[1],
    ),
    "unused metric": lambda w, x: (base(w, x), base(w, x).mean())[0],
}


@pytest.mark.parametrize("name", COUPLED)
def test_coupling_is_refused_when_traced(name):
    with pytest.raises(ValueError, match="loss must (not couple|draw no randomness|return one real loss)"):
        clipping.explain(COUPLED[name], W, X)


@pytest.mark.parametrize("name", [*sorted(COUPLED.keys() - SILENT), *HIDDEN])
def test_verify_refuses_coupling_without_help_from_the_trace(name, monkeypatch):
    monkeypatch.setattr(coupling, "refuse", lambda *_, **__: None)
    with pytest.raises(ValueError, match="loss must"):
        verify({**COUPLED, **HIDDEN}[name], W, X)


@pytest.mark.parametrize("name", SOUND)
def test_what_only_looks_like_coupling_is_taken(name):
    clipping.explain(SOUND[name], W, X)


def test_the_number_of_records_traced_divides_no_extent():
    shapes = [jax.ShapeDtypeStruct((3, 2 * 1009), jnp.float32), jax.ShapeDtypeStruct((1013, 0), jnp.float32)]
    assert coupling.prime(shapes) == 1019
    wide = jnp.zeros((2, 1009))
    assert losses.analyse(lambda w, x: jnp.sin(x * w).sum(1), jnp.ones(1009), wide).uses


def test_verify_says_that_a_loss_is_not_finite():
    with pytest.raises(ValueError, match="must be finite"):
        clipping.verify(lambda w, x: base(w, x) / 0.0, W, X)


def test_verify_takes_a_loss_without_gradient():
    clipping.verify(lambda w, x: base(lax.stop_gradient(w), x) + 0.0 * base(w, x), W, X)
