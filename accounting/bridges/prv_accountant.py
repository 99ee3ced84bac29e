"""Any mechanism as a privacy random variable of the prv-accountant package (0.2).

That package composes random variables given by the distribution function of the loss under P, conditioned on
its being finite. It treats the mass at infinity as a known constant, assumes the domain [-L, L] to hold all
but a small mass, and states its error as (eps_error, delta_error). Imported when used, with its warnings left
out.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactdp.accounting import validate
from exactdp.accounting.laws.law import Law, tilt
from exactdp.accounting.pairs.base import Unsuitable
from exactdp.accounting.prv import Composition, Mechanism

Array = NDArray[np.float64]


def privacy_random_variable(mechanism: Mechanism, *, direction: Literal["remove", "add"]) -> Any:
    """A `prv_accountant.PrivacyRandomVariable` of the loss of one step.

    cdf(t) = P(L <= t | L < inf) from the masses of the law; `rdp(order)` is
    log E[exp((order - 1) L) | L < inf] / (order - 1), from which that package sizes its domain; `pm_inf` is
    P(L = inf).

    Args:
      mechanism: a pair or a sampled pair that releases something.
      direction: `"remove"` or `"add"`: that package composes one direction at a time.

    Raises:
      ValueError: bad input.
      ImportError: prv-accountant is not installed.
    """
    validate.one_of("direction", direction, ("remove", "add"))
    laws = mechanism.directions()
    if laws is None:
        raise ValueError(f"mechanism must release something, got {mechanism!r}")
    law = laws[0 if direction == "remove" else 1]
    base = _package().PrivacyRandomVariable

    class LossOfLaw(base):  # defined here, as its base is only known once the package is imported
        """The loss of one law."""

        @property
        def pm_inf(self) -> float:
            return law.infinity_mass

        def cdf(self, t: ArrayLike) -> Array | np.float64:
            value = distribution(law, np.atleast_1d(np.asarray(t, dtype=np.float64)))
            return value if np.ndim(t) else value[0]

        def rdp(self, alpha: float) -> float:
            return conditional_renyi(law, float(alpha))

    return LossOfLaw()


def epsilon(
    composition: Composition,
    *,
    delta: float,
    direction: Literal["remove", "add"],
    eps_error: float = 0.01,
    delta_error: float | None = None,
) -> tuple[float, float, float]:
    """(lower, estimate, upper) of epsilon from prv-accountant's own engine, in one direction.

    Args:
      composition: (mechanism, count) pairs.
      delta: in (0, 1).
      direction: `"remove"` or `"add"`.
      eps_error: error allowed in epsilon, > 0; the cost grows with its inverse.
      delta_error: error allowed in delta, > 0; `delta` / 1000 by default.

    Raises:
      ValueError: bad input.
      ImportError: prv-accountant is not installed.
      RuntimeError: as that package: its grid does not hold the loss.
    """
    target = validate.open_probability("delta", delta)
    width = validate.positive("eps_error", eps_error)
    slack = target / 1000.0 if delta_error is None else validate.positive("delta_error", delta_error)
    entries = [(m, validate.count("count", n)) for m, n in composition]
    parts = [(privacy_random_variable(m, direction=direction), n) for m, n in entries if n and m.directions()]
    if not parts:
        raise ValueError("composition must hold at least one (mechanism, count), got none")
    variables, counts = [v for v, _ in parts], [n for _, n in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accountant = _package().PRVAccountant(
            prvs=variables, max_self_compositions=counts, eps_error=width, delta_error=slack
        )
        lower, estimate, upper = accountant.compute_epsilon(target, counts)
    return float(lower), float(estimate), float(upper)


def distribution(law: Law, t: Array) -> Array:
    """P(L <= t | L < inf) at any finite or infinite `t`, shape [n]."""
    edges, back = np.unique(t, return_inverse=True)
    low, high = law.support
    value = np.where(edges >= high, 1.0, 0.0)
    inside = np.isfinite(edges) & (edges > low) & (edges < high)
    if inside.any():
        value[inside] = np.cumsum(law.masses(edges[inside]).p)[:-1] / (1.0 - law.infinity_mass)
    # An atom may sit on the lower end of the support; its mass is what the first cell above it holds.
    value[edges == low] = _atom_at(law, low) if math.isfinite(low) else 0.0
    return np.clip(value, 0.0, 1.0)[back.ravel()]


def _atom_at(law: Law, loss: float) -> float:
    """P(L = loss | L < inf) at the lower end of the support, from a cell hardly wider than a point."""
    edge = np.nextafter(loss + 1e-12 * (1.0 + abs(loss)), math.inf)
    return float(law.masses(np.array([edge])).p[0]) / (1.0 - law.infinity_mass)


def conditional_renyi(law: Law, order: float) -> float:
    """log E[exp((order - 1) L) | L < inf] / (order - 1); infinite beyond the law's limit."""
    tilt_by = validate.positive("order - 1", order - 1.0)
    if tilt_by >= law.order_limit:
        return math.inf
    try:
        log_moment = tilt(law, law.nodes(order=tilt_by, frequency=0.0, count=1), tilt_by).log_moment
    except Unsuitable:
        top = law.support[1]  # the domain only grows: E[exp(s L)] <= exp(s sup L)
        return top if math.isfinite(top) else math.inf
    return (log_moment - math.log1p(-law.infinity_mass)) / tilt_by


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import prv_accountant
    except ImportError as error:
        raise ImportError('prv-accountant is needed here: pip install "exactdp[bridges]"') from error
    return prv_accountant
