"""The saddle of one layer: steps of which at least one is in its upper part."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from exactdp.accounting.prv.saddle import EPS, Saddle


def log_expm1(x: float) -> float:
    """log(e^x - 1), -inf for x <= 0."""
    return x + math.log(-math.expm1(-x)) if x > 0.0 else -math.inf


@dataclasses.dataclass(frozen=True)
class Step:
    """One step's tilted measure: log of its moment with an error bound, tilted mean and variance."""

    log_moment: float
    mean: float
    variance: float
    error: float


def layer(order: float, parts: Sequence[tuple[int, Step, Step | None]]) -> tuple[Saddle, float]:
    """The saddle of prod (a + b)^n - prod a^n, and a bound of the error of its K.

    Args:
      order: the tilt.
      parts: n, a and b (None: nothing) of each component.
    """
    log_moment = mean = variance = moved = spread = grown = error = weight = 0.0
    for n, below, above in parts:
        log_moment += n * below.log_moment
        mean += n * below.mean
        variance += n * below.variance
        error += n * (below.error + 4 * EPS * abs(below.log_moment))
        if above is None:
            continue
        log_ratio = above.log_moment - below.log_moment
        grown += n * float(np.logaddexp(0.0, log_ratio))
        share = float(special.expit(log_ratio))
        apart = above.mean - below.mean
        moved += n * share * apart
        spread += n * share * (above.variance - below.variance + (1.0 - share) * apart**2)
        weight += n * share * (above.error + below.error + 4 * EPS * (1.0 + abs(above.log_moment)))
    # E_high = w E_low + (1 - w) E_layer with 1 - w = -expm1(-grown): solved for the layer's moments.
    inflated = -1.0 / math.expm1(-grown) if grown > 0.0 else math.inf
    at = Saddle(
        order,
        log_moment + log_expm1(grown),
        mean + moved * inflated,
        max(variance + (spread + moved**2) * inflated - (moved * inflated) ** 2, 0.0),
    )
    return at, 1.1 * (error + weight * inflated)
