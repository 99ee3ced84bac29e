"""The embedded face crops and the animals of CIFAR-10's file."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp.train import data


def test_faces() -> None:
    pytest.importorskip("skimage")
    loaded = data.load("lfw_faces")
    assert loaded.x.shape == (160, 25, 25, 1) and loaded.x_test.shape == (40, 25, 25, 1)
    assert np.bincount(loaded.y).tolist() == [80, 80] and np.bincount(loaded.y_test).tolist() == [20, 20]
    assert loaded.x.min() >= 0.0 and loaded.x.max() <= 1.0
    # Faces are alike, and what is none is not: label 1 is the one of less spread about its mean.
    spread = [float(loaded.x[loaded.y == label].std(axis=0).mean()) for label in (0, 1)]
    assert spread[1] < spread[0]


def test_faces_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "skimage":
            raise ImportError("No module named 'skimage'")
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ImportError, match=r"lfw_faces: .*scikit-image; install the extra: .*exactdp\[train\]"
    ):
        data.load("lfw_faces")


def write_cifar(root: Path, *, num_classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    (root / "cifar10_subset").mkdir()
    x = np.random.default_rng(2).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    y = np.arange(40) % num_classes
    np.savez(root / "cifar10_subset/cifar10_subset.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    return x, y


def test_animals(tmp_path: Path) -> None:
    x, y = write_cifar(tmp_path)
    loaded = data.load("cifar10_animals", root=tmp_path)
    kept = (y >= 2) & (y <= 7)
    np.testing.assert_allclose(loaded.x, x[kept] / 127.5 - 1.0, atol=1e-6)
    np.testing.assert_array_equal(loaded.y, y[kept] - 2)
    assert (loaded.num_classes, len(loaded.x_test), loaded.name) == (6, 12, "cifar10_animals")


def test_animals_of_another_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cifar10_animals: the data root .* must hold cifar10_subset/"):
        data.load("cifar10_animals", root=tmp_path)
    write_cifar(tmp_path, num_classes=8)
    with pytest.raises(ValueError, match="cifar10_animals: .* must have CIFAR-10's 10 classes, got 8"):
        data.load("cifar10_animals", root=tmp_path)


def test_real_animals() -> None:
    root = os.environ.get("EXACTDP_DATA", "")
    if not root or not (Path(root) / "cifar10_subset").is_dir():
        pytest.skip("EXACTDP_DATA holds no cifar10_subset")
    loaded = data.load("cifar10_animals")
    assert np.bincount(loaded.y).tolist() == [1000] * 6 and np.bincount(loaded.y_test).tolist() == [200] * 6
