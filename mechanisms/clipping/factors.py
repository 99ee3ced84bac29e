"""The weight c_i that clipping gives to a record, so that |c_i G_i| <= clip_norm."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32

from exactdp.accounting import validate

# Shares of the bound that rounding gets: of the root, the weight and the products; of adding up, a record.
_ROUNDING = 2.0**-18
_ADDING = 2.0**-24
# Far below it gamma would vanish beside the norms of float32, and the weights of zero gradients be infinite.
_LEAST_STABILITY = 1e-6


@dataclasses.dataclass(frozen=True)
class Flat:
    """c = min(1, C / |G|): gradients longer than the clip norm C are shortened to it (arXiv 1607.00133)."""

    def __call__(self, norms: Array, clip_norm: Array) -> Array:
        return jnp.minimum(1.0, clip_norm / jnp.maximum(norms, jnp.finfo(jnp.float32).tiny))


@dataclasses.dataclass(frozen=True)
class Automatic:
    """c = C / (|G| + gamma): every gradient is brought to about C, no threshold to tune.

    The sensitivity stays C. Source: Bu et al., arXiv 2206.07136 (AUTO-S), times C.

    Args:
      stability: gamma >= 1e-6; 0.01 in the paper.

    Raises:
      ValueError: `stability` is out of its range.
    """

    stability: float = 0.01

    def __post_init__(self) -> None:
        if validate.positive("stability", self.stability) < _LEAST_STABILITY:
            raise ValueError(f"stability must be >= {_LEAST_STABILITY:g}, got {self.stability}")

    def __call__(self, norms: Array, clip_norm: Array) -> Array:
        return clip_norm / (norms + self.stability)


Rescaling = Flat | Automatic


def undercut(
    clip_norms: Float32[Array, " groups"], *, records: int, norm_share: float
) -> Float32[Array, " groups"]:
    """The clip norms with room for rounding: C (1 - norm_share - 2^-18 - records 2^-24), at least C / 2.

    With u = 2^-24, a computed norm is at least (1 - norm_share)(1 - u) of the exact one (see `rounding`).
    The weight C / norm and its product with a number of the gradient are rounded fewer than 30 times, by 2 u
    each on a processor whose roots and quotients are not the nearest floats: 2^-18 = 64 u is room for that.

    Adding B contributions in float32 rounds B times, and differently when one of them is missing: the worst
    difference found, with all gradients alike, is B 2^-25.5 of C beyond C. That is measured. (A proof would
    need B^2.)

    Args:
      clip_norms: C of each clipping group.
      records: B.
      norm_share: share of a norm that rounding can take away.
    """
    return clip_norms * (1.0 - min(norm_share + _ROUNDING + records * _ADDING, 0.5))


def factors(
    squared_norms: Float32[Array, "records groups"],
    mask: Bool[Array, " records"],
    *,
    clip_norms: Float32[Array, " groups"],
    rescaling: Rescaling,
) -> tuple[Float32[Array, "records groups"], Bool[Array, " records"]]:
    """The weights, and which records have a finite gradient. `clip_norms` are those of `undercut`.

    A record that is masked out, or whose squared norm is not a finite float32 (a NaN or infinity anywhere in
    its gradient, or a norm beyond 1.8e19), gets the weight 0 in every group.
    """
    finite = jnp.all(jnp.isfinite(squared_norms), 1)
    norms = jnp.sqrt(jnp.where(finite[:, None], squared_norms, 0.0))
    weights = rescaling(norms, clip_norms)
    return jnp.where((finite & mask)[:, None], weights, 0.0), finite
