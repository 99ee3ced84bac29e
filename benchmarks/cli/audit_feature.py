"""`exactdp audit feature`: what Algorithm 1 of arXiv 2506.19836 tells of private features."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from exactdp.benchmarks.cli import audit_training, extras
from exactdp.benchmarks.training_audit.options import Options

if TYPE_CHECKING:
    from exactdp.benchmarks.training_audit.audit import Audited

HELP = "the trainer of feature DP: a record replaced by one with the same public features"
EXAMPLES = """\
  exactdp audit feature --seed 0
  exactdp audit feature --batches single --seed 0 --json
  exactdp audit feature --seed 0 --out audit
  exactdp ladder feature --sampling_probability 0.01 --num_steps 100 --audit audit/feature_two.json
Weights are trained by the step of `exactdp train feature`. With a single batch the public gradient tells
which steps sampled the record: claims for two batches are below the audited bound there.
exit status: 1 where the epsilon that is certified for this variant is refuted"""

_DEFAULTS = Options(sampling_probability=0.01, num_steps=100)
_BATCHES = ("two", "single")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--batches",
        choices=_BATCHES,
        default=_BATCHES[0],
        help="two: an independent batch for the public gradient; single: the private one serves it (two)",
    )
    audit_training.add_arguments(parser, _DEFAULTS)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit."""
    return audit_training.execute(
        arguments, name=f"feature_{arguments.batches}", prepare=lambda options: _prepare(arguments, options)
    )


def _prepare(arguments: argparse.Namespace, options: Options) -> Callable[[], Audited]:
    with extras.needed("train", to="audit"):
        from exactdp.benchmarks.training_audit import audit, feature
    return functools.partial(audit.many_runs, feature.many_runs(options, batches=arguments.batches), options)
