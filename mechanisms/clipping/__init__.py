"""Clipped sums of per-record gradients; see `clipped`."""

from __future__ import annotations

from exactdp.mechanisms.clipping.adaptive import Quantile as Quantile
from exactdp.mechanisms.clipping.adaptive import effective_noise_multiplier as effective_noise_multiplier
from exactdp.mechanisms.clipping.adaptive import gradient_noise_multiplier as gradient_noise_multiplier
from exactdp.mechanisms.clipping.clipped import Clipped as Clipped
from exactdp.mechanisms.clipping.clipped import clipped_grad as clipped_grad
from exactdp.mechanisms.clipping.explain import Explanation as Explanation
from exactdp.mechanisms.clipping.explain import explain as explain
from exactdp.mechanisms.clipping.factors import Automatic as Automatic
from exactdp.mechanisms.clipping.factors import Flat as Flat
from exactdp.mechanisms.clipping.private import private_gradient as private_gradient
from exactdp.mechanisms.clipping.verify import verify as verify
