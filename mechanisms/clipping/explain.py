"""What clipping will do with a loss, layer by layer, before anything is run."""

from __future__ import annotations

import dataclasses

from exactdp.mechanisms.clipping import loss as losses
from exactdp.mechanisms.clipping.loss import Loss, PyTree
from exactdp.mechanisms.clipping.plan import Method


@dataclasses.dataclass(frozen=True)
class Line:
    """One group of uses.

    Attributes:
      parameters: paths of the parameters.
      layers: the model's layers that use them, where the trace tells.
      rules: dense, conv, embed, elementwise, or vmap(operation) where the operation's own derivative is
      taken.
      method: keep, ghost or recompute; see `plan`.
      flops: floating-point operations a step beyond the backward pass to the activations.
      kept_bytes: kept from the backward pass to the weighted sum.
      passing_bytes: held while the norm is computed.
    """

    parameters: tuple[str, ...]
    layers: tuple[str, ...]
    rules: tuple[str, ...]
    method: Method
    flops: float
    kept_bytes: float
    passing_bytes: float


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The lines, the parameters that the loss does not use, and the budget; printable as a table."""

    lines: tuple[Line, ...]
    unused: tuple[str, ...]
    byte_budget: float

    def __str__(self) -> str:
        width = max((len(", ".join(line.parameters)) for line in self.lines), default=10)
        rows = [
            f"{'parameters':{width}}  {'rule':24} {'method':9} {'Mflop':>10} {'kept MB':>9} {'held MB':>9}"
        ]
        for line in self.lines:
            rows.append(
                f"{', '.join(line.parameters):{width}}  {' + '.join(line.rules):24} {line.method:9} "
                f"{line.flops / 1e6:10.1f} {line.kept_bytes / 1e6:9.2f} {line.passing_bytes / 1e6:9.2f}"
            )
        kept = sum(line.kept_bytes for line in self.lines)
        flops = sum(line.flops for line in self.lines)
        rows.append(
            f"{'together':{width}}  {'':24} {'':9} {flops / 1e6:10.1f} {kept / 1e6:9.2f} "
            f"(budget {self.byte_budget / 1e6:.2f})"
        )
        if self.unused:
            rows.append(f"without gradient: {', '.join(self.unused)}")
        return "\n".join(rows)


def explain(
    loss: Loss,
    params: PyTree,
    batch: PyTree,
    *,
    microbatch: int | None = None,
    byte_budget: float | None = None,
    method: Method | None = None,
) -> Explanation:
    """The rule and the method of every group of parameters, with costs; nothing is computed.

    Args:
      loss: as for `clipped_grad`.
      params: arrays or shapes.
      batch: arrays or shapes.
      microbatch: as for `clipped_grad`.
      byte_budget: as for `clipped_grad`.
      method: as for `clipped_grad`.

    Raises:
      ValueError: as `clipped_grad`.
    """
    records = losses.record_count(batch)
    size = records if microbatch is None else min(microbatch, records)
    analysed = losses.analyse(loss, params, batch)
    planned = analysed.planned(records=size, byte_budget=byte_budget, method=method)
    lines: list[Line] = []
    for group, choice in zip(planned.groups, planned.choices, strict=True):
        uses = [planned.uses[member.use] for member in group.members]
        names = tuple(analysed.names[leaf] for leaf in group.leaves)
        if group.box is not None:
            names = (names[0] + "".join(f"[{start}:{limit}]" for start, limit in group.box[:1]),)
        lines.append(
            Line(
                names,
                tuple(dict.fromkeys(use.operation.layer for use in uses if use.operation.layer)),
                tuple(dict.fromkeys(use.rule.name for use in uses)),
                choice.method,
                choice.flops,
                choice.kept_bytes,
                choice.passing_bytes,
            )
        )
    used = {leaf for group in planned.groups for leaf in group.leaves}
    unused = tuple(name for k, name in enumerate(analysed.names) if k not in used)
    budget = analysed.default_budget(size) if byte_budget is None else byte_budget
    return Explanation(tuple(lines), unused, budget)
