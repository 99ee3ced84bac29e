"""Feature differential privacy, arXiv 2506.19836v1: the printed statements and their repairs.

Algorithm 1 adds Gaussian noise to g_priv + g_pub, where g_priv = (1/m)Σ∇ℓ_priv over a Poisson batch of rate
p = m/n and g_pub comes from an independent batch that depends on public features only. Theorem 5 states the
trade-off curve of T steps as that of N(0,σ)^T against ((1−p)N(0,σ) + pN(τ,σ))^T, τ the Lipschitz constant
of ℓ_priv.

The functions here turn printed parameters into a `Step` that any accountant of the subsampled Gaussian takes.
"""

from __future__ import annotations

import dataclasses
import math

from exactdp.accounting import validate
from exactdp.accounting.printed.source import PrintedBound, Repair, Source
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

_ARXIV, _VERSION = "2506.19836", 1
_RELEASED = "all noisy gradients; public features are known to the adversary"
_ADD_REMOVE = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, _RELEASED)
_REPLACE = ThreatModel(Adjacency.REPLACE_FEATURES_PUBLIC, Coins.HIDDEN, _RELEASED)
_VISIBLE = ThreatModel(Adjacency.ADD_REMOVE, Coins.VISIBLE, _RELEASED + ", and so is each step's batch")


def _derived(locator: str) -> Source:
    return Source(_ARXIV, _VERSION, locator, "derived")


THEOREM_5 = PrintedBound(
    name="printed",
    source=Source(_ARXIV, _VERSION, "Theorem 5"),
    formula="f = T(N(0,σ)^T, ((1-p)N(0,σ) + pN(τ,σ))^T)",
    threat_model=_ADD_REMOVE,
    note="One direction of an asymmetric pair; the shift fits noise on the sum of gradients, not the mean.",
)

SUM_VERSUS_AVERAGE = Repair(
    name="shift τ/m",
    corrects=THEOREM_5.name,
    defect="Algorithm 1 divides the private gradient by m before the noise: one record shifts it by τ/m",
    formula="f = T(N(0,σ)^T, ((1-p)N(0,σ) + pN(τ/m,σ))^T)",
    threat_model=_ADD_REMOVE,
    source=_derived("Algorithm 1 against Theorem 5"),
)

BOTH_DIRECTIONS = Repair(
    name="both directions",
    corrects=SUM_VERSUS_AVERAGE.name,
    defect="T(P, Q) is not symmetric for a mixture: insertion and deletion have different curves",
    formula="the worse of T(P^T, Q^T) and T(Q^T, P^T), each composed on its own",
    threat_model=_ADD_REMOVE,
    source=_derived("Theorem 5, Definition 6"),
)

FIXED_RATE = Repair(
    name="fixed rate",
    corrects=BOTH_DIRECTIONS.name,
    defect="the mechanism on n+1 records samples at m/(n+1), the simulator at m/n",
    formula="one public constant p for both data sets",
    threat_model=_ADD_REMOVE,
    source=_derived("Definition 6, Algorithm 1"),
)

REPLACEMENT = Repair(
    name="replacement",
    corrects=BOTH_DIRECTIONS.name,
    defect="Definition 5 replaces a record: the two gradients can be 2τ apart",
    formula="candidate pair (1-p)N(0,σ) + pN(+τ/m,σ) against (1-p)N(0,σ) + pN(-τ/m,σ)",
    threat_model=_REPLACE,
    source=_derived("Definition 5"),
)

NAIVE_BATCH = Repair(
    name="naive single batch",
    corrects=THEOREM_5.name,
    defect="with one batch for both gradients the public part reveals who was sampled",
    formula="each step: nothing with probability 1-p, else N(0,σ) against N(τ/m,σ)",
    threat_model=_VISIBLE,
    source=_derived("Proposition 3, Algorithm 1"),
)

PROPOSITION_3 = PrintedBound(
    name="no amplification",
    source=Source(_ARXIV, _VERSION, "Proposition 3"),
    formula="(ε, 0) for every sampling rate, tightly",
    threat_model=_VISIBLE,
)

SCHEDULE = PrintedBound(
    name="noise schedule",
    source=Source(_ARXIV, _VERSION, "after Theorem 5"),
    formula="σ = c τ m/(ε n) sqrt(T log(1/δ) log(T/δ))",
    threat_model=_ADD_REMOVE,
    note="c is unspecified. The magnitude is that of noise on the sum of gradients.",
)

THEOREM_6 = PrintedBound(
    name="excess risk",
    source=Source(_ARXIV, _VERSION, "Theorem 6"),
    formula="(M²/c + cτ'² + c d σ²)(2 + log T)/sqrt(T)",
    threat_model=_ADD_REMOVE,
    note="The printed statement is garbled; this is its reading as a bound for convex losses.",
)

ENTRIES = (
    THEOREM_5,
    SUM_VERSUS_AVERAGE,
    BOTH_DIRECTIONS,
    FIXED_RATE,
    REPLACEMENT,
    NAIVE_BATCH,
    PROPOSITION_3,
    SCHEDULE,
    THEOREM_6,
)


@dataclasses.dataclass(frozen=True)
class Step:
    """Parameters of T equal subsampled Gaussian steps.

    Attributes:
      noise_multiplier: noise over shift.
      sampling_probability: p.
      num_steps: T.
    """

    noise_multiplier: float
    sampling_probability: float
    num_steps: int


def theorem_5(noise: float, *, lipschitz: float, sampling_probability: float, num_steps: int) -> Step:
    """Theorem 5 as printed: noise σ, shift τ per step, one direction (base against mixture).

    Arguments:
      noise: σ > 0, in the unit of a gradient.
      lipschitz: τ > 0, Lipschitz constant of the private loss.
      sampling_probability: p in [0, 1].
      num_steps: T >= 0.

    Returns:
      the step with noise multiplier σ/τ.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, Theorem 5.
    """
    multiplier = validate.positive("noise", noise) / validate.positive("lipschitz", lipschitz)
    return Step(
        multiplier,
        validate.probability("sampling_probability", sampling_probability),
        validate.count("num_steps", num_steps),
    )


def averaged_gradient(
    noise: float, *, lipschitz: float, batch_size: float, sampling_probability: float, num_steps: int
) -> Step:
    """Theorem 5 with the shift of an averaged gradient, τ/m: noise multiplier σm/τ.

    Arguments:
      noise: σ > 0, standard deviation of the noise on the averaged gradient.
      lipschitz: τ > 0.
      batch_size: m > 0, the divisor of Algorithm 1.
      sampling_probability: p in [0, 1].
      num_steps: T >= 0.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, Algorithm 1.
    """
    shift = validate.positive("lipschitz", lipschitz) / validate.positive("batch_size", batch_size)
    return theorem_5(noise, lipschitz=shift, sampling_probability=sampling_probability, num_steps=num_steps)


def printed_noise(
    epsilon: float,
    *,
    delta: float,
    lipschitz: float,
    batch_size: float,
    num_records: int,
    num_steps: int,
    constant: float,
) -> float:
    """The printed schedule σ = c·τm/(εn)·√(T·log(1/δ)·log(T/δ)).

    Divide by τ for a noise multiplier if the noise is added to the sum (the reading that fits its
    magnitude), by τ/m if it is added to the mean.

    Arguments:
      epsilon: ε > 0.
      delta: δ in (0, 1).
      lipschitz: τ > 0.
      batch_size: m > 0.
      num_records: n >= 1.
      num_steps: T >= 1.
      constant: c > 0; the paper does not say which.

    Returns:
      σ.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, after Theorem 5.
    """
    epsilon = validate.positive("epsilon", epsilon)
    delta = validate.open_probability("delta", delta)
    steps = validate.count("num_steps", num_steps, minimum=1)
    scale = validate.positive("constant", constant) * validate.positive("lipschitz", lipschitz)
    scale *= validate.positive("batch_size", batch_size)
    scale /= epsilon * validate.count("num_records", num_records, minimum=1)
    return scale * math.sqrt(steps * math.log(1.0 / delta) * math.log(steps / delta))


def sampling_rates(num_records: int, *, batch_size: float) -> tuple[float, float]:
    """The rates m/(n+1) of the mechanism on n+1 records and m/n of its simulator on n.

    Arguments:
      num_records: n >= 1.
      batch_size: m in (0, n].

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, Definition 6 and Algorithm 1.
    """
    n = validate.count("num_records", num_records, minimum=1)
    m = validate.positive("batch_size", batch_size)
    if m > n:
        raise ValueError(f"batch_size must be <= num_records = {n}, got {batch_size}")
    return m / (n + 1.0), m / n


def naive_epsilon(epsilon: float, *, sampling_probability: float) -> float:
    """ε of one naive step on top of (ε, 0) randomised response: ε itself, whatever the rate.

    Arguments:
      epsilon: ε >= 0 of the unsampled release.
      sampling_probability: p in [0, 1].

    Returns:
      ε; 0 when nothing is ever sampled.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, Proposition 3.
    """
    epsilon = validate.non_negative("epsilon", epsilon)
    return epsilon if validate.probability("sampling_probability", sampling_probability) > 0.0 else 0.0


def excess_risk(
    num_steps: int, *, diameter: float, constant: float, lipschitz: float, dimension: int, noise: float
) -> float:
    """Theorem 6 as printed: (M²/c + cτ'² + c·d·σ²)(2 + log T)/√T.

    Arguments:
      num_steps: T >= 1.
      diameter: M > 0, of the parameter set.
      constant: c > 0, of the step size c/√t.
      lipschitz: τ' >= 0, Lipschitz constant of the whole loss.
      dimension: d >= 1, number of parameters.
      noise: σ >= 0, standard deviation of the noise on the averaged gradient.

    Returns:
      the bound on the excess risk of the last iterate.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2506.19836v1, Theorem 6 (its print is garbled).
    """
    steps = validate.count("num_steps", num_steps, minimum=1)
    c = validate.positive("constant", constant)
    m = validate.positive("diameter", diameter)
    slope = validate.non_negative("lipschitz", lipschitz)
    sigma = validate.non_negative("noise", noise)
    d = validate.count("dimension", dimension, minimum=1)
    total = m * m / c + c * slope * slope + c * d * sigma * sigma
    return total * (2.0 + math.log(steps)) / math.sqrt(steps)
