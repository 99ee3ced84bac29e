"""Writes truths.json: epsilon to 40 digits for the published and for random inputs.

Every value is computed twice, the second time on another contour with another step and precision where the
route has one; `digits` is how far the two agree. Resumable: entries already in the file are kept.
Needs python-flint, numpy and scipy; run from the repository root:

    python -m exactdp.benchmarks.soundness.make_truths --out benchmarks/soundness/truths.json --count 262
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from typing import Any

import numpy as np
from absl import app, flags, logging
from flint import arb

from exactdp.benchmarks.soundness.configurations import published, random_configuration
from exactdp.benchmarks.soundness.reference import Answer, OutOfReachError, Reference

_OUT = flags.DEFINE_string("out", "benchmarks/soundness/truths.json", "The file to write.")
_COUNT = flags.DEFINE_integer("count", 262, "Index after the last random configuration.")
_FIRST = flags.DEFINE_integer("first", 0, "Index of the first random configuration (to share the work).")
_SEED = flags.DEFINE_integer("seed", 20_240_611, "Seed of the random configurations.")
_SECONDS = flags.DEFINE_integer(
    "seconds", 10, "Processor seconds after which a random configuration is drawn again."
)
_MERGE = flags.DEFINE_multi_string("merge", [], "Other files of this form whose rows to take over.")
DIGITS = 40


def _text(value: arb | None) -> str | None:
    """40 significant digits; "-inf" where delta(0) is already below delta, None where not computed."""
    if value is None:
        return None
    if not value.is_finite():
        return "-inf" if value < 0 else "inf"
    return value.mid().str(DIGITS, radius=False) if value != 0 else "0"


def _agree(first: arb | None, second: arb | None) -> float:
    if first is None or second is None or not (first.is_finite() and second.is_finite()):
        return float(DIGITS)
    gap = abs(float((first - second).mid()))
    scale = abs(float(first.mid()))
    return float(DIGITS) if gap == 0 else -math.log10(gap / scale) if scale else 0.0


def entry(name: str, mechanisms: list[dict[str, Any]], delta: str, with_delta: bool) -> dict[str, Any]:
    """One line of truths.json."""
    started = time.perf_counter()
    # three nested steps cost the square of two
    slow = len(mechanisms) == 1 and mechanisms[0]["count"] == 3 and mechanisms[0].get("coins") == "hidden"
    digits = 10 if slow and mechanisms[0]["family"] == "gaussian" else DIGITS
    answers: list[Answer] = [Reference(mechanisms, digits, vary).epsilon(delta) for vary in (1.0, 0.87)]
    one, two = answers
    agreed = min(_agree(one.remove, two.remove), _agree(one.add, two.add), DIGITS)
    row: dict[str, Any] = {
        "name": name,
        "mechanisms": mechanisms,
        "delta": delta,
        "epsilon": _text(one.epsilon),
        "epsilon_remove": _text(one.remove),
        "epsilon_add": _text(one.add),
        "method": one.method,
        "digits": math.floor(agreed),
    }
    if with_delta and one.epsilon.is_finite() and one.epsilon > 0:
        point = f"{float(one.epsilon):.4g}"
        pair, again = (Reference(mechanisms, DIGITS, vary).delta(point) for vary in (1.0, 0.87))
        row["delta_at"] = {"epsilon": point, "remove": _text(pair[0]), "add": _text(pair[1])}
        row["delta_at"]["digits"] = math.floor(
            min(_agree(pair[0], again[0]), _agree(pair[1], again[1]), DIGITS)
        )
    logging.info("%s: %s (%d digits, %s, %.1f s)", name, str(row["epsilon"])[:16], agreed, one.method,
                 time.perf_counter() - started)  # fmt: skip
    return row


def _save(rows: list[dict[str, Any]]) -> None:
    head = {
        "schema_version": 1,
        "seed": _SEED.value,
        "digits": DIGITS,
        "about": "see README.md beside this file",
    }
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = json.dumps(head)[:-1] + ', "configurations": [\n' + lines + "\n]}\n"
    with open(_OUT.value + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(_OUT.value + ".part", _OUT.value)


def _expired(*_: object) -> None:
    raise OutOfReachError("took too long")


def main(argv: list[str]) -> None:
    """Writes the file."""
    del argv
    rows: list[dict[str, Any]] = []
    if os.path.exists(_OUT.value):
        with open(_OUT.value, encoding="utf-8") as file:
            rows = json.load(file)["configurations"]
    for path in _MERGE.value:
        with open(path, encoding="utf-8") as file:
            known = {(row["name"], row["delta"]) for row in rows}
            rows += [r for r in json.load(file)["configurations"] if (r["name"], r["delta"]) not in known]
    rows.sort(key=lambda r: int(r["name"].split()[1]) if r["name"].startswith("random") else -1)
    done = {(row["name"], row["delta"]) for row in rows}
    signal.signal(signal.SIGPROF, _expired)
    for name, mechanisms, delta in published() if _FIRST.value == 0 else []:
        if (name, delta) not in done and not any(
            r["mechanisms"] == mechanisms and r["delta"] == delta for r in rows
        ):
            signal.setitimer(signal.ITIMER_PROF, 20 * _SECONDS.value)
            try:
                rows.append(entry(name, mechanisms, delta, delta in ("1e-5", "1e-10")))
            except (ArithmeticError, ValueError) as error:
                logging.warning("%s, delta %s: %s", name, delta, error)
            signal.setitimer(signal.ITIMER_PROF, 0)
            _save(rows)
    have = {row["name"] for row in rows}
    for index in range(_FIRST.value, _COUNT.value):
        name = f"random {index}"
        if name in have:
            continue
        rng = np.random.default_rng([_SEED.value, index])
        for _ in range(200):
            mechanisms, delta = random_configuration(rng)
            signal.setitimer(signal.ITIMER_PROF, _SECONDS.value)
            try:
                row = entry(name, mechanisms, delta, index % 3 == 0)
            except (ArithmeticError, ValueError, OverflowError, MemoryError) as error:
                logging.info("%s drawn again: %s", name, error)
                continue
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            if row["digits"] < 22:
                logging.info("%s drawn again: %d digits: %s", name, row["digits"], mechanisms)
                continue
            rows.append(row)
            break
        _save(rows)
        logging.info("%d of %d", index + 1, _COUNT.value)


if __name__ == "__main__":
    app.run(main)
