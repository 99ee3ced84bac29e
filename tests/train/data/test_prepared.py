"""Data sets prepared by TFDS: a small builder of our own, prepared in a temporary folder."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from exactdp.train import data

tfds = pytest.importorskip("tensorflow_datasets")

# TFDS and what it imports warn of their own deprecations, which are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NUM_TRAIN, NUM_TEST = 12, 6


def image(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 256, (8, 8, 3), dtype=np.uint8)


class TinyColours(tfds.core.GeneratorBasedBuilder):
    """Random images as PNG bytes, with labels of three classes."""

    VERSION = tfds.core.Version("1.0.0")
    SPLITS = ("train", "test")

    def _info(self) -> Any:
        features = tfds.features.FeaturesDict(
            {"image": tfds.features.Image(shape=(8, 8, 3)), "label": tfds.features.ClassLabel(num_classes=3)}
        )
        return tfds.core.DatasetInfo(builder=self, features=features, supervised_keys=("image", "label"))

    def _split_generators(self, dl_manager: Any) -> Any:
        parts = {
            "train": self._generate_examples(0, NUM_TRAIN),
            "test": self._generate_examples(100, NUM_TEST),
        }
        return {split: parts[split] for split in self.SPLITS}

    def _generate_examples(self, start: int, size: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for index in range(size):
            file = io.BytesIO()
            Image.fromarray(image(start + index)).save(file, format="PNG")
            file.seek(0)
            yield index, {"image": file, "label": index % 3}


class TinyTrainOnly(TinyColours):
    """The same without a test split."""

    SPLITS = ("train",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prepared")
    TinyColours(data_dir=str(root / "tensorflow_datasets"), file_format="array_record").download_and_prepare()
    TinyTrainOnly(data_dir=str(root), file_format="array_record").download_and_prepare()
    return root


def test_every_record_is_read(folder: Path) -> None:
    loaded = data.load("tfds:tiny_colours", root=folder)
    assert loaded.x.shape == (NUM_TRAIN, 8, 8, 3) and loaded.x_test.shape == (NUM_TEST, 8, 8, 3)
    assert loaded.num_classes == 3 and np.bincount(loaded.y).tolist() == [4, 4, 4]
    # TFDS shuffles records when it prepares them: compare them as sets of (pixels, label).
    ours = sorted(
        (*np.rint((x + 1.0) * 127.5).astype(int).ravel().tolist(), int(y))
        for x, y in zip(loaded.x, loaded.y, strict=True)
    )
    assert ours == sorted((*image(i).ravel().tolist(), i % 3) for i in range(NUM_TRAIN))


def test_newest_version_is_chosen_by_number(folder: Path, tmp_path: Path) -> None:
    for version in ("0.9.0", "0.10.0"):
        copy = tmp_path / "tiny_colours" / version
        shutil.copytree(folder / "tensorflow_datasets/tiny_colours/1.0.0", copy)
        info = copy / "dataset_info.json"
        info.write_text(info.read_text().replace('"1.0.0"', f'"{version}"'))
    for file in (tmp_path / "tiny_colours/0.9.0").glob("*array_record*"):
        file.unlink()
    assert len(data.load("tfds:tiny_colours", root=tmp_path).y) == NUM_TRAIN
    shutil.rmtree(tmp_path / "tiny_colours/0.10.0")
    with pytest.raises(ValueError, match="tfds:tiny_colours: the split train must hold 12 records, got"):
        data.load("tfds:tiny_colours", root=tmp_path)


def test_missing_builder(folder: Path) -> None:
    with pytest.raises(
        ValueError, match=r"svhn_cropped: the data root .*svhn_cropped/VERSION/features.json.*Prepare"
    ):
        data.load("svhn_cropped", root=folder)


def test_missing_split(folder: Path) -> None:
    with pytest.raises(ValueError, match="tiny_train_only: .* it lacks test"):
        data.load("tfds:tiny_train_only", root=folder)


def test_lost_records_and_other_formats_are_refused(folder: Path, tmp_path: Path) -> None:
    TinyColours(data_dir=str(tmp_path), file_format="array_record").download_and_prepare()
    info = tmp_path / "tiny_colours/1.0.0/dataset_info.json"
    content = json.loads(info.read_text())
    info.write_text(json.dumps(content | {"fileFormat": "tfrecord"}))
    with pytest.raises(ValueError, match="must be prepared as array_record, got"):
        data.load("tfds:tiny_colours", root=tmp_path)
    content["splits"][0]["shardLengths"] = ["40"]
    info.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="tfds:tiny_colours: the split t[a-z]+ must hold 40 records"):
        data.load("tfds:tiny_colours", root=tmp_path)
