"""Views of records: what they may be, how often, on what they depend; and the averaged loss."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.mechanisms import clipping
from exactdp.train import augment, models

KEY = jax.random.key(5)


def allowed(image: np.ndarray, *, padding: int, flip: bool) -> list[np.ndarray]:
    """Every view of an image, by NumPy's own reflection."""
    height, width, _ = image.shape
    padded = np.pad(image, [(padding, padding), (padding, padding), (0, 0)], mode="reflect")
    crops = [
        padded[i : i + height, j : j + width] for i in range(2 * padding + 1) for j in range(2 * padding + 1)
    ]
    return crops + [crop[:, ::-1] for crop in crops if flip]


@pytest.mark.parametrize(("padding", "flip"), [(0, False), (0, True), (1, True), (2, False)])
def test_views_are_the_reflected_crops_each_equally_often(padding: int, flip: bool) -> None:
    image = np.random.default_rng(0).normal(size=(5, 4, 2)).astype(np.float32)
    possible = allowed(image, padding=padding, flip=flip)
    drawn = augment.views(KEY, jnp.asarray(image)[None], multiplicity=4000, padding=padding, flip=flip)
    assert drawn.shape == (1, 4000, 5, 4, 2)
    table = {view.tobytes(): index for index, view in enumerate(possible)}
    counts = np.bincount([table[view.tobytes()] for view in np.asarray(drawn[0])], minlength=len(possible))
    expected = 4000 / len(possible)
    # Chi-squared with len - 1 degrees of freedom: mean len - 1, variance 2 (len - 1); five deviations.
    statistic = float(((counts - expected) ** 2 / expected).sum())
    free = len(possible) - 1
    assert statistic <= free + 5 * np.sqrt(2 * free)


def test_views_depend_on_key_and_place_alone() -> None:
    x = jax.random.normal(KEY, (3, 6, 6, 1))
    make = functools.partial(augment.views, multiplicity=4, padding=2, flip=True)
    drawn = make(KEY, x)
    np.testing.assert_array_equal(drawn, make(KEY, x))
    changed = make(KEY, x.at[1].set(-x[1]))
    np.testing.assert_array_equal(changed[0], drawn[0])
    np.testing.assert_array_equal(changed[1], -drawn[1])
    assert not np.array_equal(drawn, make(jax.random.key(6), x))
    assert not np.array_equal(drawn[0, 0], drawn[0, 1])
    # Equal images at other places get other views.
    same = make(KEY, jnp.broadcast_to(x[:1], x.shape))
    assert not np.array_equal(same[0], same[1])


def test_averaged_loss_is_the_mean_of_the_views() -> None:
    graphdef, params = models.build("mlp", input_shape=(6, 6, 1), num_classes=3, key=KEY)

    def loss(params: Any, batch: tuple[jax.Array, jax.Array]) -> jax.Array:
        x, y = batch
        log = jax.nn.log_softmax(models.apply(graphdef, params, x))
        return -jnp.take_along_axis(log, y[:, None], axis=1)[:, 0]

    x, y = jax.random.normal(KEY, (4, 6, 6, 1)), jnp.array([0, 1, 2, 1], jnp.int32)
    seen = augment.views(KEY, x, multiplicity=5, padding=1, flip=True)
    batch = (seen, augment.repeat(y, multiplicity=5))
    result = augment.averaged(loss)(params, batch)
    each = jnp.stack([loss(params, (seen[:, k], y)) for k in range(5)])
    np.testing.assert_allclose(result, each.mean(axis=0), rtol=1e-6)

    # Averaged before clipping: one clipped gradient a record, equal to that of the mean loss.
    mask = jnp.array([True, True, False, True])
    clipped = jax.jit(clipping.clipped_grad(augment.averaged(loss), clip_norm=0.3))(params, batch, mask)

    def one(i: int) -> Any:
        gradient = jax.grad(
            lambda p: augment.averaged(loss)(p, jax.tree.map(lambda a: a[i : i + 1], batch))[0]
        )(params)
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, 0.3 / norm), gradient)

    expected = jax.tree.map(lambda *leaves: sum(leaves), *[one(i) for i in (0, 1, 3)])
    for ours, theirs in zip(jax.tree.leaves(clipped.sum), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_bad_input() -> None:
    x = jnp.zeros((2, 4, 6, 1))
    for changes, message in [
        ({"multiplicity": 0}, "multiplicity must be a whole number >= 1, got 0"),
        ({"padding": -1}, "padding must be a whole number >= 0, got -1"),
        ({"padding": 4}, "padding must be below the sides 4 and 6, got 4"),
    ]:
        arguments: dict[str, Any] = {"multiplicity": 2, "padding": 1, "flip": True} | changes
        with pytest.raises(ValueError, match=message):
            augment.views(KEY, x, **arguments)
    with pytest.raises(ValueError, match="x must be images"):
        augment.views(KEY, x[0], multiplicity=1, padding=0, flip=False)
    with pytest.raises(ValueError, match="multiplicity must be"):
        augment.repeat(jnp.zeros(3), multiplicity=0)
