"""`exactdp train`: trains a model privately, and says what certifies it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from exactdp.benchmarks.cli import subcommand

HELP = "trains a model privately: Dirichlet softmax, feature DP, DP-2Stage tables, or a baseline"
EXAMPLES = """\
  exactdp train dpsgd --dataset digits --epsilon 4 --delta 1e-5
  exactdp train dirichlet --dataset digits --epsilon 4 --offset 3 --sampling_probability 0.05 --json
  exactdp train feature --dataset digits --public blur:sigma=2+label --epsilon 1 --adjacency replace
  exactdp train two_stage --csv data.csv --label income --epsilon 1
  exactdp train feature --help"""


_RECORDS, _TABLE = "exactdp.benchmarks.cli.train_records", "exactdp.benchmarks.cli.train_two_stage"
METHODS: Mapping[str, tuple[str, str]] = {
    "dirichlet": (_RECORDS, "Dirichlet softmax training, arXiv 2607.19580"),
    "dpsgd": (_RECORDS, "DP-SGD"),
    "feature": (_RECORDS, "feature DP with two batches, arXiv 2506.19836"),
    "nonprivate": (_RECORDS, "without privacy"),
    "gaussian_features": (_RECORDS, "Gaussian noise on clipped features"),
    "label_public": (_RECORDS, "DP-SGD with public labels"),
    "two_stage": (_TABLE, "synthetic tables from a language model, arXiv 2412.02467"),
}
"""Method -> module of its flags, and what it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one command for each method."""
    methods = parser.add_subparsers(dest="method", required=True, metavar="method")
    for name, (path, text) in METHODS.items():
        subcommand.add(methods, name, subcommand.module(path), text=text)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Trains by the method that was named."""
    return subcommand.module(METHODS[arguments.method][0]).execute(arguments)
