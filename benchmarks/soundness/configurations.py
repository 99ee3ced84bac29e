"""The inputs: those on which published accountants were found to fail, and random ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Config = dict[str, Any]


def sampled_gaussian(sigma: float, q: float, count: int, **more: Any) -> Config:
    """A Poisson-sampled Gaussian with hidden coins."""
    return {
        "family": "gaussian",
        "noise_multiplier": sigma,
        "sampling_probability": q,
        "coins": "hidden" if q < 1 else "none",
        "count": count,
        **more,
    }


CASES = {
    "A": (1.0, 0.01, 1000),
    "B": (0.8, 0.005, 20_000),
    "C": (2.0, 0.04, 5000),
    "D": (0.6, 0.001, 100_000),
}
CASES["E"] = (5.0, 1.0, 10)
MIX = [
    sampled_gaussian(*row)
    for row in ((1.0, 0.01, 1000), (1.5, 0.02, 500), (0.8, 0.002, 2000), (2.0, 0.05, 300), (1.2, 0.005, 1500))
]


def published() -> list[tuple[str, list[Config], str]]:
    """(name, mechanisms, delta) of inputs that are known to be hard, or that published accountants miss."""
    rows = [
        (f"{n}, delta {d}", [sampled_gaussian(*c)], d) for n, c in CASES.items() for d in ("1e-5", "1e-10")
    ]
    a = [sampled_gaussian(*CASES["A"])]
    rows += [
        (f"A, delta {d}", a, d) for d in ("1e-12", "1e-13", "1e-14", "1e-20", "1e-30", "1e-100", "1e-300")
    ]
    rows += [
        (f"{n}, delta {d}", [sampled_gaussian(*CASES[n])], d) for n in "BCDE" for d in ("1e-30", "1e-100")
    ]
    rows.append(("D, delta 1e-12", [sampled_gaussian(*CASES["D"])], "1e-12"))
    hard = [sampled_gaussian(0.9152900659868286, 0.002455931052913256, 40_769)]
    rows += [("FFT round-off", hard, d) for d in ("1e-10", "1e-12")]
    rows += [
        ("large T", [sampled_gaussian(10.0, 0.001, 10**7)], "1e-10"),
        ("large T", [sampled_gaussian(10.0, 0.001, 10**5)], "1e-5"),
        ("large epsilon", [sampled_gaussian(0.5, 0.1, 1000)], "1e-5"),
        ("larger epsilon", [sampled_gaussian(0.3, 0.01, 1000)], "1e-5"),
        ("tiny noise", [{"family": "gaussian", "noise_multiplier": 0.02, "count": 1}], "1e-5"),
        ("tiny noise", [{"family": "gaussian", "noise_multiplier": 0.01, "count": 1}], "1e-5"),
        ("counts ignored", [{"family": "pure_dp", "epsilon": math.log(3.0), "count": 100}], "1e-5"),
        (
            "replacement",
            [{"family": "gaussian", "noise_multiplier": 1.0, "adjacency": "replace", "count": 1}],
            "1e-5",
        ),
        ("heterogeneous", [*MIX, {"family": "laplace", "noise_multiplier": 10.0, "count": 20}], "1e-5"),
        ("heterogeneous, no Laplace", MIX, "1e-5"),
        ("three steps", [sampled_gaussian(1.0, 0.01, 3)], "1e-6"),
        ("three steps", [sampled_gaussian(0.6, 0.1, 3)], "1e-20"),
        ("two steps", [sampled_gaussian(1.0, 0.01, 2)], "1e-6"),
        ("two steps", [sampled_gaussian(0.6, 0.001, 2)], "1e-100"),
        ("order of 1", [sampled_gaussian(1.0, 0.00105, 1)], "1e-3"),
    ]
    return rows


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A log-uniform draw between low and high."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def random_delta(rng: np.random.Generator) -> str:
    """Log-uniform between 1e-100 and 0.1, with some at 1e-300, as a short decimal."""
    if rng.random() < 0.02:
        return "1e-300"
    exponent = rng.uniform(-100, -1) if rng.random() < 0.6 else rng.uniform(-15, -1)
    return f"{rng.uniform(1, 10):.2f}e{math.floor(exponent)}"


def _count(rng: np.random.Generator, low: float = 4, high: float = 1e9) -> int:
    if rng.random() < 0.25:
        return int(rng.integers(1, 4))
    return int(log_uniform(rng, low, high))


def random_configuration(rng: np.random.Generator) -> tuple[list[Config], str]:
    """A random composition and delta; some are out of reach of the reference, and are then drawn again."""
    kinds = {
        "gaussian": 10,
        "gaussian hidden": 30,
        "gaussian visible": 8,
        "gaussian replace": 8,
        "laplace": 6,
        "laplace hidden": 5,
        "laplace visible": 4,
        "dirichlet": 6,
        "dirichlet hidden": 6,
        "dirichlet visible": 3,
        "pure_dp": 5,
        "approximate_dp": 2,
        "finite": 4,
        "discrete_gaussian": 4,
        "discrete_laplace": 4,
        "mixture": 5,
    }
    weights = np.array(list(kinds.values()), dtype=float)
    kind = list(kinds)[int(rng.choice(len(kinds), p=weights / weights.sum()))]
    if kind == "mixture":
        parts = [_one("gaussian hidden", rng, _count(rng, 30, 1e5)) for _ in range(int(rng.integers(1, 4)))]
        parts.append(
            _one(str(rng.choice(["gaussian", "laplace", "dirichlet"])), rng, int(rng.integers(1, 12)))
        )
        return parts, random_delta(rng)
    return [_one(kind, rng, None)], random_delta(rng)


def _one(kind: str, rng: np.random.Generator, count: int | None) -> Config:
    family, _, coins = kind.partition(" ")
    size = log_uniform(rng, 0.02, 12.0)  # about the number of standard deviations between the two worlds
    q = {} if not coins else {"sampling_probability": 0.0, "coins": "hidden" if coins == "replace" else coins}
    if family == "gaussian":
        n = _count(rng) if count is None else count
        sigma = math.sqrt(n) / size
        if coins:
            sigma = log_uniform(rng, 0.35, 12.0)
            q["sampling_probability"] = _rate(rng, n, size / math.sqrt(math.expm1(sigma**-2)))
        more = {"adjacency": "replace"} if coins == "replace" else {}
        return {"family": family, "noise_multiplier": sigma, **q, **more, "count": n}
    if family == "laplace":
        n = count or (_count(rng, 4, 300) if coins != "hidden" else int(rng.choice([1, 2, 3, 0])))
        n = n or int(log_uniform(rng, 500, 1e6))
        b = max(0.1, math.sqrt(n) / size)
        if coins:
            b = log_uniform(rng, 0.1, 10.0 if n < 4 else 1.5)
            q["sampling_probability"] = _rate(rng, n, size * b)
        return {"family": family, "noise_multiplier": b, **q, "count": n}
    if family == "dirichlet":
        n = count or _count(rng, 4, 1e6)
        offset = log_uniform(rng, 0.5, 20.0)
        scaling = min(offset * 0.7, log_uniform(rng, 0.1, 3.0))
        if coins:
            q["sampling_probability"] = _rate(rng, n, size / scaling)
        elif n > 3:
            scaling = min(scaling, size * math.sqrt(offset / n))
        return {"family": family, "scaling": scaling, "offset": offset, **q, "count": n}
    return _atomic(family, rng, size)


def _rate(rng: np.random.Generator, count: int, total: float) -> float:
    if count <= 3:
        return log_uniform(rng, 1e-4, 0.9)
    return min(0.9, max(1e-8, total / math.sqrt(count)))


def _atomic(family: str, rng: np.random.Generator, size: float) -> Config:
    coins = str(rng.choice(["none", "hidden", "visible"]))
    q = {} if coins == "none" else {"coins": coins, "sampling_probability": log_uniform(rng, 1e-3, 0.9)}
    if family == "pure_dp":
        n = _count(rng, 4, 1e7)
        return {"family": family, "epsilon": min(10.0, size / math.sqrt(n)), **q, "count": n}
    if family == "approximate_dp":
        n = _count(rng, 4, 1e4)
        extra = log_uniform(rng, 1e-110, 1e-7)
        return {"family": family, "epsilon": min(5.0, size / math.sqrt(n)), "delta": extra, "count": n}
    if family == "finite":
        atoms = int(rng.integers(2, 5))
        n = int(log_uniform(rng, 1, {2: 4000, 3: 90, 4: 20}[atoms]))
        p, r = rng.dirichlet(np.ones(atoms)), rng.dirichlet(np.ones(atoms))
        # 20-bit fractions, so that each list sums to exactly 1 in float64
        p, r = (np.maximum(1, np.floor(x * 2**20)) for x in (p, r))
        p[-1], r[-1] = p[-1] + 2**20 - p.sum(), r[-1] + 2**20 - r.sum()
        return {
            "family": family,
            "p": [float(x) / 2**20 for x in p],
            "q": [float(x) / 2**20 for x in r],
            "count": n,
        }
    sensitivity = int(rng.integers(1, 4))
    if family == "discrete_laplace":
        n = _count(rng, 4, 1e5 if sensitivity == 1 else 2e4)
        b = max(0.1, math.sqrt(n) / size) * sensitivity
        return {"family": family, "noise_multiplier": b, "sensitivity": sensitivity, "count": n}
    n = _count(rng, 4, 1e5)
    sigma = min(30.0, max(0.3, math.sqrt(n) / size) * sensitivity)
    if n > 1:
        q = {}
    return {"family": family, "noise_multiplier": sigma, "sensitivity": sensitivity, **q, "count": n}
