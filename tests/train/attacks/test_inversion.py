"""Closed-form gradient inversion: digits come back to the rounding of float32, mixtures are told apart."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms.batches import Poisson
from exactdp.train import certificates, data, dirichlet
from exactdp.train.attacks import invert_dense
from exactdp.train.network import Network
from exactdp.train.task import Records, Task

FIRST = {"linear": "head", "mlp": "hidden"}
DIGITS = data.load("digits")


def make(model: str, scaling: float) -> Task:
    sampler = Poisson(2, 0.5, 2)
    return dirichlet.task(
        Network(model, DIGITS.input_shape, DIGITS.num_classes),
        certificate=certificates.dirichlet(scaling, offset=3.0, sampler=sampler, num_classes=10),
        sampler=sampler,
        scaling=scaling,
        offset=3.0,
    )


def pair(i: int) -> Records:
    return Records(jnp.asarray(DIGITS.x[i : i + 2]), jnp.asarray(DIGITS.y[i : i + 2]))


def first(tree: Any, model: str) -> tuple[np.ndarray, np.ndarray]:
    layer = tree[FIRST[model]]
    return np.asarray(layer["kernel"][...]), np.asarray(layer["bias"][...])


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("scaling", [0.235, 1e-6])
def test_digits_from_one_gradient(model: str, scaling: float) -> None:
    task = make(model, scaling)
    params = task.initialise(jax.random.key(1))
    gradient = jax.jit(task.gradient)
    mask = jnp.array([True, False])
    for i in range(6):
        value = gradient(params, pair(i), mask, jax.random.key(i), jnp.int32(0)).value
        found = invert_dense(*first(value, model))
        np.testing.assert_allclose(found.x, DIGITS.x[i].ravel(), atol=1e-6)
        assert found.residual < 1e-6
    # A batch of two records is no multiple of one input, and the residual says so.
    value = gradient(params, pair(0), jnp.array([True, True]), jax.random.key(9), jnp.int32(0)).value
    assert invert_dense(*first(value, model)).residual > 0.01


def test_digit_from_two_released_weights() -> None:
    # The update of a step is the gradient times the learning rate, rounded to the weights' precision.
    task = make("linear", 0.235)
    before = task.initialise(jax.random.key(1))
    value = task.gradient(before, pair(0), jnp.array([True, False]), jax.random.key(3), jnp.int32(0)).value
    after = jax.tree.map(lambda p, g: p - 10.0 * g, before, value)
    kernel, bias = (b - a for a, b in zip(first(before, "linear"), first(after, "linear"), strict=True))
    np.testing.assert_allclose(invert_dense(kernel, bias).x, DIGITS.x[0].ravel(), atol=1e-5)


def test_tiny_and_zero_inputs() -> None:
    g = np.array([1e-200, -3e-200])
    x = np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(invert_dense(np.outer(x, g), g).x, x)
    nothing = invert_dense(np.zeros((3, 2)), np.array([1.0, 2.0]))
    assert np.all(nothing.x == 0.0) and nothing.residual == 0.0


@pytest.mark.parametrize(
    ("weight", "bias", "message"),
    [
        (np.ones((3, 2)), np.ones(3), r"shapes \[inputs, outputs\] and \[outputs\], got \(3, 2\) and \(3,\)"),
        (np.ones(3), np.ones(3), "must have shapes"),
        (np.ones((0, 2)), np.ones(2), "must have shapes"),
        (np.ones((3, 2)), np.zeros(2), "bias_gradient must not be zero throughout"),
        (np.full((3, 2), np.nan), np.ones(2), "weight_gradient must be finite, got 6"),
        (np.ones((3, 2)), np.array([1.0, np.inf]), "bias_gradient must be finite, got 1"),
    ],
)
def test_refused(weight: np.ndarray, bias: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        invert_dense(weight, bias)
