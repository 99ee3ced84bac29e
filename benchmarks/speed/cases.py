"""The queries that are timed, as plain data: what a worker process is given."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import Any

Mechanism = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """One query.

    Attributes:
      name: what the tables call it.
      query: `"epsilon"`, `"delta_curve"` or `"noise_multiplier"`.
      mechanisms: as in the soundness set: family, noise_multiplier, sampling_probability, count.
      delta: the delta of the query; of a curve, the one its error settings follow.
      sweep: whether it belongs to the figure of time against the number of steps.
      epsilons: of a curve.
      epsilon: the target of a calibration.
      limits: least and largest noise multiplier a calibration may try.
    """

    name: str
    query: str
    mechanisms: tuple[Mechanism, ...]
    delta: float
    sweep: bool = False
    epsilons: tuple[float, ...] = ()
    epsilon: float | None = None
    limits: tuple[float, float] | None = None

    @property
    def num_steps(self) -> int:
        """Steps of all mechanisms together."""
        return sum(int(m["count"]) for m in self.mechanisms)

    def request(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dataclasses.asdict(self)


def gaussian(noise_multiplier: float, sampling_probability: float, count: int) -> Mechanism:
    """A Gaussian mechanism behind Poisson sampling with hidden coins."""
    return {
        "family": "gaussian", "noise_multiplier": noise_multiplier,
        "sampling_probability": sampling_probability, "coins": "hidden", "count": count,
    }  # fmt: skip


def laplace(noise_multiplier: float, count: int) -> Mechanism:
    """A Laplace mechanism without sampling."""
    return {"family": "laplace", "noise_multiplier": noise_multiplier, "count": count}


LETTERS = {
    "A": gaussian(1.0, 0.01, 1000),
    "B": gaussian(0.8, 0.005, 20_000),
    "C": gaussian(2.0, 0.04, 5000),
    "D": gaussian(0.6, 0.001, 100_000),
    "E": gaussian(5.0, 1.0, 10),
}
# Noise multipliers that keep epsilon between 1.5 and 3.1 at delta = 1e-5 with sampling probability 0.01.
SWEEP = {1: 0.5, 2: 0.5, 5: 0.5, 10: 0.6, 100: 0.8, 1000: 1.0, 10_000: 2.0, 100_000: 5.0, 1_000_000: 15.0}
EPSILONS = tuple(0.02 * k for k in range(1, 201))  # delta falls from 0.16 to 5e-13
NINETEEN = tuple(gaussian(0.8 + 0.1 * i, 0.002 * (1 + i % 5), 100 * (1 + i % 7)) for i in range(19))


def cases() -> list[Case]:
    """Every case, in the order of the tables."""
    found = [
        Case(
            f"{letter} at {delta:.0e}".replace("e-0", "e-"),
            "epsilon",
            (mechanism,),
            delta,
            (letter, delta) == ("A", 1e-5),
        )
        for delta in (1e-5, 1e-10)
        for letter, mechanism in LETTERS.items()
    ]
    found += [
        Case(f"T = {count}", "epsilon", (gaussian(sigma, 0.01, count),), 1e-5, True)
        for count, sigma in SWEEP.items()
        if count != 1000  # that is A
    ]
    return [
        *found,
        Case("one Gaussian", "epsilon", (gaussian(1.0, 1.0, 1),), 1e-5),
        Case("20 Laplace", "epsilon", (laplace(10.0, 20),), 1e-5),
        Case("200 points of A", "delta_curve", (LETTERS["A"],), 1e-5, epsilons=EPSILONS),
        Case("calibrate A", "noise_multiplier", (LETTERS["A"],), 1e-5, epsilon=1.0, limits=(0.7, 3.0)),
        Case("19 Gaussians + Laplace", "epsilon", (*NINETEEN, laplace(10.0, 20)), 1e-5),
        Case("20 Gaussians", "epsilon", (*NINETEEN, gaussian(3.0, 0.02, 500)), 1e-5),
    ]


def known_truths() -> dict[str, float]:
    """40-digit epsilons of the soundness set, by `key`."""
    text = (resources.files("exactdp.benchmarks.soundness") / "truths.json").read_text(encoding="utf-8")
    entries = json.loads(text)["configurations"]
    return {key(c["mechanisms"], float(c["delta"])): float(c["epsilon"]) for c in entries}


def key(mechanisms: Any, delta: float) -> str:
    """Identity of an epsilon query, whatever the spelling of its mechanisms."""
    parts = []
    for m in mechanisms:
        q = float(m.get("sampling_probability", 1.0))
        sampled = [q, m.get("coins", "none")] if q < 1.0 else []
        other = sorted((k, v) for k, v in m.items() if k not in ("sampling_probability", "coins"))
        parts.append(json.dumps([other, sampled]))
    return f"{delta!r} {sorted(parts)}"
