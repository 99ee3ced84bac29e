"""From what a user asks to what runs: noise and number of steps, certified."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from exactdp.accounting import calibrate
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.sampling import truncated
from exactdp.accounting.threat import ThreatModel
from exactdp.mechanisms.batches import Poisson
from exactdp.mechanisms.public import Public
from exactdp.train import certificates, feature_certificate
from exactdp.train.certificate import Certificate
from exactdp.train.settings import Settings

_DEFAULT_RATE = 0.5
_DEFAULT_EFFECTIVE_RATE = 3.0  # best of 0.3, 1, 3, 10 and 30 on held-out training records of the digits
_MANY_STEPS = 10**6  # where the number of steps is what is sought
_TOLERANCE = 1e-6  # of the noise, relative
_LEAST_SCALE = 0.01  # epsilon below which it grows, as the accountant's widths do not shrink with epsilon
_ATTEMPTS = 20
_TYPICAL = 0.9  # softmax output at the label, as the paper takes it for kappa


@dataclasses.dataclass(frozen=True)
class Printed:
    """What the paper's own rule says of a run.

    Attributes:
      epsilon: by that rule.
      rung: its name in `exactdp ladder dirichlet`.
      threat_model: what the rule assumes.
    """

    epsilon: float
    rung: str
    threat_model: ThreatModel

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"epsilon": self.epsilon, "rung": self.rung, "threat_model": self.threat_model.as_dict()}


@dataclasses.dataclass(frozen=True)
class Plan:
    """What runs.

    Attributes:
      certificate: the claim.
      num_steps: T.
      sampler: draws the batches.
      noise: value of the method's parameter; None for nonprivate.
      learning_rate: gamma.
      printed: what the paper's rule says, where it chose the scaling.
    """

    certificate: Certificate
    num_steps: int
    sampler: Poisson
    noise: float | None
    learning_rate: float
    printed: Printed | None = None


def plan(settings: Settings, *, num_records: int, num_classes: int, public: Public | None = None) -> Plan:
    """Solves for what was left out.

    Args:
      settings: what was asked for.
      num_records: of the training set; public.
      num_classes: K.
      public: the public feature map of feature.

    Raises:
      ValueError: no noise or number of steps reaches the target, or the data set is smaller than a batch.
      ArithmeticError: no value could be certified.
    """
    q = settings.rate(num_records)
    slots = capacity(
        num_records,
        sampling_probability=q,
        num_steps=settings.steps or _MANY_STEPS,
        delta=settings.delta,
    )
    sampler = Poisson(num_records, q, slots)
    if settings.method == "nonprivate":
        certificate = certificates.nonprivate(sampler=sampler)
        return Plan(certificate, settings.steps or 1, sampler, None, _learning_rate(settings, None))
    certify = _certify(settings, sampler, num_classes, public)
    noise, num_steps, said = settings.noise, settings.steps, None
    if settings.accountant == "printed":
        noise, said = _by_paper(settings, q)
    elif noise is None and num_steps is not None:
        noise = noise_for(
            certify,
            epsilon=_target(settings),
            delta=settings.delta,
            num_steps=num_steps,
            scaling=settings.method == "dirichlet",
        )
    elif num_steps is None and noise is not None:
        num_steps = _num_steps(settings, certify(noise))
    if num_steps is None or noise is None:
        raise ValueError("epsilon must be given with neither noise nor num_steps")
    if settings.noise is not None or said is not None:
        # A run whose end cannot be certified is not begun.
        certify(noise).epsilon(num_steps, delta=settings.delta)
    return Plan(certify(noise), num_steps, sampler, noise, _learning_rate(settings, noise), said)


def capacity(num_records: int, *, sampling_probability: float, num_steps: int, delta: float) -> int:
    """Slots enough that what overflowing batches cost is a millionth of delta, or the next to nothing.

    Args:
      num_records: n.
      sampling_probability: q.
      num_steps: of the run.
      delta: in (0, 1).
    """
    return truncated.capacity_for(
        num_records,
        sampling_probability=sampling_probability,
        num_steps=num_steps,
        log10_overflow=math.log10(delta) - 6.0,
    )


def _certify(
    settings: Settings, sampler: Poisson, num_classes: int, public: Public | None
) -> Callable[[float], Certificate]:
    if settings.method == "dirichlet":
        return lambda r: certificates.dirichlet(
            r, offset=settings.alpha, sampler=sampler, num_classes=num_classes
        )
    asked = settings.feature
    if asked is not None and public is not None:
        return lambda noise: feature_certificate.feature(noise, sampler=sampler, public=public, asked=asked)
    made = {
        "dpsgd": certificates.dpsgd,
        "label_public": certificates.label_public,
        "gaussian_features": certificates.gaussian_features,
    }
    return lambda noise: made[settings.method](noise, sampler=sampler)


def noise_for(
    certify: Callable[[float], Certificate],
    *,
    epsilon: float,
    delta: float,
    num_steps: int,
    scaling: bool = False,
) -> float:
    """The noise with which the run's own answer at its end is the target at most.

    Args:
      certify: the claim of a noise multiplier, or of a scaling.
      epsilon: target of the whole run, > 0.
      delta: in (0, 1).
      num_steps: >= 1.
      scaling: whether a scaling is sought, which costs the more the larger it is.

    Raises:
      ValueError: no value reaches the target.
      ArithmeticError: none could be certified.
    """
    solve = calibrate.scaling if scaling else calibrate.noise_multiplier
    found = solve(
        lambda value: certify(value).composition(num_steps),
        epsilon=epsilon,
        delta=delta,
        tolerance=min(_TOLERANCE * max(_LEAST_SCALE / epsilon, 1.0), 1e-3),
    )
    # The search asks for another width than the run does at its end, whose upper end may be the larger.
    safer = -1.0 if scaling else 1.0
    value, log_shift = float(found.value), 0.0
    for attempt in range(_ATTEMPTS):
        beyond = certify(value).epsilon(num_steps, delta=delta).upper / epsilon - 1.0
        if beyond <= 0.0:
            return value
        log_shift += max(beyond, _TOLERANCE) * 2.0**attempt
        value = float(found.value) * math.exp(safer * log_shift)
    raise ArithmeticError(
        f"epsilon of the whole run cannot be certified to be {epsilon:g} at most, the accountant's interval "
        "being too wide; a larger delta may help"
    )


def _num_steps(settings: Settings, certificate: Certificate) -> int:
    """The number of steps at whose end the run's own answer is the target at most."""
    target, delta = _target(settings), settings.delta
    steps = int(calibrate.num_steps(certificate.composition, epsilon=target, delta=delta).value)
    while steps > 1 and certificate.epsilon(steps, delta=delta).upper > target:
        steps -= 1
    return steps


def _by_paper(settings: Settings, q: float) -> tuple[float, Printed]:
    """r* by Theorem 10 with the conversion that reproduces the paper's Table 7."""
    steps = settings.steps
    if steps is None:
        raise ValueError("num_steps must be given")
    target = _target(settings)
    rule = {"offset": settings.alpha, "sampling_probability": q, "num_steps": steps, "delta": settings.delta}
    found = printed.largest_scaling(target, conversion="balle", **rule)  # type: ignore[arg-type]
    if found is None:
        raise ValueError(
            f"epsilon must be larger for the paper's rule at sampling_probability {q:g} and {steps} steps: "
            f"no scaling reaches it, got {target:g}; a smaller sampling_probability or fewer steps would help"
        )
    bound = printed.epsilon(found, conversion="balle", **rule)  # type: ignore[arg-type]
    entry = printed.REPAIRED_CONVERSION
    return found, Printed(bound.value, entry.name, entry.threat_model)


def _learning_rate(settings: Settings, noise: float | None) -> float:
    if settings.learning_rate is not None:
        return float(settings.learning_rate)
    if settings.method != "dirichlet" or noise is None:
        return _DEFAULT_RATE
    effective = settings.effective_learning_rate or _DEFAULT_EFFECTIVE_RATE
    return effective / printed.kappa(noise, offset=settings.alpha, true_class_probability=_TYPICAL)


def _target(settings: Settings) -> float:
    if settings.epsilon is None:
        raise ValueError("epsilon must be given")
    return float(settings.epsilon)
