"""The neighbouring data sets of the audit: real records, one of them with a feature that no other has."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from exactdp.train.data import Dataset
from exactdp.train.task import Records


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Two data sets that differ in one feature of one record, whose label is the same.

    Attributes:
      present: its first record has the feature at 1.
      absent: the same records, all with the feature at 0.
      feature: index into the flattened record.
    """

    present: Records
    absent: Records
    feature: int


def neighbours(dataset: Dataset, *, records: int) -> Neighbours:
    """The first records of a data set, with and without a feature that none of them has.

    Args:
      dataset: features in [0, 1].
      records: how many, >= 1.

    Raises:
      ValueError: there are fewer, or every feature occurs in one of them.
    """
    if records > len(dataset.x):
        raise ValueError(f"records must be at most {len(dataset.x)}, those of {dataset.name}, got {records}")
    absent = dataset.x[:records].reshape(records, -1)
    free = np.flatnonzero(np.all(absent == 0.0, axis=0))
    if not free.size:
        raise ValueError(
            f"dataset must have a feature that is 0 in the {records} records, got {dataset.name} without one"
        )
    present = absent.copy()
    present[0, free[0]] = 1.0
    labels = jnp.asarray(dataset.y[:records])
    return Neighbours(
        Records(jnp.asarray(present), labels), Records(jnp.asarray(absent), labels), int(free[0])
    )
