"""`exactdp audit mechanism`: the standing check of our samplers."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from exactdp.accounting import validate
from exactdp.benchmarks.cli import extras, flags, output
from exactdp.benchmarks.curves.ladders import number

if TYPE_CHECKING:
    from exactdp.mechanisms.audit.standing import Outcome

HELP = "our samplers, each of which passes, and broken ones, each of which is caught"
EXAMPLES = """\
  exactdp audit mechanism
  exactdp audit mechanism --name dirichlet --name "twice the scaling" --seed 1 --json
exit status: 1 where a sampler of ours is refuted or a broken one is not; with the default confidence one run
in a thousand has such a false alarm at most"""

# A broken sampler gets an eighth of the draws, and no audit is made of fewer than 1000.
_LEAST_TRIALS, _MOST_TRIALS = 8000, 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--name", action="append", metavar="X", help="audit this one only; may be repeated (all of them)"
    )
    parser.add_argument(
        "--trials",
        type=number,
        default=2**20,
        metavar="X",
        help=f"draws of each sampler of ours, from {_LEAST_TRIALS} to {_MOST_TRIALS:.0e} (2^20)",
    )
    parser.add_argument(
        "--delta", type=float, default=1e-3, metavar="X", help="at which epsilon is reported (0.001)"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.9999, metavar="X", help="of each audit (0.9999)"
    )
    parser.add_argument("--seed", type=number, metavar="X", help="of the draws (another one each time)")
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the check."""
    with extras.needed("train", to="audit"):
        from exactdp.mechanisms import keys
        from exactdp.mechanisms.audit import standing
    start = time.perf_counter()
    outcomes = list(
        standing.run(
            key=keys.run_key(arguments.seed),
            names=arguments.name,
            trials=validate.count("trials", arguments.trials, minimum=_LEAST_TRIALS, maximum=_MOST_TRIALS),
            delta=arguments.delta,
            confidence=arguments.confidence,
        )
    )
    expected = all(outcome.as_expected for outcome in outcomes)
    status = 0 if expected else 1
    if arguments.json:
        answer = {
            "mechanisms": [_record(outcome) for outcome in outcomes],
            "as_expected": expected,
            "seconds": time.perf_counter() - start,
        }
        return output.as_json(answer), status
    rows = [
        ("sampler", "epsilon >=", "certified", "at epsilon", "delta >=", "certified", "draws", "verdict", "")
    ]
    return "\n".join(
        [
            f"epsilon at delta = {arguments.delta:g}; confidence of each bound {arguments.confidence:g}",
            "",
            output.table([*rows, *map(_row, outcomes)]),
            "",
            "all as expected" if expected else "NOT all as expected",
        ]
    ), status


def _record(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "broken": outcome.broken,
        "as_expected": outcome.as_expected,
        **outcome.verdict.as_dict(),
        "seconds": outcome.seconds,
    }


def _row(outcome: Outcome) -> tuple[object, ...]:
    verdict = outcome.verdict
    return (
        f"{outcome.name} (broken)" if outcome.broken else outcome.name,
        f"{verdict.result.epsilon_lower:.4g}",
        f"{verdict.certified.upper:.4g}",
        f"{verdict.epsilon:.3g}",
        f"{verdict.delta_lower:.3g}",
        f"{verdict.delta_certified:.3g}",
        verdict.result.trials,
        "refuted" if verdict.refuted else "not refuted",
        "as expected" if outcome.as_expected else "NOT AS EXPECTED",
    )
