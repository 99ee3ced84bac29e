"""What certifies a training run: mechanism of a step, threat model, ladder rung, and what it covers."""

from __future__ import annotations

import dataclasses

from exactdp.accounting import prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.threat import ThreatModel

Release = tuple[Mechanism, int, str]
"""A mechanism, how often it is run, and what it releases."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The privacy claim of a run, known before it starts.

    Attributes:
      mechanisms: what one step releases, sampling included; more than one where a step costs more than its
        sampled pair (a batch that may overflow).
      threat_model: adjacency, coins, and what the adversary sees.
      rung: name of the rung that certifies the run, in `exactdp ladder` where a paper has one.
      statement: one sentence on what the certificate covers, and what it does not.
      covers_weights: whether the trained weights are covered.
      before: what is released once, before the first step, under the same threat model.

    Raises:
      ValueError: a text is empty, or there is no mechanism.
    """

    mechanisms: tuple[Mechanism, ...]
    threat_model: ThreatModel
    rung: str
    statement: str
    covers_weights: bool
    before: tuple[Release, ...] = ()

    def __post_init__(self) -> None:
        if not self.mechanisms:
            raise ValueError("mechanisms must hold one at least, got none")
        for name in ("rung", "statement"):
            if not getattr(self, name).strip():
                raise ValueError(f"{name} must not be empty, got {getattr(self, name)!r}")

    def composition(self, num_steps: int) -> list[tuple[Mechanism, int]]:
        """What the accountants take: what is released before the first step, and that many steps."""
        steps = validate.count("num_steps", num_steps)
        first = [(mechanism, count) for mechanism, count, _ in self.before]
        return first + [(mechanism, steps) for mechanism in self.mechanisms if steps]

    def epsilon(self, num_steps: int, *, delta: float, tolerance: float | None = None) -> Interval:
        """Certified epsilon of `before` and `num_steps` steps at `delta`; infinite where there is none.

        Args:
          num_steps: >= 0.
          delta: in (0, 1).
          tolerance: width aimed at, nats; None for the accountant's own.

        Raises:
          ValueError: bad input.
          ArithmeticError: the accountant cannot answer.
        """
        composition = self.composition(num_steps)
        if not composition:
            return Interval(0.0, 0.0, "nothing released")
        return prv.epsilon(composition, delta=delta, tolerance=tolerance)

    def lines(self) -> list[str]:
        """What to tell people before the run starts."""
        model = self.threat_model
        return [
            f"certified by: {self.rung}",
            f"threat model: {model.adjacency} neighbours, coins {model.coins}, released: {model.released}",
            self.statement,
        ]
