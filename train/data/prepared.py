"""Data sets prepared by TensorFlow Datasets, read without TensorFlow and without a download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exactdp.train.data import root as data_root
from exactdp.train.data.dataset import Dataset, from_pixels

_HOW = (
    "Prepare it once, where TensorFlow is installed: tfds.builder({builder!r}, data_dir=..., "
    "file_format='array_record').download_and_prepare()."
)
_SPLITS = ("train", "test")


def load(builder: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """The image data set that TFDS prepared in `<root>/tensorflow_datasets/<builder>` or `<root>/<builder>`.

    Its newest prepared version is read, by the builder's own supervised keys (image and label where it names
    none), splits train and test. Files of another format than array_record are refused: TFDS loses records of
    some.

    Args:
      builder: a builder's name, or BUILDER/CONFIG.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: no prepared version is found, it is not in array_record files, a split, image or label is
        missing, fewer records are there than its metadata say, or what `Dataset` refuses.
    """
    how = _HOW.format(builder=builder)
    folders = [f"tensorflow_datasets/{builder}", builder]
    found = data_root.find(
        name,
        root=root,
        candidates=[f"{folder}/{version}" for folder in folders for version in _versions(folder, root=root)]
        or [f"{folder}/VERSION/features.json" for folder in folders],
        how=how,
    )
    # Imported here: TFDS takes seconds to import and the other sources do without.
    import tensorflow_datasets as tfds

    # Its features are typed as a nest of anything.
    prepared: Any = tfds.builder_from_directory(found)
    file_format = prepared.info.file_format
    if file_format is None or file_format.value != "array_record":
        raise ValueError(f"{name}: {found} must be prepared as array_record, got {file_format}. {how}")
    missing = [split for split in _SPLITS if split not in prepared.info.splits]
    if missing:
        raise ValueError(
            f"{name}: {found} must have the splits train and test, it lacks {', '.join(missing)}"
        )
    image, label = prepared.info.supervised_keys or ("image", "label")
    features = prepared.info.features
    if features is None or image not in features or label not in features:
        raise ValueError(f"{name}: {found} must have the features {image} and {label}, got {features}")
    arrays = [
        _read(
            prepared.as_data_source(split=split),
            name=name,
            split=split,
            keys=(image, label),
        )
        for split in _SPLITS
    ]
    return from_pixels(
        *arrays[0],
        *arrays[1],
        name=name,
        source=source,
        num_classes=getattr(features[label], "num_classes", None),
    )


def _versions(folder: str, *, root: str | Path | None) -> list[str]:
    """The prepared versions in a folder of the data root, the newest first."""
    base = data_root.given(root)
    if base is None:
        return []
    found = [path.parent.name for path in (base / folder).glob("*/features.json")]
    numbered = [v for v in found if v.replace(".", "").isdigit()]
    return sorted(numbered, key=lambda v: [int(part) for part in v.split(".")], reverse=True)


def _read(
    records: Sequence[Any], *, name: str, split: str, keys: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    try:
        rows = [records[index] for index in range(len(records))]
    except (RuntimeError, IndexError, OSError) as error:
        raise ValueError(
            f"{name}: the split {split} must hold {len(records)} records, got: {error}"
        ) from None
    if not rows:
        raise ValueError(f"{name}: the split {split} must not be empty")
    image, label = keys
    shapes = {np.shape(row[image]) for row in rows}
    if len(shapes) > 1:
        raise ValueError(f"{name}: the images of {split} must have one shape, got {sorted(shapes)[:2]}")
    return np.stack([row[image] for row in rows]), np.asarray([row[label] for row in rows])
