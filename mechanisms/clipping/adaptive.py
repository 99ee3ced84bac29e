"""A clip norm that follows a quantile of the gradient norms, privately.

With norms n_i of the drawn records, clip norm C, target quantile gamma and rate eta (Andrew et al.,
arXiv 1905.03871):

    b = (1 / B) (sum_i (1[n_i <= C] - 1/2) + N(0, std^2)) + 1/2,   C <- C exp(-eta (b - gamma)),

B being the expected batch size. A record moves the sum of centred bits by 1/2.
"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32

from exactdp.accounting import validate
from exactdp.mechanisms import noise


@dataclasses.dataclass(frozen=True)
class Quantile:
    """The geometric update of a clip norm.

    Args:
      target_quantile: gamma in [0, 1], the share of gradients that shall not be clipped.
      learning_rate: eta > 0; 0.2 in the paper.
      count_std: standard deviation of the noise on the sum of centred bits, > 0; a tenth to a twentieth of
      the
        expected batch size in the paper.
      expected_batch_size: B > 0, public (never the drawn size).

    Raises:
      ValueError: an argument is out of its range.
    """

    target_quantile: float
    learning_rate: float
    count_std: float
    expected_batch_size: float

    def __post_init__(self) -> None:
        validate.probability("target_quantile", self.target_quantile)
        for name in ("learning_rate", "count_std", "expected_batch_size"):
            validate.positive(name, getattr(self, name))

    @property
    def count_noise_multiplier(self) -> float:
        """Noise multiplier of the count's Gaussian release: count_std over its sensitivity 1/2."""
        return 2.0 * self.count_std

    def update(
        self,
        clip_norm: Float32[Array, ""],
        norms: Float32[Array, " records"],
        mask: Bool[Array, " records"],
        *,
        key: Array,
    ) -> Float32[Array, ""]:
        """The next clip norm; a release of its own, to be accounted beside the gradient's.

        Args:
          clip_norm: C that the norms are compared with.
          norms: of `Clipped`; not finite ones count as above C.
          mask: records that were drawn.
          key: for this release alone.
        """
        below = jnp.where(mask, jnp.where(norms <= clip_norm, 0.5, -0.5), 0.0)
        noisy = noise.gaussian(key, jnp.sum(below), std=self.count_std)
        share = noisy / self.expected_batch_size + 0.5
        return clip_norm * jnp.exp(-self.learning_rate * (share - self.target_quantile))


def effective_noise_multiplier(*, gradient_noise_multiplier: float, count_noise_multiplier: float) -> float:
    """Noise multiplier of one Gaussian mechanism with the privacy of both releases on the same records.

    Formula: z = (z_g^-2 + z_c^-2)^(-1/2), z_g the gradient's, z_c the count's (2 std of the count's noise).
    Source: arXiv 1905.03871, theorem 1.

    Raises:
      ValueError: an argument is not finite and positive.
    """
    first = validate.positive("gradient_noise_multiplier", gradient_noise_multiplier)
    second = validate.positive("count_noise_multiplier", count_noise_multiplier)
    return 1.0 / math.hypot(1.0 / first, 1.0 / second)


def gradient_noise_multiplier(*, noise_multiplier: float, count_noise_multiplier: float) -> float:
    """The gradient's noise multiplier z_g that leaves `noise_multiplier` for both releases together.

    Formula: z_g = (z^-2 - z_c^-2)^(-1/2). Source: arXiv 1905.03871, theorem 1.

    Raises:
      ValueError: an argument is not finite and positive, or the count alone costs as much.
    """
    whole = validate.positive("noise_multiplier", noise_multiplier)
    count = validate.positive("count_noise_multiplier", count_noise_multiplier)
    if count <= whole:
        raise ValueError(f"count_noise_multiplier must be > noise_multiplier {whole}, got {count}")
    return 1.0 / math.sqrt((1.0 / whole - 1.0 / count) * (1.0 / whole + 1.0 / count))
