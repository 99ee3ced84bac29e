"""NumPy .npz files: a folder with one raw file, and the layout of MedMNIST."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from exactdp.train.data import root as data_root
from exactdp.train.data.dataset import Dataset, from_pixels

_RAW = ("x_train", "y_train", "x_test", "y_test")
_MEDMNIST = ("train_images", "train_labels", "test_images", "test_labels")


def load_raw(folder_name: str, *, name: str, source: str, root: str | Path | None) -> Dataset:
    """The data set in `<root>/<folder>/<folder>.npz`, with arrays x_train, y_train, x_test and y_test.

    Args:
      folder_name: the folder, and the file's name without its ending.
      name: of the data set.
      source: where it comes from, and its licence.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: the file is missing, damaged or lacks an array, or what `Dataset` refuses.
    """
    path = data_root.find(
        name,
        root=root,
        candidates=[f"{folder_name}/{folder_name}.npz"],
        how=f"Save it by numpy.savez_compressed with the arrays {', '.join(_RAW)}: pixels in 0 ... 255.",
    )
    return from_pixels(*_read(path, name=name, keys=_RAW), name=name, source=source)


def load_medmnist(flag: str, *, name: str, root: str | Path | None) -> Dataset:
    """The MedMNIST data set `<root>/medmnist/<flag>.npz` or `<root>/<flag>.npz`, such as dermamnist.

    Labels come as [n, 1]; data sets with several labels a record (chestmnist) or with three-dimensional
    images are refused. The validation split is left alone: it neither trains nor tests.

    Args:
      flag: the file's name without its ending, as MedMNIST calls it; dermamnist_64 for the larger sizes.
      name: of the data set.
      root: the data root; None for EXACTDP_DATA.

    Raises:
      ValueError: the file is missing, damaged or lacks an array, or what `Dataset` refuses.

    Source: Yang et al., MedMNIST v2, Scientific Data 2023, arXiv 2110.14795.
    """
    path = data_root.find(
        name,
        root=root,
        candidates=[f"medmnist/{flag}.npz", f"{flag}.npz"],
        how=f"Download {flag}.npz from https://zenodo.org/records/10519652.",
    )
    source = f"MedMNIST v2 {flag}.npz; CC BY 4.0, dermamnist CC BY-NC 4.0"
    return from_pixels(*_read(path, name=name, keys=_MEDMNIST), name=name, source=source)


def _read(
    path: Path, *, name: str, keys: tuple[str, str, str, str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    try:
        # np.load takes other formats too, and leaves a damaged file open unless it is ours to close.
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            for key in keys:
                if key in file:
                    arrays[key] = np.asarray(file[key])
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{name}: {path} must be a whole .npz file, got: {error}") from None
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise ValueError(f"{name}: {path} must hold {', '.join(keys)}, it lacks {', '.join(missing)}")
    x, y, x_test, y_test = (arrays[key] for key in keys)
    return x, y, x_test, y_test
