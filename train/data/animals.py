"""The animals among CIFAR-10's classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from exactdp.train.data import npz
from exactdp.train.data.dataset import Dataset

# Places of the animals in CIFAR-10's order of classes; they become labels 0 ... 5 in this order.
_CLASSES = {"bird": 2, "cat": 3, "deer": 4, "dog": 5, "frog": 6, "horse": 7}
_NUM_CLASSES = 10


def load(folder_name: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """The images of bird, cat, deer, dog, frog and horse (labels 0 ... 5) of a CIFAR-10 file, in its split.

    Args:
      folder_name: the folder with the .npz file, as for `npz.load_raw`.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: the file has not the ten classes of CIFAR-10, or what `npz.load_raw` refuses.
    """
    whole = npz.load_raw(folder_name, name=name, source=source, root=root)
    if whole.num_classes != _NUM_CLASSES:
        raise ValueError(
            f"{name}: {folder_name} must have CIFAR-10's {_NUM_CLASSES} classes, got {whole.num_classes}"
        )
    places = np.array(list(_CLASSES.values()))
    train, test = np.isin(whole.y, places), np.isin(whole.y_test, places)
    return Dataset(
        x=whole.x[train],
        y=np.searchsorted(places, whole.y[train]).astype(np.int32),
        x_test=whole.x_test[test],
        y_test=np.searchsorted(places, whole.y_test[test]).astype(np.int32),
        num_classes=len(places),
        name=name,
        source=source,
    )
