from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import keys, noise
from exactdp.train import gaussian_features
from exactdp.train.augmentation import Augmentation
from exactdp.train.check import require_gradient
from exactdp.train.network import Network
from exactdp.train.task import Records, Task
from tests.train import runs

KEY = keys.run_key(3)
STEP = jnp.int32(4)


def batch(rows: int = 24) -> tuple[Records, jax.Array]:
    data = runs.dataset()
    return Records(jnp.asarray(data.x[:rows]), jnp.asarray(data.y[:rows])), jnp.arange(rows) % 3 > 0


def gradient(task: Task, params: Any, records: Records, mask: jax.Array) -> Any:
    return jax.jit(task.gradient)(params, records, mask, KEY, STEP)


def close(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance)


@pytest.fixture(scope="module")
def network() -> Network:
    return Network("mlp", (4, 4, 1), runs.NUM_CLASSES)


@pytest.fixture(scope="module")
def params(network: Network) -> Any:
    return network.initialise(keys.step_key(KEY, step=0, purpose="init"))


def by_hand(network: Network, params: Any, records: Records, mask: jax.Array, clip_norm: float) -> Any:
    """Clipped, summed, one record at a time."""

    def one(x: jax.Array, y: jax.Array) -> Any:
        return jax.grad(lambda p: network.losses(p, Records(x[None], y[None]))[0])(params)

    each = jax.vmap(one)(*records)
    norms = jnp.sqrt(sum(jnp.sum(leaf.reshape(len(mask), -1) ** 2, 1) for leaf in jax.tree.leaves(each)))
    factor = jnp.where(mask, jnp.minimum(1.0, clip_norm / norms), 0.0)
    return jax.tree.map(lambda leaf: jnp.tensordot(factor, leaf, 1), each)


@pytest.mark.parametrize(("method", "accumulation"), [("dpsgd", 1), ("label_public", 5)])
def test_dpsgd_is_the_noisy_clipped_sum_over_the_expected_batch(
    method: str, accumulation: int, network: Network, params: Any
) -> None:
    task = runs.prepare(method, model="mlp", clip_norm=0.3, accumulation=accumulation).task
    records, mask = batch()
    found = gradient(task, params, records, mask)
    total = by_hand(network, params, records, mask, 0.3)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), total, std=2.0 * 0.3)
    # 120 records at 0.2: divided by 24, a constant, not by the 16 records of this batch.
    close(found.value, jax.tree.map(lambda leaf: leaf / 24.0, noisy))
    assert bool(found.usable)
    mean = jnp.sum(jnp.where(mask, network.losses(params, records), 0.0)) / 16
    np.testing.assert_allclose(found.private["loss"], mean, rtol=1e-5)


def test_an_empty_batch_of_dpsgd_is_noise_alone(params: Any) -> None:
    task = runs.prepare("dpsgd", model="mlp").task
    records, mask = batch()
    found = gradient(task, params, records, jnp.zeros_like(mask))
    zero = jax.tree.map(jnp.zeros_like, params)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), zero, std=2.0)
    close(found.value, jax.tree.map(lambda leaf: leaf / 24.0, noisy))
    assert bool(found.usable)


@pytest.mark.parametrize("method", ["dirichlet", "gaussian_features", "nonprivate"])
def test_an_empty_batch_of_a_mean_is_skipped(method: str, params: Any) -> None:
    task = runs.prepare(method, model="mlp").task
    records, mask = batch(task.sampler.capacity)
    found = gradient(task, params, records, jnp.zeros_like(mask))
    assert not bool(found.usable)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found.value))


@pytest.mark.parametrize("method", ["dirichlet", "gaussian_features", "nonprivate", "dpsgd"])
def test_masked_records_do_not_matter(method: str, params: Any) -> None:
    task = runs.prepare(method, model="mlp").task
    records, mask = batch(task.sampler.capacity)
    other = Records(jnp.where(mask[:, None, None, None], records.x, 9.0), jnp.where(mask, records.y, 0))
    one, two = (gradient(task, params, rows, mask) for rows in (records, other))
    close(one.value, two.value, 1e-6)


@pytest.mark.parametrize("accumulation", [1, 5])
def test_nonprivate_is_the_mean_over_the_batch_drawn(
    accumulation: int, network: Network, params: Any
) -> None:
    task = runs.prepare("nonprivate", model="mlp", accumulation=accumulation).task
    records, mask = batch()
    found = gradient(task, params, records, mask)
    wanted = jax.grad(lambda p: jnp.sum(jnp.where(mask, network.losses(p, records), 0.0)) / 16)(params)
    close(found.value, wanted, 1e-6)


def test_the_mean_of_the_dirichlet_gradient_is_kappa_times_that_of_cross_entropy() -> None:
    """Theorem 11 for one record, over 4 000 draws: within 5 standard errors in every parameter."""
    from exactdp.accounting.printed.dirichlet import kappa

    ready = runs.prepare("dirichlet", model="linear", scaling=2.0, offset=1.5)
    network = Network("linear", (4, 4, 1), runs.NUM_CLASSES)
    params = network.initialise(keys.step_key(KEY, step=0, purpose="init"))
    capacity = ready.task.sampler.capacity
    data = runs.dataset()
    rows = Records(
        jnp.repeat(jnp.asarray(data.x[:1]), capacity, 0), jnp.repeat(jnp.asarray(data.y[:1]), capacity)
    )
    mask = jnp.ones(capacity, bool)
    compiled = jax.jit(ready.task.gradient)
    count = -(-4000 // capacity)
    means = [
        jax.tree.leaves(compiled(params, rows, mask, KEY, jnp.int32(step)).value) for step in range(count)
    ]
    share = float(jax.nn.softmax(network.logits(params, rows.x[:1]))[0, data.y[0]])
    factor = kappa(2.0, offset=1.5, true_class_probability=share)
    exact = jax.tree.leaves(
        jax.grad(lambda p: factor * network.losses(p, Records(rows.x[:1], rows.y[:1]))[0])(params)
    )
    for place, leaf in enumerate(exact):
        drawn = np.stack([np.asarray(mean[place]) for mean in means])
        error = drawn.std(axis=0, ddof=1) / np.sqrt(count)
        assert np.all(np.abs(drawn.mean(axis=0) - leaf) <= 5.0 * error + 1e-6)
        assert np.abs(leaf).max() > 3.0 * error.max()


def test_gaussian_features_are_clipped_and_noised(network: Network, params: Any) -> None:
    rows = jnp.asarray([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    found = gaussian_features.clipped(rows, clip_norm=1.0)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], atol=1e-6)
    slope = jax.grad(lambda r: jnp.sum(gaussian_features.clipped(r, clip_norm=1.0)))(rows)
    assert bool(jnp.all(jnp.isfinite(slope)))
    task = runs.prepare("gaussian_features", model="mlp", clip_norm=0.5).task
    capacity = task.sampler.capacity
    records, _ = batch(capacity)
    mask = jnp.ones(capacity, bool)
    features = gaussian_features.clipped(network.features(params, records.x), clip_norm=0.5)
    assert float(jnp.max(jnp.linalg.norm(features, axis=1))) <= 0.5 + 1e-6
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), features, std=2.0 * 0.5)
    logits = network.head(params, noisy)
    loss = -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(capacity), records.y])
    np.testing.assert_allclose(gradient(task, params, records, mask).private["loss"], loss, rtol=1e-5)


def test_bfloat16_computes_in_bfloat16_and_keeps_parameters_in_float32(network: Network, params: Any) -> None:
    half = Network("mlp", (4, 4, 1), runs.NUM_CLASSES, bfloat16=True)
    records, _ = batch()
    exact, rounded = network.logits(params, records.x), half.logits(params, records.x)
    assert rounded.dtype == jnp.float32
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(exact, rounded, atol=0.05)
    task = runs.prepare("dpsgd", model="mlp", bfloat16=True).task
    value = gradient(task, params, *batch()).value
    assert {leaf.dtype for leaf in jax.tree.leaves(value)} == {jnp.dtype(jnp.float32)}


def test_a_model_that_cannot_train_is_refused(network: Network, params: Any) -> None:
    records, _ = batch(2)
    require_gradient(network.losses, params, records)
    with pytest.raises(ValueError, match="model must have a gradient"):
        require_gradient(lambda p, r: jnp.zeros(2), params, records)
    with pytest.raises(ValueError, match="model must have a finite gradient"):
        require_gradient(lambda p, r: network.losses(p, r) * jnp.nan, params, records)


def test_a_batch_that_cannot_be_in_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="accumulation must be 1 for dirichlet, got 2"):
        runs.prepare("dirichlet", accumulation=2)
    with pytest.raises(ValueError, match="accumulation must be a whole number >= 1, got 0"):
        runs.prepare("dpsgd", accumulation=0)


def test_the_views_of_a_record_share_one_clipped_gradient(network: Network, params: Any) -> None:
    augmentation = Augmentation(multiplicity=3, padding=1, flip=True)
    task = runs.prepare("dpsgd", model="mlp", clip_norm=0.3, augmentation=augmentation).task
    records, mask = batch()
    x = augmentation.views(records.x, key=keys.step_key(KEY, step=STEP, purpose="augment"))
    assert x.shape == (24, 3, 4, 4, 1) and not np.array_equal(x[:, 0], x[:, 1])
    views = Records(x, jnp.repeat(records.y[:, None], 3, 1))

    def one(x: jax.Array, y: jax.Array) -> Any:
        return jax.grad(lambda p: jnp.mean(network.losses(p, Records(x, y))))(params)

    each = jax.vmap(one)(*views)
    norms = jnp.sqrt(sum(jnp.sum(leaf.reshape(24, -1) ** 2, 1) for leaf in jax.tree.leaves(each)))
    factor = jnp.where(mask, jnp.minimum(1.0, 0.3 / norms), 0.0)
    total = jax.tree.map(lambda leaf: jnp.tensordot(factor, leaf, 1), each)
    noisy = noise.gaussian(keys.step_key(KEY, step=4, purpose="noise"), total, std=2.0 * 0.3)
    close(gradient(task, params, records, mask).value, jax.tree.map(lambda leaf: leaf / 24.0, noisy))


def test_what_is_released_once_has_one_view() -> None:
    with pytest.raises(ValueError, match="augmentation must be 1 for dirichlet, got 2"):
        runs.prepare("dirichlet", augmentation=Augmentation(2, 1))
    with pytest.raises(ValueError, match="augmentation must be 1 where neither padding nor flip is set"):
        Augmentation(multiplicity=2)
    records, _ = batch()
    view = Augmentation(padding=1).view(records, key=KEY, step=STEP)
    assert view.x.shape == records.x.shape and not np.array_equal(view.x, records.x)
    assert Augmentation().view(records, key=KEY, step=STEP) is records
