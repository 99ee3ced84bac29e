"""The objective: what is drawn, the loss of several draws, the test loss, sampling from a trained model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from exactdp.mechanisms import clipping, keys
from exactdp.mechanisms.public import Public, Region
from exactdp.train.diffusion import DDPM, EDM, Ancestral, Diffusion, Heun, Stochastic
from exactdp.train.task import Records

KEY = jax.random.key(31)
TINY: dict[str, Any] = {"width": 4, "multipliers": (1,), "heads": 0}
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
RNG = np.random.default_rng(3)
X = RNG.uniform(0, 1, (6, 6, 5, 1)).astype(np.float32)
Y = np.arange(6, dtype=np.int32) % 2
RECORDS = Records(jnp.asarray(X), jnp.asarray(Y))


@pytest.fixture(scope="module")
def diffusion() -> Diffusion:
    return Diffusion(
        (6, 5, 1), num_classes=2, multiplicity=3, label_dropout=0.4, pixel_range=(0.0, 1.0), **TINY
    )


@pytest.fixture(scope="module")
def params(diffusion: Diffusion) -> Any:
    rng = np.random.default_rng(0)
    return made_up(diffusion, lambda shape: 0.4 * rng.normal(size=shape))


def made_up(diffusion: Diffusion, fill: Callable[[tuple[int, ...]], np.ndarray]) -> Any:
    shapes = jax.eval_shape(diffusion.initialise, KEY)
    return jax.tree.map(lambda leaf: jnp.asarray(fill(leaf.shape), jnp.float32), shapes)


def draw(diffusion: Diffusion, records: Records, *, step: int, public: Public | None = None) -> Any:
    drawn = jax.jit(lambda r, key: diffusion.examples(r, key=key, public=public), compiler_options=FAST)
    return drawn(records, keys.step_key(KEY, step=step, purpose="augment"))


def test_noise_depends_on_key_step_and_place_alone(diffusion: Diffusion) -> None:
    first = draw(diffusion, RECORDS, step=7)
    assert first.sigma.shape == (6, 3) and first.noise.shape == (6, 3, 6, 5, 1)
    public = Public(Region(0, 2, 0, 3), label=True)
    other = draw(diffusion, RECORDS, step=7, public=public)
    np.testing.assert_array_equal(other.x, public.view(RECORDS.x))
    for a, b in zip(first[1:], other[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    later = draw(diffusion, RECORDS, step=8)
    assert np.all(np.asarray(first.sigma != later.sigma))
    # No two slots or draws share their noise.
    flat = np.asarray(first.noise).reshape(18, -1)
    assert np.abs(np.corrcoef(flat) - np.eye(18)).max() < 0.8
    assert len(np.unique(np.asarray(first.sigma))) == 18


def test_labels_are_dropped_as_often_as_asked(diffusion: Diffusion) -> None:
    many = Records(jnp.zeros((2000, 6, 5, 1)), jnp.ones(2000, jnp.int32))
    label = np.asarray(draw(diffusion, many, step=0).label)
    assert set(np.unique(label)) == {-1, 1}
    assert abs(np.mean(label == -1) - 0.4) < 5.0 * np.sqrt(0.24 / label.size)
    never = Diffusion((6, 5, 1), num_classes=2, **TINY)
    np.testing.assert_array_equal(draw(never, RECORDS, step=0).label[:, 0], Y)
    hidden = Public(Region(0, 2, 0, 3), label=False)
    np.testing.assert_array_equal(draw(never, RECORDS, step=0, public=hidden).label, -1)


def test_the_loss_is_the_mean_over_draws_of_the_weighted_denoising_error(
    diffusion: Diffusion, params: Any
) -> None:
    drawn = draw(diffusion, RECORDS, step=0)
    losses = jax.jit(diffusion.losses, compiler_options=FAST)(params, drawn)
    denoise = jax.jit(diffusion.denoise, compiler_options=FAST)
    expected = np.zeros(6)
    image, data = 2.0 * X - 1.0, 0.5
    for k in range(3):
        sigma = np.asarray(drawn.sigma[:, k])[:, None, None, None]
        noisy = image + sigma * np.asarray(drawn.noise[:, k])
        clean = denoise(params, jnp.asarray(noisy), drawn.sigma[:, k], drawn.label[:, k])
        weight = (sigma**2 + data**2) / (sigma * data) ** 2
        expected += np.mean(weight * (np.asarray(clean) - image) ** 2, axis=(1, 2, 3)) / 3.0
    np.testing.assert_allclose(losses, expected, rtol=2e-3)


def test_mirrored_draws_are_those_of_the_mirrored_image(params: Any) -> None:
    settings: dict[str, Any] = {"num_classes": 2, "multiplicity": 2, "pixel_range": (0.0, 1.0), **TINY}
    flipping, plain = Diffusion((6, 5, 1), flip=True, **settings), Diffusion((6, 5, 1), **settings)
    drawn = draw(flipping, RECORDS, step=0)
    assert 2 <= int(jnp.sum(drawn.mirrored)) <= 10
    assert not draw(plain, RECORDS, step=0).mirrored.any()
    losses = jax.jit(plain.losses, compiler_options=FAST)
    unseen, seen = losses(params, drawn), losses(params, drawn._replace(x=drawn.x[:, :, ::-1]))
    every = drawn._replace(mirrored=jnp.ones_like(drawn.mirrored))
    found = jax.jit(flipping.losses, compiler_options=FAST)
    np.testing.assert_allclose(found(params, every), seen, rtol=1e-5)
    none = drawn._replace(mirrored=jnp.zeros_like(drawn.mirrored))
    np.testing.assert_allclose(found(params, none), unseen, rtol=1e-5)


def test_the_residual_is_the_difference_of_two_losses_and_clips_as_vmap_of_grad(params: Any) -> None:
    diffusion = Diffusion((6, 5, 1), num_classes=2, multiplicity=2, pixel_range=(0.0, 1.0), **TINY)
    public = Public(Region(0, 3, 0, 5), label=True)
    residual = diffusion.residual(public)
    found = jax.jit(residual.examples, compiler_options=FAST)(RECORDS, KEY)
    own, view = (jax.tree.map(lambda leaf, k=k: leaf[:, k], found) for k in (0, 1))
    for a, b in zip(own[1:], view[1:], strict=True):
        np.testing.assert_array_equal(a, b)

    def one(params: Any, record: Any) -> Any:
        both = jax.tree.map(lambda leaf: leaf[None], record)
        first, second = (jax.tree.map(lambda leaf, k=k: leaf[:, k], both) for k in (0, 1))
        return (diffusion.losses(params, first) - diffusion.losses(params, second))[0]

    each = jax.jit(jax.vmap(jax.value_and_grad(one), in_axes=(None, 0)), compiler_options=FAST)
    values, gradients = each(params, found)
    rows = np.concatenate([np.asarray(g, np.float64).reshape(6, -1) for g in jax.tree.leaves(gradients)], 1)
    norms = np.linalg.norm(rows, axis=1)
    bound = float(np.median(norms))
    function = clipping.clipped_grad(residual.losses, clip_norm=bound)
    clipped = jax.jit(function, compiler_options=FAST)(params, found, jnp.ones(6, bool))
    np.testing.assert_allclose(clipped.losses, values, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(clipped.norms, norms, rtol=1e-3)
    total = np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(clipped.sum)])
    expected = np.minimum(1.0, bound / norms) @ rows
    np.testing.assert_allclose(total, expected, atol=1e-4 * np.abs(expected).max())


def test_the_test_loss_is_fixed_and_does_not_depend_on_chunks(diffusion: Diffusion, params: Any) -> None:
    x, y = np.tile(X, (12, 1, 1, 1)), np.tile(Y, 12)
    first, second = diffusion.measure(params, x, y), diffusion.measure(params, x, y)
    assert first == second and diffusion.metric == "test_loss"
    rows = [diffusion.measure(params, x[:n], y[:n]) for n in (64, 66, 72)]
    assert rows[2] == first
    # The sums over 64 and over 72 records differ by those of the last chunk alone, which holds other noise.
    last = (72.0 * rows[2] - 64.0 * rows[0]) / 8.0
    assert 0.3 * first < last < 3.0 * first and rows[1] != rows[2]
    assert diffusion.measure(params, x, 1 - y) != first


def test_an_untrained_loss_is_its_closed_form() -> None:
    """F = 0: the loss is E |target|^2 = c_in^2 (sigma^2 / s^2 |y|^2 + s^2), for DDPM 1."""
    ones = np.ones((400, 4, 4, 1), np.float32)  # unit variance in place of sigma_data^2
    labels = np.zeros(400, np.int32)
    ddpm = Diffusion((4, 4, 1), process=DDPM(), **TINY)
    spread = 5.0 * np.sqrt(2.0 / (400 * 16 * 8))
    assert abs(ddpm.measure(made_up(ddpm, np.zeros), ones, labels) - 1.0) < spread
    edm = Diffusion((4, 4, 1), **TINY)
    sigma = EDM().grid(8).astype(np.float64)
    expected = np.mean((4.0 * sigma**2 + 0.25) / (sigma**2 + 0.25))
    assert abs(edm.measure(made_up(edm, np.zeros), ones, labels) - expected) < 4.0 * spread


@pytest.mark.parametrize("process", [EDM(), pytest.param(DDPM(), marks=pytest.mark.slow)])
def test_a_trained_model_samples_its_classes(process: Any) -> None:
    """Two classes, each one constant image: samples of a class are that image."""
    diffusion = Diffusion(
        (4, 4, 1), num_classes=2, multiplicity=4, label_dropout=0.1, process=process, **TINY
    )
    y = jnp.arange(16) % 2
    records = Records(jnp.where(y == 1, 0.6, -0.6)[:, None, None, None] * jnp.ones((16, 4, 4, 1)), y)
    optimiser = optax.adam(5e-3)
    params = jax.jit(diffusion.initialise, compiler_options=FAST)(KEY)
    moments = optimiser.init(params)

    @functools.partial(jax.jit, compiler_options=FAST)
    def step(params: Any, moments: Any, number: Any) -> Any:
        drawn = diffusion.examples(records, key=jax.random.fold_in(KEY, number))
        gradient = jax.grad(lambda p: jnp.mean(diffusion.losses(p, drawn)))(params)
        updates, moments = optimiser.update(gradient, moments, params)
        return optax.apply_updates(params, updates), moments

    before = diffusion.measure(params, np.asarray(records.x), np.asarray(y))
    for number in range(300):
        params, moments = step(params, moments, jnp.int32(number))
    assert diffusion.measure(params, np.asarray(records.x), np.asarray(y)) < 0.1 * before
    labels = np.arange(20) % 2
    sampler = Heun(20) if isinstance(process, EDM) else Ancestral(100)
    images = diffusion.sample(params, 20, key=KEY, sampler=sampler, labels=labels)
    assert images.shape == (20, 4, 4, 1)
    means = images.mean((1, 2, 3))
    assert np.abs(means - np.where(labels == 1, 0.6, -0.6)).max() < 0.25


def test_samples_are_pixels_and_a_function_of_the_key(diffusion: Diffusion, params: Any) -> None:
    sampler = Stochastic(3)
    labels = np.arange(70) % 3 - 1
    first, second = (
        diffusion.sample(params, 70, key=KEY, sampler=sampler, labels=labels, guidance=0.7) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert first.shape == (70, 6, 5, 1) and first.min() >= 0.0 and first.max() <= 1.0
    other = diffusion.sample(params, 70, key=jax.random.key(2), sampler=sampler, labels=labels, guidance=0.7)
    assert np.abs(first - other).max() > 0.01
    assert np.abs(first[:6] - first[64:]).max() > 0.01  # chunks have noise of their own


def test_it_is_a_value() -> None:
    first, second = Diffusion((4, 4, 1), **TINY), Diffusion((4, 4, 1), **TINY)
    assert first == second and hash(first) == hash(second)
    assert first != Diffusion((4, 4, 1), multiplicity=2, **TINY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"multiplicity": 0}, "multiplicity must be"),
        ({"label_dropout": 0.1}, "label_dropout must be 0 without classes, got 0.1"),
        ({"label_dropout": 1.1, "num_classes": 2}, "label_dropout must be"),
        ({"pixel_range": (1.0, 1.0)}, "pixel_range must be ascending"),
        ({"width": 5}, "width must be a multiple of 4"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Diffusion((4, 4, 1), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count must be"),
        ({"labels": np.array([0, 1, 2])}, "labels must be in -1 ... 1, got 0 to 2"),
        ({"labels": np.array([0, 1])}, "labels must be 3 whole numbers"),
        ({"labels": np.array([0.0, 1.0, 1.0])}, "labels must be 3 whole numbers"),
        ({"guidance": -1.0}, "guidance must be"),
        ({"key": np.zeros(2)}, "key must be"),
    ],
)
def test_bad_sampling(diffusion: Diffusion, params: Any, settings: dict[str, Any], message: str) -> None:
    arguments = {"count": 3, "key": KEY, **settings}
    with pytest.raises(ValueError, match=message):
        diffusion.sample(params, arguments.pop("count"), **arguments)


def test_guidance_needs_a_model_that_was_trained_without_labels() -> None:
    conditional = Diffusion((4, 4, 1), num_classes=2, **TINY)
    params = made_up(conditional, np.zeros)
    with pytest.raises(ValueError, match="guidance must be 0 where label_dropout is 0, got 0.5"):
        conditional.sample(params, 2, key=KEY, labels=np.array([0, 1]), guidance=0.5)
    with pytest.raises(ValueError, match="labels must be in 0 ... 1, got -1 to -1"):
        conditional.sample(params, 2, key=KEY)
    with pytest.raises(ValueError, match="records must be"):
        conditional.measure(params, np.zeros((0, 4, 4, 1)), np.zeros(0, np.int32))
