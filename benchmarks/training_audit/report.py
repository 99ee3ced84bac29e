"""A training audit for people, and as files."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from exactdp.benchmarks.curves import store
from exactdp.benchmarks.training_audit.audit import Audited
from exactdp.benchmarks.training_audit.options import Options

COLUMNS = ("kind", "name", "lower", "upper")
"""`kind` is repaired, exact or audited; an audited bound has no upper end."""


def lines(found: Audited, options: Options) -> str:
    """The answer for people."""
    model = found.attack.threat_model
    text = [
        f"audited: {found.attack.name}, {options.note}",
        f"threat model: {model.adjacency} neighbours, coins {model.coins}, released: {model.released}",
        f"epsilon at delta = {options.delta:g}:",
        *(
            f"  {claim.kind:8} {_shown(claim.epsilon.upper):>9}  {name}"
            + (" (certified for this threat model)" if name == found.attack.certified else "")
            for name, claim in found.attack.claims.items()
        ),
        *(
            f"  audited  >= {one.epsilon_lower:6.4g}  {name}, confidence {one.confidence:g}, "
            f"{one.trials} trials"
            for name, one in found.readings.items()
        ),
        f"verdict: what is certified is {found.verdict} ({found.seconds:.0f} s)",
    ]
    exceeded = found.attack.exceeded(found.best)
    if exceeded and not found.refuted:
        text.append(f"below the audited bound, and no claim about this release: {', '.join(exceeded)}")
    return "\n".join(text)


def write(directory: Path, found: Audited, options: Options, *, name: str) -> list[Path]:
    """Writes the result to quote, a CSV file of all bounds, and the figure from it.

    Args:
      directory: there.
      found: what was found.
      options: what was asked for.
      name: of the files.
    """
    from exactdp.benchmarks.training_audit import figure

    result = directory / f"{name}.json"
    found.result.save(result)
    path = directory / f"{name}.csv"
    model = found.attack.threat_model
    header = {
        **store.versions(),
        **dataclasses.asdict(options),
        "source": found.attack.source,
        "method": found.attack.name,
        "adjacency": str(model.adjacency),
        "coins": str(model.coins),
    }
    rows: list[list[object]] = [
        [claim.kind, one, claim.epsilon.lower, claim.epsilon.upper]
        for one, claim in found.attack.claims.items()
    ]
    for one, bound in found.readings.items():
        rows.append(["audited", one, bound.epsilon_lower, None])
    store.write_csv(path, header, COLUMNS, rows)
    return [result, path, *figure.draw(path)]


def _shown(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.4g}"
