"""`exactdp calibrate`: the parameter with which a setting meets a target epsilon and delta."""

from __future__ import annotations

import argparse
import time

from exactdp.accounting import validate
from exactdp.benchmarks.cli import flags, output
from exactdp.benchmarks.setting import calibration
from exactdp.benchmarks.setting.families import FAMILIES

HELP = "the parameter that meets a target epsilon and delta, on the safe side"
EXAMPLES = """\
  exactdp calibrate gaussian --epsilon 1 --delta 1e-5 --sampling_probability 0.01 --num_steps 1000
  exactdp calibrate dirichlet --epsilon 1 --delta 1e-5 --offset 3 --sampling_probability 0.005 \\
      --num_steps 20000 --json
  exactdp calibrate gaussian --epsilon 1 --delta 1e-5 --noise_multiplier 1 --sampling_probability 0.01 \\
      --parameter num_steps"""

# Stands in for the parameter that is solved for while everything else is checked.
_PLACEHOLDER = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    flags.add_setting(parser)
    flags.add(parser, "epsilon", "delta", required=True)
    parser.add_argument(
        "--parameter",
        choices=calibration.PARAMETERS,
        help="what to solve for (noise_multiplier; dirichlet: scaling; pure, approximate: epsilon0)",
    )
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Solves for the parameter."""
    parameter: str = arguments.parameter or FAMILIES[arguments.mechanism].calibrated
    epsilon = validate.positive("epsilon", arguments.epsilon)
    delta = validate.open_probability("delta", arguments.delta)
    calibration.check(arguments.mechanism, parameter)
    given = getattr(arguments, parameter)
    # A flag without a default is None unless it was given; the other two have 1 by default.
    if given is not None and (parameter in FAMILIES[arguments.mechanism].required or given != 1):
        raise ValueError(f"{parameter} must be left out when it is solved for, got {given}")
    if parameter == "sampling_probability":
        # Below 1, so that a combination which cannot be accounted for with sampling is refused now.
        setting = flags.setting(arguments, sampling_probability=0.5)
    else:
        setting = flags.setting(arguments, **{parameter: _PLACEHOLDER})
    start = time.perf_counter()
    found = calibration.solve(setting, parameter, epsilon=epsilon, delta=delta)
    seconds = time.perf_counter() - start
    value = int(found.value) if parameter == "num_steps" else found.value
    solved = setting.replaced(**{parameter: value})
    threat_model = solved.threat_model()
    if arguments.json:
        return output.as_json(
            {
                parameter: value,
                "epsilon": {"lower": found.epsilon.lower, "upper": found.epsilon.upper},
                "delta": delta,
                "target": {"epsilon": epsilon, "delta": delta},
                "rejected": found.rejected,
                "threat_model": threat_model.as_dict(),
                "parameters": solved.as_dict(),
                "engine": found.epsilon.engine,
                "seconds": seconds,
            }
        ), 0
    rows = [
        (parameter, "epsilon, lower", "epsilon, upper", "target", "delta"),
        # In full: rounded to fewer digits it might miss the target.
        (repr(value), found.epsilon.lower, found.epsilon.upper, epsilon, delta),
    ]
    remark = "meets the target"
    if found.rejected is not None:
        remark += f"; {output.show(found.rejected)} is certain not to"
    else:
        remark += "; it is the last value that is searched"
    return output.report(
        solved.as_dict(), threat_model, rows, remark=remark, engine=found.epsilon.engine, seconds=seconds
    ), 0
