"""The map as it is published: rounding, and its matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exactdp.benchmarks.psi_audit.sample import Sample, View
from exactdp.mechanisms.public import Blur, Columns, Downsample, InputMap, Own, Public, Region
from exactdp.train import data

MAPS: list[tuple[InputMap | None, tuple[int, ...]]] = [
    (Blur(1.0), (6, 5, 2)),
    (Downsample(2), (6, 5, 1)),
    (Region(0, 3, 1, 4), (6, 5, 1)),
    (Columns((0, 2), fill=0.5), (4,)),
    (None, (4,)),
]


@pytest.mark.parametrize(("inputs", "shape"), MAPS)
def test_matrix_is_the_map(inputs: InputMap | None, shape: tuple[int, ...]) -> None:
    view = View(Public(inputs, label=False))
    affine = view.affine(shape)
    assert affine is not None
    x = np.random.default_rng(0).uniform(size=(7, *shape)).astype(np.float32)
    np.testing.assert_allclose(x.reshape(7, -1) @ affine[0].T + affine[1], view(x).reshape(7, -1), atol=1e-5)


def test_a_map_that_is_not_affine_has_none() -> None:
    square = Own(lambda x: jnp.square(x), "square")
    assert View(Public(square, label=False)).affine((4,)) is None
    assert View(Public(None, label=True)).affine((5000,)) is None


def test_levels() -> None:
    view = View(Public(Blur(1.0), label=False), levels=256)
    x = np.random.default_rng(1).uniform(size=(3, 8, 8, 1)).astype(np.float32)
    for channels, step in ((1, 1 / 255), (3, 2 / 255)):
        check_levels(view, np.repeat(x, channels, axis=-1), step=step)
    with pytest.raises(ValueError, match=r"levels must be 0 .* or at least 2, got 1"):
        View(Public(None, label=False), levels=1)


def check_levels(view: View, x: np.ndarray, *, step: float) -> None:
    seen, exact = view(x), View(Public(Blur(1.0), label=False))(x)
    np.testing.assert_allclose(seen / step, np.round(seen / step), atol=1e-3)
    assert 0.0 < np.abs(seen - exact).max() <= step / 2 + 1e-6
    # The standard deviation of even rounding.
    assert view.precision(x.shape[1:]) == pytest.approx((seen - exact).std(), rel=0.15)


def test_sample_is_both_splits_shuffled() -> None:
    digits = data.load("digits")
    sample = Sample.of(digits, key=jax.random.key(0))
    assert len(sample.y) == 1797 and sample.is_image
    assert np.bincount(sample.y).tolist() == (np.bincount(digits.y) + np.bincount(digits.y_test)).tolist()
    assert not np.array_equal(sample.first(100).y, digits.y[:100])
    again = Sample.of(digits, key=jax.random.key(0))
    np.testing.assert_array_equal(sample.x, again.x)
