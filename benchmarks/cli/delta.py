"""`exactdp delta`: the delta of a setting at an epsilon."""

from __future__ import annotations

import argparse
import time

from exactdp.accounting import validate
from exactdp.benchmarks.cli import flags, output
from exactdp.benchmarks.setting import accountants

HELP = "delta at an epsilon, as a certified interval"
EXAMPLES = """\
  exactdp delta gaussian --noise_multiplier 1 --sampling_probability 0.01 --num_steps 1000 --epsilon 2
  exactdp delta pure --epsilon0 0.1 --num_steps 50 --epsilon 1 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    flags.add_setting(parser)
    flags.add(parser, "epsilon", required=True)
    flags.add(parser, "accountant", "tolerance", "engine")
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Computes delta."""
    setting = flags.setting(arguments)
    epsilon = validate.non_negative("epsilon", arguments.epsilon)
    options = accountants.options(arguments.accountant, arguments.tolerance, arguments.engine, setting)
    accountants.load(options)
    start = time.perf_counter()
    answer = accountants.delta(setting, epsilon=epsilon, options=options)
    seconds = time.perf_counter() - start
    threat_model = setting.threat_model()
    if arguments.json:
        return output.as_json(
            {
                "delta": answer.as_dict(),
                "epsilon": epsilon,
                "threat_model": threat_model.as_dict(),
                "parameters": setting.as_dict(),
                "accountant": options.accountant,
                "engine": answer.engine,
                "seconds": seconds,
            }
        ), 0
    rows = answer.rows("epsilon", epsilon, "delta")
    return output.report(
        setting.as_dict(), threat_model, rows, remark=answer.remark, engine=answer.engine, seconds=seconds
    ), 0
