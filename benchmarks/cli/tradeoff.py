"""`exactdp tradeoff`: the least false-negative rates of any membership test of a setting."""

from __future__ import annotations

import argparse
import time

from exactdp.accounting import validate
from exactdp.benchmarks.cli import flags, output
from exactdp.benchmarks.setting import accountants

HELP = "least false-negative rates (f-DP) at given false-positive rates"
EXAMPLES = """\
  exactdp tradeoff gaussian --noise_multiplier 1 --sampling_probability 0.01 --num_steps 1000 --fpr 0.01,0.1
  exactdp tradeoff laplace --noise_multiplier 10 --num_steps 100 --fpr 0.001,0.01,0.1 --json"""

# The slope of the curve, exp(epsilon), leaves the range of floats for rates much smaller than this.
_SMALLEST_RATE = 1e-300


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    flags.add_setting(parser)
    flags.add(parser, "fpr", required=True)
    flags.add(parser, "tolerance")
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Computes the trade-off curve, certified, at the given rates."""
    setting = flags.setting(arguments)
    rates = [_rate(rate) for rate in arguments.fpr]
    keywords = {}
    if arguments.tolerance is not None:
        keywords["tolerance"] = validate.open_probability("tolerance", arguments.tolerance)
    from exactdp.accounting.fdp.tradeoff import tradeoff

    start = time.perf_counter()
    answers = tradeoff(setting.composition(), fpr=rates, **keywords)
    seconds = time.perf_counter() - start
    threat_model = setting.threat_model()
    engine = (
        " and ".join(dict.fromkeys(answer.engine for answer in answers if answer.engine)) or "closed form"
    )
    if arguments.json:
        return output.as_json(
            {
                "fpr": rates,
                "fnr": [{"lower": answer.lower, "upper": answer.upper} for answer in answers],
                "threat_model": threat_model.as_dict(),
                "parameters": setting.as_dict(),
                "engine": engine,
                "seconds": seconds,
            }
        ), 0
    rows: list[tuple[object, ...]] = [("fpr", "fnr, lower", "fnr, upper")]
    rows += [(rate, answer.lower, answer.upper) for rate, answer in zip(rates, answers, strict=True)]
    return output.report(
        setting.as_dict(),
        threat_model,
        rows,
        remark=accountants.CERTIFIED,
        engine=engine,
        seconds=seconds,
    ), 0


def _rate(value: float) -> float:
    rate = validate.probability("fpr", value)
    if 0.0 < rate < _SMALLEST_RATE:
        raise ValueError(f"fpr must be 0 or at least {_SMALLEST_RATE:g}, got {rate:g}")
    return rate
