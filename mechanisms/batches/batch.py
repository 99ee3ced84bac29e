"""A batch: padded indices of records, and which of them count."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from exactdp.accounting import validate


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Indices of the records of one step, padded to a fixed length.

    Attributes:
      indices: which records, each at most once where `mask` is true. Padding is a valid index, 0.
      mask: which slots hold a record; false everywhere for an empty batch.
      size: how many records were drawn, which a truncated batch does not hold all of. It depends on the data
        set's size and on the coins: no part of what the accountant lets be released.
    """

    indices: Int32[Array, " capacity"]
    mask: Bool[Array, " capacity"]
    size: Int32[Array, ""]


class Sampler(Protocol):
    """What draws batches."""

    @property
    def num_records(self) -> int:
        """Number of records drawn from."""
        ...

    @property
    def capacity(self) -> int:
        """Number of slots of a batch."""
        ...

    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step."""
        ...


@dataclasses.dataclass(frozen=True)
class Part:
    """What samplers of batches of at most one size have in common.

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: from 1 to n; slots of a batch.

    Raises:
      ValueError: an argument is out of its range.
    """

    num_records: int
    batch_size: int

    def __post_init__(self) -> None:
        require_part(self.num_records, self.batch_size)

    @property
    def capacity(self) -> int:
        """Slots of a batch."""
        return self.batch_size


def local_part(batch: Batch, *, start: int | Array, stop: int | Array) -> Batch:
    """The part of a global batch whose records are in [start, stop), for a process that holds those.

    Slots stay where they were: over processes whose ranges partition the records, each true slot of the
    global batch is true in exactly one part. So a process may compute on its part and add its sum to those of
    the others, or write its records into their slots and let a reduce-scatter spread the batch evenly. No
    part can overflow.

    Args:
      batch: the global batch, the same on every process as `draw` depends on key and step alone.
      start: first record held here.
      stop: one past the last.

    Returns:
      A batch of the same capacity with indices relative to `start` (0 in padding); `size` counts the true
      slots here.

    Raises:
      ValueError: concrete bounds are no range.
    """
    if isinstance(start, (int, np.integer)) and isinstance(stop, (int, np.integer)):
        validate.count("stop - start", int(stop) - validate.count("start", start), minimum=0)
    mask = batch.mask & (batch.indices >= start) & (batch.indices < stop)
    indices = jnp.where(mask, batch.indices - jnp.asarray(start, jnp.int32), 0)
    return Batch(indices=indices, mask=mask, size=mask.sum(dtype=jnp.int32))


def require_part(num_records: object, batch_size: object) -> None:
    """Refuses sizes that are no batch of a data set, or a data set beyond what 32-bit indices can count.

    Raises:
      ValueError: `num_records` is not in [1, 2^30], or `batch_size` not in [1, num_records].
    """
    records = require_records(num_records)
    if validate.count("batch_size", batch_size, minimum=1) > records:
        raise ValueError(f"batch_size must be at most num_records = {records}, got {batch_size}")


def require_records(num_records: object) -> int:
    """`num_records` as an integer in [1, 2^30].

    Raises:
      ValueError: it is none.
    """
    records = validate.count("num_records", num_records, minimum=1)
    if records > 2**30:
        raise ValueError(f"num_records must be at most 2^30, got {num_records}")
    return records
