"""`exactdp audit`: lower bounds of epsilon that an attack attains, beside what is claimed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from exactdp.benchmarks.cli import subcommand

HELP = "lower bounds of epsilon by attacks, beside what is claimed"
KINDS: Mapping[str, str] = {
    "mechanism": "exactdp.benchmarks.cli.audit_mechanism",
    "dirichlet": "exactdp.benchmarks.cli.audit_dirichlet",
    "dpsgd": "exactdp.benchmarks.cli.audit_dpsgd",
    "feature": "exactdp.benchmarks.cli.audit_feature",
    "two_stage": "exactdp.benchmarks.cli.audit_two_stage",
}
EXAMPLES = """\
  exactdp audit mechanism
  exactdp audit dirichlet --seed 0 --out audit
  exactdp audit dpsgd --seed 0
  exactdp audit feature --batches single --seed 0
  exactdp audit two_stage --seed 0
  exactdp audit dirichlet --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one command for each kind of audit."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="kind")
    for name, path in KINDS.items():
        subcommand.add(kinds, name, subcommand.module(path))


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit that was named."""
    return subcommand.module(KINDS[arguments.kind]).execute(arguments)
