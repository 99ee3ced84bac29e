"""`exactdp ladder`: a paper's bound as printed, repaired and exact, rung by rung."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from exactdp.benchmarks.cli import extras, flags, output

HELP = "a paper's privacy bound as printed, repaired and exact"
EXAMPLES = """\
  exactdp ladder dirichlet
  exactdp ladder dirichlet --scaling 0.1 --num_steps 10000 --json
  exactdp ladder feature --json
  exactdp ladder feature --run runs/feature
  exactdp ladder two_stage
  exactdp ladder two_stage --run runs/table
  exactdp ladder dirichlet --audit weights.json"""
_HELP = {
    "dataset": "the paper's data set whose sampling rate and steps are used",
    "batch_size": "expected number of records in a step",
    "num_records": "number of records",
    "statistics_share": "share of epsilon spent on private ranges, categories and label counts",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags: one for each parameter of a ladder."""
    from exactdp.benchmarks.curves import ladders

    known = ladders.parameters()
    listing = "; ".join(f"{name}: {', '.join(parameters)}" for name, parameters in known.items())
    parser.add_argument(
        "paper", choices=ladders.PAPERS, metavar="paper", help=f"with its parameters: {listing}"
    )
    for name in dict.fromkeys(name for parameters in known.values() for name in parameters):
        described = flags.FLAGS[name].help.partition(" (")[0] if name in flags.FLAGS else _HELP.get(name, "")
        own = ", ".join(f"{paper} {ladders.defaults(paper)[name]}" for paper in known if name in known[paper])
        parser.add_argument(
            f"--{name}",
            type=ladders.reader(name),
            metavar="X",
            help=f"{described} (by default: {own})".replace("%", "%%").strip(),
        )
    parser.add_argument(
        "--run",
        type=flags.directory,
        metavar="DIR",
        help="feature, two_stage: folder of a run, whose parameters are taken and certifying rung is marked",
    )
    parser.add_argument(
        "--audit",
        metavar="FILE",
        help="a stored audit result (JSON) for the audited rung; it must be about the rung's threat model "
        "and, where it knows them, the ladder's parameters",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Computes the ladder."""
    from exactdp.accounting.audit.result import AuditResult
    from exactdp.benchmarks.curves import ladders

    names = dict.fromkeys(name for parameters in ladders.parameters().values() for name in parameters)
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if arguments.run is not None:
        _require_run_alone(arguments, given)
    audited = None if arguments.audit is None else AuditResult.load(arguments.audit)
    start = time.perf_counter()
    of_run: dict[str, Any] = {}
    if arguments.run is None:
        rungs = ladders.rungs(arguments.paper, **given)
        parameters = {**ladders.defaults(arguments.paper), **given}
    else:
        with extras.needed("train", to="read a run"):
            from exactdp.benchmarks.curves import run_ladder, two_stage_run

            of_paper = {"feature": run_ladder.of_run, "two_stage": two_stage_run.of_run}
            found = of_paper[arguments.paper](arguments.run)
        rungs, parameters = list(found.rungs), found.parameters
        of_run = {
            "run": arguments.run,
            "certified_by": found.certified_by,
            "epsilon": {"lower": found.epsilon.lower, "upper": found.epsilon.upper},
        }
    seconds = time.perf_counter() - start
    if audited is not None:
        rungs = audited.placed(
            rungs, delta=parameters["delta"], parameters=ladders.decisive(arguments.paper, parameters)
        )
    if arguments.json:
        answer = {
            "paper": arguments.paper,
            **of_run,
            "rungs": [rung.as_dict() for rung in rungs],
            "parameters": parameters,
            "seconds": seconds,
        }
        return output.as_json(answer), 0
    shown = ", ".join(
        f"{name} {output.show(value)}" for name, value in parameters.items() if value is not None
    )
    lines = [f"{arguments.paper} ({ladders.ARXIV[arguments.paper]}): {shown}"]
    if of_run:
        lines.append(f"run {of_run['run']} is certified by the rung with a star, {of_run['certified_by']}")
    marked = of_run.get("certified_by")
    return "\n".join([*lines, "", ladders.text(rungs, marked=marked)]), 0


def _require_run_alone(arguments: argparse.Namespace, given: Mapping[str, Any]) -> None:
    if arguments.paper not in ("feature", "two_stage"):
        raise ValueError(f"run must be left out for {arguments.paper}, got {arguments.run}")
    for name, value in given.items():
        raise ValueError(f"{name} must be left out beside run, which has its own, got {value}")
