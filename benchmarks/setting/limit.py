"""mu-GDP of a setting, for the gdp accountant: exact for Gaussians without sampling, else a central limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from exactdp.benchmarks.setting.setting import Setting

if TYPE_CHECKING:
    from exactdp.accounting.fdp.gaussian import GaussianTradeoff


def is_exact(setting: Setting) -> bool:
    """Whether the setting is exactly mu-GDP."""
    return setting.mechanism == "gaussian" and not setting.sampled


def tradeoff(setting: Setting) -> GaussianTradeoff:
    """The Gaussian trade-off curve of the setting."""
    from exactdp.accounting.fdp.gaussian import GaussianTradeoff

    if is_exact(setting):
        values = setting.effective()
        return GaussianTradeoff(
            math.sqrt(setting.num_steps) * values["sensitivity"] / values["noise_multiplier"]
        )
    from exactdp.accounting import composed

    return GaussianTradeoff(composed.gdp_mu(setting.composition()).value)


def epsilon(setting: Setting, *, delta: float) -> float:
    """epsilon at `delta`."""
    return tradeoff(setting).epsilon(delta)


def delta(setting: Setting, *, epsilon: float) -> float:
    """delta at `epsilon`."""
    return tradeoff(setting).delta(epsilon)
