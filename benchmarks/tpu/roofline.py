"""The least time of a compiled step: what it computes, reads and sends against what a chip can."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

from exactdp.benchmarks.tpu.collectives import collectives
from exactdp.benchmarks.tpu.topology import Chip


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one step costs one chip.

    XLA counts one turn of a loop whose turns depend on the data, such as that over a batch's parts: of such a
    step all but `memory` is less than what a whole batch costs.

    Attributes:
      flops: operations, as XLA counts them after optimisation.
      memory_traffic: bytes read and written, as XLA counts them; it does not know what stays on the chip, so
        that this is an upper estimate.
      memory: bytes held at most: arguments, results that reuse none of them, and temporaries.
      collective: bytes of the results of exchanges between chips.
      sent: bytes that a chip sends for them, by rings.
      kinds: number of exchanges by kind.
    """

    flops: float
    memory_traffic: float
    memory: float
    collective: float
    sent: float
    kinds: Mapping[str, int]


def cost(compiled: Any, *, num_devices: int) -> Cost:
    """The cost of a compiled step by XLA's own analysis of the program for one device.

    Args:
      compiled: a compiled jitted function.
      num_devices: how many devices run it.
    """
    analysis = compiled.cost_analysis()
    held = compiled.memory_analysis()
    found = collectives(compiled.as_text(), num_devices=num_devices)
    return Cost(
        flops=float(analysis["flops"]),
        memory_traffic=float(analysis["bytes accessed"]),
        memory=float(
            held.argument_size_in_bytes
            + held.output_size_in_bytes
            - held.alias_size_in_bytes
            + held.temp_size_in_bytes
        ),
        collective=float(sum(each.size for each in found)),
        sent=float(sum(each.sent for each in found)),
        kinds=dict(collections.Counter(each.kind for each in found)),
    )


def seconds(cost: Cost, *, chip: Chip) -> dict[str, float]:
    """The seconds that each of compute, memory and links takes at its peak rate.

        compute = flops / peak,  memory = traffic / bandwidth,  links = sent / link bandwidth

    The roofline time is the largest of the three, the step's time if they overlap and XLA's counts hold.

    Args:
      cost: of one step on one chip.
      chip: its peak rates.
    """
    return {
        "compute": cost.flops / chip.flops,
        "memory": cost.memory_traffic / chip.memory_bandwidth,
        "links": cost.sent / chip.link_bandwidth,
    }
