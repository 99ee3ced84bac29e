"""Room for rounding: what is proved of norms holds for numbers chosen to round badly."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import clipping
from exactdp.mechanisms.clipping import factors, rounding
from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping.rules import rule


def hostile(count: int) -> dict[str, np.ndarray]:
    """Numbers whose squares lose what they can when they are added in a row."""
    fading = np.full(count, 2.0**-12.6)
    fading[0] = 1.0
    rng = np.random.default_rng(0)
    return {
        "alike": np.full(count, 0.577350269),
        "one large, then small ones": fading,
        "large ones last": fading[::-1].copy(),
        "of every size": np.exp(rng.normal(0.0, 4.0, count)),
    }


@pytest.mark.parametrize("count", [1, 7, 1009, 784 * 128, 2**18, 2**20, 3 * 3 * 256 * 256])
def test_a_squared_norm_loses_no_more_than_its_roundings(count):
    for what, value in hostile(count).items():
        numbers = jnp.asarray(value, jnp.float32)[None]
        exact = math.fsum(np.asarray(numbers[0], np.float64) ** 2)
        found = float(jax.jit(rule.squared)(numbers)[0])
        room = (1.0 - rounding.UNIT) ** rule.roundings(count)
        assert exact * room <= found <= exact / room + count * rule.TINY, what


def test_numbers_added_in_a_row_lose_more():
    value = np.asarray(hostile(2**20)["one large, then small ones"], np.float32)
    in_a_row = float(np.cumsum(value**2, dtype=np.float32)[-1])
    exact = math.fsum(np.asarray(value, np.float64) ** 2)
    assert in_a_row < exact * (1.0 - rounding.UNIT) ** rule.roundings(2**20)


@pytest.mark.parametrize("count", [0, 1, 2, 1024, 1025, 10007, 2**20, 784 * 128])
def test_blocks_multiply_to_the_count(count):
    found = rule.blocks(count)
    assert math.prod(found) == max(count, 1)
    primes = [m for m in found if m > 1024]
    assert all(all(m % k for k in range(2, math.isqrt(m) + 1)) for m in primes)


def planned(method):
    params = {"w": jnp.zeros((784, 128)), "b": jnp.zeros(128)}

    def loss(params, x):
        return jnp.tanh(x @ params["w"] + params["b"]).sum(1)

    analysed = losses.analyse(loss, params, jnp.zeros((4, 784)))
    return analysed.planned(records=4, byte_budget=None, method=method)


def test_roundings_follow_the_method():
    # 784 * 128 = 1024 * 98 squares: 1023 + 97 additions, the square, the bound, one leaf, two groups.
    assert rounding.roundings(planned("keep")) == 1023 + 97 + 2 + 1 + 2
    # 783 + 2 and 127 + 2, the product, the bound on it, one head, two groups.
    assert rounding.roundings(planned("ghost")) == 785 + 129 + 2 + 2
    assert rounding.share(2) == pytest.approx(rounding.UNIT, rel=1e-6)


def test_the_share_is_taken_off_the_clip_norm():
    clip_norms = jnp.asarray([1.0, 3.0], jnp.float32)
    found = factors.undercut(clip_norms, records=16, norm_share=1e-3)
    np.testing.assert_allclose(found, clip_norms * (1.0 - 1e-3 - 2.0**-18 - 2.0**-20), rtol=1e-7)


@pytest.mark.parametrize("method", ["keep", "ghost", "recompute"])
@pytest.mark.parametrize("what", ["alike", "one large, then small ones", "of every size"])
def test_a_large_layer_is_within_the_clip_norm(method, what):
    x = jnp.asarray(hostile(2048)[what], jnp.float32)[None]
    slopes = jnp.asarray(hostile(512)[what], jnp.float32)

    def loss(w, x):
        return ((x @ w) * slopes).sum(1)

    function = jax.jit(clipping.clipped_grad(loss, clip_norm=0.1, method=method))
    found = function(jnp.zeros((2048, 512)), x, jnp.ones(1, bool))
    size = np.linalg.norm(np.asarray(found.sum, np.float64))
    assert 0.1 * (1.0 - 3e-4) <= size <= 0.1
