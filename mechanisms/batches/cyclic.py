"""Cyclic batches: a fixed partition of the records, every record once an epoch."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches.batch import Batch
from exactdp.mechanisms.batches.epochs import Epochs


@dataclasses.dataclass(frozen=True)
class Cyclic(Epochs):
    """Batch b of every epoch holds the records i with i mod B = b, B = ceil(n / batch_size).

    No coins, hence no amplification: a record pays for one release an epoch at full price, whatever the
    batch size.

    Add/remove neighbours keep everyone else's place: a new record gets the next number, a removed one
    leaves its slot empty, and B, a public constant, stays. (Renumbering after a removal would move other
    records between batches, which no pair here covers.)

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: from 1 to n; slots of a batch. Batches hold floor(n / B) or ceil(n / B) records.

    Raises:
      ValueError: an argument is out of its range.
    """

    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step. It uses no randomness: key and purpose are checked, as every sampler's are.

        Raises:
          ValueError: as `keys.step_key`.
        """
        keys.step_key(key, step=step, purpose=purpose)
        index = jnp.asarray(step, jnp.int32) % self.num_batches
        indices = index + self.num_batches * jnp.arange(self.batch_size, dtype=jnp.int32)
        mask = jnp.arange(self.batch_size) <= (self.num_records - 1 - index) // self.num_batches
        return Batch(indices=jnp.where(mask, indices, 0), mask=mask, size=mask.sum(dtype=jnp.int32))
