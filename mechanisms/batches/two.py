"""Two independent batches a step: a private one, and one for what is public."""

from __future__ import annotations

import jax

from exactdp.mechanisms.batches.batch import Batch, Sampler


def two_batches(
    private: Sampler, public: Sampler, *, key: jax.Array, step: int | jax.Array
) -> tuple[Batch, Batch]:
    """The private and the public batch of a step, from independent keys.

    With the public gradient on an independent batch, the private batch's coins stay hidden and the private
    sampler's `releases` hold with `coins="hidden"`. On one and the same batch the public part would tell who
    was sampled: that is `coins="visible"`.

    Args:
      private: sampler for what is private, as a rule `Poisson`.
      public: sampler for what is public, as a rule `FixedSize`.
      key: the run key.
      step: which step; may be traced.

    Raises:
      ValueError: as `keys.step_key`.

    Source: Mahloujifar et al. 2025 (arXiv 2506.19836), Algorithm 1.
    """
    return (
        private.draw(key, step=step, purpose="batch"),
        public.draw(key, step=step, purpose="public_batch"),
    )
