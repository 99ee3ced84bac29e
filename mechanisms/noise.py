"""Gaussian noise on a tree of arrays."""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.mechanisms import keys

Tree = TypeVar("Tree")


def gaussian(key: jax.Array, tree: Tree, *, std: float | jax.Array) -> Tree:
    """Adds independent N(0, std^2) to every entry of every leaf.

    The noise is for the *sum* of clipped gradients: std = noise_multiplier * clip_norm. Divide by the batch
    size afterwards, value and noise together.

    Args:
      key: a key for this release alone, as of `keys.step_key(..., purpose="noise")`.
      tree: floating-point leaves of any shape. The noise is added in float32 (float64 leaves: float64 values,
        float32 noise) and the result rounded to the leaf's dtype, which is post-processing; for a small error
        keep the sum in float32 until here.
      std: standard deviation, >= 0; may be traced, and then cannot be checked.

    Returns:
      A tree of the same structure, shapes and dtypes. A leaf's noise depends on the key and the leaf's path
      alone: not on other leaves, their order, or how arrays are sharded.

    Guarantee: each entry is the inverse normal distribution function at a uniform number of 64 bits, to
    float32 accuracy (a few units in the last place), so the tails reach 9 standard deviations
    (`jax.random.normal` ends at 5.4, which a large model exceeds several times a step). It is not exact:
    floating-point outputs lie on a grid that depends on the value, and an adversary who sees every last bit
    can learn more than the ideal mechanism tells (Mironov 2012, "On significance of the least significant
    bits for differential privacy"). The accountants speak of the ideal mechanism.

    Raises:
      ValueError: `key` is no typed scalar key, a leaf is not floating point, `std` is concrete and negative
        or not finite, or two leaves have paths that hash alike.
    """
    keys.require_key(key)
    if isinstance(std, (int, float, np.generic)) and not 0.0 <= float(std) < math.inf:
        raise ValueError(f"std must be finite and >= 0, got {std}")
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    folds = [_fold(name) for name in names]
    if len(set(folds)) < len(folds):
        # Equal noise on two leaves would cancel in their difference.
        raise ValueError(f"tree must have leaves with paths of different hashes, got {names}")
    noisy = [
        _add(key, fold, name, leaf, std) for fold, name, (_, leaf) in zip(folds, names, leaves, strict=True)
    ]
    return jax.tree_util.tree_unflatten(structure, noisy)


@functools.partial(jax.jit, static_argnames="shape")
def standard_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """float32 standard normal numbers of `shape`, tails to 9 standard deviations; see `gaussian`."""
    high, low = keys.words(key, shape)
    # The sign takes one bit, the size 63: a tail probability (0, 1/2], of full relative precision near 0.
    tail = (high >> 1).astype(jnp.float32) + (low.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)
    size = -jax.scipy.special.ndtri(tail * np.float32(2.0**-32))
    return jnp.where((high & 1) == 1, size, -size)


def _fold(name: str) -> tuple[int, int]:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")


def _add(key: jax.Array, fold: tuple[int, int], name: str, leaf: Any, std: float | jax.Array) -> jax.Array:
    value = jnp.asarray(leaf)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"tree must have floating-point leaves, got {value.dtype} at {name or 'the root'}")
    high, low = fold
    leaf_key = jax.random.fold_in(jax.random.fold_in(key, np.uint32(high)), np.uint32(low))
    noise = standard_normal(leaf_key, value.shape) * jnp.asarray(std, jnp.float32)
    wide = jnp.promote_types(value.dtype, jnp.float32)
    return (value.astype(wide) + noise.astype(wide)).astype(value.dtype)
