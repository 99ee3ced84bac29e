"""`exactdp curves`: the figures and tables of the three papers."""

from __future__ import annotations

import argparse
import os

from exactdp.benchmarks.cli import flags

HELP = "figures and tables of the three papers: printed bound beside exact one"
EXAMPLES = """\
  exactdp curves --out curves
  exactdp curves --out curves --papers dirichlet,two_stage
  exactdp curves --out curves --audit audit/weights_r0.235.json
An interrupted run goes on where it stopped; what other parameters or other code made is made again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--out",
        type=flags.directory,
        required=True,
        metavar="DIR",
        help="where index.html, CSV, PDF and PNG files go",
    )
    parser.add_argument("--papers", metavar="NAMES", help="comma-separated; all three when left out")
    parser.add_argument(
        "--audit",
        action="append",
        default=[],
        metavar="FILE",
        help="a stored audit result (JSON) to show beside the curves of its paper; repeatable",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(2, os.cpu_count() or 1),
        metavar="N",
        help="processes (2, or 1 on one core)",
    )
    parser.add_argument("--fresh", action="store_true", help="compute everything again, finished or not")


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Writes everything; progress goes to stderr."""
    from exactdp.accounting import validate
    from exactdp.benchmarks.curves import audits, ladders, make, store

    papers = ladders.PAPERS
    if arguments.papers is not None:
        papers = tuple(
            validate.one_of("papers", name, ladders.PAPERS) for name in arguments.papers.split(",")
        )
    jobs = validate.count("jobs", arguments.jobs, minimum=1)
    audited = audits.read(arguments.audit, papers=papers)
    directory = store.prepare_directory("out", arguments.out)
    page = make.make(directory, papers, jobs=jobs, fresh=arguments.fresh, audited=audited)
    return str(page), 0
