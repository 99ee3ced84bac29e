"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exactdp.train.data import adult, animals, criteo, digits, faces, idx, npz, prepared, privacytrustlab
from exactdp.train.data.dataset import Dataset

# The layouts in which a user can name an own data set.
_LAYOUTS = ("idx", "npz", "medmnist", "tfds", "privacytrustlab", "criteo")

_MEDMNIST = (
    "bloodmnist",
    "breastmnist",
    "dermamnist",
    "octmnist",
    "organamnist",
    "organcmnist",
    "organsmnist",
    "pathmnist",
    "pneumoniamnist",
    "retinamnist",
    "tissuemnist",
)

# name -> (layout, what it is called there, source and licence)
_KNOWN: dict[str, tuple[str, str, str]] = {
    "mnist": ("idx", "mnist", "MNIST (LeCun, Cortes, Burges), the official files; CC BY-SA 3.0"),
    "fashion_mnist": (
        "idx",
        "fashion_mnist",
        "Fashion-MNIST (Zalando, arXiv 1708.07747), the official files; MIT",
    ),
    "cifar10_subset": (
        "npz",
        "cifar10_subset",
        "class-balanced subset of CIFAR-10 (Krizhevsky 2009), 10 000 + 2 000 images; licence not stated",
    ),
    "cifar10_animals": (
        "animals",
        "cifar10_subset",
        "animals of a subset of CIFAR-10 (Krizhevsky 2009), 6 000 + 1 200 images; licence not stated",
    ),
    "cifar10": ("tfds", "cifar10", "CIFAR-10 (Krizhevsky 2009) by TFDS; licence not stated"),
    "svhn_cropped": ("tfds", "svhn_cropped", "SVHN (Netzer et al. 2011) by TFDS; non-commercial use"),
    **{flag: ("medmnist", flag, "") for flag in _MEDMNIST},
    "adult": ("adult", "adult", "UCI Adult (Becker and Kohavi 1996), from the US census of 1994; CC BY 4.0"),
    "location30": (
        "privacytrustlab",
        "location30",
        "Location-30 (Shokri et al. 2017, arXiv 1610.05820), from Foursquare check-ins in Bangkok; licence "
        "not stated",
    ),
    "purchase100": (
        "privacytrustlab",
        "purchase100",
        "Purchase-100 (Shokri et al. 2017, arXiv 1610.05820), from Kaggle's shoppers challenge; licence not "
        "stated",
    ),
    "criteo_sample": (
        "criteo",
        "criteo_sample",
        "1 999 rows of Criteo's display advertising challenge (2014)",
    ),
}

# Those that come with a package and need no file.
_EMBEDDED: dict[str, Callable[[], Dataset]] = {"digits": digits.load, "lfw_faces": faces.load}

NAMES = (*_EMBEDDED, *_KNOWN)
"""The short names that `load` knows; `<layout>:<name>` reaches any other data set."""


def load(name: str, *, root: str | Path | None = None) -> Dataset:
    """The data set `name`, read, checked and normalised by public constants; nothing is downloaded.

    Args:
      name: `digits` or `lfw_faces`, which come with scikit-learn and scikit-image and need no file; another
        of `NAMES`; or, for any other data set, `idx:NAME` (folder NAME with the four files of MNIST),
        `npz:NAME` (NAME/NAME.npz with x_train, y_train, x_test, y_test), `medmnist:FLAG` (FLAG.npz),
        `tfds:BUILDER` (prepared by TFDS; BUILDER/CONFIG for one of its configs), `privacytrustlab:NAME`
        (NAME/NAME.tgz with lines label,0,1,...) or `criteo:NAME` (NAME/train.csv of the Kaggle contest).
      root: the data root; None for the environment variable EXACTDP_DATA.

    Returns:
      float32 records and int32 labels; see `Dataset` and `exactdp.train.data.dataset.from_pixels`.

    Raises:
      ValueError: an unknown name; files missing (saying what was looked for, where, and how to get it),
        damaged or cut short; or records and labels that `Dataset` refuses.
    """
    if name in _EMBEDDED:
        return _EMBEDDED[name]()
    layout, inner, source = _parts(name)
    if layout == "medmnist":
        return npz.load_medmnist(inner, name=name, root=root)
    readers: dict[str, Callable[..., Dataset]] = {
        "idx": idx.load,
        "npz": npz.load_raw,
        "animals": animals.load,
        "tfds": prepared.load,
        "adult": adult.load,
        "privacytrustlab": privacytrustlab.load,
        "criteo": criteo.load,
    }
    return readers[layout](inner, name=name, source=source, root=root)


def require_known(name: str) -> None:
    """Refuses a name that `load` cannot know, before anything is read.

    Raises:
      ValueError: it is refused.
    """
    if name not in _EMBEDDED:
        _parts(name)


def _parts(name: str) -> tuple[str, str, str]:
    """Layout, name within it, and source of a data set."""
    layout, colon, inner = name.partition(":")
    if not colon:
        if name not in _KNOWN:
            raise ValueError(
                f"dataset must be one of {', '.join(NAMES)}, or <layout>:<name> with one of the layouts "
                f"{', '.join(_LAYOUTS)}, got {name!r}"
            )
        return _KNOWN[name]
    if layout not in _LAYOUTS or not inner or ".." in Path(inner).parts or Path(inner).is_absolute():
        raise ValueError(
            f"dataset must be <layout>:<name> with one of the layouts {', '.join(_LAYOUTS)} and a relative "
            f"name, got {name!r}"
        )
    return layout, inner, f"{layout} data set {inner}, given by the user"
