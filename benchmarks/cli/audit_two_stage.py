"""`exactdp audit two_stage`: what DP-2Stage takes from a table, and its loss, beside what is claimed."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.cli import extras, flags, output
from exactdp.benchmarks.curves.ladders import number

HELP = "the statistics and the loss of arXiv 2412.02467, as published and as repaired"
EXAMPLES = """\
  exactdp audit two_stage --seed 0
  exactdp audit two_stage --seed 0 --out audit --json
  exactdp audit two_stage --csv data.csv --label income --mode repaired
  exactdp ladder two_stage --audit audit/as_published_statistics_rare_category.json
Neighbouring tables are the first rows of a table, with and without a record that is made up for the attack.
Exit status 1: private statistics, or the loss of each row, were refuted. No cell of the table is shown, but
which columns serve for an attack follows from them."""

_FLAGS = (
    ("rows", number, 400, "first so many rows of the table are used, 4 or more"),
    ("epsilon", float, 1.0, "target of both modes"),
    ("delta", float, printed.DELTA, "of all epsilons"),
    (
        "trials",
        number,
        1000,
        "runs of each attack as published, 16 or more; half as many on private statistics",
    ),
    ("draws", number, 20_000, "noisy sums of a single step, every row in it"),
    ("first_steps", number, 4_000_000, "noisy sums of a first step, its rows sampled"),
    ("confidence", float, 0.95, "of each bound"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument("--csv", type=Path, metavar="FILE", help="a table of your own (one that is made up)")
    parser.add_argument("--label", metavar="NAME", help="its label's column (none)")
    parser.add_argument(
        "--mode", default="both", metavar="X", help="as_published, repaired or both: what is attacked (both)"
    )
    for name, kind, default, described in _FLAGS:
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar="X", help=f"{described} ({default:g})"
        )
    parser.add_argument(
        "--seed", type=number, metavar="X", help="of all but the statistics' noise (another one each time)"
    )
    parser.add_argument(
        "--out",
        type=flags.directory,
        metavar="DIR",
        help="also write a result for each attack (`exactdp ladder two_stage --audit` reads those as "
        "published), a CSV file and a figure",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit."""
    with extras.needed("train", to="audit"):
        return _audit(arguments)


def _audit(arguments: argparse.Namespace) -> tuple[str, int]:
    from exactdp.benchmarks.curves import store
    from exactdp.benchmarks.two_stage_audit import report
    from exactdp.benchmarks.two_stage_audit.audit import prepare
    from exactdp.benchmarks.two_stage_audit.options import Options

    names = [name for name, *_ in _FLAGS]
    options = Options(
        csv=arguments.csv,
        label=arguments.label,
        mode=arguments.mode,
        seed=arguments.seed,
        **{name: getattr(arguments, name) for name in names},
    )
    start = time.perf_counter()
    audit = prepare(options)
    directory = None if arguments.out is None else store.prepare_directory("out", arguments.out)
    found = audit()
    files = [] if directory is None else report.write(directory, found, options)
    status = 0 if found.sound else 1
    if arguments.json:
        given = {name: getattr(options, name) for name in names}
        answer = {
            **found.as_dict(),
            "parameters": {
                "csv": None if options.csv is None else str(options.csv),
                "label": options.label,
                "mode": options.mode,
                **given,
                "seed": options.seed,
            },
            "files": [str(path) for path in files],
            "seconds": time.perf_counter() - start,
        }
        return output.as_json(answer), status
    return "\n".join([report.lines(found, options), *(f"wrote {path}" for path in files)]), status
