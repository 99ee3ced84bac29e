"""Pairs of inputs for the search, by family.

Making the supports of p and p' disjoint only helps (a proved step, see `proved`), so that pairs of disjoint
supports suffice. Random pairs of full support are searched all the same: they would show a mistake.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pairs = tuple[Array, Array]


def families(num_classes: int, *, num_random: int, rng: np.random.Generator) -> dict[str, Pairs]:
    """Candidates of each family as arrays [pairs, K]; the vertex pair is not among them.

    Args:
      num_classes: K >= 2.
      num_random: pairs in each of the random families.
      rng: source of the random families.
    """
    return {
        "faces": _faces(num_classes),
        "mixtures": _mixtures(num_classes),
        "random": _random(num_classes, num_random, rng),
        "random disjoint": _disjoint(num_classes, num_random, rng),
    }


def _faces(classes: int) -> Pairs:
    """Uniform on m coordinates against uniform on n others; vertices against uniform on all."""
    pairs: list[tuple[Array, Array]] = []
    for m in range(1, classes):
        for n in range(1, classes - m + 1):
            if m == n == 1:
                continue
            first, second = np.zeros(classes), np.zeros(classes)
            first[:m], second[m : m + n] = 1.0 / m, 1.0 / n
            pairs.append((first, second))
    vertex, centre = np.eye(classes)[0], np.full(classes, 1.0 / classes)
    pairs += [(vertex, centre), (centre, vertex)]
    return _stack(pairs)


def _mixtures(classes: int) -> Pairs:
    """A vertex against a mixture of its own and another coordinate, or of two others; both ways round."""
    identity, pairs = np.eye(classes), list[tuple[Array, Array]]()
    for weight in (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9):
        for other in range(1, min(classes, 3)):
            # (1 - w) e_2 + w e_1 shares a coordinate with e_1; (1 - w) e_2 + w e_3 does not.
            mixed = (1.0 - weight) * identity[1] + weight * identity[0 if other == 1 else 2]
            pairs += [(identity[0], mixed), (mixed, identity[0])]
    return _stack(pairs)


def _random(classes: int, number: int, rng: np.random.Generator) -> Pairs:
    """Half from Dir(1), half from Dir(0.1)."""
    shape = np.where(np.arange(number) % 2 == 0, 1.0, 0.1)[:, None]
    return _normalise(rng.gamma(shape, size=(number, classes))), _normalise(
        rng.gamma(shape, size=(number, classes))
    )


def _disjoint(classes: int, number: int, rng: np.random.Generator) -> Pairs:
    """As `_random`, with the coordinates dealt out to p and p' (at least one each)."""
    first, second = _random(classes, number, rng)
    mask = rng.random((number, classes)) < rng.random((number, 1))
    mask[:, 0], mask[:, -1] = True, False
    return _normalise(first * mask), _normalise(second * ~mask)


def _normalise(weights: Array) -> Array:
    # Gamma(0.1) can underflow in every coordinate; then any point will do.
    total = weights.sum(axis=1, keepdims=True)
    empty = total[:, 0] < 1e-250
    weights = np.where(empty[:, None], np.eye(weights.shape[1])[0], weights)
    return weights / weights.sum(axis=1, keepdims=True)


def _stack(pairs: list[tuple[Array, Array]]) -> Pairs:
    return np.array([first for first, _ in pairs]), np.array([second for _, second in pairs])


def neighbours(p: Array, p_prime: Array, *, share: float, limit: int, rng: np.random.Generator) -> Pairs:
    """Pairs one transfer away: a share of one coordinate's mass moved to another, in p or in p'.

    Args:
      p: the input, shape [K].
      p_prime: its neighbour.
      share: of the coordinate's mass, in (0, 1].
      limit: at most so many pairs, drawn without replacement.
      rng: draws them.
    """
    moves: list[tuple[Array, Array]] = []
    for moved, kept, swap in ((p, p_prime, False), (p_prime, p, True)):
        for source in np.nonzero(moved)[0]:
            for target in range(moved.size):
                if target == source:
                    continue
                point = moved.copy()
                mass = share * point[source]
                point[source] -= mass
                point[target] += mass
                point /= point.sum()
                moves.append((kept, point) if swap else (point, kept))
    if len(moves) > limit:
        moves = [moves[i] for i in rng.choice(len(moves), limit, replace=False)]
    return _stack(moves)
