"""`exactdp epsilon`: the epsilon of a setting at a delta."""

from __future__ import annotations

import argparse
import time

from exactdp.accounting import validate
from exactdp.benchmarks.cli import flags, output
from exactdp.benchmarks.setting import accountants

HELP = "epsilon at a delta, as a certified interval"
EXAMPLES = """\
  exactdp epsilon gaussian --noise_multiplier 1 --sampling_probability 0.01 --num_steps 1000 --delta 1e-5
  exactdp epsilon dirichlet --scaling 0.235 --offset 3 --sampling_probability 0.005 --num_steps 20000 \\
      --delta 1e-5 --coins visible --json
  exactdp epsilon laplace --noise_multiplier 10 --num_steps 100 --delta 1e-6"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    flags.add_setting(parser)
    flags.add(parser, "delta", required=True)
    flags.add(parser, "accountant", "tolerance", "engine")
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Computes epsilon."""
    setting = flags.setting(arguments)
    delta = validate.open_probability("delta", arguments.delta)
    options = accountants.options(arguments.accountant, arguments.tolerance, arguments.engine, setting)
    accountants.load(options)
    start = time.perf_counter()
    answer = accountants.epsilon(setting, delta=delta, options=options)
    seconds = time.perf_counter() - start
    threat_model = setting.threat_model()
    if arguments.json:
        return output.as_json(
            {
                "epsilon": answer.as_dict(),
                "delta": delta,
                "threat_model": threat_model.as_dict(),
                "parameters": setting.as_dict(),
                "accountant": options.accountant,
                "engine": answer.engine,
                "seconds": seconds,
            }
        ), 0
    rows = answer.rows("delta", delta, "epsilon")
    return output.report(
        setting.as_dict(), threat_model, rows, remark=answer.remark, engine=answer.engine, seconds=seconds
    ), 0
