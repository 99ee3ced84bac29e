"""Losses and records chosen to get past the bound: repeated parameters, underflow, complex numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from exactdp.mechanisms import clipping

KEY = jax.random.key(1)
# Compiling is most of the time.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
METHODS = ("keep", "ghost", "recompute")


def normal(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def flat(tree):
    return np.concatenate([np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)])


def clipped(loss, params, batch, *, clip_norm, mask=None, **settings):
    mask = jnp.ones(len(jax.tree.leaves(batch)[0]), bool) if mask is None else mask
    function = clipping.clipped_grad(loss, clip_norm=clip_norm, **settings)
    return jax.jit(function, compiler_options=FAST)(params, batch, mask)


def compare(loss, params, batch, **settings):
    """Norms and sum against vmap(grad)."""

    def one(params, record):
        return loss(params, jax.tree.map(lambda x: x[None], record))[0]

    found = jax.jit(jax.vmap(jax.grad(one), (None, 0)), compiler_options=FAST)(params, batch)
    rows = [np.asarray(x, np.float64).reshape(len(x), -1) for x in jax.tree.leaves(found)]
    gradients = np.concatenate(rows, 1)
    norms = np.linalg.norm(gradients, axis=1)
    clip_norm = float(np.median(norms)) / 2.0 or 1.0
    got = clipped(loss, params, batch, clip_norm=clip_norm, **settings)
    np.testing.assert_allclose(got.norms, norms, rtol=2e-5, atol=1e-15)
    weights = np.minimum(1.0, clip_norm / np.maximum(norms, 1e-30))
    np.testing.assert_allclose(flat(got.sum), weights @ gradients, atol=2e-5 * clip_norm)


def broadcast_dense(w, x):
    return jnp.sin(x @ jnp.broadcast_to(w[:, None], (4, 3))).sum((1, 2))


def broadcast_convolution(kernel, x):
    """One filter for all channels."""
    kernel = jnp.broadcast_to(kernel[:, None, None], (3, 1, 4))
    numbers = ("NWC", "WIO", "NWC")
    result = lax.conv_general_dilated(
        x, kernel, (1,), "SAME", dimension_numbers=numbers, feature_group_count=4
    )
    return jnp.tanh(result).sum((1, 2))


def broadcast_table(table, rows):
    return jnp.sin(jnp.broadcast_to(table[:, None], (7, 3))[rows] * jnp.arange(3.0)).sum((1, 2))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("loss", "shape", "batch"),
    [
        (broadcast_dense, (4,), normal((5, 6, 4), 1)),
        (broadcast_convolution, (3,), normal((5, 6, 4), 1)),
        (broadcast_table, (7,), np.random.default_rng(0).integers(0, 7, (5, 6))),
    ],
)
def test_the_norm_counts_a_repeated_parameter_once(loss, shape, batch, method):
    compare(loss, normal(shape), jnp.asarray(batch), method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("positions", [1, 2])
def test_a_gradient_whose_squares_underflow_is_clipped(method, positions):
    # Output gradients of 1e-21 have squares of zero; the inputs of 5e17 make a gradient of 0.2 nevertheless.
    def loss(w, x):
        return (1e-21 * (x @ w)).sum((1, 2))

    x = jnp.full((2, positions, 1000), 5e17, jnp.float32)
    found = clipped(loss, jnp.zeros((1000, 200)), x, clip_norm=1e-3, method=method, mask=jnp.arange(2) == 0)
    assert 0.0 < np.linalg.norm(flat(found.sum)) <= 1e-3
    assert found.norms[0] >= 0.2


@pytest.mark.parametrize("clip_norm", [1e-22, 1e-42, 1e19])
def test_clip_norms_at_the_ends_of_float32(clip_norm):
    def loss(w, x):
        return (1e-21 * (x @ w) if clip_norm < 1.0 else 1e15 * (x @ w)).sum(1)

    for method in METHODS:
        found = clipped(loss, jnp.zeros((100, 20)), jnp.ones((1, 100)), clip_norm=clip_norm, method=method)
        assert np.linalg.norm(flat(found.sum)) <= clip_norm


@pytest.mark.parametrize("stability", [0.0, -4.4, 1e-7, float("nan")])
def test_a_stability_that_could_not_bound_is_refused(stability):
    with pytest.raises(ValueError, match="stability must be"):
        clipping.Automatic(stability)


def test_a_sum_that_is_not_finite_is_taken_again_record_by_record(monkeypatch):
    # As on a device whose convolution multiplies an unused pixel by zero: the norms do not show it.
    from exactdp.mechanisms.clipping.engine import Engine

    def loss(w, x):
        return jnp.sin(x @ w).sum(1)

    x, w = normal((3, 4)), normal((4, 2), 1)
    expected = clipped(loss, w, x, clip_norm=0.5)
    right = Engine.weighted

    def spoilt(self, captured, weights):
        return [total.at[0, 0].set(jnp.nan) for total in right(self, captured, weights)]

    monkeypatch.setattr(Engine, "weighted", spoilt)
    np.testing.assert_allclose(
        flat(clipped(loss, w, x, clip_norm=0.5).sum), flat(expected.sum), rtol=1e-4, atol=1e-6
    )


def test_complex_values_between_real_parameters_and_losses():
    params = {"real": normal((4,)), "imaginary": normal((4,), 1), "scale": normal((4,), 2)}
    x = normal((5, 6, 4), 3)

    def loss(p, x):
        filtered = jnp.fft.fft(x * p["scale"]) * (p["real"] + 1j * p["imaginary"])
        return jnp.abs(filtered).sum((1, 2))

    compare(loss, params, x)
    compare(
        lambda p, x: (jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(p)) ** 2).sum((1, 2)), params["real"], x
    )
    with pytest.raises(ValueError, match="params must be real"):
        clipped(lambda p, x: jnp.abs(x * p).sum((1, 2)), params["real"] * 1j, x, clip_norm=1.0)


def test_empty_axes_and_loops_without_iterations():
    x = normal((3, 5, 4))
    square = normal((4, 4), 1)

    def no_iterations(p, x):
        steps = jnp.moveaxis(x, 1, 0)[:0]
        carry, sums = lax.scan(lambda c, t: (jnp.tanh(c @ p + t), c.sum(1)), x[:, 0], steps)
        return carry.sum(1) * p.sum() + sums.sum(0)

    compare(no_iterations, square, x)
    compare(lambda p, x: (1.0 + jnp.sin(x @ p)).sum((1, 2)), normal((0, 3)), x[:, :, :0])
    compare(lambda p, x: (1.0 + jnp.sin(x @ p)).sum((1, 2)), square, x[:, :0])


def test_leaves_of_params_that_are_no_numbers_get_no_gradient():
    params = {"w": normal((4, 3)), "count": jnp.int32(3), "key": KEY}
    found = clipped(lambda p, x: jnp.sin(x @ p["w"]).sum((1, 2)), params, normal((3, 5, 4)), clip_norm=1.0)
    assert np.linalg.norm(flat(found.sum["w"])) > 0.0
    assert found.sum["count"] == 0


def test_randomness_that_does_not_reach_the_loss_is_no_reason_to_refuse():
    w, x = normal((4, 3)), normal((3, 4))

    def idle(w, x):
        jax.random.split(KEY)
        return jnp.sin(x @ w).sum(1)

    def in_a_loop(w, x):
        noisy = lax.fori_loop(
            0, 2, lambda i, y: y + jax.random.normal(jax.random.fold_in(KEY, i), y.shape), w
        )
        return jnp.sin(x @ noisy).sum(1)

    compare(idle, w, x)
    with pytest.raises(ValueError, match="randomness that the records share"):
        clipped(in_a_loop, w, x, clip_norm=1.0)


def test_a_loss_of_parameters_alone_is_refused():
    with pytest.raises(ValueError, match="must depend on the batch"):
        clipped(
            lambda w, x: jnp.broadcast_to((w**2).sum(), len(x)), normal((4,)), normal((3, 4)), clip_norm=1.0
        )
