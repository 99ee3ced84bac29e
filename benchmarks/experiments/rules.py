"""The scaling that a target epsilon allows, by the paper's rule, repaired, and exactly."""

from __future__ import annotations

from exactdp.accounting import calibrate, validate
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.visible import PoissonVisible

NAMES = {
    "printed": "printed rule",
    "repaired": "printed rule, conversion repaired",
    "hidden": "exact, hidden coins",
    "visible": "exact, visible coins",
}
"""Rule -> what it is called. The threat models are in `THREATS`."""

THREATS = {
    "printed": ("replace_label_public", "hidden"),
    "repaired": ("replace_label_public", "hidden"),
    "hidden": ("add_remove", "hidden"),
    "visible": ("replace_label_public", "visible"),
}
"""Rule -> adjacency and coins under which it states its epsilon (as the paper reads its own rule)."""

_CONVERSIONS = {"printed": "printed", "repaired": "balle"}


def scaling(
    rule: str,
    *,
    epsilon: float,
    offset: float,
    sampling_probability: float,
    num_steps: int,
    delta: float,
) -> float | None:
    """The largest scaling r by a rule; None where no scaling meets the target by it.

    Args:
      rule: one of `NAMES`.
      epsilon: target, > 0, nats.
      offset: alpha > 0.
      sampling_probability: q in (0, 1).
      num_steps: T >= 1.
      delta: in (0, 1).

    Raises:
      ValueError: an argument is outside its range.
      ArithmeticError: no value could be certified.

    Source: arXiv 2607.19580v1, Theorem 10 and Table 7, for the first two; derived for the others.
    """
    validate.one_of("rule", rule, NAMES)
    if rule in _CONVERSIONS:
        return printed.largest_scaling(
            epsilon,
            offset=offset,
            sampling_probability=sampling_probability,
            num_steps=num_steps,
            delta=delta,
            conversion=_CONVERSIONS[rule],
        )
    sampled = PoissonHidden if rule == "hidden" else PoissonVisible
    found = calibrate.scaling(
        lambda r: [(sampled(Dirichlet(r, offset), sampling_probability), num_steps)],
        epsilon=epsilon,
        delta=delta,
    )
    return float(found.value)
