"""Ladders with known numbers, so that files and figures are tested apart from the accountants."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder.rung import Kind, Quantity, Rung
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.benchmarks.curves import ladders, make, panels

MODEL = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "everything")
LABELS = ThreatModel(Adjacency.REPLACE_LABEL_PUBLIC, Coins.VISIBLE, "everything")
DEFAULTS: dict[str, Any] = {
    "num_steps": 1000,
    "delta": 1e-5,
    "sampling_probability": 0.01,
    "noise_multiplier": 1.0,
    "scaling": 0.2,
    "offset": 3.0,
}


def rung(name: str, kind: Kind, model: ThreatModel, epsilon: float | Interval | None, **more: Any) -> Rung:
    source, note = "arXiv 0000.00000v1, Theorem 1", "a note with <angle brackets>"
    return Rung(name, kind, model, epsilon, source, note=note, **more)


Calls = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of one paper, made once; tests work on copies."""
    directory = tmp_path_factory.mktemp("curves")
    with pytest.MonkeyPatch.context() as monkeypatch:
        replace_ladders(monkeypatch)
        make.make(directory, ["dirichlet"])
    return directory


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Replaces the ladders; returns the list of calls made."""
    return replace_ladders(monkeypatch)


def replace_ladders(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Puts ladders with known numbers in place of the papers' own."""
    made: Calls = []

    def rungs(paper: str, **parameters: Any) -> list[Rung]:
        made.append((paper, parameters))
        values = {**DEFAULTS, **parameters}
        size = values["num_steps"] ** 0.5 * values["sampling_probability"] / values["noise_multiplier"]
        size *= values["scaling"] * -0.1 * math.log(values["delta"])
        return [
            rung("as printed", "printed", MODEL, 3.0 * size),
            rung("repaired", "repaired", MODEL, 2.0 * size, quantities=(Quantity("order", 12.0, "1"),)),
            rung(
                "exact",
                "exact",
                MODEL,
                Interval(size, 1.0001 * size, "contour"),
                composition=((Gaussian(1.0), 1),),
            ),
            rung("exact, seen", "exact", LABELS, Interval(4.0 * size, 5.0 * size, "lattice")),
            rung("audited", "audited", MODEL, None, reason="no audit yet"),
        ]

    monkeypatch.setattr(ladders, "rungs", rungs)
    monkeypatch.setattr(ladders, "defaults", lambda paper: dict(DEFAULTS))
    monkeypatch.setattr(ladders, "audited", lambda paper: MODEL)
    monkeypatch.setattr(panels, "_STEPS", (100.0, 10_000.0))
    monkeypatch.setattr(panels, "_DELTAS", (1e-8, 1e-3))
    monkeypatch.setattr(panels, "_FPR", (0.01, 0.1, 0.5, 1.0))
    return made
