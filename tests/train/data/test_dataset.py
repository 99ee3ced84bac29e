"""What a data set is refused for, how its pixels are scaled, and the embedded digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets

from exactdp.train import data
from exactdp.train.data.dataset import Dataset, from_pixels


def pixels(**changes: Any) -> Dataset:
    arguments: dict[str, Any] = {
        "x": np.zeros((6, 4, 4), np.uint8),
        "y": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": np.zeros((3, 4, 4), np.uint8),
        "y_test": np.array([0, 1, 2]),
        "name": "some",
        "source": "made up",
    }
    return from_pixels(**(arguments | changes))


def test_one_channel_is_scaled_to_the_unit_interval_and_more_to_both_sides() -> None:
    x = np.linspace(0, 255, 6 * 16).astype(np.uint8).reshape(6, 4, 4)
    grey = pixels(x=x)
    np.testing.assert_allclose(grey.x[..., 0], x / 255.0, rtol=1e-6)
    colour = pixels(x=np.stack([x] * 3, axis=-1), x_test=np.zeros((3, 4, 4, 3), np.uint8))
    np.testing.assert_allclose(colour.x[..., 2], 2.0 * x / 255.0 - 1.0, atol=1e-6)
    assert colour.x.dtype == np.float32 and colour.input_shape == (4, 4, 3)
    np.testing.assert_array_equal(pixels(x=x, y=np.array([[0], [1], [2]] * 2)).y, [0, 1, 2] * 2)


def test_scale_does_not_depend_on_the_records() -> None:
    """One record changed leaves all others as they are: no private mean or spread is used."""
    x = np.random.default_rng(1).integers(0, 256, (6, 4, 4)).astype(np.uint8)
    changed = x.copy()
    changed[2] = 255
    np.testing.assert_array_equal(
        np.delete(pixels(x=x).x, 2, axis=0), np.delete(pixels(x=changed).x, 2, axis=0)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.arange(5) % 3}, "training records and labels must be as many, got 6 and 5"),
        ({"y_test": np.array([0, 1])}, "test records and labels must be as many, got 3 and 2"),
        ({"y": np.array([0, 0, 2, 0, 0, 2])}, "3 classes must have a training record, class 1 has none"),
        ({"num_classes": 4}, "4 classes must have a training record, class 3 has none"),
        ({"y_test": np.array([0, 1, 3])}, "test labels must be in 0 ... 2, record 2 has 3"),
        ({"y": np.array([0, 1, 2, 0, 1, -1])}, "training labels must be >= 0 and < 2.31, got -1 to 2"),
        ({"y": np.array([0, 1, 2, 0, 1, 2**32])}, "training labels must be >= 0 and < 2.31"),
        ({"num_classes": 2}, "training labels must be in 0 ... 1, record 2 has 2"),
        ({"y": np.array([0.0, 1, 2, 0, 1, 2])}, "training labels must be one whole number a record"),
        ({"y": np.zeros((6, 14), int)}, r"one whole number a record, got int64 of shape \(6, 14\)"),
        ({"y": np.zeros(6, int), "y_test": np.zeros(3, int), "num_classes": 1}, "num_classes must be"),
        (
            {"x": np.zeros((0, 4, 4)), "y": np.zeros(0, int), "num_classes": 3},
            "training set must not be empty",
        ),
        ({"x_test": np.zeros((0, 4, 4)), "y_test": np.zeros(0, int)}, "test set must not be empty"),
        ({"x": np.full((6, 4, 4), np.nan)}, "training records must be finite, record 0 holds NaN"),
        ({"x_test": np.full((3, 4, 4), np.inf)}, "test records must be finite"),
        ({"x": np.full((6, 4, 4), 256)}, r"training pixels must be in \[0, 255\], got 256 to 256"),
        ({"x": np.full((6, 4, 4), -1.0)}, r"training pixels must be in \[0, 255\]"),
        ({"x": np.zeros((6, 16))}, r"training pixels must be numbers of shape \[n, h, w\]"),
        ({"x": np.zeros((6, 4, 4), bool)}, "training pixels must be numbers"),
        ({"x_test": np.zeros((3, 4, 5))}, r"must have one shape, got \(4, 4, 1\) and \(4, 5, 1\)"),
    ],
)
def test_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^some: .*{message}"):
        pixels(**changes)


def test_nan_in_one_pixel_is_found() -> None:
    x = np.zeros((6, 4, 4), np.float32)
    x[4, 1, 2] = np.nan
    with pytest.raises(ValueError, match="some: training records must be finite, record 4 holds NaN"):
        pixels(x=x)


def test_a_data_set_made_by_hand_is_checked_too() -> None:
    good = pixels()
    flat = Dataset(
        good.x.reshape(6, 16), good.y, good.x_test.reshape(3, 16), good.y_test, 3, "flat", "made up"
    )
    assert flat.input_shape == (16,)
    with pytest.raises(ValueError, match="flat: training records must be float32"):
        Dataset(good.x.astype(float), good.y, good.x_test, good.y_test, 3, "flat", "made up")


def test_digits() -> None:
    loaded = data.load("digits")
    bunch = datasets.load_digits()
    assert loaded.x.shape == (1442, 8, 8, 1) and loaded.x_test.shape == (355, 8, 8, 1)
    assert (loaded.num_classes, loaded.x.min(), loaded.x.max()) == (10, 0.0, 1.0)
    # Each record once, with its label, and a fifth of every class to test with.
    both = np.concatenate([loaded.x, loaded.x_test])[..., 0] * 16
    labels = np.concatenate([loaded.y, loaded.y_test])
    ours = sorted((*image.ravel().tolist(), int(label)) for image, label in zip(both, labels, strict=True))
    theirs = sorted(
        (*image.ravel().tolist(), int(label)) for image, label in zip(bunch.images, bunch.target, strict=True)
    )
    assert ours == theirs
    assert np.bincount(loaded.y_test).tolist() == (np.bincount(bunch.target) // 5).tolist()
    np.testing.assert_array_equal(loaded.x, data.load("digits").x)


@pytest.mark.parametrize("name", ["nope", "", "parquet:mnist", "idx:", "npz:../secret", "tfds:/etc"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ValueError, match="^dataset must be .*idx, npz, medmnist, tfds"):
        data.load(name, root=".")
