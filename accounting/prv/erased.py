"""delta(epsilon) of Gaussian steps whose sampling coins are visible, in closed form.

The adversary sees the k of n steps that sampled the record, k ~ Binomial(n, q); they are together one
Gaussian mechanism of mu sqrt(k), and the others tell nothing:

    delta(eps) = sum_k P(k) delta_(mu sqrt(k))(eps),    eps >= 0.

All terms are positive. With m = mu sqrt(k), a = m / 2 - eps / m, b = a - m a term is Phi(a) - e^eps Phi(b).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from exactdp.accounting.prv import binomial
from exactdp.accounting.prv.saddle import EPS

_MOST_TERMS = 2**21
_SPREADS, _FEWEST = 40.0, 800  # beyond which a binomial's terms are below every delta that is asked for


def hockey_stick(
    mu: float, sampling_probability: float, count: int
) -> Callable[[float], tuple[float, float]] | None:
    """epsilon >= 0 -> (delta, bound of its absolute error); None where there are too many terms.

    Args:
      mu: of a step that samples the record, > 0.
      sampling_probability: q in (0, 1).
      count: n >= 1.
    """
    q = sampling_probability
    length = math.ceil(_SPREADS * math.sqrt(count * q * (1.0 - q))) + _FEWEST
    if length > _MOST_TERMS:
        return None

    @functools.cache
    def weights() -> binomial.Terms:
        return binomial.terms(count, q, 1.0 - q, least=0, length=length)

    def value(epsilon: float) -> tuple[float, float]:
        found = weights()
        told = found.j > 0.0
        w, size = found.w[told], mu * np.sqrt(found.j[told])
        a, b = 0.5 * size - epsilon / size, -0.5 * size - epsilon / size
        first = special.log_ndtr(a)
        second = np.minimum(epsilon + special.log_ndtr(b), first)
        scale = np.exp(found.log_mass + np.log(w) + first)
        part = scale * -np.expm1(second - first)
        # As for one Gaussian; where the two logarithms agree to rounding the difference may be all error.
        slip = 8 * EPS * (4.0 + np.abs(first) + abs(epsilon) + a * a) + 4 * EPS * abs(found.log_mass)
        slip += 4 * EPS * np.abs(np.log(w)) + found.error[told]
        total = float(part.sum())
        error = float(scale @ slip) + math.exp(found.log_mass) * float(found.left_out)
        return total, error + 4 * EPS * len(part) * total

    return value
