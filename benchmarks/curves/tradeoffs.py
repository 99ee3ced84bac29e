"""The trade-off curve of each rung: exact where the rung is a composition, else what (epsilon, delta) says.

A printed rung is one (epsilon, delta) at the paper's delta; the curve drawn for it is the one that this
pair of numbers is equivalent to, and the paper claims no more. An exact rung is composed again, and its
whole curve is certified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactdp.benchmarks.curves import ladders

if TYPE_CHECKING:
    from exactdp.accounting.ladder.rung import Rung


def rows(paper: str, fpr: Sequence[float]) -> list[list[object]]:
    """The curves of a paper at its own parameters: least false-negative rates between lower and upper."""
    delta = ladders.defaults(paper)["delta"]
    return [row for rung in ladders.rungs(paper) for row in of_rung(rung, fpr, delta=delta)]


def of_rung(rung: Rung, fpr: Sequence[float], *, delta: float) -> list[list[object]]:
    """The rows of one rung, whose epsilon is one at `delta`."""
    model = rung.threat_model
    about = [rung.name, rung.kind, str(model.adjacency), str(model.coins)]
    if rung.composition is not None:
        from exactdp.accounting.fdp.tradeoff import tradeoff

        intervals = tradeoff(rung.composition, fpr=fpr)
        return [[x, *about, i.lower, i.upper, ""] for x, i in zip(fpr, intervals, strict=True)]
    _, epsilon = ladders.ends(rung.epsilon)
    if epsilon is None:
        return [[x, *about, None, None, rung.reason] for x in fpr]
    values = [guaranteed(x, epsilon=epsilon, delta=delta) for x in fpr]
    return [[x, *about, value, value, ""] for x, value in zip(fpr, values, strict=True)]


def guaranteed(fpr: float, *, epsilon: float, delta: float) -> float:
    """The least false-negative rate that (epsilon, delta) in both directions allows; epsilon may be infinite.

    max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)); Dong, Roth and Su (arXiv 1905.02383),
    Proposition 2.5.
    """
    steep = 1.0 - delta - (math.exp(min(epsilon, 700.0)) * fpr if fpr > 0.0 else 0.0)
    return max(0.0, steep, math.exp(-epsilon) * (1.0 - delta - fpr))
