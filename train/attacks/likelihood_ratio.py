"""What a step tells about a record: the log-likelihood ratio of the noisy gradient sum that it released.

With z the released sum in clip norms, v the record's clipped gradient at the weights before the step, s the
noise multiplier and q the sampling probability, the record being in against out,

    l = log(1 - q + q exp((<z, v> - |v|^2 / 2) / s^2)),

and l of the record less l of the other one where one record stands for another. Where no other record has a
gradient along v, the sum of l over the steps is the log-likelihood ratio of all that was released: no test
has fewer errors (Neyman and Pearson). Elsewhere it is a score like another, and bounds from it hold as well.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms import clipping
from exactdp.train.objective import ExampleLosses, Examples
from exactdp.train.state import Parameters


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
    """How the noisy sum follows from two weights in a row: (before - after) * scale, in clip norms.

    Attributes:
      scale: the divisor of sums over learning rate and clip norm, > 0.
      clip_norm: C > 0.
      noise_multiplier: s > 0, as claimed.
      sampling_probability: q in (0, 1], as claimed.

    Raises:
      ValueError: a value is outside its range.
    """

    scale: float
    clip_norm: float
    noise_multiplier: float
    sampling_probability: float

    def __post_init__(self) -> None:
        for name in ("scale", "clip_norm", "noise_multiplier", "sampling_probability"):
            validate.positive(name, getattr(self, name))
        validate.probability("sampling_probability", self.sampling_probability)

    def noisy_sum(self, before: Parameters, after: Parameters) -> Parameters:
        """The sum that a step of plain gradient descent released."""
        return jax.tree.map(lambda a, b: (a - b) * self.scale, before, after)


@dataclasses.dataclass(frozen=True, eq=False)
class Canaries:
    """Records whose presence is to be told, each on its own.

    Attributes:
      losses: what is clipped, one loss a record.
      examples: the records as `losses` takes them, a row a canary.
      others: what stands in their place where they are out; None where nothing does.
    """

    losses: ExampleLosses
    examples: Examples
    others: Examples | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Coins:
    """Tells whether a step sampled a record whose public gradient is added without clipping.

    Attributes:
      losses: the public loss, one a record.
      examples: the records' public views, a row a canary.
    """

    losses: ExampleLosses
    examples: Examples

    def seen(self, released: Released, params: Parameters, total: Parameters) -> Float[Array, " canaries"]:
        """1 where the released sum has more than half of the public gradient in its direction, else 0."""
        along, square = _projected(self.losses, params, self.examples, total, clip_norm=None)
        return (along * released.clip_norm > square / 2.0).astype(jnp.float32)


@dataclasses.dataclass(frozen=True, eq=False)
class Ratio:
    """The increment of a score: l of each canary, from the weights around a step.

    Attributes:
      released: what the step released.
      canaries: of whom.
      coins: what tells the sampled steps apart; None where coins are hidden.
    """

    released: Released
    canaries: Canaries
    coins: Coins | None = None

    def __call__(self, before: Parameters, after: Parameters) -> Float[Array, " canaries"]:
        total = self.released.noisy_sum(before, after)
        present = self._log_ratio(before, total, self.canaries.examples)
        absent: Array | float = 0.0
        if self.canaries.others is not None:
            absent = self._log_ratio(before, total, self.canaries.others)
        if self.coins is None:
            return self._mixed(present) - (0.0 if self.canaries.others is None else self._mixed(absent))
        return self.coins.seen(self.released, before, total) * (present - absent)

    def _log_ratio(
        self, params: Parameters, total: Parameters, examples: Examples
    ) -> Float[Array, " canaries"]:
        """(<z, v> - |v|^2 / 2) / s^2."""
        along, square = _projected(
            self.canaries.losses, params, examples, total, clip_norm=self.released.clip_norm
        )
        return (along - square / 2.0) / self.released.noise_multiplier**2

    def _mixed(self, ratio: Array | float) -> Array:
        q = self.released.sampling_probability
        if q == 1.0:
            return jnp.asarray(ratio)
        return jnp.logaddexp(jnp.log1p(-q), jnp.log(q) + ratio)


@dataclasses.dataclass(frozen=True, eq=False)
class Projection:
    """A plainer increment: <z, v>, the released sum along each canary's clipped gradient, in clip norms.

    It needs no idea of the noise. Where other records have gradients along v, they are most of what there is
    along it, and the log-likelihood ratio, which takes it for noise of size s, is misled.

    Attributes:
      released: what the step released.
      canaries: of whom.
    """

    released: Released
    canaries: Canaries

    def __call__(self, before: Parameters, after: Parameters) -> Float[Array, " canaries"]:
        total = self.released.noisy_sum(before, after)
        along, _ = _projected(
            self.canaries.losses, before, self.canaries.examples, total, clip_norm=self.released.clip_norm
        )
        return along


@dataclasses.dataclass(frozen=True, eq=False)
class NegativeLoss:
    """A score from the final weights alone: minus the loss of each canary, or the difference to the other's.

    Attributes:
      losses: the model's loss.
      examples: the canaries.
      others: what stands in their place; None for nothing.
    """

    losses: ExampleLosses
    examples: Examples
    others: Examples | None = None

    def __call__(self, params: Parameters) -> Float[Array, " canaries"]:
        found = -self.losses(params, self.examples)
        return found if self.others is None else found + self.losses(params, self.others)


def _projected(
    losses: ExampleLosses,
    params: Parameters,
    examples: Examples,
    total: Parameters,
    *,
    clip_norm: float | None,
) -> tuple[Float[Array, " canaries"], Float[Array, " canaries"]]:
    """<total, v> and |v|^2 for the gradient v of each record, clipped to norm C and in units of it, if any.

    One forward derivative along `total` has all the products.
    """
    _, along = jax.jvp(lambda p: losses(p, examples), (params,), (total,))
    counted = jnp.ones(along.shape, bool)
    norms = clipping.clipped_grad(losses, clip_norm=1.0)(params, examples, counted).norms
    if clip_norm is None:
        return along, norms**2
    # min(1, C / norm) / C, and 0 for a gradient that is 0.
    factor = jnp.where(norms > 0.0, jnp.minimum(1.0 / clip_norm, 1.0 / jnp.maximum(norms, 1e-30)), 0.0)
    return along * factor, (norms * factor) ** 2
