"""Transformations of pairs by sampling: hidden coins, visible coins, replacement, fixed size."""
