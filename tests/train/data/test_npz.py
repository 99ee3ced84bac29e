"""Raw .npz folders and MedMNIST files, written here in their layouts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from exactdp.train import data


def medmnist(path: Path, *, labels: int = 1, num_classes: int = 7, drop: str = "") -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    arrays: dict[str, np.ndarray] = {}
    for split, size in (("train", 21), ("val", 7), ("test", 14)):
        arrays[f"{split}_images"] = generator.integers(0, 256, (size, 28, 28, 3), dtype=np.uint8)
        arrays[f"{split}_labels"] = np.tile(np.arange(size) % num_classes, (labels, 1)).T.astype(np.uint8)
    arrays.pop(drop, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # pyright: ignore[reportArgumentType]
    return arrays


@pytest.mark.parametrize("place", ["medmnist/dermamnist.npz", "dermamnist.npz"])
def test_medmnist(tmp_path: Path, place: str) -> None:
    arrays = medmnist(tmp_path / place)
    loaded = data.load("dermamnist", root=tmp_path)
    assert loaded.x.shape == (21, 28, 28, 3) and loaded.x_test.shape == (14, 28, 28, 3)
    np.testing.assert_allclose(loaded.x, arrays["train_images"] / 127.5 - 1.0, atol=1e-6)
    np.testing.assert_array_equal(loaded.y, arrays["train_labels"][:, 0])
    np.testing.assert_array_equal(loaded.y_test, arrays["test_labels"][:, 0])
    assert loaded.num_classes == 7 and "CC BY" in loaded.source


def test_medmnist_other_sizes_by_layout(tmp_path: Path) -> None:
    medmnist(tmp_path / "dermamnist_64.npz")
    assert len(data.load("medmnist:dermamnist_64", root=tmp_path).y) == 21


def test_medmnist_refusals(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"pathmnist: the data root .* medmnist/pathmnist.npz or pathmnist.npz"
    ):
        data.load("pathmnist", root=tmp_path)
    medmnist(tmp_path / "chestmnist.npz", labels=14)
    with pytest.raises(ValueError, match="chestmnist: training labels must be one whole number a record"):
        data.load("medmnist:chestmnist", root=tmp_path)
    medmnist(tmp_path / "bloodmnist.npz", drop="test_labels")
    with pytest.raises(ValueError, match="bloodmnist: .* lacks test_labels"):
        data.load("bloodmnist", root=tmp_path)
    np.savez(tmp_path / "octmnist.npz", train_images=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="octmnist: .* lacks train_labels, test_images, test_labels"):
        data.load("octmnist", root=tmp_path)


def test_damaged_npz(tmp_path: Path) -> None:
    path = tmp_path / "dermamnist.npz"
    medmnist(path)
    whole = path.read_bytes()
    for blob in (whole[: len(whole) // 2], b"", b"text", whole[:2000] + bytes(64) + whole[2064:]):
        path.write_bytes(blob)
        with pytest.raises(ValueError, match=rf"dermamnist: {path} must be a whole .npz file"):
            data.load("dermamnist", root=tmp_path)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    array = np.array([{}] * 4, dtype=object)
    np.savez(tmp_path / "own/own.npz", x_train=array, y_train=array, x_test=array, y_test=array)
    with pytest.raises(ValueError, match="own: .* must be a whole .npz file, got: Object arrays"):
        data.load("npz:own", root=tmp_path)


def test_raw_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    x = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    labels = np.array([0, 1], np.uint8)
    np.savez(tmp_path / "own/own.npz", x_train=x, y_train=labels, x_test=x, y_test=labels)
    loaded = data.load("npz:own", root=tmp_path)
    np.testing.assert_allclose(loaded.x, x / 127.5 - 1.0, atol=1e-6)
    with pytest.raises(ValueError, match="other: the data root .* must hold other/other.npz.*x_train"):
        data.load("npz:other", root=tmp_path)


def test_cifar10_subset() -> None:
    root = os.environ.get("EXACTDP_DATA", "")
    if not root or not (Path(root) / "cifar10_subset").is_dir():
        pytest.skip("EXACTDP_DATA holds no cifar10_subset")
    loaded = data.load("cifar10_subset")
    assert loaded.x.shape == (10_000, 32, 32, 3) and loaded.x_test.shape == (2_000, 32, 32, 3)
    assert np.bincount(loaded.y).tolist() == [1000] * 10
    assert "subset" in loaded.source
