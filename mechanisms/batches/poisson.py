"""Poisson batches: every record independently, with one probability."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.pairs.base import Pair
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.prv import Composition
from exactdp.accounting.sampling import truncated
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.mechanisms import keys
from exactdp.mechanisms.batches import batch, selection
from exactdp.mechanisms.batches.batch import Batch

_GRID = 2**32

Sampled = PoissonHidden | PoissonVisible | PoissonReplaceGaussian


@dataclasses.dataclass(frozen=True)
class Poisson:
    """Every record joins a batch independently with probability q; the batch is padded to `capacity`.

    A record is drawn where a uniform 32-bit integer is below floor(2^32 q). So the coins are exact, at the
    probability `realised_probability` <= q; accounting at q is an upper bound, as a step at a lower rate is
    one at q whose records are dropped independently once more.

    A draw of more than `capacity` records keeps a uniformly random subset of that size. What this costs is
    derived in `accounting.sampling.truncated`, and `releases` charges it. With capacity >= num_records
    nothing is ever dropped, and the mechanism is taken to be the one that never drops, at every size of data
    set.

    An empty batch is a batch: the step still adds its noise.

    Args:
      num_records: n, from 1 to 2^30.
      sampling_probability: q in [0, 1], a public constant that does not follow the data set; 0 or >= 2^-32.
      capacity: slots of a batch, >= 1.

    Raises:
      ValueError: an argument is out of its range.

    Source: truncated batches: Chua et al. 2024 (arXiv 2411.04205).
    """

    num_records: int
    sampling_probability: float
    capacity: int

    def __post_init__(self) -> None:
        batch.require_records(self.num_records)
        validate.count("capacity", self.capacity, minimum=1)
        q = validate.probability("sampling_probability", self.sampling_probability)
        if 0.0 < q < 1.0 / _GRID:
            raise ValueError(f"sampling_probability must be 0 or at least 2^-32, got {q}")

    @property
    def realised_probability(self) -> float:
        """floor(2^32 q) / 2^32: with which probability a record is drawn."""
        return math.floor(self.sampling_probability * _GRID) / _GRID

    @property
    def expected_size(self) -> float:
        """q n, a public constant: what sums over batches are divided by."""
        return self.num_records * self.sampling_probability

    @property
    def overflow_probability(self) -> float:
        """Upper bound of the probability that others fill a batch, so that one more record is too many."""
        return truncated.overflow_probability(
            self.num_records, sampling_probability=self.sampling_probability, capacity=self.capacity
        )

    def draw(self, key: jax.Array, *, step: int | jax.Array, purpose: str = "batch") -> Batch:
        """The batch of a step: a function of key and step alone, on whichever devices it is computed.

        Args:
          key: the run key.
          step: which step; may be traced.
          purpose: `"batch"`, or `"public_batch"` for a second, independent one.

        Raises:
          ValueError: as `keys.step_key`.
        """
        return _draw(self, keys.step_key(key, step=step, purpose=purpose))

    def pair(self, pair: Pair, *, coins: str = "hidden", adjacency: str = "add_remove") -> Sampled:
        """The sampled pair of one step whose batch is not truncated; `releases` adds the truncation.

        Args:
          pair: dominating pair of the mechanism without sampling, under the same neighbouring relation.
          coins: `"hidden"`, or `"visible"` where anything released tells who was sampled.
          adjacency: `"add_remove"` or `"replace"`; with hidden coins replacement is known for
            `Gaussian(noise_multiplier, sensitivity=2.0)` only.

        Raises:
          ValueError: the combination is not one that is accounted for.
        """
        validate.one_of("coins", coins, ("hidden", "visible"))
        validate.one_of("adjacency", adjacency, ("add_remove", "replace"))
        if coins == "visible":
            return PoissonVisible(pair, self.sampling_probability)
        if adjacency == "add_remove":
            return PoissonHidden(pair, self.sampling_probability)
        if not isinstance(pair, Gaussian) or pair.sensitivity != 2.0:
            raise ValueError(
                "pair must be Gaussian(noise_multiplier, sensitivity=2.0) for Poisson batches under "
                f"replacement with hidden coins, got {pair!r}"
            )
        return PoissonReplaceGaussian(pair.noise_multiplier, self.sampling_probability)

    def releases(
        self, pair: Pair, *, num_steps: int, coins: str = "hidden", adjacency: str = "add_remove"
    ) -> Composition:
        """What `num_steps` steps release, truncated batches included: a composition for any accountant.

        Args:
          pair: as in `pair`.
          num_steps: T >= 1.
          coins: as in `pair`.
          adjacency: as in `pair`.

        Raises:
          ValueError: as `pair`, or `num_steps` is no count.
        """
        steps = validate.count("num_steps", num_steps, minimum=1)
        sampled = self.pair(pair, coins=coins, adjacency=adjacency)
        failure = truncated.failure(
            self.num_records, sampling_probability=self.sampling_probability, capacity=self.capacity
        )
        return [(sampled, steps)] if failure is None else [(sampled, steps), (failure, steps)]


# Jitted, so that a draw outside of any jitted step is one call too.
@functools.partial(jax.jit, static_argnums=0)
def _draw(sampler: Poisson, key: jax.Array) -> Batch:
    coins, rest = jax.random.split(key)
    values = selection.uniform_words(coins, sampler.num_records)
    threshold = math.floor(sampler.sampling_probability * _GRID)
    selected = values < np.uint32(threshold) if threshold < _GRID else jnp.ones(values.shape, bool)
    indices, size = selection.first_selected(selected, capacity=sampler.capacity)
    if sampler.capacity < sampler.num_records:
        # The smallest of independent uniform numbers are a uniformly random subset of those below any
        # threshold. Finding them takes a hundred passes, and is done in a step that overflows only.
        indices = jax.lax.cond(
            size > sampler.capacity,
            lambda: selection.smallest(
                values, selection.uniform_words(rest, sampler.num_records), count=sampler.capacity
            ),
            lambda: indices,
        )
    mask = jnp.arange(sampler.capacity, dtype=jnp.int32) < size
    return Batch(indices=indices, mask=mask, size=size)
