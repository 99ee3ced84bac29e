"""`exactdp audit dpsgd`: what the released gradients of DP-SGD tell of a record."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from exactdp.benchmarks.cli import audit_training, extras
from exactdp.benchmarks.training_audit.options import CANARIES, Options, RealData

if TYPE_CHECKING:
    from exactdp.benchmarks.training_audit.audit import Audited

HELP = "the trainer of DP-SGD: a record in the worst case, or canaries in one run"
EXAMPLES = """\
  exactdp audit dpsgd --seed 0
  exactdp audit dpsgd --design one_run --trials 2000 --seed 0 --json
  exactdp audit dpsgd --design one_run --canary mislabelled --dataset digits --trials 500
Weights are trained by the step of `exactdp train dpsgd`. The adversary sees the weights after every step, or
the final ones alone.
exit status: 1 where the certified epsilon is refuted"""

_DESIGNS = ("many_runs", "one_run")
_REAL = ("dataset", "model", "learning_rate")
_CANARIES = ("own_feature", *CANARIES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    parser.add_argument(
        "--design",
        choices=_DESIGNS,
        default=_DESIGNS[0],
        help="many_runs: many models, half of them with the one canary; one_run: one model with many "
        "canaries, as many as --trials, each in or out by its own coin (many_runs)",
    )
    parser.add_argument(
        "--canary",
        choices=_CANARIES,
        default=_CANARIES[0],
        help="own_feature: the worst case, a feature that no other record has; mislabelled, random: real "
        "records with another label, or noise, among those of --dataset; one_run only (own_feature)",
    )
    parser.add_argument("--dataset", metavar="X", help="of real records (digits)")
    parser.add_argument("--model", metavar="X", help="for real records (mlp)")
    parser.add_argument("--learning_rate", type=float, metavar="X", help="for real records (1)")
    audit_training.add_arguments(parser, Options())


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Runs the audit."""
    if arguments.canary != _CANARIES[0] and arguments.design != "one_run":
        raise ValueError(f"canary must be own_feature for many_runs, got {arguments.canary}")
    if arguments.canary == _CANARIES[0]:
        for name in _REAL:
            if getattr(arguments, name) is not None:
                raise ValueError(f"{name} must be left out with the canary own_feature, got one")
    return audit_training.execute(
        arguments, name=f"dpsgd_{arguments.design}", prepare=lambda options: _prepare(arguments, options)
    )


def _prepare(arguments: argparse.Namespace, options: Options) -> Callable[[], Audited]:
    with extras.needed("train", to="audit"):
        from exactdp.benchmarks.training_audit import audit, dpsgd, real
        from exactdp.train import data
    if arguments.design == "many_runs":
        return functools.partial(audit.many_runs, dpsgd.many_runs(options), options)
    if arguments.canary == _CANARIES[0]:
        return functools.partial(audit.one_run, dpsgd.one_run(options), options)
    given = {name: getattr(arguments, name) for name in _REAL if getattr(arguments, name) is not None}
    asked = RealData(canary=arguments.canary, **given)
    data.require_known(asked.dataset)
    return functools.partial(audit.one_run, real.one_run(options, asked), options)
