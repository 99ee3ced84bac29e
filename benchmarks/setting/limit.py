"""mu-GDP of a Gaussian setting, for the gdp accountant: exact without sampling, else a central limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactdp.benchmarks.setting.setting import Setting

if TYPE_CHECKING:
    from exactdp.accounting.fdp.gaussian import GaussianTradeoff


def tradeoff(setting: Setting) -> GaussianTradeoff:
    """The Gaussian trade-off curve of the setting."""
    from exactdp.accounting.fdp import gaussian

    values = setting.effective()
    noise = values["noise_multiplier"] / values["sensitivity"]
    if not setting.sampled:
        return gaussian.compose_gaussian([setting.num_steps**0.5 / noise])
    limit = gaussian.poisson_clt(
        noise, sampling_probability=setting.sampling_probability, num_steps=setting.num_steps
    )
    return gaussian.GaussianTradeoff(limit.value)


def epsilon(setting: Setting, *, delta: float) -> float:
    """epsilon at `delta`."""
    return tradeoff(setting).epsilon(delta)


def delta(setting: Setting, *, epsilon: float) -> float:
    """delta at `epsilon`."""
    return tradeoff(setting).delta(epsilon)
