"""Batches of one size, drawn without replacement."""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp

from exactdp.accounting import validate
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.prv import Composition
from exactdp.accounting.sampling import fixed_size
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import selection
from exactdp.mechanisms.batches.batch import Batch, Part


@dataclasses.dataclass(frozen=True)
class FixedSize(Part):
    """A uniformly random set of m of n records, drawn anew and independently at every step.

    The m records with the smallest of independent 64-bit uniform numbers; that two numbers agree where it
    matters (probability about n 2^-64 a step) is the only departure from uniform.

    Args:
      num_records: n, from 1 to 2^30.
      batch_size: m, from 1 to n.

    Raises:
      ValueError: an argument is out of its range.
    """

    @property
    def sampling_probability(self) -> float:
        """m / n, rounded upwards."""
        value = self.batch_size / self.num_records
        if Fraction(value) < Fraction(self.batch_size, self.num_records):
            value = math.nextafter(value, math.inf)
        return value

    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step: a function of key and step alone.

        Args:
          key: the run key.
          step: which step; may be traced.
          purpose: `"batch"` or `"public_batch"`.

        Raises:
          ValueError: as `keys.step_key`.
        """
        return _draw(self, keys.step_key(key, step=step, purpose=purpose))

    def pair(
        self, pair: Pair, *, coins: str = "hidden", adjacency: str = "replace"
    ) -> fixed_size.FixedSize | PoissonVisible:
        """The sampled pair of one step.

        Args:
          pair: dominating pair of the mechanism without sampling under *replacement* of a record.
          coins: `"hidden"`; or `"visible"`, when a step is the erasure mixture of rate m / n, as it is for
            Poisson batches.
          adjacency: `"replace"`: adding a record changes every other record's chance.

        Raises:
          ValueError: the combination is not one that is accounted for.
        """
        validate.one_of("coins", coins, ("hidden", "visible"))
        validate.one_of("adjacency", adjacency, ("replace",))
        if coins == "visible":
            return PoissonVisible(pair, self.sampling_probability)
        return fixed_size.FixedSize(pair, self.sampling_probability)

    def releases(
        self, pair: Pair, *, num_steps: int, coins: str = "hidden", adjacency: str = "replace"
    ) -> Composition:
        """What `num_steps` steps release: a composition for any accountant.

        Raises:
          ValueError: as `pair`, or `num_steps` is no count >= 1.
        """
        steps = validate.count("num_steps", num_steps, minimum=1)
        return [(self.pair(pair, coins=coins, adjacency=adjacency), steps)]


# Jitted, so that a draw outside of any jitted step is one call too.
@functools.partial(jax.jit, static_argnums=0)
def _draw(sampler: FixedSize, key: jax.Array) -> Batch:
    n, m = sampler.num_records, sampler.batch_size
    first, second, third = jax.random.split(key, 3)
    values = selection.uniform_words(first, n)

    def sort_all() -> jax.Array:
        return selection.smallest(values, selection.uniform_words(third, n), count=m)

    # The m smallest are nearly always among those below a threshold that lets a few more pass; only
    # those are sorted. Where too few or too many pass, all are.
    spread = math.sqrt(m) + 1.0
    slots, share = math.ceil(m + 16.0 * spread), (m + 8.0 * spread) / n
    if 2 * slots >= n:
        indices = sort_all()
    else:
        threshold = math.floor(share * 2**32)
        below, count = selection.first_selected(values < threshold, capacity=slots)
        found = jnp.where(jnp.arange(slots) < count, values[below], jnp.uint32(2**32 - 1))
        among = selection.smallest(found, selection.uniform_words(second, slots), count=m)
        indices = jax.lax.cond((count >= m) & (count <= slots), lambda: below[among], sort_all)
    return Batch(indices=indices, mask=jnp.ones(m, bool), size=jnp.int32(m))
