"""Maps of a record's input to its public part, which is an input of the same shape."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from jaxtyping import Array, Float


class InputMap(Protocol):
    """What is public of a record's input x.

    A frozen, hashable dataclass. Its view of x is a function of x alone: of no other record, of no counter,
    file or random number. `Public.require_shape` tries that, for maps of one's own too.
    """

    def view(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """The public part of each record, as an input of the same shape; may be traced.

        What is private is replaced by a public constant, so that the model takes it.
        """
        ...

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Refuses records of a shape that the map does not take.

        Raises:
          ValueError: it is refused.
        """

    @property
    def text(self) -> str:
        """The map as `exactdp.mechanisms.public.parse` takes it, where that can say it."""
        ...


@dataclasses.dataclass(frozen=True)
class Identity:
    """The whole input is public, Psi(x, y) = x: with the label private this is label differential privacy."""

    def view(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """x as it is."""
        return x

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Takes every shape."""

    @property
    def text(self) -> str:
        """`features`."""
        return "features"


@dataclasses.dataclass(frozen=True)
class Composed:
    """The second map of what the first gives.

    Attributes:
      first: applied to the input.
      then: applied to the first one's view.
    """

    first: InputMap
    then: InputMap

    def view(self, x: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """then(first(x))."""
        return self.then.view(self.first.view(x))

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Refuses what either map refuses.

        Raises:
          ValueError: it is refused.
        """
        self.first.require_shape(shape)
        self.then.require_shape(shape)

    @property
    def text(self) -> str:
        """Both, with `>` between them."""
        return f"{self.first.text}>{self.then.text}"
