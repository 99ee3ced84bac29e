"""Batches that visit every record once an epoch: what they have in common, without amplification."""

from __future__ import annotations

import abc
import dataclasses

import jax

from exactdp.accounting import validate
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.prv import Composition
from exactdp.mechanisms.batches.batch import Batch, Part


@dataclasses.dataclass(frozen=True)
class Epochs(Part, abc.ABC):
    """Batches of a partition of the records, B = ceil(n / batch_size) of them an epoch.

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: from 1 to n; slots of a batch.

    Raises:
      ValueError: an argument is out of its range.
    """

    @property
    def num_batches(self) -> int:
        """B: steps of an epoch."""
        return -(-self.num_records // self.batch_size)

    @abc.abstractmethod
    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step."""

    def pair(self, pair: Pair, *, coins: str = "visible") -> Pair:
        """The pair of the one step of an epoch that a record is in: the pair itself.

        Args:
          pair: dominating pair of the mechanism without sampling.
          coins: `"visible"`; there are none to hide.

        Raises:
          ValueError: `pair` is no `Pair`, or `coins` is not `"visible"`.
        """
        if not isinstance(pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"pair must be a dominating pair without sampling, got {pair!r}")
        if coins != "visible":
            raise ValueError(
                f"coins must be visible for {type(self).__name__.lower()} batches: they are not "
                f"Poisson-sampled and get no amplification (use Poisson or FixedSize for that), got {coins!r}"
            )
        return pair

    def releases(self, pair: Pair, *, num_steps: int, coins: str = "visible") -> Composition:
        """What `num_steps` steps release of one record: the pair, once for every epoch begun.

        Raises:
          ValueError: as `pair`, or `num_steps` is no count >= 1.
        """
        steps = validate.count("num_steps", num_steps, minimum=1)
        return [(self.pair(pair, coins=coins), -(-steps // self.num_batches))]
