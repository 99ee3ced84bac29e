"""Where a monotone function crosses given values: brackets of neighbouring floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from exactdp.accounting.pairs.base import Array

_MAX = float(np.finfo(np.float64).max)

Function = Callable[[Array], Array]
_Keys = NDArray[np.int64]
_Test = Callable[[Array, NDArray[np.intp]], NDArray[np.bool_]]


def bracket(loss: Function, values: Array, low: float, high: float, increasing: bool) -> tuple[Array, Array]:
    """Neighbouring floats between which `loss` crosses each value; an end twice where it never does.

    Args:
      loss: vectorised and monotone on (low, high).
      values: any numbers.
      low: lower end, may be -inf.
      high: upper end, may be inf.
      increasing: direction of `loss`.

    Returns:
      The lower and the upper ends. On the lower ends the computed loss is on the near side of the value, on
      the upper ends on the far side, whatever the rounding of `loss` does between.

    Raises:
      ValueError: the loss is NaN at a point inside.
    """
    a = np.full(len(values), max(low, -_MAX))
    b = np.full(len(values), min(high, _MAX))

    def below(x: Array, which: NDArray[np.intp]) -> NDArray[np.bool_]:
        y = _loss(loss, x)
        return y <= values[which] if increasing else y > values[which]

    # Ends of infinite range are only ever limits; finite ends are asked a float inside.
    left, right = _key(a) + 1, _key(b) - 1
    every = np.arange(len(values))
    never, always = ~below(_float(left), every), below(_float(right), every)
    order = np.argsort(values if increasing else -values)
    knots = order[:: 32 if len(values) > 128 else 1]
    _halve(below, left, right, knots)
    if len(knots) < len(order):
        # A crossing lies between those of the neighbouring knots, the tests being the same numbers.
        place = np.arange(len(order)) // 32
        lows, highs = left[knots], np.append(right[knots[1:]], right[order[-1]])
        rest = np.ones(len(order), dtype=bool)
        rest[::32] = False
        left[order[rest]] = np.maximum(lows[place[rest]], left[order[rest]])
        right[order[rest]] = np.maximum(np.minimum(highs[place[rest]], right[order[rest]]), left[order[rest]])
        _close_in(lambda x: _loss(loss, x), below, values, left, right, order[rest])
        _halve(below, left, right, order[rest])
    first, second = _float(left), _float(right)
    first, second = np.where(never, low, first), np.where(never, low, second)
    return np.where(always, high, first), np.where(always, high, second)


def _key(x: Array) -> _Keys:
    """Integers ordered as the floats are."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _float(key: _Keys) -> Array:
    return np.where(key < 0, np.int64(-(2**63)) - key, key).view(np.float64)


def _loss(loss: Function, x: Array) -> Array:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        y = np.asarray(loss(x), dtype=np.float64)
    if np.isnan(y).any():
        raise ValueError(f"loss must be a number inside the outcomes, got nan at {x[np.isnan(y)][0]}")
    return y


def _halve(below: _Test, left: _Keys, right: _Keys, which: NDArray[np.intp]) -> None:
    """Bisects the brackets of `which` down to neighbouring floats, in place."""
    while True:
        # Differences of keys may pass 2^63: halve first.
        far = (right[which] // 2 - left[which] // 2 > 1) | (right[which] - left[which] > 1)
        which = which[far]
        if len(which) == 0:
            return
        a, b = left[which], right[which]
        _probe(below, left, right, which, a // 2 + b // 2 + (a % 2 + b % 2) // 2)


def _probe(below: _Test, left: _Keys, right: _Keys, which: NDArray[np.intp], at: _Keys) -> None:
    """Moves one end of each bracket to the point tested."""
    at = np.clip(at, left[which], right[which])
    here = below(_float(at), which)
    left[which] = np.where(here, at, left[which])
    right[which] = np.where(here, right[which], at)


def _close_in(
    value: Function, below: _Test, goal: Array, left: _Keys, right: _Keys, which: NDArray[np.intp]
) -> None:
    """Shortens brackets by five secant steps and two tests beside the last of them, in place."""
    goal = goal[which]
    a, b = _float(left[which]), _float(right[which])
    fa, fb = value(a) - goal, value(b) - goal
    x = a
    for _ in range(5):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = np.where(np.isfinite(b - a), b - fb * ((b - a) / (fb - fa)), 0.5 * a + 0.5 * b)
        x = np.where(np.isfinite(x), np.clip(x, np.minimum(a, b), np.maximum(a, b)), a)
        fx = value(x) - goal
        # Illinois: an end that stays has its value halved.
        same = np.sign(fx) == np.sign(fa)
        fb = np.where(same, 0.5 * fb, fx)
        fa = np.where(same, fx, 0.5 * fa)
        a, b = np.where(same, x, a), np.where(same, b, x)
    key = _key(x)
    for shift in (-8, 8, -2048, 2048):
        _probe(below, left, right, which, key + shift)
