"""Scikit-learn's digits: real images that come with a package, so that nothing is downloaded."""

from __future__ import annotations

import numpy as np

from exactdp.train.data.dataset import Dataset, from_pixels

_SOURCE = (
    "scikit-learn load_digits, UCI Optical Recognition of Handwritten Digits (test part), 1 797 images of "
    "8x8, CC BY 4.0"
)
_PIXEL_MAX = 16.0
# Every fifth record of each class is a test record.
_TEST_EVERY = 5


def load() -> Dataset:
    """The 1 797 digits of 8x8, four fifths of each class to train on (1 442) and one fifth to test (355).

    The split is fixed: of each class, in the order of the file, records 5, 10, 15, ... are the test set.
    """
    # Imported here: scikit-learn takes a second to import and the other sources do without.
    from sklearn import datasets

    bunch = datasets.load_digits()
    x, y = np.asarray(bunch.images), np.asarray(bunch.target)  # pyright: ignore[reportAttributeAccessIssue]
    test = np.zeros(len(y), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(y == label)[_TEST_EVERY - 1 :: _TEST_EVERY]] = True
    return from_pixels(
        x[~test],
        y[~test],
        x[test],
        y[test],
        name="digits",
        source=_SOURCE,
        num_classes=10,
        pixel_max=_PIXEL_MAX,
    )
