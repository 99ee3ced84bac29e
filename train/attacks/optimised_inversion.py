"""Gradient inversion by optimisation: the record behind a released gradient of any network.

Where the first layer is no dense one there is no closed form. The adversary knows the parameters and the
gradient G that one record left, and looks for an input whose gradient points the same way:

    minimise over x:  1 - cos(J(x)^T v, G) + w TV(x),

with J the network's Jacobian with respect to its parameters, v the gradient with respect to the logits, TV
the mean absolute difference of neighbouring pixels. v need not be guessed, and no label or draw be known:
it is the gradient of the last layer's bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from exactdp.accounting import validate
from exactdp.mechanisms import keys
from exactdp.train.attacks.inversion import Inverted
from exactdp.train.state import Parameters

Logits = Callable[[Parameters, Float[Array, "1 ..."]], Float[Array, "1 classes"]]


def invert(
    logits: Logits,
    params: Parameters,
    gradient: Parameters,
    logit_gradient: Float[np.ndarray, " classes"],
    *,
    input_shape: tuple[int, ...],
    key: jax.Array,
    num_steps: int = 300,
    learning_rate: float = 0.05,
    restarts: int = 4,
    smoothness: float = 1e-3,
    low: float = 0.0,
    high: float = 1.0,
) -> Inverted:
    """The input whose gradient points most nearly where a released one does.

    Adam from uniform noise, its rate falling to zero, projected on the range of inputs after each step; the
    restart of the largest cosine is taken.

    Args:
      logits: (params, one record) -> its logits.
      params: at which the gradient was taken.
      gradient: G, structured like `params`; any positive factor of it serves as well.
      logit_gradient: v, [K], with the same factor or another positive one: the gradient of the last layer's
        bias. Not zero throughout.
      input_shape: of one record.
      key: of the starting points, a typed scalar key.
      num_steps: >= 1, of each restart.
      learning_rate: > 0.
      restarts: >= 1; they are computed together.
      smoothness: w >= 0; it counts for records of two axes and more only.
      low: least value of an input.
      high: largest one, > `low`.

    Returns:
      The input, flat, and the residual sqrt(1 - cos^2), 0 where the gradient found is a multiple of G.

    Raises:
      ValueError: an argument is outside its range, or there is nothing in a gradient.

    Source: Geiping et al. 2020 (arXiv 2003.14053): cosine distance with total variation; v from the bias is
    ours.
    """
    keys.require_key(key)
    steps = validate.count("num_steps", num_steps, minimum=1)
    count = validate.count("restarts", restarts, minimum=1)
    rate = validate.positive("learning_rate", learning_rate)
    weight = validate.non_negative("smoothness", smoothness)
    if not validate.finite("low", low) < validate.finite("high", high):
        raise ValueError(f"high must be above low, got {low} and {high}")
    v = np.asarray(logit_gradient, np.float64)
    target = _direction("gradient", np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradient)]))
    if len(target) != sum(np.size(leaf) for leaf in jax.tree.leaves(params)):
        raise ValueError(f"gradient must be structured like params, got {len(target)} numbers")
    if v.ndim != 1:
        raise ValueError(f"logit_gradient must be a vector, got shape {v.shape}")
    unit = jnp.asarray(_direction("logit_gradient", v), jnp.float32)
    wanted = jnp.asarray(target, jnp.float32)

    def cosine(x: Array) -> Array:
        _, pull = jax.vjp(lambda p: logits(p, x[None])[0], params)
        flat = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(pull(unit)[0])])
        return jnp.vdot(flat, wanted) / jnp.maximum(jnp.linalg.norm(flat), 1e-30)

    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def improved(x: Array) -> tuple[Array, Array]:
        def body(_: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            place, state = carry
            slope = jax.grad(lambda z: weight * _variation(z) - cosine(z))(place)
            moved: Any = optimiser.update(slope, state)
            return jnp.clip(place + moved[0], low, high), moved[1]

        found, _ = jax.lax.fori_loop(0, steps, body, (x, optimiser.init(x)))
        return found, cosine(found)

    starts = jax.random.uniform(key, (count, *input_shape), minval=low, maxval=high)
    found, cosines = jax.jit(jax.vmap(improved))(starts)
    best = int(jnp.argmax(cosines))
    value = float(np.clip(cosines[best], -1.0, 1.0))
    return Inverted(
        np.asarray(found[best], np.float64).ravel(), float(np.sqrt(max(1.0 - value * value, 0.0)))
    )


def _variation(x: Array) -> Array:
    """Mean absolute difference of neighbours along the first two axes; 0 for records of one."""
    if x.ndim < 2:
        return jnp.float32(0.0)
    return jnp.mean(jnp.abs(x[1:] - x[:-1])) + jnp.mean(jnp.abs(x[:, 1:] - x[:, :-1]))


def _direction(name: str, values: np.ndarray) -> np.ndarray:
    flat = np.asarray(values, np.float64)
    if not np.all(np.isfinite(flat)):
        raise ValueError(f"{name} must be finite, got {int(np.sum(~np.isfinite(flat)))} other values")
    largest = float(np.max(np.abs(flat), initial=0.0))
    if largest == 0.0:
        raise ValueError(f"{name} must not be zero throughout: nothing of the record is in it")
    scaled = flat / largest  # squares of tiny gradients would underflow
    return scaled / np.linalg.norm(scaled)
