"""The model of a run as the tasks see it: functions of parameters and records."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.train import models
from exactdp.train.state import Parameters
from exactdp.train.task import Records


@dataclasses.dataclass(frozen=True)
class Network:
    """A model by name for records of a shape.

    Attributes:
      name: one of `exactdp.train.models.NAMES`.
      input_shape: of one record.
      num_classes: K.
      bfloat16: whether activations and products are computed in bfloat16; parameters, losses and sums of
        gradients stay float32.

    Raises:
      ValueError: the model is unknown or does not take records of this shape.
    """

    name: str
    input_shape: tuple[int, ...]
    num_classes: int
    bfloat16: bool = False
    _graph: Any = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate.one_of("model", self.name, models.NAMES)
        validate.count("num_classes", self.num_classes, minimum=2)
        graphs: list[Any] = []

        def parameters(key: jax.Array) -> Parameters:
            graph, params = self._build(key)
            graphs.append(graph)
            return params

        # Shapes only: nothing is computed, and this key gives no parameter.
        try:
            jax.eval_shape(parameters, jax.random.key(0))
        except ValueError as error:
            raise ValueError(
                f"model must take the records of the data set, got {self.name}: {error}"
            ) from None
        object.__setattr__(self, "_graph", graphs[0])

    def initialise(self, key: jax.Array) -> Parameters:
        """Parameters for a key."""
        return self._build(key)[1]

    def logits(self, params: Parameters, x: Float[Array, "batch ..."]) -> Float[Array, "batch classes"]:
        """Logits in float32."""
        return models.apply(self._graph, params, x)

    def features(self, params: Parameters, x: Float[Array, "batch ..."]) -> Float[Array, "batch width"]:
        """Penultimate features in float32."""
        return models.features(self._graph, params, x).astype(jnp.float32)

    def head(
        self, params: Parameters, features: Float[Array, "batch width"]
    ) -> Float[Array, "batch classes"]:
        """The logits of features."""
        return nnx.merge(self._graph, params).head(features).astype(jnp.float32)

    def losses(self, params: Parameters, records: Records) -> Float[Array, " batch"]:
        """Cross-entropy of each record."""
        logits = self.logits(params, records.x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, records.y)

    def _build(self, key: jax.Array) -> tuple[Any, Parameters]:
        return models.build(
            self.name,
            input_shape=self.input_shape,
            num_classes=self.num_classes,
            key=key,
            dtype=jnp.bfloat16 if self.bfloat16 else jnp.float32,
        )
