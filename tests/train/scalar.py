"""An objective with one parameter, on which what a run releases can be counted."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from exactdp.mechanisms.public import Public
from exactdp.train.objective import Residual, two_passes
from exactdp.train.task import Records


@dataclasses.dataclass(frozen=True)
class Scalar:
    """l(x) = theta * (x_0 + x_1): a record's gradient is the sum of its columns, wherever theta is."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (2,)

    @property
    def metric(self) -> str:
        return "test_loss"

    def initialise(self, key: jax.Array) -> Any:
        return {"theta": jnp.zeros(())}

    def examples(self, records: Records, *, key: jax.Array, public: Public | None = None) -> Any:
        return records.x if public is None else public.view(records.x)

    def losses(self, params: Any, examples: Any) -> Float[Array, " batch"]:
        return params["theta"] * jnp.sum(examples, axis=1)

    def residual(self, public: Public) -> Residual:
        return two_passes(self, public)

    def measure(self, params: Any, x: np.ndarray, y: np.ndarray) -> float:
        return float(params["theta"])
