"""Asks one of the three accountants about a setting, and says what kind of answer it gave."""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import TYPE_CHECKING, Any, Literal, cast

from exactdp.accounting import validate
from exactdp.benchmarks.setting import renyi
from exactdp.benchmarks.setting.setting import Setting

if TYPE_CHECKING:
    from exactdp.accounting.interval import Interval

ACCOUNTANTS = ("prv", "rdp", "gdp")
ENGINES = ("auto", "contour", "lattice")
CERTIFIED = "certified: the true value lies between lower and upper"


@dataclasses.dataclass(frozen=True)
class Answer:
    """One number from one accountant.

    Attributes:
      lower: certified lower end; None where the accountant gives none.
      upper: certified upper end; None where the accountant only estimates.
      engine: what produced it.
      estimate: the number of an accountant that gives no bound; None otherwise.
      remark: what kind of answer this is, in one line.
    """

    lower: float | None
    upper: float | None
    engine: str
    estimate: float | None = None
    remark: str = CERTIFIED

    def as_dict(self) -> dict[str, float | None]:
        """lower and upper, and the estimate where there is one, for JSON."""
        ends = {"lower": self.lower, "upper": self.upper}
        return ends if self.estimate is None else {**ends, "estimate": self.estimate}


@dataclasses.dataclass(frozen=True)
class Options:
    """Which accountant, how narrow (epsilon only), which engine; see `options`."""

    accountant: str = "prv"
    tolerance: float | None = None
    engine: str = "auto"


def options(accountant: str, tolerance: float | None, engine: str, setting: Setting) -> Options:
    """Checks the options against each other and against the setting, before any work.

    Raises:
      ValueError: an option is out of range, or the accountant cannot answer for this setting.
    """
    validate.one_of("accountant", accountant, ACCOUNTANTS)
    validate.one_of("engine", engine, ENGINES)
    if tolerance is not None:
        validate.positive("tolerance", tolerance)
    if accountant != "prv":
        if tolerance is not None:
            raise ValueError(f"tolerance must be left out with accountant {accountant}, got {tolerance}")
        if engine != "auto":
            raise ValueError(f"engine must be auto with accountant {accountant}, got {engine}")
    if accountant == "rdp":
        renyi.check(setting)
    if accountant == "gdp" and (setting.mechanism != "gaussian" or setting.adjacency == "replace" and setting.sampled):
        raise ValueError(
            "accountant gdp must be used with mechanism gaussian, unsampled or with add_remove neighbours, "
            f"got {setting.mechanism}, {setting.adjacency}"
        )
    if accountant == "gdp" and setting.sampled and setting.coins == "visible":
        raise ValueError("accountant gdp must be used with hidden coins, got visible")
    return Options(accountant, tolerance, engine)


def load(options: Options) -> None:
    """Imports the accountant, so that the time taken later is its own."""
    importlib.import_module("exactdp.benchmarks.setting.limit")
    importlib.import_module(f"exactdp.accounting.{'fdp' if options.accountant == 'gdp' else options.accountant}")


def epsilon(setting: Setting, *, delta: float, options: Options) -> Answer:
    """epsilon at `delta`."""
    if options.accountant == "prv":
        from exactdp.accounting import prv

        return _certified(prv.epsilon(setting.composition(), delta=delta, tolerance=options.tolerance, engine=options.engine))
    if options.accountant == "rdp":
        from exactdp.accounting import rdp

        curves, orders = renyi.curves_and_orders(setting)
        bounds = [rdp.epsilon([(c, setting.num_steps)], delta=delta, orders=orders) for c in curves]
        return _upper(max(bounds, key=lambda bound: bound.value), setting)
    from exactdp.benchmarks.setting import limit

    return _limit(limit.epsilon(setting, delta=delta), setting)


def delta(setting: Setting, *, epsilon: float, options: Options) -> Answer:
    """delta at `epsilon`."""
    if options.accountant == "prv":
        from exactdp.accounting import prv

        return _certified(prv.delta(setting.composition(), epsilon=epsilon, engine=options.engine))
    if options.accountant == "rdp":
        from exactdp.accounting import rdp

        curves, orders = renyi.curves_and_orders(setting)
        bounds = [rdp.delta([(c, setting.num_steps)], epsilon=epsilon, orders=orders) for c in curves]
        return _upper(max(bounds, key=lambda bound: bound.value), setting)
    from exactdp.benchmarks.setting import limit

    return _limit(limit.delta(setting, epsilon=epsilon), setting)


def _certified(interval: Interval) -> Answer:
    return Answer(interval.lower, interval.upper, interval.engine)


def _upper(bound: Any, setting: Setting) -> Answer:
    del setting
    order = "none" if math.isnan(bound.order) else f"{bound.order:.4g}"
    return Answer(0.0, bound.value, f"rdp, order {order}", remark="an upper bound; the true value may be far below")


def _limit(value: float, setting: Setting) -> Answer:
    if not setting.sampled:
        # Composed Gaussians are Gaussian: here mu-GDP is no approximation, but the value is not rounded outwards.
        return Answer(None, None, "gdp, exact mu", value, "exact up to rounding; not a certified bound")
    return Answer(None, None, "gdp, central limit", value, "an approximation, which may lie below the true value")
