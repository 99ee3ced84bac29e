"""`exactdp audit`: lower bounds of epsilon that an attack attains, beside what is claimed."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exactdp.benchmarks.cli.main import Command

HELP = "lower bounds of epsilon by attacks, beside what is claimed"
KINDS: Mapping[str, str] = {
    "mechanism": "exactdp.benchmarks.cli.audit_mechanism",
    "dirichlet": "exactdp.benchmarks.cli.audit_dirichlet",
}
EXAMPLES = """\
  exactdp audit mechanism
  exactdp audit dirichlet --seed 0 --out audit
  exactdp audit dirichlet --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one command for each kind of audit."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="kind")
    for name, path in KINDS.items():
        module: Command = importlib.import_module(path)  # type: ignore[assignment]
        sub = kinds.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            inherited_absl_flags=None,
        )
        module.add_arguments(sub)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit that was named."""
    module: Command = importlib.import_module(KINDS[arguments.kind])  # type: ignore[assignment]
    return module.execute(arguments)
