"""The U-Net: shapes of any side, records kept apart, and clipping by known rules."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from exactdp.mechanisms import clipping
from exactdp.train.diffusion import Diffusion, unet
from exactdp.train.task import Records

KEY = jax.random.key(4)
# What is tested does not depend on how well the code is optimised; compiling it does.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def made_up(diffusion: Diffusion) -> Any:
    """Parameters with every leaf random: layers that start at zero would hide those before them."""
    rng, shapes = np.random.default_rng(0), jax.eval_shape(diffusion.initialise, KEY)
    return jax.tree.map(lambda leaf: jnp.asarray(0.4 * rng.normal(size=leaf.shape), jnp.float32), shapes)


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize(
    ("shape", "multipliers", "classes", "heads"),
    [
        ((25, 25, 1), (1, 2), None, 2),
        ((9, 14, 3), (1, 2, 2), 3, 1),
        ((4, 3, 2), (2,), 2, 0),
    ],
)
def test_any_side_and_channels(shape: Any, multipliers: Any, classes: Any, heads: int) -> None:
    def apply(x: Any, noise: Any, labels: Any) -> Any:
        graph, params = unet.build(
            shape, num_classes=classes, key=KEY, width=4, multipliers=multipliers, heads=heads, blocks=2
        )
        return nnx.merge(graph, params)(x, noise, labels), params

    x = jnp.zeros((3, *shape))
    result, params = jax.eval_shape(apply, x, jnp.zeros(3), jnp.zeros(3, jnp.int32))
    assert result.shape == x.shape and result.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}


def test_padding_is_even_and_is_cut_off_again() -> None:
    x = jnp.arange(1.0, 16.0).reshape(1, 3, 5, 1)
    padded = unet.padded(x, multiple=4)
    assert padded.shape == (1, 4, 8, 1)
    np.testing.assert_array_equal(padded[:, 0:3, 1:6], x)
    assert float(jnp.sum(padded)) == float(jnp.sum(x))
    np.testing.assert_allclose(unet.halved(unet.doubled(x)), x)


@pytest.fixture(scope="module")
def model() -> tuple[Diffusion, Any, Any]:
    """A model with everything in it, and a batch of three records with two draws each."""
    diffusion = Diffusion(
        (5, 6, 2), num_classes=3, multiplicity=2, label_dropout=0.3, width=4, multipliers=(1, 2), heads=1
    )
    params = made_up(diffusion)
    x = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, (3, 5, 6, 2)), jnp.float32)
    draw = jax.jit(lambda records: diffusion.examples(records, key=KEY), compiler_options=FAST)
    drawn = draw(Records(x, jnp.array([0, 1, 2])))
    return diffusion, params, drawn


@pytest.mark.parametrize("bfloat16", [False, True])
def test_every_parameter_has_a_known_rule(model: Any, bfloat16: bool) -> None:
    diffusion, params, drawn = model
    diffusion = dataclasses.replace(diffusion, bfloat16=bfloat16)
    table = str(clipping.explain(diffusion.losses, params, drawn))
    rows = table.splitlines()[1:-1]
    assert len(rows) == len(jax.tree.leaves(params))
    rules = {re.split(r"\s{2,}", row)[1] for row in rows}
    assert rules <= {"dense", "conv", "elementwise"}


@pytest.fixture(scope="module")
def gradients(model: Any) -> np.ndarray:
    """The gradient of each record, by differentiating its loss alone."""
    diffusion, params, drawn = model

    def one(params: Any, record: Any) -> Any:
        return diffusion.losses(params, jax.tree.map(lambda leaf: leaf[None], record))[0]

    each = jax.jit(jax.vmap(jax.grad(one), in_axes=(None, 0)), compiler_options=FAST)(params, drawn)
    return np.stack([flat(jax.tree.map(lambda leaf, i=i: leaf[i], each)) for i in range(3)])


def test_clipping_equals_vmap_of_grad(model: Any, gradients: np.ndarray) -> None:
    diffusion, params, drawn = model
    norms = np.linalg.norm(gradients, axis=1)
    bound = float(np.median(norms))
    mask = jnp.array([True, False, True])
    function = clipping.clipped_grad(diffusion.losses, clip_norm=bound)
    clipped = jax.jit(function, compiler_options=FAST)(params, drawn, mask)
    weights = np.minimum(1.0, bound / norms) * np.asarray(mask)
    assert (gradients != 0.0).any(0).mean() > 0.9  # all but rows of classes that no record has
    np.testing.assert_allclose(clipped.norms, norms * np.asarray(mask), rtol=1e-4)
    expected = weights @ gradients
    np.testing.assert_allclose(flat(clipped.sum), expected, atol=3e-5 * np.abs(expected).max())


def test_a_record_does_not_see_the_others(model: Any) -> None:
    diffusion, params, drawn = model
    losses = jax.jit(diffusion.losses, compiler_options=FAST)
    whole = losses(params, drawn)
    changed = losses(params, drawn._replace(x=drawn.x.at[1].set(0.5)))
    np.testing.assert_array_equal(np.asarray(changed)[[0, 2]], np.asarray(whole)[[0, 2]])
    assert changed[1] != whole[1]


def test_the_output_depends_on_noise_level_class_and_on_having_one(model: Any) -> None:
    diffusion, params, _ = model
    noisy = jnp.asarray(np.random.default_rng(2).normal(size=(1, 5, 6, 2)), jnp.float32)

    denoise = jax.jit(diffusion.denoise, static_argnames="guidance", compiler_options=FAST)
    found = [
        np.asarray(denoise(params, noisy, jnp.float32(sigma), jnp.array([label])))
        for sigma, label in ((1.0, 0), (1.1, 0), (1.0, 1), (1.0, -1))
    ]
    for k in range(1, 4):
        assert np.abs(found[0] - found[k]).max() > 1e-4
    guided = denoise(params, noisy, jnp.float32(1.0), jnp.array([0]), guidance=0.5)
    np.testing.assert_allclose(guided, 1.5 * found[0] - 0.5 * found[3], atol=1e-5)


def test_an_untrained_network_is_zero_in_bfloat16_too_and_the_key_decides_its_parameters() -> None:
    diffusion = Diffusion((4, 4, 1), bfloat16=True, width=4, multipliers=(1,), heads=0)
    initialise = jax.jit(diffusion.initialise, compiler_options=FAST)
    params = initialise(jax.random.key(1))
    np.testing.assert_array_equal(flat(params), flat(initialise(jax.random.key(1))))
    assert np.mean(flat(params) != flat(initialise(jax.random.key(2)))) > 0.3
    z = jnp.asarray(np.random.default_rng(3).normal(size=(2, 4, 4, 1)), jnp.float32)
    denoise = jax.jit(diffusion.denoise, compiler_options=FAST)
    clean = denoise(params, z, jnp.float32(0.5), jnp.array([-1, -1]))
    assert clean.dtype == jnp.float32
    np.testing.assert_allclose(clean, 0.5 * z, rtol=1e-6)  # c_skip = 1/2 at sigma = sigma_data


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input_shape": (5, 5)}, "input_shape must be"),
        ({"input_shape": (5, 0, 1)}, "input_shape must be"),
        ({"num_classes": 1}, "num_classes must be"),
        ({"width": 6}, "width must be a multiple of 4, got 6"),
        ({"width": 0}, "width must be"),
        ({"multipliers": ()}, "multipliers must name"),
        ({"multipliers": (1, 0)}, "multipliers must be"),
        ({"multipliers": (1, 1, 1, 1, 1)}, "multipliers must be few enough"),
        ({"blocks": 0}, "blocks must be"),
        ({"heads": 3}, "heads must divide the 32 lowest channels, got 3"),
        ({"dtype": jnp.float16}, "dtype must be"),
    ],
)
def test_bad_input(settings: dict[str, Any], message: str) -> None:
    arguments = {"input_shape": (8, 8, 1), "num_classes": None, **settings}
    with pytest.raises(ValueError, match=message):
        unet.build(arguments.pop("input_shape"), key=KEY, **arguments)
