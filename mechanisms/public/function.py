"""A check that a public feature map is a function of one record, and of nothing else."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.mechanisms.public.input_map import InputMap

_ROUNDING = 1e-3  # of the largest number of a view: batches of another size are computed in another order


def require_function(inputs: InputMap, *, shape: tuple[int, ...]) -> None:
    """Tries a map on two made-up records: twice, in the other order, and each of them alone.

    It finds counters, random numbers, clocks and statistics of the batch. State that shows only later, or
    only on other records, it cannot find.

    Args:
      inputs: the map.
      shape: of one record.

    Raises:
      ValueError: the map does not take such records or cannot be traced; a view has another shape, is not
        finite, differs from one call to the next, or depends on the other record.
    """
    name = f"public: {inputs.text}"
    pair = jax.random.uniform(jax.random.key(0), (2, *shape))
    try:
        jax.make_jaxpr(inputs.view)(pair)  # a first trace may be another: caches are filled here
        programs = [str(jax.make_jaxpr(inputs.view)(pair)) for _ in range(2)]
        first, second, reverse, alone = (
            np.asarray(view)
            for view in (
                inputs.view(pair),
                inputs.view(pair),
                inputs.view(pair[::-1])[::-1],
                jnp.concatenate([inputs.view(pair[:1]), inputs.view(pair[1:])]),
            )
        )
    except (TypeError, ValueError, IndexError, jax.errors.JAXTypeError) as error:
        raise ValueError(f"{name} must take records of shape {shape}, got: {error}") from None
    if first.shape != pair.shape:
        raise ValueError(f"{name} must give the shape of its record {shape}, got {first.shape[1:]}")
    if not np.all(np.isfinite(first)):
        raise ValueError(f"{name} must give finite numbers, got NaN or infinity")
    if not np.array_equal(first, second) or programs[0] != programs[1]:
        raise ValueError(f"{name} must be a function of the record alone, got two answers for one record")
    room = _ROUNDING * float(np.max(np.abs(first), initial=1.0))
    if not all(np.allclose(first, other, rtol=0.0, atol=room) for other in (reverse, alone)):
        raise ValueError(
            f"{name} must be a function of the record alone, got another answer beside another record"
        )
