"""Calibration: any one parameter for a target (epsilon, delta), on the safe side and certified."""

from exactdp.accounting.calibrate.parameters import (
    delta,
    epsilon,
    noise_multiplier,
    num_steps,
    sampling_probability,
    scaling,
)
from exactdp.accounting.calibrate.search import Calibrated, calibrate

__all__ = [
    "Calibrated",
    "calibrate",
    "delta",
    "epsilon",
    "noise_multiplier",
    "num_steps",
    "sampling_probability",
    "scaling",
]
