"""Calibration of the usual parameters."""

from __future__ import annotations

from collections.abc import Callable

from exactdp.accounting import prv, validate
from exactdp.accounting.calibrate.search import Calibrated, calibrate
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Composition


def noise_multiplier(
    build: Callable[[float], Composition],
    *,
    epsilon: float,
    delta: float,
    tolerance: float = 1e-7,
    limits: tuple[float, float] = (1e-3, 1e9),
) -> Calibrated:
    """The smallest noise multiplier that satisfies (epsilon, delta).

    Example:
      `noise_multiplier(lambda s: [(PoissonHidden(Gaussian(s), 0.01), 1000)], epsilon=1.0, delta=1e-5)`.

    Args:
      build: composition for a noise multiplier.
      epsilon: as in `calibrate`.
      delta: as in `calibrate`.
      tolerance: as in `calibrate`.
      limits: as in `calibrate`.

    Raises:
      ValueError: as `calibrate`.
    """
    return calibrate(
        build, parameter="noise_multiplier", epsilon=epsilon, delta=delta, increasing=False, limits=limits,
        start=min(max(1.0, limits[0]), limits[1]), tolerance=tolerance,
    )  # fmt: skip


def scaling(
    build: Callable[[float], Composition],
    *,
    epsilon: float,
    delta: float,
    tolerance: float = 1e-7,
    limits: tuple[float, float] = (1e-6, 1e4),
) -> Calibrated:
    """The largest Dirichlet scaling r that satisfies (epsilon, delta).

    Args:
      build: composition for a scaling.
      epsilon: as in `calibrate`.
      delta: as in `calibrate`.
      tolerance: as in `calibrate`.
      limits: as in `calibrate`.

    Raises:
      ValueError: as `calibrate`.
    """
    return calibrate(
        build, parameter="scaling", epsilon=epsilon, delta=delta, increasing=True, limits=limits,
        start=min(max(1.0, limits[0]), limits[1]), tolerance=tolerance,
    )  # fmt: skip


def sampling_probability(
    build: Callable[[float], Composition],
    *,
    epsilon: float,
    delta: float,
    tolerance: float = 1e-7,
    limits: tuple[float, float] = (1e-9, 1.0),
) -> Calibrated:
    """The largest sampling probability that satisfies (epsilon, delta); 1 where even that does.

    Args:
      build: composition for a sampling probability.
      epsilon: as in `calibrate`.
      delta: as in `calibrate`.
      tolerance: as in `calibrate`.
      limits: as in `calibrate`; within (0, 1].

    Raises:
      ValueError: as `calibrate`.
    """
    validate.probability("limits", limits[1])
    return calibrate(
        build, parameter="sampling_probability", epsilon=epsilon, delta=delta, increasing=True, limits=limits,
        start=min(max(0.01, limits[0]), limits[1]), tolerance=tolerance,
    )  # fmt: skip


def num_steps(
    build: Callable[[int], Composition],
    *,
    epsilon: float,
    delta: float,
    limits: tuple[int, int] = (1, 10**9),
) -> Calibrated:
    """The largest number of steps that satisfies (epsilon, delta), a whole number.

    Args:
      build: composition for a number of steps.
      epsilon: as in `calibrate`.
      delta: as in `calibrate`.
      limits: least and largest number tried.

    Raises:
      ValueError: as `calibrate`; the target is missed even at the least number.
    """
    low, high = (validate.count("limits", end, minimum=1) for end in limits)
    return calibrate(
        lambda value: build(int(value)), parameter="num_steps", epsilon=epsilon, delta=delta, increasing=True,
        limits=(low, high), start=min(max(1000.0, low), high), tolerance=1e-7, whole=True,
    )  # fmt: skip


def epsilon(composition: Composition, *, delta: float) -> Calibrated:
    """The smallest epsilon that a composition is certified to have at `delta`; infinite where there is none.

    Raises:
      ValueError: `delta` is outside (0, 1).
    """
    given = validate.open_probability("delta", delta)
    interval = prv.epsilon(composition, delta=given)
    return Calibrated("epsilon", interval.upper, interval, Interval(given, given, "given"), None, 0.0, 1)


def delta(composition: Composition, *, epsilon: float) -> Calibrated:
    """The smallest delta that a composition is certified to have at `epsilon`.

    Raises:
      ValueError: `epsilon` is negative or not finite.
    """
    given = validate.non_negative("epsilon", epsilon)
    interval = prv.delta(composition, epsilon=given)
    return Calibrated("delta", interval.upper, Interval(given, given, "given"), interval, None, 0.0, 1)
