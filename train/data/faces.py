"""Small grey crops of photographs, half of them faces: they come with scikit-image."""

from __future__ import annotations

import numpy as np

from exactdp.train.data.dataset import Dataset, from_pixels

_SOURCE = (
    "scikit-image lfw_subset: 200 crops of 25x25 from Labeled Faces in the Wild (Huang et al. 2007), 100 "
    "with a face and 100 without; licence not stated"
)
_NUM_FACES = 100
# Every fifth crop of each class is a test record.
_TEST_EVERY = 5


def load() -> Dataset:
    """The 200 crops: 160 to train on, 40 to test; the label is 1 for a face.

    The split is fixed: of each class, in the order of the file, crops 5, 10, 15, ... are the test set.

    Raises:
      ImportError: scikit-image is not installed.
    """
    # Imported here: the other sources do without.
    try:
        from skimage import data
    except ImportError as error:
        raise ImportError(
            "lfw_faces: the crops come with scikit-image; install the extra: pip install 'exactdp[train]'"
        ) from error
    # Untyped there.
    crops = np.asarray(data.lfw_subset())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    y = (np.arange(len(crops)) < _NUM_FACES).astype(np.int32)
    # Both classes are a multiple of five, so that every fifth of all is every fifth of each.
    test = np.arange(len(crops)) % _TEST_EVERY == _TEST_EVERY - 1
    return from_pixels(
        crops[~test],
        y[~test],
        crops[test],
        y[test],
        name="lfw_faces",
        source=_SOURCE,
        num_classes=2,
        pixel_max=1.0,
    )
