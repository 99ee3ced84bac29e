"""The results of a check as a table, as a CSV file and as an exit status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from exactdp.benchmarks.check.evaluate import Result
from exactdp.benchmarks.curves import store

COLUMNS = (
    "name",
    "kind",
    "verdict",
    "quantity",
    "claimed",
    "rounding",
    "ratio",
    "needed_noise_multiplier",
    "axis",
    "axis_claimed",
    "axis_lower",
    "axis_upper",
    "epsilon",
    "delta",
    "mechanism",
    "parameters",
    "adjacency",
    "coins",
    "reason",
    "source",
    "note",
)
"""The columns `axis…` carry what the figure draws: claimed and exact epsilon; delta where that is claimed."""


def rows(results: Sequence[Result]) -> list[list[object]]:
    """One row a claim, in the order of `COLUMNS`."""
    table: list[list[object]] = []
    for result in results:
        claim, verdict, setting = result.claim, result.verdict, result.claim.setting
        parameters = {} if setting is None else setting.as_dict()
        shown = [f"{k}={v!r}" for k, v in parameters.items() if k not in ("mechanism", "adjacency", "coins")]
        threat = None if setting is None else setting.threat_model()
        on_delta = claim.quantity == "delta"
        table.append(
            [
                claim.name,
                verdict.kind,
                verdict.text,
                claim.quantity,
                claim.value,
                claim.rounding,
                verdict.ratio,
                result.needed,
                "delta" if on_delta else "epsilon",
                claim.epsilon if claim.quantity == "noise_multiplier" else claim.value,
                None if result.exact is None else result.exact.lower,
                None if result.exact is None else result.exact.upper,
                claim.epsilon,
                claim.delta,
                parameters.get("mechanism"),
                " ".join(shown),
                None if threat is None else str(threat.adjacency),
                None if threat is None else str(threat.coins),
                verdict.reason,
                claim.source,
                claim.note,
            ]
        )
    return table


def write(directory: Path, results: Sequence[Result], *, claims_file: str) -> list[Path]:
    """Writes claims.csv, then claims.pdf and claims.png from it."""
    from exactdp.benchmarks.check import figure

    path = directory / "claims.csv"
    header = {**store.versions(), "claims": claims_file}
    store.write_csv(path, header, COLUMNS, rows(results))
    return [path, *figure.draw(path)]


def lines(results: Sequence[Result]) -> list[list[object]]:
    """A short table for people."""
    table: list[list[object]] = [["claim", "claimed", "exact", "verdict"]]
    for result in results:
        claim = result.claim
        if claim.quantity == "noise_multiplier":
            claimed = f"noise_multiplier {claim.value:.6g} for epsilon {claim.epsilon:.6g}"
            exact = "-" if result.needed is None else f"{result.needed:.6g}"
        else:
            claimed = f"{claim.quantity} {claim.value:.6g}"
            exact = "-" if result.exact is None else _interval(result.exact.lower, result.exact.upper)
        table.append([claim.name, claimed, exact, result.verdict.text])
    return table


def _interval(lower: float, upper: float) -> str:
    """The interval in as few digits as tell its ends apart, or six where they agree."""
    low, high = f"{lower:.6g}", f"{upper:.6g}"
    return high if low == high else f"[{low}, {high}]"


def exit_status(results: Sequence[Result]) -> int:
    """1 when a claim is violated, else 0."""
    return int(any(result.verdict.kind == "violated" for result in results))
