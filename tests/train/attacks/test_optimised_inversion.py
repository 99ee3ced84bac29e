"""Gradient inversion by optimisation: digits come back from a convolutional network's gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms.batches import Poisson
from exactdp.train import certificates, data, dirichlet
from exactdp.train.attacks import invert
from exactdp.train.network import Network
from exactdp.train.state import Parameters
from exactdp.train.task import Records

DIGITS = data.load("digits")


def released(scaling: float, *, model: str, mask: list[bool]) -> tuple[Network, Parameters, Any]:
    """What one step of Dirichlet training releases on the first digit, or on two."""
    network, sampler = Network(model, DIGITS.input_shape, 10), Poisson(2, 0.5, 2)
    task = dirichlet.task(
        network,
        certificate=certificates.dirichlet(scaling, offset=3.0, sampler=sampler, num_classes=10),
        sampler=sampler,
        scaling=scaling,
        offset=3.0,
    )
    params = task.initialise(jax.random.key(1))
    records = Records(jnp.asarray(DIGITS.x[:2]), jnp.asarray(DIGITS.y[:2]))
    gradient = jax.jit(task.gradient)(params, records, jnp.asarray(mask), jax.random.key(0), jnp.int32(0))
    return network, params, gradient.value


@pytest.mark.parametrize("scaling", [0.235, 1e-6])
def test_a_digit_from_one_gradient(scaling: float) -> None:
    network, params, gradient = released(scaling, model="cnn", mask=[True, False])
    found = invert(
        network.logits,
        params,
        gradient,
        np.asarray(gradient["head"]["bias"][...]),
        input_shape=DIGITS.input_shape,
        key=jax.random.key(5),
        restarts=2,
    )
    error = np.sqrt(np.mean((found.x - DIGITS.x[0].ravel()) ** 2))
    assert error < 0.02 and found.residual < 0.1
    other = np.sqrt(np.mean((found.x - DIGITS.x[1].ravel()) ** 2))
    assert other > 10.0 * error


def test_a_batch_of_two_is_no_gradient_of_one() -> None:
    network, params, gradient = released(0.235, model="linear", mask=[True, True])
    bias = np.asarray(gradient["head"]["bias"][...])
    given: dict[str, Any] = {"input_shape": DIGITS.input_shape, "key": jax.random.key(2), "num_steps": 200}
    both = invert(network.logits, params, gradient, bias, **given)
    _, _, alone = released(0.235, model="linear", mask=[True, False])
    one = invert(network.logits, params, alone, np.asarray(alone["head"]["bias"][...]), **given)
    assert one.residual < 0.05 < 0.1 < both.residual


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"num_steps": 0}, "num_steps"),
        ({"restarts": 0}, "restarts"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"smoothness": -1.0}, "smoothness"),
        ({"low": 1.0, "high": 1.0}, "high"),
        ({"logit_gradient": np.zeros(2)}, "logit_gradient"),
        ({"logit_gradient": np.ones((2, 1))}, "logit_gradient"),
        ({"gradient": {"w": np.zeros((3, 2))}}, "gradient"),
        ({"gradient": {"w": np.full((3, 2), np.nan)}}, "gradient"),
        ({"gradient": {"w": np.ones((2, 2))}}, "gradient"),
    ],
)
def test_bad_input(change: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {
        "gradient": {"w": np.ones((3, 2))},
        "logit_gradient": np.ones(2),
        "input_shape": (3,),
        "key": jax.random.key(0),
    } | change
    gradient, logit_gradient = given.pop("gradient"), given.pop("logit_gradient")
    with pytest.raises(ValueError, match=name):
        invert(lambda p, x: x @ p["w"], {"w": jnp.ones((3, 2))}, gradient, logit_gradient, **given)
