"""Gradient inversion in closed form: the record behind a released gradient of a dense layer with bias."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import ArrayLike, Float


@dataclasses.dataclass(frozen=True)
class Inverted:
    """What a gradient of a dense layer says about the layer's input.

    Attributes:
      x: the input, float64 [d], if the gradient is that of one record.
      residual: ||G - x g^T|| / ||G||, in [0, 1]: 0 up to rounding for one record. For a mean over several it
        is positive unless their inputs or their errors are proportional, and `x` is then a mixture of them.
    """

    x: Float[np.ndarray, " inputs"]
    residual: float


def invert_dense(
    weight_gradient: Float[ArrayLike, "inputs outputs"], bias_gradient: Float[ArrayLike, " outputs"]
) -> Inverted:
    """The input of a dense layer from the gradients of its weights and bias.

    For z = W^T x + b, whatever is computed from z, one record's gradients are G = x g^T and g. So each column
    of G over its entry of g is x, and with weights g_j^2, which is least squares,

        x = G g / ||g||^2.

    In the first layer of a network x is the record. A learning rate or a batch of one record's mean change
    both gradients by one factor, so that the update of the parameters serves as well as the gradient.

    Args:
      weight_gradient: G, real numbers [d, m].
      bias_gradient: g, [m], not zero throughout.

    Raises:
      ValueError: shapes that do not fit, values that are not finite, or a bias gradient of zeros.

    Source: Geiping et al. 2020 (arXiv 2003.14053), Proposition 3.1, for one output; the weights are ours.
    """
    total, bias = np.asarray(weight_gradient, np.float64), np.asarray(bias_gradient, np.float64)
    if total.ndim != 2 or bias.shape != total.shape[1:] or total.size == 0:
        raise ValueError(
            "weight_gradient and bias_gradient must have shapes [inputs, outputs] and [outputs], got "
            f"{total.shape} and {bias.shape}"
        )
    for name, values in (("weight_gradient", total), ("bias_gradient", bias)):
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} must be finite, got {int(np.sum(~np.isfinite(values)))} other values")
    largest = float(np.max(np.abs(bias)))
    if largest == 0.0:
        raise ValueError("bias_gradient must not be zero throughout: nothing of the record is in it")
    unit = bias / largest  # squares of tiny gradients would underflow
    x = (total / largest) @ unit / (unit @ unit)
    size = float(np.linalg.norm(total / largest))
    apart = float(np.linalg.norm(total / largest - np.outer(x, unit)))
    return Inverted(x, apart / size if size > 0.0 else 0.0)
