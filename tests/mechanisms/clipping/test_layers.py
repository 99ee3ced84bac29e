"""Clipped sums equal clipping with `vmap(grad)`, for every kind of layer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from jax import lax

from exactdp.mechanisms import clipping

KEY = jax.random.key(0)
# Compiling is most of the time.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def normal(shape, seed=0):
    """Compiling `jax.random.normal` for each shape would take longer than the tests."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def initial(model, batch):
    """Parameters of a Linen model, none of them zero."""
    shapes = jax.eval_shape(lambda: model.init(KEY, batch))["params"]
    return jax.tree.map(lambda x: 0.5 * normal(x.shape, x.size), shapes)


def of_records(loss, params, batch):
    def one(values, record):
        return loss(values, jax.tree.map(lambda x: x[None], record))[0]

    mapped = jax.jit(jax.vmap(jax.grad(one), (None, 0)), compiler_options=FAST)
    gradients = jax.tree.leaves(mapped(params, batch))
    gradients = [np.asarray(x, np.float64) for x in gradients]
    return gradients, np.sqrt(sum((x.reshape(x.shape[0], -1) ** 2).sum(1) for x in gradients))


def agrees(loss, params, batch, *, methods=(None, "ghost"), tolerance=3e-5):
    records = jax.tree.leaves(batch)[0].shape[0]
    mask = np.arange(records) != 1
    gradients, norms = of_records(loss, params, batch)
    clip_norm = float(np.median(norms))
    weights = np.where(mask, np.minimum(1.0, clip_norm / norms), 0.0)
    expected = [np.tensordot(weights, x, 1) for x in gradients]
    size = max(float(np.linalg.norm(np.concatenate([x.ravel() for x in expected]))), clip_norm)
    for method in methods:
        clipped = clipping.clipped_grad(loss, clip_norm=clip_norm, method=method)
        found = jax.jit(clipped, compiler_options=FAST)(params, batch, jnp.asarray(mask))
        np.testing.assert_allclose(found.norms[mask], norms[mask], rtol=tolerance)
        for got, want in zip(jax.tree.leaves(found.sum), expected, strict=True):
            assert got.dtype == jnp.float32
            assert np.linalg.norm(np.asarray(got, np.float64) - want) <= tolerance * size


def rules(loss, params, batch):
    return {rule for line in clipping.explain(loss, params, batch).lines for rule in line.rules}


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((7, 6, 3), (3, 2, 3, 5), dict(window_strides=(2, 1), padding=((1, 2), (0, 1)))),
    (
        (5, 4, 64),
        (3, 2, 32, 4),
        dict(window_strides=(1, 2), padding="SAME", rhs_dilation=(2, 1), feature_group_count=2),
    ),
    ((4, 5, 3), (3, 3, 3, 4), dict(window_strides=(1, 1), padding=((-1, 2), (2, -1)), lhs_dilation=(2, 3))),
    ((4, 5, 6), (2, 3, 1, 12), dict(window_strides=(1, 1), padding="SAME", feature_group_count=6)),
    ((8, 8, 2), (1, 1, 2, 3), dict(window_strides=(2, 2), padding="VALID")),
]


@pytest.mark.parametrize(("record", "kernel", "settings"), CONVOLUTIONS)
def test_convolutions(record, kernel, settings):
    x, w = normal((3, *record)), normal(kernel, 1)

    def loss(params, batch):
        y = lax.conv_general_dilated(batch, params, dimension_numbers=("NHWC", "HWIO", "NHWC"), **settings)
        return (jnp.sin(y) ** 2).reshape(batch.shape[0], -1).sum(1)

    assert rules(loss, w, x) == {"conv"}
    agrees(loss, w, x, methods=(None, "keep", "ghost", "recompute"))


@pytest.mark.parametrize(
    ("record", "kernel", "names", "settings"),
    [
        ((3, 9), (4, 3, 3), ("NCH", "OIH", "NCH"), dict(window_strides=(2,), padding="SAME")),
        (
            (4, 3, 5, 2),
            (2, 2, 3, 2, 3),
            ("NDHWC", "DHWIO", "NDHWC"),
            dict(window_strides=(1, 1, 2), padding="VALID"),
        ),
    ],
)
def test_convolutions_of_other_ranks(record, kernel, names, settings):
    x, w = normal((3, *record)), normal(kernel, 1)

    def loss(params, batch):
        y = lax.conv_general_dilated(batch, params, dimension_numbers=names, **settings)
        return (jnp.sin(y) ** 2).reshape(batch.shape[0], -1).sum(1)

    agrees(loss, w, x)


class Mixed(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3), (2, 1))(x))
        x = nn.GroupNorm(4)(x)
        x = nn.ConvTranspose(6, (3, 3), (2, 2))(x)
        x = nn.max_pool(nn.tanh(x), (2, 2), (2, 2))
        x = nn.Dense(7)(nn.LayerNorm()(x))
        x = nn.MultiHeadDotProductAttention(2, qkv_features=8)(x.reshape(x.shape[0], -1, 7))
        x = nn.DenseGeneral((2, 3))(nn.RMSNorm()(x))
        return nn.Einsum((2, 3, 4), "btij,ijk->btk")(x).mean(1)


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]


def test_linen_layers():
    x, y = normal((4, 5, 6, 3)), jnp.arange(4)
    model = Mixed()
    params = initial(model, x)

    def loss(params, batch):
        return cross_entropy(model.apply({"params": params}, batch[0]), batch[1])

    assert rules(loss, params, (x, y)) == {"conv", "dense", "elementwise"}
    agrees(loss, params, (x, y), methods=("ghost",))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(2, 6, (3, 3), rngs=rngs)
        self.norm = nnx.GroupNorm(6, num_groups=3, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 6, decode=False, rngs=rngs)
        self.scale = nnx.RMSNorm(6, rngs=rngs)
        self.linear = nnx.LinearGeneral((6,), (2, 2), rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = self.scale(self.attention(x.reshape(x.shape[0], -1, 6)))
        return self.linear(self.dropout(x, deterministic=True)).sum((1, 3))


def test_nnx_layers():
    graph, params, rest = nnx.split(Network(nnx.Rngs(0)), nnx.Param, ...)
    x, y = normal((3, 4, 3, 2)), jnp.arange(3) % 2

    def loss(params, batch):
        return cross_entropy(nnx.merge(graph, params, rest)(batch[0]), batch[1])

    agrees(loss, params, (x, y), methods=(None,))


class Tied(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        table = nn.Embed(11, 6)
        x = table(tokens) + self.param("position", nn.initializers.normal(), (5, 6))
        x = x + nn.gelu(nn.remat(nn.Dense)(6)(x))
        return table.attend(x)


def test_tied_embedding_and_rematerialised_block():
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 11, (4, 5)))
    model = Tied()
    params = initial(model, tokens)

    def loss(params, batch):
        return cross_entropy(model.apply({"params": params}, batch), batch).sum(1)

    lines = clipping.explain(loss, params, tokens, method="ghost").lines
    (tied,) = [line for line in lines if len(line.rules) == 2]
    assert tied.rules == ("embed", "dense") and tied.method == "ghost"
    agrees(loss, params, tokens, methods=("keep", "ghost"))


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        def block(module, carry, _):
            return carry + jnp.tanh(nn.Dense(4, name="inner")(carry)), None

        scanned = nn.scan(nn.remat(block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return scanned(self, x, None)[0]


def test_linen_scan_of_rematerialised_layers():
    x = normal((3, 2, 4))
    model = Stack()
    params = initial(model, x)

    def loss(params, batch):
        return (model.apply({"params": params}, batch) ** 2).sum((1, 2))

    assert len(clipping.explain(loss, params, x).lines) == 6
    agrees(loss, params, x)


def test_nnx_scan():
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(key):
        return nnx.Linear(4, 4, rngs=nnx.Rngs(key))

    graph, params = nnx.split(make(jax.random.split(KEY, 3)))

    def loss(params, batch):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def forward(x, layer):
            return jnp.tanh(layer(x))

        return (forward(batch, nnx.merge(graph, params)) ** 2).sum(1)

    agrees(loss, params, normal((3, 4)))


def test_recurrent_use_of_shared_weights_in_short_and_long_loops():
    def loss(params, batch):
        def step(h, x):
            return jnp.tanh(h @ params + x), None

        return (lax.scan(step, batch[:, 0] * 0, jnp.swapaxes(batch, 0, 1))[0] ** 2).sum(1)

    for length in (3, 70):
        agrees(loss, 0.5 * normal((4, 4)), normal((3, length, 4)), methods=(None,))


def test_weight_standardised_convolution_and_two_parameters_in_one_kernel():
    x = normal((3, 5, 5, 2))
    params = {"w": normal((3, 3, 2, 4)), "gain": jnp.ones(4), "plain": jnp.ones((4, 2))}

    def loss(params, batch):
        w = params["w"]
        w = (w - w.mean((0, 1, 2))) / jnp.sqrt(w.var((0, 1, 2)) + 1e-3) * params["gain"]
        y = lax.conv_general_dilated(batch, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (jnp.sin(jnp.tanh(y) @ params["plain"])).sum((1, 2, 3))

    agrees(loss, params, x, methods=(None, "recompute"))


def test_custom_derivative_overlapping_slices_and_penalty():
    params = {"a": normal((6, 3)), "b": jnp.ones(3)}

    @jax.custom_vjp
    def doubled(w, x):
        return x @ w

    doubled.defvjp(
        lambda w, x: (x @ w, (w, x)), lambda saved, g: (2.0 * jnp.outer(saved[1], g), saved[0] @ g)
    )

    def loss(params, batch):
        top, bottom = params["a"][:4], params["a"][2:]
        y = jnp.sin(batch @ top) + batch[:, ::-1] @ bottom
        y = y + jax.vmap(lambda x: doubled(params["a"][1:5], x))(batch)
        return jnp.sum(y * params["b"], 1) + 0.1 * jnp.sum(params["b"] ** 2)

    agrees(loss, params, normal((3, 4)))


@pytest.mark.parametrize("records", [1, 2])
def test_few_records_and_unused_parameters(records):
    params = {"w": normal((4, 3)), "unused": jnp.ones(2), "step": jnp.array(3)}
    x = normal((records, 4))

    def loss(params, batch):
        return jnp.sin(batch @ params["w"]).sum(1)

    clipped = jax.jit(clipping.clipped_grad(loss, clip_norm=0.1), compiler_options=FAST)
    found = clipped(params, x, jnp.ones(records, bool))
    assert found.sum["step"] == 0 and found.sum["step"].dtype == params["step"].dtype
    np.testing.assert_array_equal(found.sum["unused"], 0.0)
    assert np.linalg.norm(found.sum["w"]) <= 0.1 * records
    assert clipping.explain(loss, params, x).unused == ("step", "unused")
