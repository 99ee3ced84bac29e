"""Any mechanism as a privacy loss distribution of Google's dp-accounting package.

Each direction is discretised by that package's own pessimistic connect-the-dots from our closed-form
hockey-stick divergences at the grid points, so that nothing but these values is shared with our engines.
Source: Doroshenko et al. 2022 (arXiv 2207.04380), Algorithm 1. Imported when used.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.laws.law import Law
from exactdp.accounting.prv import Composition, Mechanism

_MOST_POINTS = 2_000_000


def privacy_loss_distribution(
    mechanism: Mechanism, *, discretization: float = 1e-4, tail_mass: float = 1e-15
) -> Any:
    """A pessimistic `dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution` of one step.

    Args:
      mechanism: a pair or a sampled pair that releases something.
      discretization: distance of the grid points in epsilon, > 0.
      tail_mass: what may be moved to infinity on the right and rounded up on the left, in (0, 1).

    Returns:
      Their object; delta from it is an upper bound up to that package's rounding.

    Raises:
      ValueError: bad input, or a grid of more than 2e6 points.
      ImportError: dp-accounting is not installed.
    """
    step = validate.positive("discretization", discretization)
    tail = validate.open_probability("tail_mass", tail_mass)
    laws = mechanism.directions()
    if laws is None:
        raise ValueError(f"mechanism must release something, got {mechanism!r}")
    distribution = _modules()[0].PrivacyLossDistribution
    remove = _pmf(laws[0], step, tail)
    return distribution(remove) if laws[0] is laws[1] else distribution(remove, _pmf(laws[1], step, tail))


def compose(composition: Composition, *, discretization: float = 1e-4, tail_mass: float = 1e-15) -> Any:
    """The composed privacy loss distribution, by that package's own composition.

    Args:
      composition: (mechanism, count) pairs.
      discretization: as in `privacy_loss_distribution`.
      tail_mass: as in `privacy_loss_distribution`.

    Raises:
      ValueError: bad input.
      ImportError: dp-accounting is not installed.
    """
    entries = [(m, validate.count("count", n)) for m, n in composition]
    parts = [
        privacy_loss_distribution(m, discretization=discretization, tail_mass=tail_mass).self_compose(n)
        for m, n in entries
        if n and m.directions()
    ]
    if not parts:
        raise ValueError("composition must hold at least one (mechanism, count), got none")
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total


def epsilon(
    composition: Composition, *, delta: float, discretization: float = 1e-4, tail_mass: float = 1e-15
) -> float:
    """Epsilon at `delta` from that package's engine: pessimistic up to its rounding (about 1e-14 in delta).

    Args:
      composition: (mechanism, count) pairs.
      delta: in (0, 1).
      discretization: as in `privacy_loss_distribution`.
      tail_mass: as in `privacy_loss_distribution`.

    Raises:
      ValueError: bad input.
      ImportError: dp-accounting is not installed.
    """
    target = validate.open_probability("delta", delta)
    composed = compose(composition, discretization=discretization, tail_mass=tail_mass)
    return float(composed.get_epsilon_for_delta(target))


def _pmf(law: Law, step: float, tail: float) -> Any:
    """Connect-the-dots over the losses that matter: below the first point all mass is rounded up to it."""
    low, high = _range(law, tail)
    first, last = math.floor(low / step), math.ceil(high / step)
    if last - first >= _MOST_POINTS:
        raise ValueError(f"discretization must be larger: {step:g} makes a grid of {last - first} points")
    values = [law.hockey_stick(k * step) for k in range(first, last + 1)]
    deltas = np.array([min(1.0, value + error) for value, error in values])
    deltas = np.minimum.accumulate(deltas)  # rounding must not make delta rise
    return _modules()[1].create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, deltas)


def _range(law: Law, tail: float) -> tuple[float, float]:
    """Losses with P-mass at most `tail` on the left of them, and delta at most `tail` on the right."""
    low, high = law.support
    reach = 1.0
    while math.isinf(low):
        if float(law.masses(np.array([-reach])).p[0]) <= tail:
            low = -reach
        reach *= 1.25
    reach = 1.0
    while math.isinf(high):
        value, error = law.hockey_stick(reach)
        if value <= tail + law.infinity_mass + error:
            high = reach
        reach *= 1.25
    return low, high


def _modules() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ImportError as error:
        raise ImportError('dp-accounting is needed here: pip install "exactdp[bridges]"') from error
    return privacy_loss_distribution, pld_pmf
