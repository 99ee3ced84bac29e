"""Distances between records, each Euclidean after a fixed map of the record to features.

That they are Euclidean somewhere gives the triangle inequality, which the bounds on Ball rest on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import distance

from exactdp.accounting import validate

Array = NDArray[np.float64]

NAMES = ("l2", "cosine", "perceptual")
_SCALES = (1, 2, 4)
# Gradients below this, as a share of the range of the pixels, are flat as far as one can see.
_FLAT = 0.02


def features(name: str, records: NDArray[Any]) -> Array:
    """The features whose Euclidean distance is the distance of that name.

    - `l2`: the record itself, d(x, z) = |x - z|.
    - `cosine`: the record over its norm, d(x, z) = sqrt(2 - 2 cos(x, z)) in [0, 2], which grows with the
      angle; a record of zeros stays so.
    - `perceptual` (ours, for images): at three scales (means of squares of 1, 2 and 4 pixels) the horizontal
      and vertical differences of the mean of the channels, over their root mean square at that scale (plus
      0.02), each scale weighing the same. Brightness does not matter, nor does contrast but for flat images;
      what counts is where edges are. It is no model of human vision and is compared with none.

    Args:
      name: one of `NAMES`.
      records: [n, ...]; [n, h, w, channels] for `perceptual`.

    Returns:
      [n, number of features], float64.

    Raises:
      ValueError: the name is unknown, records hold NaN or infinity, or `perceptual` is asked of records that
        are no images of at least 8x8.
    """
    validate.one_of("distance", name, NAMES)
    x = np.asarray(records, dtype=np.float64)
    if x.ndim < 2 or not len(x):
        raise ValueError(f"records must be [n, ...] with n >= 1, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("records must be finite, got NaN or infinity")
    if name == "perceptual":
        return _edges(x)
    flat = x.reshape(len(x), -1)
    if name == "l2":
        return flat
    norms = np.linalg.norm(flat, axis=1, keepdims=True)
    return flat / np.where(norms > 0.0, norms, 1.0)


def between(first: Array, second: Array) -> Array:
    """Euclidean distances of features, [n, k] and [m, k] to [n, m]; exactly 0 between equal rows.

    By differences, not by inner products: these lose half of the digits of a small distance.
    """
    return distance.cdist(first, second)


def _edges(x: Array) -> Array:
    least = 2 * max(_SCALES)
    if x.ndim != 4 or min(x.shape[1:3]) < least:
        raise ValueError(
            f"distance perceptual must be between images [n, h, w, channels] of at least {least}x{least}, "
            f"got records of shape {x.shape[1:]}"
        )
    grey = x.mean(axis=3)
    parts: list[Array] = []
    for scale in _SCALES:
        height, width = (side // scale for side in grey.shape[1:])
        small = grey[:, : height * scale, : width * scale]
        small = small.reshape(len(x), height, scale, width, scale).mean(axis=(2, 4))
        edges = [np.diff(small, axis=axis).reshape(len(x), -1) for axis in (1, 2)]
        both = np.concatenate(edges, axis=1)
        strength = np.sqrt(np.mean(both**2, axis=1, keepdims=True))
        parts.append(both / (strength + _FLAT) / np.sqrt(len(_SCALES) * both.shape[1]))
    return np.concatenate(parts, axis=1)
