"""Solves for one parameter of a setting, on the safe side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from exactdp.accounting import validate
from exactdp.benchmarks.setting.families import FAMILIES
from exactdp.benchmarks.setting.setting import Setting

if TYPE_CHECKING:
    from exactdp.accounting.calibrate import Calibrated

# Whether epsilon grows with it, the values tried, where the search begins, and whether it is whole.
_SEARCHES: Mapping[str, tuple[bool, tuple[float, float], float, bool]] = {
    "noise_multiplier": (False, (1e-3, 1e9), 1.0, False),
    "scaling": (True, (1e-6, 1e4), 1.0, False),
    "epsilon0": (True, (1e-9, 1e3), 0.1, False),
    "sampling_probability": (True, (1e-9, 1.0), 0.01, False),
    "num_steps": (True, (1, 10**9), 1000.0, True),
}
PARAMETERS = tuple(_SEARCHES)


def check(mechanism: str, parameter: str) -> None:
    """Refuses a parameter that settings of this mechanism do not have.

    Raises:
      ValueError: it is refused.
    """
    validate.one_of("parameter", parameter, PARAMETERS)
    known = (*FAMILIES[mechanism].required, "sampling_probability", "num_steps")
    own = [name for name in PARAMETERS if name in known]
    if parameter not in own:
        raise ValueError(f"parameter must be one of {', '.join(own)} for {mechanism}, got {parameter}")


def solve(setting: Setting, parameter: str, *, epsilon: float, delta: float) -> Calibrated:
    """The least private value of `parameter` with which `setting` still is (epsilon, delta)-DP.

    Args:
      setting: what runs; its own value of `parameter` is not used.
      parameter: one of `PARAMETERS`.
      epsilon: target, > 0.
      delta: target, in (0, 1).

    Raises:
      ValueError: bad input, or no value reaches the target.
      ArithmeticError: no value could be certified.
    """
    from exactdp.accounting.calibrate import calibrate

    check(setting.mechanism, parameter)
    increasing, limits, start, whole = _SEARCHES[parameter]
    if "delta0" in setting.parameters:
        least = int(limits[0]) if whole else limits[0]
        _check_delta0(setting.replaced(**{parameter: least}), delta)
    return calibrate(
        lambda value: setting.replaced(**{parameter: int(value) if whole else value}).composition(),
        parameter=parameter,
        epsilon=epsilon,
        delta=delta,
        increasing=increasing,
        limits=limits,
        start=start,
        whole=whole,
    )


def _check_delta0(least: Setting, delta: float) -> None:
    """Refuses a delta that even the most private setting of the search exceeds by its steps' delta0 alone."""
    q, steps, delta0 = least.sampling_probability, least.num_steps, least.parameters["delta0"]
    lost = -math.expm1(steps * math.log1p(-q * delta0))
    if lost > delta:
        factors = f"{steps} x {delta0:g}" + (f" x sampling_probability {q:g}" if least.sampled else "")
        raise ValueError(
            f"delta must be at least {lost:.6g}, as num_steps x delta0 ({factors}) "
            f"is lost at any epsilon0, got {delta:g}"
        )
