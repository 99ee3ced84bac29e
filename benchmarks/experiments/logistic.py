"""Logistic regression with private labels: the convex case of Theorem 6 of arXiv 2506.19836."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms.public import Public
from exactdp.train.objective import Residual, two_passes
from exactdp.train.state import Parameters
from exactdp.train.task import Records


class Signed(NamedTuple):
    """Inputs with the label as a sign; 0 where it is private.

    Attributes:
      x: one record a row, of norm at most 1.
      sign: 2 y - 1 in {-1, 1}, or 0.
    """

    x: Float[Array, "batch d"]
    sign: Float[Array, " batch"]


@dataclasses.dataclass(frozen=True)
class Logistic:
    """l(x, y) = log(1 + e^z) - y z with z = theta . x; for a private label y is taken to be 1/2.

    The residual of label DP is (1/2 - y) z: its gradient has norm |x| / 2 <= 1/2, so that a clip norm of 1/2
    never clips, and Theorem 6 holds as it is, with Lipschitz constants 1/2 of the residual and 1 of the loss.

    Attributes:
      dimension: d >= 1.

    Raises:
      ValueError: `dimension` is no count.
    """

    dimension: int

    def __post_init__(self) -> None:
        validate.count("dimension", self.dimension, minimum=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(d,)."""
        return (int(self.dimension),)

    @property
    def metric(self) -> str:
        """`test_loss`."""
        return "test_loss"

    def initialise(self, key: jax.Array) -> Parameters:
        """theta = 0, for every key."""
        return {"theta": jnp.zeros(int(self.dimension))}

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Signed:
        """Inputs and signs."""
        sign = 2.0 * records.y.astype(jnp.float32) - 1.0
        if public is None:
            return Signed(records.x, sign)
        return Signed(public.view(records.x), sign if public.label else jnp.zeros_like(sign))

    def losses(self, params: Parameters, examples: Signed) -> Float[Array, " batch"]:
        """Of each record."""
        z = examples.x @ params["theta"]
        return jax.nn.softplus(z) - 0.5 * (examples.sign + 1.0) * z

    def residual(self, public: Public) -> Residual:
        """By two passes."""
        return two_passes(self, public)

    def measure(self, params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
        """The mean loss on test records."""
        signs = Signed(jnp.asarray(x), jnp.asarray(2.0 * y - 1.0, jnp.float32))
        return float(jnp.mean(self.losses(params, signs)))
