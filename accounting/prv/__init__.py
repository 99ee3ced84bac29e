"""Certified (epsilon, delta) of any composition."""

from exactdp.accounting.prv.account import Composition, Mechanism, delta, delta_curve, epsilon

__all__ = ["Composition", "Mechanism", "delta", "delta_curve", "epsilon"]
