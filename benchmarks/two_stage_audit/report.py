"""The audit for people, and as files: results, and a CSV file for the figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder.rung import Value
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.two_stage_audit.audit import Audited
from exactdp.benchmarks.two_stage_audit.claims import Claims
from exactdp.benchmarks.two_stage_audit.coupling import SHORT_ROWS
from exactdp.benchmarks.two_stage_audit.options import Options
from exactdp.benchmarks.two_stage_audit.short_and_long import RELEASED, clipped_sums
from exactdp.train.attacks import coupled_loss

COLUMNS = ("part", "series", "x", "lower", "upper")
"""`part`: "claim", and "as published" and "repaired" (lower: the bound); "stage 2" and "one step" (claims),
and "first", "stage" and "step" (lower: the bound), "first, integrated" (both ends the same: uncertified);
"move" and "move, derived" (x: short rows; lower: clip norms)."""

_COUNTS = (1, 2, 4, 8, 16, 24, SHORT_ROWS)


def lines(found: Audited, options: Options) -> str:
    """The answer for people."""
    result = found.headline.result
    columns = [f"{attack} in {column!r}" for attack, column in found.columns.items()]
    text = [
        "released: what is taken from the table; attacked: one record more, made up for it "
        f"({', '.join(columns)})",
        f"claimed at delta = {options.delta:g}: {_claims(found.claimed)}",
        "",
        f"{found.headline.name}: epsilon >= {result.epsilon_lower:.4g} with confidence "
        f"{result.confidence:g}, from {result.trials} runs",
        f"verdict: {found.verdict}",
    ]
    for mode, readings in found.readings.items():
        text += ["", f"{mode}:"]
        text += [
            f"  {one.name}: epsilon >= {one.result.epsilon_lower:.4g} from {one.result.trials} runs "
            f"({one.missed} missed, {one.false} false)"
            for one in readings
        ]
    text += [
        "",
        "loss of stage 2, at Adult's sampling, steps and noise, on a crafted table: claimed "
        f"{_claims(found.stage_2)}",
    ]
    for one in found.coupled:
        text += [
            f"  {one.name}: a long row moves the clipped sum by {one.moved:.3g} clip norms",
            f"    first step: epsilon >= {one.first.epsilon_lower:.4g} from {one.first.trials} draws; "
            f"{one.first_integrated:.4g} by integration",
            f"    all steps, learning rate 0: epsilon >= {one.stage.epsilon_lower:.4g} from "
            f"{one.stage.trials} runs",
            f"    one step, every row in it: epsilon >= {one.step.epsilon_lower:.4g} from {one.step.trials} "
            f"draws; with clipping that held {one.verdict.certified.upper:.4g}",
        ]
    return "\n".join(text)


def write(directory: Path, found: Audited, options: Options) -> list[Path]:
    """Writes a result for each attack, two_stage_audit.csv, and the figure from it."""
    from exactdp.benchmarks.two_stage_audit import figure

    results = {
        f"{mode} {one.name}": one.result for mode, readings in found.readings.items() for one in readings
    }
    for one in found.coupled:
        results |= {
            f"{one.name} first": one.first,
            f"{one.name} step": one.step,
            f"{one.name} stage": one.stage,
        }
    files: list[Path] = []
    for name, result in results.items():
        words = "".join(letter if letter.isalnum() else " " for letter in name).split()
        files.append(directory / f"{'_'.join(words)}.json")
        result.save(files[-1])
    path = directory / "two_stage_audit.csv"
    given = dataclasses.asdict(options) | {"csv": None if options.csv is None else str(options.csv)}
    store.write_csv(path, store.versions() | given, COLUMNS, _rows(found))
    return [*files, path, *figure.draw(path)]


def _rows(found: Audited) -> list[Sequence[object]]:
    table: list[Sequence[object]] = [("claim", *row) for row in _claimed(found.claimed)]
    for mode, readings in found.readings.items():
        table += [(mode, one.name, None, one.result.epsilon_lower, None) for one in readings]
    table += [("stage 2", *row) for row in _claimed(found.stage_2)]
    for one in found.coupled:
        certified = one.verdict.certified
        table += [
            ("one step", one.name, None, certified.lower, certified.upper),
            ("first", one.name, None, one.first.epsilon_lower, None),
            ("first, integrated", one.name, None, one.first_integrated, one.first_integrated),
            ("step", one.name, None, one.step.epsilon_lower, None),
            ("stage", one.name, None, one.stage.epsilon_lower, None),
        ]
        sums = clipped_sums(one.loss, ratio=one.ratio)
        for count in _COUNTS:
            table.append(("move", one.name, count, float(np.linalg.norm(sums.move(count))), None))
        if one.loss == RELEASED:
            norm = float(np.linalg.norm(sums.short))
            for count in range(1, _COUNTS[-1] + 1):
                # The long row's own part has the clip norm, and is at right angles here.
                far = np.hypot(coupled_loss.move(count, ratio=one.ratio, norm=norm), printed.CLIP_NORM)
                table.append(("move, derived", one.name, count, float(far), None))
    return table


def _claimed(claims: Claims) -> list[list[object]]:
    return [
        [name, None, *((value.lower, value.upper) if isinstance(value, Interval) else (value, value))]
        for name, value in claims.values.items()
    ]


def _claims(claims: Claims) -> str:
    return "; ".join(f"{name}: {_shown(value)}" for name, value in claims.values.items())


def _shown(value: Value) -> str:
    return f"{value.upper if isinstance(value, Interval) else value:.4g}"
