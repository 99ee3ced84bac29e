"""`exactdp audit dirichlet`: released weights of Dirichlet training beside the claim for its draws."""

from __future__ import annotations

import argparse
import time

from exactdp.accounting.ladder.dirichlet_setting import CELL
from exactdp.benchmarks.cli import extras, flags, output
from exactdp.benchmarks.curves.ladders import number

HELP = "the weights that arXiv 2607.19580 releases, beside the epsilon of its draws"
EXAMPLES = """\
  exactdp audit dirichlet --seed 0
  exactdp audit dirichlet --seed 0 --scaling 0.235 --out audit --json
  exactdp ladder dirichlet --audit audit/weights_r0.235.json
Neighbouring data sets differ in the input of one record, which keeps its label. The certificate is about the
draws: that the weights exceed it refutes no theorem about draws, only reading it as one about weights."""

_DEFAULT_SCALINGS = (CELL.scaling, 1e-6)
_FLAGS = (
    ("offset", float, CELL.offset, "alpha"),
    ("sampling_probability", float, CELL.sampling_probability, "of a record, in each step"),
    ("num_steps", number, CELL.num_steps, "steps of a run"),
    ("delta", float, CELL.delta, "of all epsilons"),
    ("records", number, 10, "size of the data sets"),
    ("effective_learning_rate", float, 1.0, "learning rate times kappa, which depends on the scaling"),
    ("trials", number, 1000, "runs at each scaling, 16 or more, one in eight with the feature"),
    ("confidence", float, 0.95, "of each bound"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--scaling",
        type=flags.numbers,
        default=list(_DEFAULT_SCALINGS),
        metavar="X",
        help="r, comma-separated; the first is the one on top of the answer (0.235,1e-6)",
    )
    for name, kind, default, described in _FLAGS:
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar="X", help=f"{described} ({default:g})"
        )
    parser.add_argument(
        "--dataset", default="digits", metavar="X", help="whose first records are used (digits)"
    )
    parser.add_argument("--model", default="linear", metavar="X", help="linear or mlp (linear)")
    parser.add_argument("--seed", type=number, metavar="X", help="of the runs (another one each time)")
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="also write a result for each scaling (`exactdp ladder dirichlet --audit` reads it), a CSV file "
        "and a figure",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit."""
    with extras.needed("train", to="audit"):
        return _audit(arguments)


def _audit(arguments: argparse.Namespace) -> tuple[str, int]:
    from exactdp.benchmarks.curves import store
    from exactdp.benchmarks.dirichlet_audit import report
    from exactdp.benchmarks.dirichlet_audit.audit import prepare
    from exactdp.benchmarks.dirichlet_audit.options import Options

    names = [name for name, *_ in _FLAGS]
    options = Options(
        dataset=arguments.dataset,
        model=arguments.model,
        seed=arguments.seed,
        **{name: getattr(arguments, name) for name in names},
    )
    start = time.perf_counter()
    audit = prepare(arguments.scaling, options)
    directory = None if arguments.out is None else store.prepare_directory("out", arguments.out)
    found = audit()
    files = [] if directory is None else report.write(directory, found, options)
    if arguments.json:
        answer = {
            **found[0].as_dict(),
            "scalings": [one.as_dict() for one in found],
            "parameters": {
                "scaling": arguments.scaling[0],
                **{name: getattr(options, name) for name in names},
                "seed": options.seed,
            },
            "files": [str(path) for path in files],
            "seconds": time.perf_counter() - start,
        }
        return output.as_json(answer), 0
    return "\n".join([report.lines(found, options), *(f"wrote {path}" for path in files)]), 0
