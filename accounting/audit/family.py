"""The bound that a band gives when only the size of the noise is in doubt.

A mechanism that is accounted for as a composition C(s), s its noise multiplier, has a privacy profile
delta_s(epsilon), which falls with s. Taking it for granted that the profile is delta_s for *some* s, every s
whose profile lies below a point of the band anywhere is refuted, and epsilon is at least that of the least
noise that is refuted. Noise is searched for down to an eighth of what is claimed: beyond, the claim is
refuted, and by how much is left open.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from exactdp.accounting import prv, validate
from exactdp.accounting.audit.band import Band
from exactdp.accounting.audit.result import AuditResult
from exactdp.accounting.prv import Composition
from exactdp.accounting.threat import ThreatModel

Rates = NDArray[np.float64]

ASSUMPTION = (
    "noise, sampling and composition are of the kind accounted for, and only the size of the noise is "
    "in doubt"
)

_WIDEST, _LOWEST = 2.0**10, 8.0  # how far above and below the start noise is searched for, as factors
_STRIDE = 1.25
_PRECISION = 2e-3
_POINTS = 4  # of a band, which are tried
_EPSILONS = 16  # at which profiles are held against them
_BEYOND = 1.5
_TOLERANCE = 1e-3  # of the profiles, relative; their upper ends decide


def result(
    band: Band,
    compositions: Callable[[float], Composition],
    *,
    start: float,
    delta: float,
    threat_model: ThreatModel,
    note: str = "",
) -> AuditResult:
    """The lower bound of epsilon within a family of compositions.

    A point of the band says 1 - fnr - e^epsilon fpr <= delta(epsilon) of the removal of the record, and
    1 - fpr - e^epsilon fnr <= delta(epsilon) of its addition. With s* a noise multiplier whose profile
    contradicts that at some epsilon, the bound is epsilon of C(s*) at delta: as delta_s falls with s, the
    true s is below s*, so that its epsilon is no smaller. One point decides, which may be far from the error
    rates that delta is about: that is what the assumption buys.

    Args:
      band: fpr is of the data set without the record, fnr of the one with it.
      compositions: noise multiplier -> (mechanism, count) pairs, whose privacy profiles fall with it.
      start: where the search begins, > 0: the noise multiplier that is claimed.
      delta: in (0, 1).
      threat_model: what the attack was on.
      note: what to know before quoting it.

    Raises:
      ValueError: an argument is outside its range.

    Source: Nasr et al. 2023 (arXiv 2302.07956), who do so for Gaussian and sampled Gaussian curves; certified
    curves are ours.
    """
    validate.positive("start", start)
    validate.open_probability("delta", delta)
    points = _telling(band)
    epsilon = 0.0
    if len(points):
        refuted = _least_refuted(points, compositions, start)
        if math.isfinite(refuted):
            epsilon = max(0.0, prv.epsilon(compositions(refuted), delta=delta).lower)
    return AuditResult(
        epsilon_lower=epsilon,
        confidence=band.confidence,
        delta=delta,
        trials=band.trials,
        method=f"{band.method}; the most noise that it does not refute",
        threat_model=threat_model,
        assumption=ASSUMPTION,
        note=note,
    )


def _telling(band: Band) -> Rates:
    """The points (fpr, fnr) farthest from blind guessing, as Gaussian curves go."""
    points = np.stack([band.fpr_upper, band.fnr_upper], axis=1)
    order = np.argsort(special.ndtri(points).sum(axis=1))[:_POINTS]
    best = points[order]
    return best[best.sum(axis=1) < 1.0]


def _least_refuted(points: Rates, compositions: Callable[[float], Composition], start: float) -> float:
    """A refuted noise multiplier, little above one that may not be; infinite for none."""
    # Where a Gaussian curve through a point has that point: at these epsilons it tells most.
    z = -special.ndtri(points)
    slopes = z.sum(axis=1, keepdims=True) * z - 0.5 * z.sum(axis=1, keepdims=True) ** 2
    epsilons = np.linspace(0.0, _BEYOND * max(float(np.abs(slopes).max()), 1e-3), _EPSILONS)
    growth = np.exp(epsilons)
    x, y = points[:, :1], points[:, 1:]
    least = {
        "remove": np.max(1.0 - y - growth * x, axis=0),
        "add": np.max(1.0 - x - growth * y, axis=0),
    }

    def refutes(noise: float) -> bool:
        composition = compositions(noise)
        for direction in ("remove", "add"):
            told = least[direction] > 0.0
            curve = prv.delta_curve(
                composition, epsilons=epsilons[told].tolist(), tolerance=_TOLERANCE, direction=direction
            )
            if any(low > found.upper for low, found in zip(least[direction][told], curve, strict=True)):
                return True
        return False

    low = high = start
    if refutes(start):
        while refutes(low):
            high, low = low, low / _STRIDE
            if low < start / _LOWEST:
                return high
    else:
        while not refutes(high):
            low, high = high, high * _STRIDE
            if high > start * _WIDEST:
                return math.inf
    while high > low * (1.0 + _PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high
