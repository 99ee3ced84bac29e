"""From the soundness set's JSON to `exactdp` objects, and the comparison in exact arithmetic."""

from __future__ import annotations

import fractions
import math
from typing import Any

Config = dict[str, Any]


def contains(lower: float, upper: float, truth: str, error: float) -> bool:
    """Whether [lower, upper] meets truth (1 -+ error); exact rationals, so no rounding enters.

    Args:
      lower: lower end of the interval, possibly infinite.
      upper: upper end of the interval, possibly infinite.
      truth: a decimal number, or "inf".
      error: relative error of the truth.
    """
    if truth == "inf":
        return upper == math.inf
    value = fractions.Fraction(truth)
    slack = abs(value) * fractions.Fraction(error)
    above = upper == math.inf or fractions.Fraction(upper) >= value - slack
    below = lower != math.inf and (lower == -math.inf or fractions.Fraction(lower) <= value + slack)
    return above and below


def supported(mechanisms: list[Config]) -> bool:
    """Whether every mechanism of this input can be expressed with `exactdp`'s pairs and samplers."""
    try:
        composition(mechanisms)
    except (ImportError, AttributeError):
        return False
    return True


def composition(mechanisms: list[Config]) -> list[tuple[Any, int]]:
    """The composition as `exactdp.accounting.prv` takes it: (pair, count) for every mechanism.

    Raises:
      ValueError: a family, coins or adjacency is unknown.
    """
    return [(_step(m), int(m["count"])) for m in mechanisms]


def _step(config: Config) -> Any:
    q = float(config.get("sampling_probability", 1.0))
    coins = config.get("coins", "none") if q < 1.0 else "none"
    if config.get("adjacency", "add_remove") == "replace":
        if config["family"] != "gaussian":
            raise ValueError(f"adjacency replace is for the gaussian family, got {config['family']!r}")
        if q < 1.0:
            from exactdp.accounting.sampling.replace import PoissonReplaceGaussian

            return PoissonReplaceGaussian(config["noise_multiplier"], q)
        from exactdp.accounting.pairs.gaussian import Gaussian

        return Gaussian(config["noise_multiplier"], sensitivity=2.0)
    base = _pair(config)
    if coins == "hidden":
        from exactdp.accounting.sampling.hidden import PoissonHidden

        return PoissonHidden(base, q)
    if coins == "visible":
        from exactdp.accounting.sampling.visible import PoissonVisible

        return PoissonVisible(base, q)
    if coins != "none":
        raise ValueError(f"coins must be hidden, visible or none, got {coins!r}")
    return base


def _pair(config: Config) -> Any:
    family = config["family"]
    if family == "gaussian":
        from exactdp.accounting.pairs.gaussian import Gaussian

        return Gaussian(config["noise_multiplier"])
    if family == "laplace":
        from exactdp.accounting.pairs.laplace import Laplace

        return Laplace(config["noise_multiplier"])
    if family == "dirichlet":
        from exactdp.accounting.pairs.dirichlet import Dirichlet

        return Dirichlet(config["scaling"], config["offset"])
    if family == "pure_dp":
        from exactdp.accounting.pairs.pure import PureDP

        return PureDP(config["epsilon"])
    if family == "approximate_dp":
        from exactdp.accounting.pairs.approximate import ApproximateDP

        return ApproximateDP(config["epsilon"], config["delta"])
    if family == "finite":
        from exactdp.accounting.pairs.finite import Finite

        return Finite(tuple(config["p"]), tuple(config["q"]))
    if family == "discrete_gaussian":
        from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian

        return DiscreteGaussian(config["noise_multiplier"], config.get("sensitivity", 1))
    if family == "discrete_laplace":
        from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace

        return DiscreteLaplace(config["noise_multiplier"], config.get("sensitivity", 1))
    raise ValueError(f"family {family!r} is unknown")
