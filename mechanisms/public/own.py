"""A public feature map of one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Own:
    """A function of one record's input that gives its public part.

    It is applied to one record at a time (`jax.vmap`), so that it cannot see another. It must depend on its
    argument alone: `Public.require_shape` refuses a function whose answers differ.

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
        """Takes every shape that the function takes, which `Public.require_shape` tries."""

    @property
    def text(self) -> str:
        """`own:` and the name."""
        return f"own:{self.name}"
