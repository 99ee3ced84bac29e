"""One training run of an experiment, of which nothing is kept but its result."""

from __future__ import annotations

import tempfile
from pathlib import Path

from exactdp.train import loop, methods
from exactdp.train.optimiser import Optimiser
from exactdp.train.result import Result


def run(prepared: methods.Prepared, *, seed: int, optimiser: Optimiser | None = None) -> Result:
    """Trains in a temporary folder.

    Args:
      prepared: the run.
      seed: of its key.
      optimiser: plain SGD at the plan's learning rate by default.
    """
    steps = prepared.plan.num_steps
    options = loop.Options(
        num_steps=steps,
        delta=prepared.settings.delta,
        optimiser=optimiser or Optimiser(learning_rate=prepared.plan.learning_rate),
        checkpoint_every=steps,
        report_every=steps,
        progress=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        return methods.run(prepared, out=Path(folder) / "run", seed=seed, options=options)
