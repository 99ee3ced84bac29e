"""A public feature map of one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Own:
    """A function of one record's input that gives its public part.

    It is applied to one record at a time (`jax.vmap`), so that it cannot see another. It must depend on its
    argument alone: `require_shape` calls and traces it twice and refuses a function whose answers differ.

    Attributes:
      function: x [...] -> public part, an array of the same shape, of JAX operations.
      name: for the description of a run.

    Raises:
      ValueError: `function` cannot be called or `name` is empty.
    """

    function: Callable[[Array], Array]
    name: str

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}")
        if not self.name.strip():
            raise ValueError("name must not be empty, got an empty string")

    def view(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """The function of each record."""
        return jax.vmap(self.function)(x)

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Tries the function on a made-up record.

        Raises:
          ValueError: its answer has another shape, is not finite, or differs from one call to the next.
        """
        record = jax.random.uniform(jax.random.key(0), shape)
        try:
            jax.make_jaxpr(self.function)(record)  # a first trace may be another: caches are filled here
            programs = [str(jax.make_jaxpr(self.function)(record)) for _ in range(2)]
            first, second = (np.asarray(self.function(record)) for _ in range(2))
        except (TypeError, ValueError, jax.errors.JAXTypeError) as error:
            raise ValueError(
                f"public: {self.name} must take records of shape {shape}, got: {error}"
            ) from None
        if first.shape != shape:
            raise ValueError(
                f"public: {self.name} must give the shape of its record {shape}, got {first.shape}"
            )
        if not np.all(np.isfinite(first)):
            raise ValueError(f"public: {self.name} must give finite numbers, got NaN or infinity")
        if not np.array_equal(first, second) or programs[0] != programs[1]:
            raise ValueError(
                f"public: {self.name} must be a function of the record alone, got two answers for one record"
            )

    @property
    def text(self) -> str:
        """`own:` and the name."""
        return f"own:{self.name}"
