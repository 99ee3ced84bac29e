"""Every model: parameter count, shapes, precision, determinism, gradients, and records kept apart."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from exactdp.train import data, models
from exactdp.train.models.initialise import initialise
from exactdp.train.models.standardised_conv import standardise
from exactdp.train.models.vit import patch_side, patches, positions

KEY = jax.random.key(11)

# What is tested does not depend on how well the code is optimised; compiling it does.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def wrn_count(depth: int, width: int, channels: int, classes: int) -> int:
    """Kernels and GroupNorms of a WRN, block by block."""
    total, before = 9 * channels * 16, 16
    for stage in range(3):
        out = 16 * width * 2**stage
        for block in range((depth - 4) // 6):
            total += 2 * before + 2 * out + 9 * before * out + 9 * out * out
            total += before * out if block == 0 else 0
            before = out
    return total + 2 * before + before * classes + classes


def vit_count(patch: int, channels: int, classes: int, depth: int = 12, width: int = 192) -> int:
    layer = 4 * width + (width * 3 * width + 3 * width) + (width * width + width)
    layer += width * 4 * width + 4 * width + 4 * width * width + width
    return patch**2 * channels * width + width + depth * layer + 2 * width + width * classes + classes


@pytest.mark.parametrize(
    ("name", "input_shape", "classes", "count"),
    [
        ("linear", (8, 8, 1), 10, 650),
        ("linear", (30,), 2, 62),
        ("mlp", (28, 28, 1), 10, 101_770),
        ("cnn", (28, 28, 1), 10, 26_010),
        ("cnn", (32, 32, 3), 10, 8 * 8 * 3 * 16 + 16 + 8224 + 32 * 25 * 32 + 32 + 330),
        ("cnn", (8, 8, 1), 10, 1040 + 8224 + 32 * 9 * 32 + 32 + 330),
        ("wrn-16-4", (32, 32, 3), 10, 2_748_890),
        ("wrn-16-4", (28, 28, 1), 7, wrn_count(16, 4, 1, 7)),
        ("wrn-40-4", (32, 32, 3), 10, wrn_count(40, 4, 3, 10)),
        ("vit-tiny", (32, 32, 3), 10, 5_350_090),
        ("vit-tiny", (8, 8, 1), 10, vit_count(1, 1, 10)),
    ],
)
def test_parameter_count(name: str, input_shape: tuple[int, ...], classes: int, count: int) -> None:
    params = jax.eval_shape(
        lambda key: models.build(name, input_shape=input_shape, num_classes=classes, key=key)[1], KEY
    )
    assert models.num_parameters(params) == count
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}


def test_wrn_40_4_is_as_large_as_published() -> None:
    # 8.9 million: arXiv 1605.07146, Table 4; 2.75 million for WRN-16-4.
    assert round(wrn_count(40, 4, 3, 10) / 1e6, 1) == 8.9
    assert wrn_count(16, 4, 3, 10) == 2_748_890


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits")


def small(name: str, *, input_shape: tuple[int, ...], dtype: Any = jnp.float32) -> tuple[Any, Any]:
    """The model by name; the deep ones cut to the least depth, as compiling them takes XLA ten seconds."""
    if name not in ("wrn", "vit"):
        return models.build(name, input_shape=input_shape, num_classes=10, key=KEY, dtype=dtype)
    make = {
        "wrn": functools.partial(models.WideResNet, depth=10, width=1),
        "vit": functools.partial(models.ViT, depth=1, width=24, heads=3),
    }[name]
    abstract = nnx.eval_shape(
        lambda: make(input_shape, num_classes=10, rngs=nnx.Rngs(params=KEY), dtype=dtype)
    )
    graphdef, shapes = nnx.split(abstract)
    return graphdef, initialise(shapes, key=KEY)


@pytest.mark.parametrize("name", ["linear", "mlp", "cnn", "wrn", "vit"])
def test_forward_gradient_and_records_apart(name: str, digits: data.Dataset) -> None:
    graphdef, params = small(name, input_shape=digits.input_shape)
    x, y = jnp.asarray(digits.x[:6]), jnp.asarray(digits.y[:6])

    def each(params: Any, x: jax.Array) -> jax.Array:
        logits = models.apply(graphdef, params, x)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)[:, 0]

    losses = quick_jit(each)
    gradient = quick_jit(jax.grad(lambda params, x: jnp.mean(each(params, x))))
    first = gradient(params, x)
    assert jax.tree.structure(first) == jax.tree.structure(params)
    for leaf in jax.tree.leaves(first):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 0
    stepped = jax.tree.map(lambda p, g: p - 1e-3 * g, params, first)
    assert float(jnp.mean(losses(stepped, x))) < float(jnp.mean(losses(params, x)))

    # Record 0 beside other records, and beside NaN.
    alone = losses(params, x)
    others = losses(params, x.at[1:].set(7.0 - 3.0 * x[1:]))
    np.testing.assert_array_equal(others[0], alone[0])
    assert not np.allclose(others[1:], alone[1:])
    np.testing.assert_array_equal(losses(params, x.at[1:].set(jnp.nan))[0], alone[0])


@pytest.mark.parametrize("name", ["linear", "mlp", "cnn", "wrn", "vit"])
def test_features_feed_the_head(name: str, digits: data.Dataset) -> None:
    graphdef, params = small(name, input_shape=digits.input_shape)
    x = jnp.asarray(digits.x[:3])

    @quick_jit
    def both(params: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return models.features(graphdef, params, x), models.apply(graphdef, params, x)

    features, logits = both(params, x)
    head = nnx.merge(graphdef, params).head
    expected = features @ head.kernel[...] + jnp.asarray(head.bias)
    assert logits.shape == (3, 10)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["linear", "mlp", "cnn", "wrn", "vit"])
def test_bfloat16_stays_near_float32(name: str, digits: data.Dataset) -> None:
    x = jnp.asarray(digits.x[:3])
    logits: list[np.ndarray] = []
    for dtype in (jnp.float32, jnp.bfloat16):
        graphdef, params = small(name, input_shape=digits.input_shape, dtype=dtype)
        output = quick_jit(functools.partial(models.apply, graphdef))(params, x)
        assert output.dtype == jnp.float32
        assert jax.tree.leaves(params)[0].dtype == jnp.float32
        inner = jax.eval_shape(functools.partial(models.features, graphdef), params, x)
        assert inner.dtype == (jnp.float32 if name == "linear" else dtype)
        logits.append(np.asarray(output))
    assert 0 < np.abs(logits[0] - logits[1]).max() < 0.1 * np.abs(logits[0]).max()


def test_named_deep_models_run_on_digits(digits: data.Dataset) -> None:
    for name in ("wrn-16-4", "vit-tiny"):

        def forward(key: jax.Array, name: str = name) -> jax.Array:
            graphdef, params = models.build(name, input_shape=digits.input_shape, num_classes=10, key=key)
            return models.apply(graphdef, params, jnp.asarray(digits.x[:2]))

        output = jax.eval_shape(forward, KEY)
        assert output.shape == (2, 10) and output.dtype == jnp.float32


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wrn-16-4", "wrn-40-4", "vit-tiny"])
def test_gradient_of_the_deep_models(name: str, digits: data.Dataset) -> None:
    graphdef, params = models.build(name, input_shape=digits.input_shape, num_classes=10, key=KEY)
    gradient = jax.jit(jax.grad(lambda params, x: jnp.sum(models.apply(graphdef, params, x) ** 2)))
    for leaf in jax.tree.leaves(gradient(params, digits.x[:2])):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 0


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_key_decides_the_parameters(name: str) -> None:
    def leaves(key: jax.Array) -> list[np.ndarray]:
        _, params = models.build(name, input_shape=(8, 8, 1), num_classes=10, key=key)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(params)]

    for same, again, other in zip(leaves(KEY), leaves(KEY), leaves(jax.random.key(12)), strict=True):
        np.testing.assert_array_equal(same, again)
        assert same.ndim == 1 or not np.array_equal(same, other)


def test_graph_is_static_and_the_state_all_parameters() -> None:
    first, params = models.build("cnn", input_shape=(28, 28, 1), num_classes=10, key=KEY)
    second, _ = models.build("cnn", input_shape=(28, 28, 1), num_classes=10, key=jax.random.key(1))
    assert first == second and hash(first) == hash(second)
    module = nnx.merge(first, params)
    assert models.num_parameters(nnx.state(module, nnx.Param)) == models.num_parameters(nnx.state(module))


def test_initial_kernels_have_variance_one_over_fan_in() -> None:
    _, params = models.build("mlp", input_shape=(400,), num_classes=10, key=KEY)
    flat = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(params)}
    kernel = next(value for name, value in flat.items() if "hidden" in name and "kernel" in name)
    assert kernel.std() * 20 == pytest.approx(1.0, abs=0.01)  # 51 200 draws: 3 standard errors
    assert np.abs(kernel).max() * 20 <= 2.0 / 0.8796 + 1e-4
    assert all(not value.any() for name, value in flat.items() if "bias" in name)
    with pytest.raises(ValueError, match="must be a kernel, a scale or a bias"):
        initialise({"table": jnp.zeros((3, 2))}, key=KEY)


def test_standardised_kernel() -> None:
    kernel = jnp.asarray(np.random.default_rng(2).normal(3.0, 2.0, (3, 3, 8, 5)), jnp.float32)
    result = np.asarray(standardise(kernel))
    np.testing.assert_allclose(result.mean(axis=(0, 1, 2)), 0.0, atol=1e-6)
    np.testing.assert_allclose(result.var(axis=(0, 1, 2)) * 72, 1.0, rtol=1e-5)
    np.testing.assert_allclose(standardise(5.0 * kernel + 1.0), result, rtol=1e-4, atol=1e-6)
    assert np.isfinite(standardise(jnp.ones((1, 1, 4, 2)))).all()


def test_pooling_is_the_windowed_maximum(digits: data.Dataset) -> None:
    from exactdp.train.models.small_cnn import max_pool

    x = jnp.asarray(digits.x[:2])
    np.testing.assert_array_equal(max_pool(x), nnx.max_pool(x, (2, 2), strides=(1, 1), padding="VALID"))


def test_patches_and_positions() -> None:
    sides = {(8, 8): 1, (28, 28): 4, (32, 32): 4, (64, 64): 8, (224, 224): 16, (25, 25): 1, (32, 14): 2}
    assert {shape: patch_side(*shape) for shape in sides} == sides
    table = positions(7, columns=5, width=24)
    assert table.shape == (35, 24) and len(np.unique(table.round(6), axis=0)) == 35
    image = jnp.zeros((1, 28, 20, 2)).at[0, 4:8, 8:12].set(jnp.arange(32.0).reshape(4, 4, 2) + 1)
    tokens = patches(image, side=4)
    assert tokens.shape == (1, 35, 32)
    np.testing.assert_array_equal(tokens[0, 5 + 2], jnp.arange(32.0) + 1)
    assert float(tokens.sum()) == 32 * 33 / 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"name": "resnet"},
            "name must be one of linear, mlp, cnn, wrn-16-4, wrn-40-4, vit-tiny, got 'resnet'",
        ),
        ({"num_classes": 1}, "num_classes must be a whole number >= 2, got 1"),
        ({"input_shape": ()}, "input_shape must have at least one side"),
        ({"input_shape": (8, 0, 1)}, "input_shape must be a whole number >= 1, got 0"),
        ({"input_shape": (64,)}, r"input_shape must be \(height, width, channels\) for cnn"),
        ({"input_shape": (8, 7, 1)}, "sides of at least 8 for cnn"),
        ({"dtype": jnp.float16}, "dtype must be float32 or bfloat16, got float16"),
        ({"key": jax.random.PRNGKey(0)}, "key must be a typed key"),
    ],
)
def test_bad_input(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"name": "cnn", "input_shape": (8, 8, 1), "num_classes": 10, "key": KEY}
    arguments |= changes
    with pytest.raises(ValueError, match=message):
        models.build(arguments.pop("name"), **arguments)


def test_bad_sizes_of_the_classes() -> None:
    rngs = nnx.Rngs(params=KEY)
    with pytest.raises(ValueError, match="depth must be 6 n"):
        models.WideResNet((8, 8, 1), num_classes=10, rngs=rngs, depth=15)
    with pytest.raises(ValueError, match="width must be a multiple of 4 and of heads = 3, got 32"):
        models.ViT((8, 8, 1), num_classes=10, rngs=rngs, width=32)
