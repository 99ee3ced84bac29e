"""The idx reader and the folders of MNIST's layout."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from exactdp.train import data
from exactdp.train.data import idx


def encode(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.asarray(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write_folder(folder: Path, *, compress: bool, num_train: int = 20, num_test: int = 10) -> None:
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for part, size in (("train", num_train), ("t10k", num_test)):
        images = generator.integers(0, 256, (size, 9, 7))
        for kind, array in (("images-idx3", images), ("labels-idx1", np.arange(size) % 10)):
            blob = encode(array)
            name = f"{part}-{kind}-ubyte"
            if compress:
                (folder / f"{name}.gz").write_bytes(gzip.compress(blob))
            else:
                (folder / name).write_bytes(blob)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "idx:kmnist"])
def test_folder_is_read_and_scaled(tmp_path: Path, compress: bool, name: str) -> None:
    write_folder(tmp_path / name.removeprefix("idx:"), compress=compress)
    loaded = data.load(name, root=tmp_path)
    expected = np.random.default_rng(0).integers(0, 256, (20, 9, 7)) / 255.0
    np.testing.assert_allclose(loaded.x[..., 0], expected, rtol=1e-6)
    assert loaded.input_shape == (9, 7, 1)
    assert loaded.x.dtype == np.float32 and loaded.y.dtype == np.int32
    assert loaded.y.tolist() == [i % 10 for i in range(20)]
    assert (len(loaded.x_test), loaded.num_classes, loaded.name) == (10, 10, name)


def test_root_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "mnist", compress=True)
    monkeypatch.setenv("EXACTDP_DATA", str(tmp_path))
    assert len(data.load("mnist").y) == 20


def test_missing_data_says_what_where_and_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXACTDP_DATA", raising=False)
    with pytest.raises(
        ValueError, match=r"mnist: the environment variable EXACTDP_DATA .* it is not set.*official files"
    ):
        data.load("mnist")
    with pytest.raises(ValueError, match=rf"mnist: the data root must be a folder, got {tmp_path}/none"):
        data.load("mnist", root=tmp_path / "none")
    with pytest.raises(ValueError, match=rf"mnist: the data root {tmp_path} must hold mnist, .*https"):
        data.load("mnist", root=tmp_path)
    (tmp_path / "mnist").mkdir()
    with pytest.raises(ValueError, match="must hold train-images-idx3-ubyte or train-images-idx3-ubyte.gz"):
        data.load("mnist", root=tmp_path)


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    good = encode(np.arange(24).reshape(4, 3, 2))
    path = tmp_path / "images"
    for blob, message in [
        (b"\x00\x00\x08\x01" + good[4:], "magic number 00000803, got '00000801'"),
        (b"", "magic number"),
        (good[:9], "header of 16 bytes, the file has 9"),
        (good[:-1], "24 bytes for its shape .4, 3, 2., it holds 23"),
        (good + b"\x00", "it holds 25"),
    ]:
        path.write_bytes(blob)
        with pytest.raises(ValueError, match=rf"mnist: {path} must .*{message}"):
            idx.read(path, name="mnist", rank=3)
    squeezed = gzip.compress(good)
    zipped = tmp_path / "images.gz"
    for blob in (squeezed[:-9], squeezed[:15], b"no gzip", squeezed[:20] + b"\xff" * 9 + squeezed[29:]):
        zipped.write_bytes(blob)
        with pytest.raises(ValueError, match=rf"mnist: {zipped} must be a whole gzip file"):
            idx.read(zipped, name="mnist", rank=3)
    zipped.write_bytes(squeezed)
    np.testing.assert_array_equal(idx.read(zipped, name="mnist", rank=3), np.arange(24).reshape(4, 3, 2))


def test_lengths_must_agree(tmp_path: Path) -> None:
    write_folder(tmp_path / "mnist", compress=False)
    (tmp_path / "mnist/train-labels-idx1-ubyte").write_bytes(encode(np.arange(19) % 10))
    with pytest.raises(ValueError, match="mnist: training records and labels must be as many, got 20 and 19"):
        data.load("mnist", root=tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_official_files(name: str) -> None:
    root = os.environ.get("EXACTDP_DATA", "")
    if not (Path(root) / name).is_dir() or not root:
        pytest.skip(f"EXACTDP_DATA holds no {name}")
    loaded = data.load(name)
    assert loaded.x.shape == (60_000, 28, 28, 1) and loaded.x_test.shape == (10_000, 28, 28, 1)
    assert loaded.x.min() == 0.0 and loaded.x.max() == 1.0
    # Published class counts of the training set.
    mnist = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(loaded.y).tolist() == (mnist if name == "mnist" else [6000] * 10)
