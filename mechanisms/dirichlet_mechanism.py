"""The Dirichlet mechanism on a classifier's softmax output."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax.scipy import special
from jax.typing import ArrayLike

from exactdp.accounting import threat, validate
from exactdp.accounting.pairs import dirichlet as accounting
from exactdp.mechanisms import dirichlet


@dataclasses.dataclass(frozen=True)
class DirichletMechanism:
    """Releases rho ~ Dir(r softmax(z) + alpha 1) for the logits z of one record.

    Formal guarantee: one draw, with the record's input replaced and its label kept, is dominated by `pair()`
    where `exactdp.accounting.pairs.dirichlet.Dirichlet` dominates all pairs of inputs (alpha >= 1/2, or two
    classes; for smaller offsets see `exactdp.accounting.worst_pair`). What is released is rho. A gradient
    computed from rho and from the record itself is not post-processing of rho, so that nothing here
    certifies weights trained with it.

    Args:
      scaling: r > 0.
      offset: alpha > 0.

    Raises:
      ValueError: an argument is not finite or not positive.

    Source: arXiv 2607.19580v1, Algorithm 1 and Theorem 11.
    """

    scaling: float
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scaling", validate.positive("scaling", self.scaling))
        object.__setattr__(self, "offset", validate.positive("offset", self.offset))

    @property
    def threat_model(self) -> threat.ThreatModel:
        """What `pair()` is about: the input replaced, the label public and kept, one draw rho released."""
        return threat.ThreatModel(
            threat.Adjacency.REPLACE_LABEL_PUBLIC,
            threat.Coins.NONE,
            "one draw rho of a record's softmax output",
        )

    def pair(self) -> accounting.Dirichlet:
        """The pair that accounts for one draw under `threat_model`."""
        return accounting.Dirichlet(scaling=self.scaling, offset=self.offset)

    def concentration(self, logits: ArrayLike) -> jax.Array:
        """r softmax(logits) + alpha, float32, shape (..., classes).

        Raises:
          ValueError: `logits` has no class axis.
        """
        z = jnp.asarray(logits)
        if z.ndim == 0:
            raise ValueError(f"logits must have a class axis, got a scalar of dtype {z.dtype}")
        return self.scaling * jax.nn.softmax(z.astype(jnp.float32), axis=-1) + self.offset

    def log_draw(self, key: jax.Array, logits: ArrayLike) -> jax.Array:
        """Draws log rho for every row of logits, with the pathwise gradient in the logits.

        The mean of the gradient of -log rho_y is `kappa(softmax(z)_y)` times that of the cross entropy
        (Theorem 11).

        Args:
          key: one typed PRNG key, used here and nowhere else.
          logits: z, shape (..., classes); converted to float32.

        Returns:
          log rho, float32, shape (..., classes); a row with a NaN or +inf logit is NaN.

        Raises:
          ValueError: `logits` has no class axis, or `key` is no typed scalar key.
        """
        return dirichlet.log_sample(key, self.concentration(logits))

    def kappa(self, label_probability: ArrayLike) -> jax.Array:
        """The factor of Theorem 11: kappa = r s psi'(r s + alpha), psi' the trigamma function.

        Args:
          label_probability: s = softmax(z)_y in [0, 1], any shape.

        Returns:
          kappa >= 0, float32, the shape of `label_probability`; NaN outside the range.
        """
        s = jnp.asarray(label_probability).astype(jnp.float32)
        rate = self.scaling * s
        value = rate * special.polygamma(1, rate + self.offset)
        return jnp.where((s >= 0.0) & (s <= 1.0), value, jnp.nan)

    def effective_learning_rate(
        self, learning_rate: ArrayLike, *, label_probability: ArrayLike = 0.9
    ) -> jax.Array:
        """The rate of cross-entropy descent that moves as fast on average: gamma kappa(s).

        Args:
          learning_rate: gamma, any shape.
          label_probability: s, 0.9 in the paper; it is the value at which curves are compared, not a
            property of the data.

        Returns:
          gamma kappa(s), float32. For a wanted effective rate, divide it by `kappa(s)`.
        """
        return jnp.asarray(learning_rate).astype(jnp.float32) * self.kappa(label_probability)
