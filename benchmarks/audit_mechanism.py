"""The standing check of our samplers: each passes a likelihood-ratio audit, each broken one is caught.

Command:       python -m exactdp.benchmarks.audit_mechanism
Expected time: a minute on two cores.
Expected:      every line ends in "as expected"; exit status 1 otherwise. With the default confidence one run
               in a thousand has a false alarm at most.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from absl import app, flags

from exactdp.mechanisms import keys
from exactdp.mechanisms.audit import standing


def line(outcome: standing.Outcome) -> str:
    """An outcome in one line."""
    verdict = outcome.verdict
    kind = "broken" if outcome.broken else "ours"
    found = "refuted" if verdict.refuted else "not refuted"
    expected = "as expected" if outcome.as_expected else "NOT AS EXPECTED"
    return (
        f"{kind}: {outcome.name}: epsilon >= {verdict.result.epsilon_lower:.4g} from "
        f"{verdict.result.trials} draws, certified {verdict.certified.upper:.4g} at delta = "
        f"{verdict.result.delta:g}; at epsilon = {verdict.epsilon:.3g} delta >= {verdict.delta_lower:.4g}, "
        f"certified {verdict.delta_certified:.4g}: {found}, {expected} ({outcome.seconds:.1f} s)"
    )


def main(argv: Sequence[str]) -> int:
    """Runs the check; 0 where all is as expected, else 1."""
    if len(argv) > 1:
        raise app.UsageError(f"no positional arguments are taken, got {argv[1:]}")
    try:
        key = keys.run_key(flags.FLAGS.seed)
        outcomes: list[standing.Outcome] = []
        for outcome in standing.run(
            key=key, trials=flags.FLAGS.trials, delta=flags.FLAGS.delta, confidence=flags.FLAGS.confidence
        ):
            outcomes.append(outcome)
            if not flags.FLAGS.json:
                print(line(outcome), flush=True)
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    if flags.FLAGS.json:
        records = [
            {"name": o.name, "broken": o.broken, "as_expected": o.as_expected, **o.verdict.as_dict()}
            for o in outcomes
        ]
        print(json.dumps(records, allow_nan=False, ensure_ascii=False))
    return 0 if all(outcome.as_expected for outcome in outcomes) else 1


def run() -> None:
    """Entry point; the flags are defined here, so that importing this module defines none."""
    flags.DEFINE_integer("trials", 2**20, "Draws of each correct sampler.", lower_bound=8000)
    flags.DEFINE_float("delta", 1e-3, "Delta at which epsilon is reported.")
    flags.DEFINE_float("confidence", 0.9999, "Confidence of each audit.")
    flags.DEFINE_integer("seed", None, "Seed of the draws; another one each time when left out.")
    flags.DEFINE_bool("json", False, "Print one JSON list on stdout.")
    app.run(main)


if __name__ == "__main__":
    run()
