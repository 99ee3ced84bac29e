"""The audit for people, and as files: a result for each scaling, and a CSV file for the figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder.rung import Value
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.dirichlet_audit.audit import Audited
from exactdp.benchmarks.dirichlet_audit.options import Options

COLUMNS = ("series", "scaling", "lower", "upper")
"""`series` is a claim of `Claimed`, or audited (upper: empty, as an audit has no upper end)."""

_GRID = (1e-6, 1.0, 25)


def lines(found: Sequence[Audited], options: Options) -> str:
    """The answer for people."""
    text = [
        f"claimed: epsilon of the Dirichlet draws of {options.num_steps} steps at delta = {options.delta:g}",
        "released: the trained weights; attacked: the weights of a feature that one record alone may have",
    ]
    for one in found:
        draws = {name: _shown(value) for name, value in one.claimed.values().items() if value is not None}
        text += [
            "",
            f"r = {one.scaling:g}: epsilon >= {one.weights.epsilon_lower:.4g} with confidence "
            f"{one.weights.confidence:g}, from {one.weights.trials} runs ({one.seconds:.0f} s)",
            f"  verdict: {one.verdict}",
            f"  claimed for the draws: {', '.join(f'{name} {value}' for name, value in draws.items())}",
            *(f"  {name}: epsilon >= {bound.epsilon_lower:.4g}" for name, bound in one.readings().items()),
            f"  {one.missed} of {options.runs_in} runs with the feature did not show it, {one.false} of "
            f"{options.runs_out} without it did; test accuracy {100.0 * one.accuracy:.1f} %",
        ]
    return "\n".join(text)


def write(directory: Path, found: Sequence[Audited], options: Options) -> list[Path]:
    """Writes a result for each scaling, dirichlet_audit.csv, and the figure from it."""
    from exactdp.benchmarks.dirichlet_audit import figure

    files: list[Path] = []
    for one in found:
        files.append(directory / f"weights_r{one.scaling:g}.json")
        one.weights.save(files[-1])
    path = directory / "dirichlet_audit.csv"
    header = {
        **store.versions(),
        **dataclasses.asdict(options),
        "scalings": [one.scaling for one in found],
    }
    store.write_csv(path, header, COLUMNS, _rows(found, options))
    return [*files, path, *figure.draw(path)]


def _rows(found: Sequence[Audited], options: Options) -> list[list[object]]:
    table: list[list[object]] = []
    grid = {float(f"{r:.4g}") for r in np.geomspace(*_GRID)} | {one.scaling for one in found}
    for scaling in sorted(grid):
        claims = options.claims(scaling)
        for name, value in claims.values().items():
            if isinstance(value, Interval):
                table.append([name, scaling, value.lower, value.upper])
            elif value is not None:
                table.append([name, scaling, value, value])
    for one in found:
        table.append(["audited", one.scaling, one.weights.epsilon_lower, None])
    return table


def _shown(value: Value) -> str:
    return f"{value.upper if isinstance(value, Interval) else value:.4g}"
