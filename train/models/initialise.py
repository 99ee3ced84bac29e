"""Initial parameters: every kernel from one truncated normal draw."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")

# Standard deviation of a standard normal variable truncated to [-2, 2].
_TRUNCATED_STD = 0.879_625_661_034_239_8


def initialise(shapes: Tree, *, key: jax.Array) -> Tree:
    """`shapes` with each leaf filled by its name: kernels random, scales 1, biases 0.

    A kernel of shape (..., inputs, outputs) is normal, truncated at two standard deviations, with mean 0 and
    variance 1 / fan_in, fan_in = the product of all sides but the last (LeCun's rule, Flax's default). All
    kernels are slices of one draw: a draw for each takes XLA ten seconds to compile for a deep network.

    Args:
      shapes: a pytree of arrays or of their shapes, such as the state of an abstract NNX module.
      key: a typed JAX key; the same key gives the same parameters.

    Raises:
      ValueError: a leaf is called neither kernel, scale nor bias.
    """
    leaves, structure = jax.tree.flatten_with_path(shapes)
    sides = [tuple(leaf.shape) for _, leaf in leaves]
    roles = [_role(path) for path, _ in leaves]
    total = sum(math.prod(side) for side, role in zip(sides, roles, strict=True) if role == "kernel")

    def fill(key: jax.Array) -> list[jax.Array]:
        draws = jax.random.truncated_normal(key, -2.0, 2.0, (total,), jnp.float32)
        filled: list[jax.Array] = []
        start = 0
        for side, role in zip(sides, roles, strict=True):
            if role != "kernel":
                filled.append(jnp.full(side, 1.0 if role == "scale" else 0.0, jnp.float32))
                continue
            size = math.prod(side)
            std = 1.0 / (_TRUNCATED_STD * math.sqrt(math.prod(side[:-1])))
            filled.append(std * jnp.reshape(draws[start : start + size], side))
            start += size
        return filled

    return jax.tree.unflatten(structure, jax.jit(fill)(key))


def _role(path: tuple[Any, ...]) -> str:
    """The last name on the way to a leaf."""
    names = [str(entry.key) for entry in path if isinstance(entry, jax.tree_util.DictKey)]
    if not names or names[-1] not in ("kernel", "scale", "bias"):
        raise ValueError(f"a parameter must be a kernel, a scale or a bias, got {jax.tree_util.keystr(path)}")
    return names[-1]
