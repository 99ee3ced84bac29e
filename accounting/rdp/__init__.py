"""Rényi differential privacy: exact curves, subsampling, conversion to (ε, δ). Upper bounds only."""

from exactdp.accounting.rdp.account import OPACUS_ORDERS, compose, delta, epsilon
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.rdp.conversion import CONVERSIONS
from exactdp.accounting.rdp.curves import (
    discrete_gaussian,
    discrete_laplace,
    finite,
    gaussian,
    laplace,
    pure_dp,
)
from exactdp.accounting.rdp.dirichlet_draw import dirichlet, dirichlet_printed
from exactdp.accounting.rdp.general_bounds import visible_coins, wang_balle_kasiviswanathan, zhu_wang
from exactdp.accounting.rdp.poisson_gaussian import subsampled_gaussian

__all__ = [
    "CONVERSIONS",
    "OPACUS_ORDERS",
    "UpperBound",
    "compose",
    "delta",
    "dirichlet",
    "dirichlet_printed",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon",
    "finite",
    "gaussian",
    "laplace",
    "pure_dp",
    "subsampled_gaussian",
    "visible_coins",
    "wang_balle_kasiviswanathan",
    "zhu_wang",
]
