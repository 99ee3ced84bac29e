"""Augmentation multiplicity: several random views of each record, averaged before its gradient is clipped.

With K views the loss of record i is the mean of the losses of its views, so that it still has one gradient,
clipped once: the sensitivity and the accounting are those of K = 1.

Source: arXiv 2204.13650 (augmentation multiplicity).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from exactdp.accounting import validate

Loss = Callable[[Any, Any], Float[Array, " batch"]]


@functools.partial(jax.jit, static_argnames=("multiplicity", "padding", "flip"))
def views(
    key: jax.Array, x: Float[Array, "batch h w c"], *, multiplicity: int, padding: int, flip: bool
) -> Float[Array, "batch multiplicity h w c"]:
    """`multiplicity` random views of each image: a crop of the padded image, perhaps mirrored.

    The image is extended by `padding` pixels on each side, its border reflected; a window of the image's own
    size is cut at one of (2 padding + 1)^2 places, all alike; with `flip` it is mirrored left to right with
    probability 1/2. Draws are independent over records and views: view k of record i depends on the key, i,
    k and the sizes only, never on other records.

    Args:
      key: a typed key, of purpose "augment".
      x: images.
      multiplicity: K >= 1.
      padding: >= 0 and below both sides; 0 for no crop.
      flip: whether to mirror.

    Raises:
      ValueError: an argument outside of what is said above.
    """
    if x.ndim != 4:
        raise ValueError(f"x must be images of shape [batch, h, w, channels], got shape {x.shape}")
    batch, height, width, _ = x.shape
    validate.count("multiplicity", multiplicity, 1)
    validate.count("padding", padding)
    if padding >= min(height, width):
        raise ValueError(f"padding must be below the sides {height} and {width}, got {padding}")
    place_key, flip_key = jax.random.split(key)
    corners = jax.random.randint(place_key, (batch, multiplicity, 2), 0, 2 * padding + 1)
    mirrored = jax.random.bernoulli(flip_key, 0.5, (batch, multiplicity)) & flip
    # Places in the image itself, a reflected border being a matter of indices: no padded copy is made.
    rows = _reflect(corners[..., :1] - padding + jnp.arange(height), size=height)
    columns = _reflect(corners[..., 1:] - padding + jnp.arange(width), size=width)
    columns = jnp.where(mirrored[..., None], columns[..., ::-1], columns)

    def view(
        image: Float[Array, "h w c"], row: Int[Array, " h"], column: Int[Array, " w"]
    ) -> Float[Array, "h w c"]:
        return image[row[:, None], column]

    return jax.vmap(jax.vmap(view, in_axes=(None, 0, 0)))(x, rows, columns)


def averaged(loss: Loss) -> Loss:
    """The loss of records that come as several views: the mean over a record's views.

        averaged(loss)(params, batch)[i] = (1 / K) sum_k loss(params, view k of record i)

    Args:
      loss: (params, batch) -> one loss a row, where each row of each array in `batch` is one view.

    Returns:
      A loss whose batch is the same pytree with arrays of shape [batch, K, ...]; what does not differ between
      views (labels) is repeated by `repeat`.
    """

    def mean(params: Any, batch: Any) -> Float[Array, " batch"]:
        first = jax.tree.leaves(batch)[0]
        flat = jax.tree.map(lambda leaf: jnp.reshape(leaf, (-1, *leaf.shape[2:])), batch)
        return jnp.mean(jnp.reshape(loss(params, flat), first.shape[:2]), axis=1)

    return mean


def repeat(
    labels: Shaped[Array, "batch ..."], *, multiplicity: int
) -> Shaped[Array, "batch multiplicity ..."]:
    """What all views of a record share, once a view.

    Args:
      labels: one row a record.
      multiplicity: K >= 1.
    """
    validate.count("multiplicity", multiplicity, 1)
    return jnp.repeat(labels[:, None], multiplicity, axis=1)


def _reflect(index: Int[Array, ...], *, size: int) -> Int[Array, ...]:
    """Indices below 0 or beyond the last, reflected at the border pixels (which are not doubled)."""
    index = jnp.abs(index)
    return jnp.where(index >= size, 2 * (size - 1) - index, index)
