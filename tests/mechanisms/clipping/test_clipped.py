"""Bounds, masks, groups, micro-batches, refusals, and the check against coupling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from exactdp.mechanisms import clipping

KEY = jax.random.key(1)
# Compiling is most of the time.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def normal(shape, seed=0):
    """Compiling `jax.random.normal` for each shape would take longer than the tests."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


PARAMS = {
    "first": {"w": normal((5, 4)), "b": jnp.zeros(4)},
    "second": {"w": normal((4, 2))},
}
X = 3.0 * normal((7, 3, 5))
MASK = jnp.array([True, True, False, True, True, True, False])


def loss(params, batch):
    h = jnp.tanh(batch @ params["first"]["w"] + params["first"]["b"])
    return jnp.sin(h @ params["second"]["w"]).astype(jnp.float32).sum((1, 2))


def flat(tree):
    return np.concatenate([np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)])


def clipped(mask=MASK, batch=X, params=PARAMS, **settings):
    function = clipping.clipped_grad(loss, **{"clip_norm": 0.5, **settings})
    return jax.jit(function, compiler_options=FAST)(params, batch, mask)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("method", ["keep", "ghost", "recompute"])
def test_every_contribution_is_within_the_clip_norm(dtype, method):
    params = jax.tree.map(lambda x: x.astype(dtype), PARAMS)
    function = jax.jit(clipping.clipped_grad(loss, clip_norm=0.5, method=method))
    clipped_ones = 0
    for k in range(len(X)):
        mask = jnp.arange(len(X)) == k
        found = function(params, X.astype(dtype), mask)
        assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(found.sum))
        assert np.linalg.norm(flat(found.sum)) <= 0.5
        clipped_ones += bool(found.norms[k] > 0.5)
    assert clipped_ones >= 3


def test_masked_records_contribute_nothing_whatever_they_hold():
    found = clipped()
    other = clipped(batch=X.at[2].set(jnp.nan).at[6].set(1e30))
    np.testing.assert_allclose(flat(other.sum), flat(found.sum), rtol=1e-4, atol=1e-6)
    for values in (found.losses, found.norms, other.losses, other.norms):
        np.testing.assert_array_equal(values[~np.asarray(MASK)], 0.0)
    np.testing.assert_array_equal(flat(clipped(mask=jnp.zeros(7, bool)).sum), 0.0)


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_a_record_that_is_not_finite_contributes_zero_and_spares_the_others(bad):
    found = clipped(batch=X.at[1, 0, 0].set(bad))
    without = clipped(mask=MASK.at[1].set(False))
    assert np.isposinf(found.norms[1])
    np.testing.assert_allclose(flat(found.sum), flat(without.sum), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_micro_batches_change_nothing(size):
    whole, parts = clipped(), clipped(microbatch=size)
    np.testing.assert_allclose(flat(parts.sum), flat(whole.sum), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(parts.norms, whole.norms, rtol=1e-5)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-5)


def test_many_micro_batches_run_in_a_loop():
    batch = normal((19, 3, 5))
    whole, parts = (clipped(mask=jnp.ones(19, bool), batch=batch, microbatch=m) for m in (None, 2))
    np.testing.assert_allclose(flat(parts.sum), flat(whole.sum), rtol=1e-4, atol=1e-6)


def test_parts_of_a_sum_are_clipped_as_in_the_whole():
    """Room for rounding is for all records that are added up, B 2^-24 of the clip norm; here B is 2^20."""
    few, many = (clipped(clip_norm=1e-3, added_up=n) for n in (None, 2**20))
    fewer = clipped(clip_norm=1e-3, added_up=3)
    np.testing.assert_array_equal(flat(fewer.sum), flat(few.sum))
    np.testing.assert_allclose(flat(many.sum), (1.0 - 2.0**-4) * flat(few.sum), rtol=1e-5)


def test_groups_split_the_clip_norm_and_take_a_mapping():
    one = jnp.arange(7) == 3
    layered = clipped(mask=one, grouping="per_layer")
    assert layered.group_norms.shape == (7, 2)
    for name in ("first", "second"):
        assert np.linalg.norm(flat(layered.sum[name])) <= 0.5 / np.sqrt(2.0)
    np.testing.assert_allclose(layered.norms[3], clipped(mask=one).norms[3], rtol=1e-5)
    named = clipped(mask=one, grouping="per_layer", clip_norm={"first": 0.1, "second": 0.2})
    np.testing.assert_allclose(np.linalg.norm(flat(named.sum["first"])), 0.1, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(flat(named.sum["second"])), 0.2, rtol=1e-4)
    assert clipped(grouping="per_parameter").group_norms.shape == (7, 3)
    assert clipped(grouping=lambda name: name[-1]).group_norms.shape == (7, 2)
    with pytest.raises(ValueError, match="must name the groups"):
        clipped(grouping="per_layer", clip_norm={"first": 0.1})


def test_automatic_clipping_brings_every_gradient_close_to_the_clip_norm():
    for k in (0, 3):
        found = clipped(mask=jnp.arange(7) == k, rescaling=clipping.Automatic(stability=0.01))
        size = np.linalg.norm(flat(found.sum))
        np.testing.assert_allclose(size, 0.5 * found.norms[k] / (found.norms[k] + 0.01), rtol=1e-4)
        assert size <= 0.5


def test_a_traced_clip_norm():
    # Compiled as `clipped` is: other options, or constants folded, round otherwise.
    def at(clip_norm, params, batch, mask):
        return clipping.clipped_grad(loss, clip_norm=clip_norm)(params, batch, mask).sum

    found = jax.jit(at, compiler_options=FAST)(jnp.float32(0.5), PARAMS, X, MASK)
    np.testing.assert_allclose(flat(found), flat(clipped().sum), rtol=1e-5, atol=1e-7)


def test_a_small_budget_keeps_less():
    rich = clipping.explain(loss, PARAMS, X, byte_budget=1e9)
    poor = clipping.explain(loss, PARAMS, X, byte_budget=0.0)
    kept = [sum(line.kept_bytes for line in x.lines) for x in (rich, poor)]
    assert kept[1] <= kept[0]
    assert "budget 0.00" in str(poor) and "first/w" in str(poor)


class Normalised(nn.Module):
    train: bool = True

    @nn.compact
    def __call__(self, x):
        return nn.BatchNorm(use_running_average=not self.train)(nn.Dense(3)(x))


def test_batch_norm_is_refused_by_name_and_taken_with_public_statistics():
    x = normal((4, 5))
    variables = jax.jit(Normalised().init, compiler_options=FAST)(KEY, x)
    statistics = variables["batch_stats"]

    def make(train):
        def inner(params, batch):
            given = {"params": params, "batch_stats": statistics}
            result = Normalised(train).apply(given, batch, mutable=["batch_stats"])[0]
            return (result**2).sum(1)

        return inner

    mask = jnp.ones(4, bool)
    with pytest.raises(ValueError, match="BatchNorm"):
        clipping.clipped_grad(make(True), clip_norm=1.0)(variables["params"], x, mask)
    public = jax.jit(clipping.clipped_grad(make(False), clip_norm=1.0), compiler_options=FAST)
    assert public(variables["params"], x, mask).norms.shape == (4,)


def test_batch_norm_of_nnx_is_refused():
    graph, params, rest = nnx.split(nnx.BatchNorm(5, rngs=nnx.Rngs(0)), nnx.Param, ...)

    def inner(params, batch):
        return nnx.merge(graph, params, rest)(batch).sum(1)

    with pytest.raises(ValueError, match="BatchNorm"):
        clipping.clipped_grad(inner, clip_norm=1.0)(params, jnp.ones((4, 5)), jnp.ones(4, bool))


def test_shared_randomness_is_refused_and_keys_of_records_are_taken():
    def shared(params, batch):
        return (jax.random.bernoulli(KEY, 0.5, batch.shape) * batch @ params).sum(1)

    with pytest.raises(ValueError, match="randomness that the records share"):
        clipping.clipped_grad(shared, clip_norm=1.0)(jnp.ones((5, 2)), jnp.ones((4, 5)), jnp.ones(4, bool))

    def own(params, batch):
        x, keys = batch
        kept = jax.vmap(lambda k: jax.random.bernoulli(k, 0.5, x.shape[1:]))(keys)
        return (jnp.sin(kept * x @ params)).sum(1)

    batch = (normal((4, 5)), jax.random.split(KEY, 4))
    clipping.verify(own, jnp.ones((5, 2)), batch)


def test_verify_accepts_a_sound_loss_and_refuses_coupling():
    clipping.verify(loss, PARAMS, X)
    for coupled in (
        lambda p, b: loss(p, b - b.mean(0)),
        lambda p, b: loss(p, b) / len(b),
        lambda p, b: loss(p, b) + loss(p, b[::-1]),
    ):
        with pytest.raises(ValueError, match="must not couple records"):
            clipping.verify(coupled, PARAMS, X)
    with pytest.raises(ValueError, match="at least two records"):
        clipping.verify(loss, PARAMS, X[:1])


def test_verify_raises_where_the_sum_is_wrong(monkeypatch):
    from exactdp.mechanisms.clipping.rules.dense import Dense

    monkeypatch.setattr(Dense, "restored", lambda self, g: [jnp.ones((1, *self.shape))])
    monkeypatch.setattr(Dense, "weighted", lambda self, o, g, c: [jnp.ones(self.shape)])
    with pytest.raises(ValueError, match="sum of first/w"):
        clipping.verify(loss, PARAMS, X)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (dict(clip_norm=0.0), "clip_norm must be finite and > 0"),
        (dict(microbatch=0), "microbatch must be a whole number >= 1"),
        (dict(added_up=0), "added_up must be a whole number >= 1"),
        (dict(byte_budget=-1.0), "byte_budget must be finite and >= 0"),
        (dict(method="fast"), "method must be one of"),
        (dict(grouping="per_model"), "grouping must be"),
        (dict(mask=jnp.ones(3, bool)), "mask must have the shape"),
    ],
)
def test_bad_arguments_are_named(settings, text):
    with pytest.raises(ValueError, match=text):
        clipped(**settings)


@pytest.mark.parametrize("bad", [lambda p, b: loss(p, b).mean(), lambda p, b: b[:, 0, 0] > 0])
def test_a_loss_that_is_not_one_real_number_a_record_is_refused(bad):
    with pytest.raises(ValueError, match="one real loss a record"):
        clipping.clipped_grad(bad, clip_norm=1.0)(PARAMS, X, MASK)


def test_private_gradient_adds_noise_for_the_sum_and_divides_by_the_expected_size():
    gradient = jax.jit(
        clipping.private_gradient(loss, clip_norm=0.5, noise_multiplier=0.0, expected_batch_size=4.0),
        compiler_options=FAST,  # as in `clipped`: others round otherwise
    )
    np.testing.assert_allclose(
        flat(gradient(PARAMS, X, MASK, key=KEY).gradient), flat(clipped().sum) / 4, rtol=1e-5
    )
    noisy = jax.jit(
        clipping.private_gradient(loss, clip_norm=2.0, noise_multiplier=3.0, expected_batch_size=1.0)
    )
    empty = jnp.zeros(7, bool)
    drawn = np.concatenate(
        [flat(noisy(PARAMS, X, empty, key=k).gradient) for k in jax.random.split(KEY, 100)]
    )
    np.testing.assert_allclose(drawn.std(), 6.0, rtol=0.05)
