"""Psi(x, y): public inputs, public labels, both or neither."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from exactdp.mechanisms.public.function import require_function
from exactdp.mechanisms.public.input_map import Identity, InputMap

_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class Public:
    """What of a record (x, y) is public.

    Attributes:
      inputs: the public part of x; None where nothing of it is public.
      label: whether y is public.
      label_prior: public guess of the label's distribution, which stands for a private label in the public
        loss; None for the uniform one.

    Raises:
      ValueError: `label_prior` is no distribution, or is given with a public label.
    """

    inputs: InputMap | None
    label: bool
    label_prior: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        prior = self.label_prior
        if prior is None:
            return
        if self.label:
            raise ValueError("label_prior must be left out where the label is public, got one")
        if not all(math.isfinite(p) and p >= 0.0 for p in prior) or abs(sum(prior) - 1.0) > _TOLERANCE:
            raise ValueError(f"label_prior must be a distribution, got {prior}")

    @property
    def nothing(self) -> bool:
        """Whether nothing is public: the residual is then the loss, and Algorithm 1 is DP-SGD."""
        return self.inputs is None and not self.label

    @property
    def whole_input(self) -> bool:
        """Whether the input is public as it is, so that a pass over the record is one over its view too."""
        return isinstance(self.inputs, Identity)

    def view(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """The public part of the inputs, as inputs; zeros where nothing of them is public."""
        return jnp.zeros_like(x) if self.inputs is None else self.inputs.view(x)

    def targets(self, y: Int[Array, " batch"], *, num_classes: int) -> Float[Array, "batch classes"]:
        """What stands for the label in the public loss: the label itself, or the public guess.

        Raises:
          ValueError: `label_prior` has another number of classes.
        """
        if self.label:
            return jax.nn.one_hot(y, num_classes, dtype=jnp.float32)
        prior = self.label_prior or (1.0 / num_classes,) * num_classes
        if len(prior) != num_classes:
            raise ValueError(f"label_prior must have {num_classes} entries, one a class, got {len(prior)}")
        return jnp.broadcast_to(jnp.asarray(prior, jnp.float32), (len(y), num_classes))

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Refuses records of a shape that the map does not take, and a map that is no function of one record.

        Raises:
          ValueError: it is refused, by the map or by `require_function`; or everything is public.
        """
        if self.inputs is None:
            return
        self.inputs.require_shape(shape)
        require_function(self.inputs, shape=shape)
        if self.label:
            made_up = jax.random.uniform(jax.random.key(0), (2, *shape))
            if bool(jnp.allclose(self.inputs.view(made_up), made_up, rtol=0.0, atol=_TOLERANCE)):
                raise ValueError(f"public must leave something private, got {self.text}")

    @property
    def text(self) -> str:
        """As `exactdp.mechanisms.public.parse` takes it."""
        parts = ([] if self.inputs is None else [self.inputs.text]) + (["label"] if self.label else [])
        return "+".join(parts) or "none"
