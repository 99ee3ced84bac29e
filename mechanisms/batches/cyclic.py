"""Cyclic batches: a fixed partition of the records, every record once an epoch."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from exactdp.accounting import validate
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.prv import Composition
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import batch
from exactdp.mechanisms.batches.batch import Batch


@dataclasses.dataclass(frozen=True)
class Cyclic:
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
        """B: steps of an epoch."""
        return -(-self.num_records // self.batch_size)

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

    def pair(self, pair: Pair, *, coins: str = "visible") -> Pair:
        """The pair of the one step of an epoch that a record is in: the pair itself.

        Raises:
          ValueError: `pair` is no `Pair`, or `coins` is `"hidden"`: there are none to hide.
        """
        return unsampled(pair, coins=coins, name="cyclic")

    def releases(self, pair: Pair, *, num_steps: int, coins: str = "visible") -> Composition:
        """What `num_steps` steps release of one record: the pair, once for every epoch begun.

        Raises:
          ValueError: as `pair`, or `num_steps` is no count >= 1.
        """
        steps = validate.count("num_steps", num_steps, minimum=1)
        return [(self.pair(pair, coins=coins), -(-steps // self.num_batches))]


def unsampled(pair: Pair, *, coins: str, name: str) -> Pair:
    """`pair`, for batches that are not sampled; hidden coins are refused.

    Raises:
      ValueError: `pair` is no `Pair`, or `coins` is not `"visible"`.
    """
    if not isinstance(pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"pair must be a dominating pair without sampling, got {pair!r}")
    if coins != "visible":
        raise ValueError(
            f"coins must be visible for {name} batches: they are not Poisson-sampled and get no "
            f"amplification (use Poisson or FixedSize for that), got {coins!r}"
        )
    return pair
