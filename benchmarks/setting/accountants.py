"""Asks one of the three accountants about a setting, and says what kind of answer it gave."""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from exactdp.accounting import validate
from exactdp.benchmarks.setting import limit, renyi
from exactdp.benchmarks.setting.setting import Setting

if TYPE_CHECKING:
    from exactdp.accounting.interval import Interval

ACCOUNTANTS = ("prv", "rdp", "gdp")
Engine = Literal["auto", "contour", "lattice"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
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

    def rows(self, given: str, at: float, wanted: str) -> list[tuple[object, ...]]:
        """A heading and a line for people."""
        if self.estimate is not None:
            return [(given, f"{wanted}, estimate"), (at, self.estimate)]
        return [(given, f"{wanted}, lower", f"{wanted}, upper"), (at, self.lower, self.upper)]


@dataclasses.dataclass(frozen=True)
class Options:
    """Which accountant, how narrow (absolute in epsilon, relative in delta), which engine; see `options`."""

    accountant: str = "prv"
    tolerance: float | None = None
    engine: Engine = "auto"


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
    if accountant == "gdp" and setting.mechanism == "approximate":
        raise ValueError("accountant must be prv for approximate (its loss may be infinite), got gdp")
    return Options(accountant, tolerance, cast(Engine, engine))


def load(options: Options) -> None:
    """Imports the accountant, so that the time taken later is its own."""
    name = {"prv": "prv", "rdp": "rdp", "gdp": "composed"}[options.accountant]
    importlib.import_module(f"exactdp.accounting.{name}")


def epsilon(setting: Setting, *, delta: float, options: Options) -> Answer:
    """epsilon at `delta`."""
    if options.accountant == "prv":
        from exactdp.accounting import prv

        return _certified(
            prv.epsilon(
                setting.composition(), delta=delta, tolerance=options.tolerance, engine=options.engine
            )
        )
    if options.accountant == "rdp":
        from exactdp.accounting import rdp

        curves, orders = renyi.curves_and_orders(setting)
        bounds = [rdp.epsilon([(c, setting.num_steps)], delta=delta, orders=orders) for c in curves]
        return _upper(max(bounds, key=lambda bound: bound.value), setting)
    return _limit(limit.epsilon(setting, delta=delta), setting)


def delta(setting: Setting, *, epsilon: float, options: Options) -> Answer:
    """delta at `epsilon`."""
    if options.accountant == "prv":
        from exactdp.accounting import prv

        return _certified(
            prv.delta(
                setting.composition(), epsilon=epsilon, tolerance=options.tolerance, engine=options.engine
            )
        )
    if options.accountant == "rdp":
        from exactdp.accounting import rdp

        curves, orders = renyi.curves_and_orders(setting)
        bounds = [rdp.delta([(c, setting.num_steps)], epsilon=epsilon, orders=orders) for c in curves]
        return _upper(max(bounds, key=lambda bound: bound.value), setting)
    return _limit(limit.delta(setting, epsilon=epsilon), setting)


def _certified(interval: Interval) -> Answer:
    return Answer(interval.lower, interval.upper, interval.engine)


def _upper(bound: Any, setting: Setting) -> Answer:
    del setting
    order = "none" if math.isnan(bound.order) else f"{bound.order:.4g}"
    return Answer(
        0.0, bound.value, f"rdp, order {order}", remark="an upper bound; the true value may be far below"
    )


def _limit(value: float, setting: Setting) -> Answer:
    if limit.is_exact(setting):
        # Composed Gaussians are Gaussian: mu-GDP is no approximation, but the value is not rounded outwards.
        return Answer(None, None, "gdp, exact mu", value, "exact up to rounding; not a certified bound")
    return Answer(
        None, None, "gdp, central limit", value, "an approximation, which may lie below the true value"
    )
