"""Shuffled batches: a new random order every epoch, cut into batches. Not Poisson."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import selection
from exactdp.mechanisms.batches.batch import Batch
from exactdp.mechanisms.batches.epochs import Epochs


@dataclasses.dataclass(frozen=True)
class Shuffled(Epochs):
    """The usual loader: each epoch permutes the records and cuts the order into batches.

    Training in this way and accounting for it as Poisson batches of the same size is a common mistake: the
    true privacy loss can be much larger (Chua et al. 2024, arXiv 2403.17673, arXiv 2411.04205). Here it is
    accounted for without amplification: one release of a record per epoch, at full price. The pair must be
    that of *replacement*: adding a record moves others between batches.

    The order is sorted anew at every step, so it costs what a sort of n numbers costs.

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: from 1 to n; the last batch of an epoch may hold fewer.

    Raises:
      ValueError: an argument is out of its range.
    """

    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step: a function of key and step alone.

        Raises:
          ValueError: as `keys.step_key`.
        """
        n, m = self.num_records, self.batch_size
        order = _order(keys.step_key(key, step=step // self.num_batches, purpose=purpose), num_records=n)
        slots = (step % self.num_batches) * m + jnp.arange(m, dtype=jnp.int32)
        mask = slots < n
        return Batch(
            indices=jnp.where(mask, order[jnp.minimum(slots, n - 1)], 0),
            mask=mask,
            size=mask.sum(dtype=jnp.int32),
        )


# Jitted, so that a draw outside of any jitted step is one call too.
@functools.partial(jax.jit, static_argnames="num_records")
def _order(key: jax.Array, *, num_records: int) -> jax.Array:
    high, low = keys.words(key, (num_records,))
    return selection.order(high, low)
