"""Samplers, noise and clipping in JAX; the accountants of `exactdp.accounting` account for them."""
