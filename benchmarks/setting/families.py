"""The mechanisms that can be named on the command line and in a claims file.

A new mechanism is one entry of `FAMILIES`. Nothing heavy is imported until a pair is built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from exactdp.accounting import validate

if TYPE_CHECKING:
    from exactdp.accounting.pairs.base import Pair

Check = Callable[[str, object], float]


def _at_least_one(name: str, value: object) -> float:
    return float(validate.count(name, value, minimum=1))


def _below_one(name: str, value: object) -> float:
    number = validate.probability(name, value)
    if number == 1.0:
        raise ValueError(f"{name} must be in [0, 1), got {value}")
    return number


@dataclasses.dataclass(frozen=True)
class Family:
    """One mechanism.

    Attributes:
      name: as on the command line.
      summary: one line for the help text.
      required: parameters without a default, each with its check.
      optional: parameters with a default, each with its check and the default.
      build: the dominating pair for add/remove neighbours.
      released: what one step releases, in words.
      calibrated: the parameter that `calibrate` solves for when none is named.
      replacement: how a replaced record acts: `"doubles"` the sensitivity (a record is taken out and
        another put in), or is `"same"`: the parameters already describe it.
    """

    name: str
    summary: str
    required: Mapping[str, Check]
    optional: Mapping[str, tuple[Check, float]]
    build: Callable[[Mapping[str, float]], Pair]
    released: str
    calibrated: str
    replacement: str


def _gaussian(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.gaussian import Gaussian

    return Gaussian(values["noise_multiplier"], values["sensitivity"])


def _laplace(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.laplace import Laplace

    return Laplace(values["noise_multiplier"], values["sensitivity"])


def _dirichlet(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.dirichlet import Dirichlet

    return Dirichlet(values["scaling"], values["offset"])


def _pure(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.pure import PureDP

    return PureDP(values["epsilon0"])


def _approximate(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.approximate import ApproximateDP

    return ApproximateDP(values["epsilon0"], values["delta0"])


def _discrete_gaussian(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian

    return DiscreteGaussian(values["noise_multiplier"], int(values["sensitivity"]))


def _discrete_laplace(values: Mapping[str, float]) -> Pair:
    from exactdp.accounting.pairs.discrete_laplace import DiscreteLaplace

    return DiscreteLaplace(values["noise_multiplier"], int(values["sensitivity"]))


_NOISE: Mapping[str, Check] = {"noise_multiplier": validate.positive}
_REAL: Mapping[str, tuple[Check, float]] = {"sensitivity": (validate.positive, 1.0)}
_WHOLE: Mapping[str, tuple[Check, float]] = {"sensitivity": (_at_least_one, 1.0)}

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "gaussian",
            "Gaussian noise of standard deviation noise_multiplier * clip norm",
            _NOISE,
            _REAL,
            _gaussian,
            "the noisy sum",
            "noise_multiplier",
            "doubles",
        ),
        Family(
            "laplace",
            "Laplace noise of scale noise_multiplier * L1 sensitivity",
            _NOISE,
            _REAL,
            _laplace,
            "the noisy sum",
            "noise_multiplier",
            "doubles",
        ),
        Family(
            "dirichlet",
            "a draw from Dir(scaling * probabilities + offset)",
            {"scaling": validate.positive, "offset": validate.positive},
            {},
            _dirichlet,
            "one Dirichlet draw per sampled record, at another input where the record is not in the data",
            "scaling",
            "same",
        ),
        Family(
            "pure",
            "any mechanism known to be (epsilon0, 0)-DP",
            {"epsilon0": validate.positive},
            {},
            _pure,
            "the output of the mechanism",
            "epsilon0",
            "same",
        ),
        Family(
            "approximate",
            "any mechanism known to be (epsilon0, delta0)-DP",
            {"epsilon0": validate.non_negative, "delta0": _below_one},
            {},
            _approximate,
            "the output of the mechanism",
            "epsilon0",
            "same",
        ),
        Family(
            "discrete_gaussian",
            "discrete Gaussian noise on an integer query",
            _NOISE,
            _WHOLE,
            _discrete_gaussian,
            "the noisy count",
            "noise_multiplier",
            "doubles",
        ),
        Family(
            "discrete_laplace",
            "discrete Laplace (two-sided geometric) noise on an integer query",
            _NOISE,
            _WHOLE,
            _discrete_laplace,
            "the noisy count",
            "noise_multiplier",
            "doubles",
        ),
    )
}

PARAMETERS = tuple(
    dict.fromkeys(name for family in FAMILIES.values() for name in (*family.required, *family.optional))
)
"""Every mechanism parameter, in a fixed order."""
