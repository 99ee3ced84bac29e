"""Two facts on visible coins: a bound by counting, and how little sampling helps a pure mechanism."""

from __future__ import annotations

from scipy import special

from exactdp.accounting import prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.pairs.pure import PureDP
from exactdp.accounting.printed import feature as printed
from exactdp.accounting.sampling.visible import PoissonVisible


def counting_bound(
    noise_multiplier: float, *, sampling_probability: float, num_steps: int, delta: float
) -> float:
    """An upper bound on ε of subsampled Gaussian steps with little noise, in closed form.

    Hidden coins cost at most what visible ones do, and those cost a Binomial(T, p) number N of Gaussian
    steps. With k the least number such that Pr[N > k] <= δ/2, ε is at most that of k steps at δ/2.

    Args:
      noise_multiplier: > 0.
      sampling_probability: p in [0, 1].
      num_steps: T >= 0.
      delta: in (0, 1).

    Raises:
      ValueError: an argument is outside its range.

    Source: derived.
    """
    noise = validate.positive("noise_multiplier", noise_multiplier)
    p = validate.probability("sampling_probability", sampling_probability)
    steps = validate.count("num_steps", num_steps)
    half = 0.5 * validate.open_probability("delta", delta)
    low, high = -1, steps  # Pr[N > steps] = 0
    while high - low > 1:
        middle = (low + high) // 2
        # The safety factor covers the rounding of the incomplete beta function.
        if float(special.bdtrc(middle, steps, p)) * (1.0 + 1e-9) <= half:
            high = middle
        else:
            low = middle
    return prv.epsilon([(Gaussian(noise), high)], delta=half).upper


def amplification_of_pure(
    epsilon: float, *, sampling_probability: float, delta: float
) -> tuple[float, Interval]:
    """Proposition 3 beside the exact value: one naive step on (epsilon, 0) randomised response.

    Args:
      epsilon: of the response, >= 0, nats.
      sampling_probability: p in [0, 1].
      delta: in (0, 1); the proposition is its limit 0.

    Returns:
      The printed epsilon, which does not depend on p > 0, and the certified one at `delta`.

    Raises:
      ValueError: a parameter is outside its range.

    Source: arXiv 2506.19836v1, Proposition 3.
    """
    claimed = printed.naive_epsilon(epsilon, sampling_probability=sampling_probability)
    step = PoissonVisible(PureDP(float(epsilon)), float(sampling_probability))
    return claimed, prv.epsilon([(step, 1)], delta=delta)
