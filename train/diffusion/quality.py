"""What generated images are worth, by one encoder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from exactdp.train.diffusion.encoder import Encoder, require_images
from exactdp.train.diffusion.frechet import frechet_distance, moments
from exactdp.train.diffusion.precision_recall import precision_recall


class Quality(NamedTuple):
    """Generated images beside real ones.

    Attributes:
      distance_name: what the distance is called; only Inception's is called FID.
      distance: Fréchet distance, >= 0.
      precision: share of generated images within the real manifold.
      recall: share of real images within the generated manifold.
      num_real: real images.
      num_generated: generated images.
    """

    distance_name: str
    distance: float
    precision: float
    recall: float
    num_real: int
    num_generated: int


def quality(
    real: UInt8[np.ndarray, "n h w c"],
    generated: UInt8[np.ndarray, "m h w c"],
    *,
    encoder: Encoder,
    neighbours: int = 3,
) -> Quality:
    """Fréchet distance, precision and recall on an encoder's features.

    Both sets are bytes, so that rounding to pixels does not tell them apart. The numbers are functions of the
    real images: of private ones they are a release that no ledger counts. All three depend on how many images
    there are; compare equal numbers.

    Args:
      real: more than `neighbours` of them.
      generated: more than `neighbours`, of the same shape.
      encoder: makes the features.
      neighbours: k of precision and recall, >= 1.

    Raises:
      ValueError: an argument is outside its range.
    """
    require_images(real)
    require_images(generated)
    if real.shape[1:] != generated.shape[1:]:
        raise ValueError(
            f"generated must be of the shape of real, {real.shape[1:]}, got {generated.shape[1:]}"
        )
    first, second = encoder.features(real), encoder.features(generated)
    shares = precision_recall(first, second, neighbours=neighbours)
    distance = frechet_distance(moments(first), moments(second))
    return Quality(encoder.distance_name, distance, *shares, len(real), len(generated))
