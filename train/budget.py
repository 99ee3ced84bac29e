"""Epsilon spent so far, cheaply enough to show while a run goes on."""

from __future__ import annotations

import math

from exactdp.accounting import validate
from exactdp.train.certificate import Certificate

_VALUES = 32
_WIDTH = 0.01  # nats: ample to watch a run by, and quick; the last value is as narrow as can be


class Budget:
    """Certified upper ends of epsilon along a run.

    Epsilon grows with the number of steps, so that the value at a later step bounds it: at most 32 values are
    computed in a run, each when it is first asked for.

    Args:
      certificate: of the run.
      num_steps: of the run, >= 1.
      delta: in (0, 1).

    Raises:
      ValueError: bad input.
    """

    def __init__(self, certificate: Certificate, *, num_steps: int, delta: float) -> None:
        self._certificate = certificate
        self._delta = validate.open_probability("delta", delta)
        self._num_steps = validate.count("num_steps", num_steps, minimum=1)
        self._stride = -(-self._num_steps // _VALUES)
        self._known: dict[int, float] = {}

    def upper(self, step: int) -> float:
        """An upper bound of the epsilon of the first `step` steps; infinite where none can be certified.

        Never above that of the whole run, which is what the run is said to cost at its end.
        """
        later = min(-(-step // self._stride) * self._stride, self._num_steps)
        return min(self._ask(later), self._ask(self._num_steps))

    def _ask(self, steps: int) -> float:
        if steps not in self._known:
            try:
                width = None if steps == self._num_steps else _WIDTH
                interval = self._certificate.epsilon(steps, delta=self._delta, tolerance=width)
                self._known[steps] = interval.upper
            except ArithmeticError:
                self._known[steps] = math.inf
        return self._known[steps]
