"""Which tokens may follow which: a deterministic automaton over tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from exactdp.accounting import validate


class Edges(NamedTuple):
    """An automaton's edges on the device; fields as those of `Automaton`."""

    starts: Int[Array, "states_and_one"]
    tokens: Int[Array, "edges"]
    targets: Int[Array, "edges"]

    def candidates(
        self, states: Int[Array, "rows"], *, widest: int
    ) -> tuple[Int[Array, "rows widest"], Int[Array, "rows widest"], Bool[Array, "rows widest"]]:
        """Tokens and targets of each row's state, padded to `widest`, and which of them are none of padding."""
        first = self.starts[states][:, None]
        place = first + jnp.arange(widest, dtype=jnp.int32)
        real = place < self.starts[states + 1][:, None]
        # Within the state, so that padding reads what has been read.
        place = jnp.clip(jnp.where(real, place, first), 0, max(self.tokens.shape[0] - 1, 0))
        return self.tokens[place], self.targets[place], real


@dataclasses.dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton over tokens, its edges sorted by state and then by token (CSR).

    The edges of state s are those of numbers starts[s] to starts[s + 1] - 1. A state without edges is final:
    a text that has come there is whole.

    Attributes:
      starts: int32[states + 1], from 0 to the number of edges, never falling.
      tokens: int32[edges], >= 0, ascending within a state.
      targets: int32[edges], the states that the edges lead to.
      start: the state in which a text begins.
      widest: the most edges that a state has.

    Raises:
      ValueError: arrays or numbers outside of what is said above.
    """

    starts: np.ndarray
    tokens: np.ndarray
    targets: np.ndarray
    start: int
    widest: int

    def __post_init__(self) -> None:
        for name in ("starts", "tokens", "targets"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
                raise ValueError(f"{name} must be one row of integers, got {array.dtype} {array.shape}")
            object.__setattr__(self, name, array.astype(np.int32))
        if len(self.starts) < 2 or self.starts[0] != 0 or self.starts[-1] != len(self.tokens):
            raise ValueError(
                f"starts must go from 0 to the number of edges = {len(self.tokens)} for at least one state, "
                f"got {len(self.starts)} numbers"
            )
        degrees = np.diff(self.starts)
        if (degrees < 0).any():
            raise ValueError(f"starts must never fall, got a fall at state {int(np.argmin(degrees))}")
        if len(self.targets) != len(self.tokens):
            raise ValueError(f"targets must be one an edge = {len(self.tokens)}, got {len(self.targets)}")
        if self.tokens.size and self.tokens.min() < 0:
            raise ValueError("tokens must be >= 0, got a smaller one")
        if self.targets.size and not (0 <= self.targets.min() and self.targets.max() < self.states):
            raise ValueError(f"targets must be states, below {self.states}, got another number")
        owners = np.repeat(np.arange(self.states), degrees)
        falls = (owners[1:] == owners[:-1]) & (self.tokens[1:] <= self.tokens[:-1])
        if falls.any():
            raise ValueError(
                f"tokens must ascend within a state, got others in state {int(owners[1:][falls][0])}"
            )
        if validate.count("start", self.start) >= self.states:
            raise ValueError(f"start must be a state, below {self.states}, got {self.start}")
        if self.widest != int(degrees.max()):
            raise ValueError(f"widest must be the most edges of a state = {degrees.max()}, got {self.widest}")

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.starts) - 1

    def final(self, state: int) -> bool:
        """Is a text whole that has come to `state`?"""
        return bool(self.starts[state] == self.starts[state + 1])

    def follow(self, tokens: Iterable[int], *, state: int | None = None) -> int | None:
        """The state that `tokens` lead to; None where there is no such path.

        Args:
          tokens: ids.
          state: where to begin; None for `start`.
        """
        current = self.start if state is None else state
        for token in tokens:
            first, last = self.starts[current], self.starts[current + 1]
            place = first + int(np.searchsorted(self.tokens[first:last], token))
            if place == last or self.tokens[place] != token:
                return None
            current = int(self.targets[place])
        return current

    def device(self) -> Edges:
        """The edges as arrays on the device."""
        # An array without elements cannot be gathered from: where there are no edges, one that nobody takes.
        tokens = self.tokens if len(self.tokens) else np.zeros(1, np.int32)
        targets = self.targets if len(self.targets) else np.zeros(1, np.int32)
        return Edges(*(jax.device_put(x) for x in (self.starts, tokens, targets)))
