"""`exactdp check`: judges published claims against certified intervals."""

from __future__ import annotations

import argparse
import time

from exactdp.benchmarks.cli import flags, output

HELP = "verdicts on the privacy claims of a TOML file"
EXAMPLES = """\
  exactdp check benchmarks/claims/papers.toml
  exactdp check claims.toml --json
  exactdp check claims.toml --out checked      (claims.csv, claims.pdf, claims.png)
exit status: 1 when a claim is violated, 2 for bad input, else 0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "claims", metavar="claims.toml", help="the file of claims (benchmarks/claims/README.md)"
    )
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="also write claims.csv and a figure (PDF, PNG) into DIR",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Judges all claims of the file."""
    from exactdp.benchmarks.check import claims as claims_file
    from exactdp.benchmarks.check import evaluate, report
    from exactdp.benchmarks.curves import store

    claims = claims_file.load(arguments.claims)
    directory = None if arguments.out is None else store.prepare_directory("out", arguments.out)
    start = time.perf_counter()
    results = evaluate.evaluate_all(claims, evaluate.PrvExact())
    files = [] if directory is None else report.write(directory, results, claims_file=arguments.claims)
    seconds = time.perf_counter() - start
    counts = {
        kind: sum(r.verdict.kind == kind for r in results) for kind in ("holds", "violated", "undecided")
    }
    status = report.exit_status(results)
    if arguments.json:
        answer = {
            "claims": [result.as_dict() for result in results],
            **counts,
            "files": [str(path) for path in files],
            "seconds": seconds,
        }
        return output.as_json(answer), status
    text = [output.table(report.lines(results)), ""]
    text += [f"{r.claim.name}: {r.verdict.reason}" for r in results if r.verdict.reason]
    text += [", ".join(f"{count} {kind}" for kind, count in counts.items()) + f" ({seconds:.1f} s)"]
    text += [f"wrote {path}" for path in files]
    return "\n".join(text), status
