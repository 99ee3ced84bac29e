"""Shuffled batches: a new random order every epoch, cut into batches. Not Poisson."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from exactdp.accounting import validate
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.prv import Composition
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import batch, cyclic, selection
from exactdp.mechanisms.batches.batch import Batch


@dataclasses.dataclass(frozen=True)
class Shuffled:
    """The usual loader: each epoch permutes the records and cuts the order into batches.

    Training in this way and accounting for it as Poisson batches of the same size is a common mistake: the
    true privacy loss can be much larger (Chua et al. 2024, arXiv 2403.17673, arXiv 2411.04205). Here it is
    accounted for without amplification: one release of a record per epoch, at full price.

    The order is sorted anew at every step, so it costs what a sort of n numbers costs.

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: from 1 to n; the last batch of an epoch may hold fewer.

    Raises:
      ValueError: an argument is out of its range.
    """

    num_records: int
    batch_size: int

    def __post_init__(self) -> None:
        batch.require_part(self.num_records, self.batch_size)

    @property
    def capacity(self) -> int:
        """Slots of a batch."""
        return self.batch_size

    @property
    def num_batches(self) -> int:
        """Steps of an epoch."""
        return -(-self.num_records // self.batch_size)

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

    def pair(self, pair: Pair, *, coins: str = "visible") -> Pair:
        """The pair of the one step of an epoch that a record is in: the pair itself.

        Args:
          pair: dominating pair of the mechanism without sampling under *replacement* of a record (adding one
            moves others between batches).
          coins: `"visible"`.

        Raises:
          ValueError: `pair` is no `Pair`, or `coins` is `"hidden"`.
        """
        return cyclic.unsampled(pair, coins=coins, name="shuffled")

    def releases(self, pair: Pair, *, num_steps: int, coins: str = "visible") -> Composition:
        """What `num_steps` steps release of one record: the pair, once for every epoch begun.

        Raises:
          ValueError: as `pair`, or `num_steps` is no count >= 1.
        """
        steps = validate.count("num_steps", num_steps, minimum=1)
        return [(self.pair(pair, coins=coins), -(-steps // self.num_batches))]


# Jitted, so that a draw outside of any jitted step is one call too.
@functools.partial(jax.jit, static_argnames="num_records")
def _order(key: jax.Array, *, num_records: int) -> jax.Array:
    high, low = keys.words(key, (num_records,))
    return selection.order(high, low)
