"""What the factor 3 of the amplification theorem costs on its own."""

from __future__ import annotations

import math

import numpy as np

from exactdp.accounting import validate
from exactdp.accounting.rdp.conversion import epsilon as convert
from exactdp.accounting.rdp.general_bounds import zhu_wang_from_values


def factor_three_floor(*, sampling_probability: float, num_steps: int, delta: float) -> float:
    """What the paper's rule costs as the scaling tends to 0: the least T·Z(λ) + C(λ) of a constant draw.

    Z keeps the factor 3 on its terms of order 3 and more, which do not vanish with the draw's divergence. The
    conversion is that of Balle et al.

    Args:
      sampling_probability: q in [0, 1].
      num_steps: T, whole, >= 0.
      delta: in (0, 1).

    Returns:
      the limit, nats; no target below it is reached by any scaling.

    Raises:
      ValueError: a parameter is outside its range.
    """
    q = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps)
    validate.open_probability("delta", delta)
    best, order = math.inf, 2
    while order <= 20_000:
        step = zhu_wang_from_values(order, growth=np.zeros(order - 1), sampling_probability=q)
        best = min(best, convert(float(order), renyi=steps * step, delta=delta, conversion="balle"))
        if best == 0.0 or steps * step + math.log1p(-delta) > best:
            break
        order += 1 if order < 512 else order // 100
    return best
