"""Rényi curves of a setting, for the rdp accountant."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from exactdp.benchmarks.setting.setting import Setting

Curve = Callable[[float], float]

_LARGEST_ORDER = 256


def check(setting: Setting) -> None:
    """Refuses a setting of which no Rényi curve is known.

    Raises:
      ValueError: it is refused.
    """
    if setting.mechanism == "approximate":
        raise ValueError(
            "accountant must be prv for approximate (its Renyi divergences are infinite), got rdp"
        )
    if setting.adjacency == "replace" and setting.sampled and setting.coins == "hidden":
        raise ValueError("accountant must be prv for adjacency replace with hidden coins, got rdp")


def release(setting: Setting) -> Curve:
    """The curve of one step without sampling; it bounds both directions."""
    from exactdp.accounting import rdp

    values = setting.effective()
    if setting.mechanism == "dirichlet":
        return functools.partial(rdp.dirichlet, scaling=values["scaling"], offset=values["offset"])
    if setting.mechanism == "pure":
        return functools.partial(rdp.pure_dp, epsilon=values["epsilon0"])
    noise, sensitivity = values["noise_multiplier"], values["sensitivity"]
    if setting.mechanism == "gaussian":
        return functools.partial(rdp.gaussian, noise_multiplier=noise, sensitivity=sensitivity)
    if setting.mechanism == "laplace":
        return functools.partial(rdp.laplace, noise_multiplier=noise, sensitivity=sensitivity)
    family = {"discrete_gaussian": rdp.discrete_gaussian, "discrete_laplace": rdp.discrete_laplace}[
        setting.mechanism
    ]
    return functools.partial(family, noise_multiplier=noise, sensitivity=int(sensitivity))


def curves_and_orders(setting: Setting) -> tuple[list[Curve], list[float] | None]:
    """One curve a direction (one that bounds both, where there is one), and the orders (None: all real)."""
    from exactdp.accounting import rdp

    q, curve = setting.sampling_probability, release(setting)
    if not setting.sampled:
        return [curve], None
    if setting.coins == "visible":
        return [functools.partial(rdp.visible_coins, curve=curve, sampling_probability=q)], None
    if setting.mechanism == "gaussian":
        values = setting.effective()
        noise = values["noise_multiplier"] / values["sensitivity"]
        step = functools.partial(rdp.subsampled_gaussian, noise_multiplier=noise, sampling_probability=q)
        return [functools.partial(step, direction=d) for d in ("remove", "add")], None

    def bound(order: float) -> float:
        return rdp.zhu_wang(int(order), curve=curve, sampling_probability=q)

    limit = _LARGEST_ORDER
    if setting.mechanism == "dirichlet":
        from exactdp.accounting.rdp.dirichlet_draw import order_limit

        at = order_limit(setting.parameters["scaling"], offset=setting.parameters["offset"])
        limit = int(min(limit, math.ceil(at) - 1))
    orders = [float(order) for order in (*range(2, 64), 80, 96, 128, 192, _LARGEST_ORDER) if order <= limit]
    # No whole order is below the limit: order 2 has an infinite divergence there, which is the honest answer.
    return [bound], orders or [2.0]
