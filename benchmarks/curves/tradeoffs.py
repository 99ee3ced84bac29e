"""The trade-off curve of each rung: exact where the rung is a composition, else what (epsilon, delta) says.

A printed rung is one (epsilon, delta) at the paper's delta; the curve drawn for it is the one that this pair of
numbers is equivalent to, and no more is claimed by the paper. An exact rung is composed again, and its whole curve
is certified.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exactdp.benchmarks.curves import ladders


@dataclasses.dataclass(frozen=True)
class Curve:
    """One curve of a trade-off panel.

    Attributes:
      rung: a rung of the paper's ladder.
      composition: what is composed; None where the rung is known through epsilon and delta only.
      delta: the delta of the rung's epsilon.
    """

    rung: Any
    composition: Any
    delta: float


def of(paper: str) -> list[Curve]:
    """The curves of a paper at its own parameters, in the order of the ladder."""
    base = ladders.defaults(paper)
    known = COMPOSITIONS[paper]
    return [
        Curve(rung, known[rung.name](base) if rung.name in known else None, base["delta"])
        for rung in ladders.rungs(paper)
    ]


COMPOSITIONS: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "dirichlet": {},
    "feature": {},
    "two_stage": {},
}
"""For each paper, the rungs whose composition is known, by name."""


def rows(curve: Curve, fpr: Sequence[float]) -> list[list[object]]:
    """The rows of one curve: least false-negative rates between lower and upper."""
    rung, model = curve.rung, curve.rung.threat_model
    about = [rung.name, rung.kind, str(model.adjacency), str(model.coins)]
    if curve.composition is not None:
        from exactdp.accounting.fdp.tradeoff import tradeoff

        intervals = tradeoff(curve.composition, fpr=fpr)
        return [[x, *about, i.lower, i.upper, ""] for x, i in zip(fpr, intervals, strict=True)]
    _, epsilon = ladders.ends(rung.epsilon)
    if epsilon is None:
        return [[x, *about, None, None, rung.reason] for x in fpr]
    values = [guaranteed(x, epsilon=epsilon, delta=curve.delta) for x in fpr]
    return [[x, *about, value, value, ""] for x, value in zip(fpr, values, strict=True)]


def guaranteed(fpr: float, *, epsilon: float, delta: float) -> float:
    """The least false-negative rate that (epsilon, delta) in both directions allows; any epsilon, infinity too.

    max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)), Dong, Roth and Su (arXiv 1905.02383), Eq. (5).
    """
    import math

    steep = 1.0 - delta - (math.exp(min(epsilon, 700.0)) * fpr if fpr > 0.0 else 0.0)
    return max(0.0, steep, math.exp(-epsilon) * (1.0 - delta - fpr))
