"""Precision and recall of generated images: how real they are, and how much of the real they cover."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num
from scipy.spatial import distance

from exactdp.accounting import validate
from exactdp.train.diffusion.frechet import checked

_ROWS = 512  # of a table of distances that is in memory


class PrecisionRecall(NamedTuple):
    """Attributes in [0, 1].

    Attributes:
      precision: share of generated images within the real manifold.
      recall: share of real images within the generated manifold.
    """

    precision: float
    recall: float


def precision_recall(
    real: Num[np.ndarray, "n d"], generated: Num[np.ndarray, "m d"], *, neighbours: int = 3
) -> PrecisionRecall:
    """Improved precision and recall.

    The manifold of a set is the union of balls round its points, each as large as the distance to the point's
    k-th nearest neighbour in the set (itself not counted). A point on a ball's border is inside.

    Args:
      real: features of real images, n > neighbours.
      generated: features of generated ones, m > neighbours. Sets of equal size are compared best.
      neighbours: k >= 1.

    Raises:
      ValueError: an argument is outside its range, or features differ in number.

    Source: arXiv 1904.06991.
    """
    k = validate.count("neighbours", neighbours, 1)
    checked("real", real, least=k + 1)
    checked("generated", generated, least=k + 1)
    if real.shape[1] != generated.shape[1]:
        raise ValueError(
            f"generated must have {real.shape[1]} features as real has, got {generated.shape[1]}"
        )
    first, second = np.asarray(real, np.float64), np.asarray(generated, np.float64)
    return PrecisionRecall(
        precision=float(np.mean(_covered(second, first, _radii(first, k)))),
        recall=float(np.mean(_covered(first, second, _radii(second, k)))),
    )


def _radii(points: Float[np.ndarray, "n d"], k: int) -> Float[np.ndarray, " n"]:
    """Distance of each point to its k-th nearest other."""
    radii = np.empty(len(points))
    for start in range(0, len(points), _ROWS):
        table = distance.cdist(points[start : start + _ROWS], points)
        # The point itself is at distance 0, and one of the k + 1 least.
        radii[start : start + _ROWS] = np.partition(table, k, axis=1)[:, k]
    return radii


def _covered(
    points: Float[np.ndarray, "m d"], centres: Float[np.ndarray, "n d"], radii: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " m"]:
    """Whether each point is in some ball."""
    inside = np.empty(len(points), np.bool_)
    for start in range(0, len(points), _ROWS):
        table = distance.cdist(points[start : start + _ROWS], centres)
        inside[start : start + _ROWS] = (table <= radii).any(1)
    return inside
