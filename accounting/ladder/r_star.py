"""Table 7 of arXiv 2607.19580v1, reconstructed: r*, the largest scaling that a target ε allows, by each rule.

The paper's rule is evaluated with three conversions; beside it stand the r* that the exact accountant
allows with hidden and with visible coins. Only one cell of the printed table was recovered; it is quoted,
not computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import search
from exactdp.accounting.ladder.dirichlet_setting import CELL
from exactdp.accounting.ladder.factor_three import factor_three_floor
from exactdp.accounting.pairs.dirichlet import Dirichlet
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.visible import PoissonVisible


@dataclasses.dataclass(frozen=True)
class Row:
    """r* at one target; None where no scaling meets it, and then `reasons` says why.

    Attributes:
      epsilon: the target, nats.
      printed: by the rule as printed (Lemma 13).
      repaired: by the rule with the conversion of Balle et al.
      mironov: by the rule with Mironov's conversion.
      hidden: exact, hidden coins, add/remove: the lower end satisfies the target, the upper end does not.
      visible: exact, visible coins, label-public replacement; likewise.
      recovered: the printed cell where it was recovered; None elsewhere.
      reasons: column -> why there is no scaling.
    """

    epsilon: float
    printed: float | None
    repaired: float | None
    mironov: float | None
    hidden: Interval | None
    visible: Interval | None
    recovered: float | None
    reasons: dict[str, str]


def r_star_table(
    epsilons: Sequence[float] = printed.TABLE_7_TARGETS,
    *,
    offset: float = CELL.offset,
    sampling_probability: float = CELL.sampling_probability,
    num_steps: int = CELL.num_steps,
    delta: float = CELL.delta,
    tolerance: float = 1e-3,
) -> list[Row]:
    """r* at each target by the paper's rule, its repairs and the exact accountant.

    Args:
      epsilons: targets, each > 0, nats.
      offset: alpha > 0.
      sampling_probability: q in (0, 1].
      num_steps: T >= 1.
      delta: in (0, 1).
      tolerance: relative width of the exact columns, in [1e-6, 0.1].

    Returns:
      One row a target.

    Raises:
      ValueError: an argument is outside its range.
    """
    targets = [validate.positive("epsilons", epsilon) for epsilon in epsilons]
    if not targets:
        raise ValueError("epsilons must hold at least one target, got none")
    validate.positive("sampling_probability", sampling_probability)
    validate.count("num_steps", num_steps, minimum=1)
    rule = {
        "offset": offset,
        "sampling_probability": sampling_probability,
        "num_steps": num_steps,
        "delta": delta,
    }
    least = printed.least_printed_term(delta).value
    floor = factor_three_floor(sampling_probability=sampling_probability, num_steps=num_steps, delta=delta)
    rows: list[Row] = []
    for target in targets:
        by_rule = {name: _by_rule(target, name, rule) for name in ("printed", "balle", "mironov")}
        reasons: dict[str, str] = {}
        if by_rule["printed"] is None:
            reasons["printed"] = (
                f"the printed conversion alone is at least {least:.4g}"
                if target < least
                else f"the printed conversion, at least {least:.4g}, and the factor 3 exceed the target"
            )
        if by_rule["balle"] is None:
            reasons["repaired"] = f"the factor 3 costs {floor:.4g} for every scaling"
        if by_rule["mironov"] is None:
            reasons["mironov"] = "the factor 3 and the conversion cost more than the target for every scaling"
        start = by_rule["balle"] or offset / 30.0
        exact = {
            name: largest_scaling(
                lambda r, sampled=sampled: sampled(Dirichlet(r, float(offset)), float(sampling_probability)),
                epsilon=target,
                num_steps=num_steps,
                delta=delta,
                start=guess,
                tolerance=tolerance,
            )
            for name, sampled, guess in (
                ("hidden", PoissonHidden, 1.5 * start),
                ("visible", PoissonVisible, 0.1 * start),
            )
        }
        cell = dataclasses.astuple(CELL)
        known = cell[:5] == (offset, sampling_probability, num_steps, delta, target)
        rows.append(
            Row(
                epsilon=target,
                printed=by_rule["printed"],
                repaired=by_rule["balle"],
                mironov=by_rule["mironov"],
                hidden=exact["hidden"],
                visible=exact["visible"],
                recovered=CELL.scaling if known else None,
                reasons=reasons,
            )
        )
    return rows


def _by_rule(target: float, conversion: str, rule: dict[str, float]) -> float | None:
    return printed.largest_scaling(target, conversion=conversion, **rule)  # type: ignore[arg-type]


def largest_scaling(
    sampled: Callable[[float], Mechanism],
    *,
    epsilon: float,
    num_steps: int,
    delta: float,
    start: float,
    tolerance: float = 1e-3,
) -> Interval:
    """The largest scaling whose exact ε is at most a target, between two scalings that were certified.

    Args:
      sampled: the mechanism of a step, for a scaling.
      epsilon: target, > 0, nats.
      num_steps: T >= 1.
      delta: in (0, 1).
      start: where to begin, > 0.
      tolerance: relative width, in [1e-6, 0.1].

    Returns:
      At `lower` the target is met, at `upper` it is missed.

    Raises:
      ValueError: an argument is outside its range.
      ArithmeticError: the accountant could not tell the sides apart.
    """
    found = search.least_private(
        lambda r: [(sampled(r), num_steps)],
        epsilon=epsilon,
        delta=delta,
        start=start,
        increasing=True,
        tolerance=tolerance,
    )
    return Interval(found.met, found.missed, found.epsilon.engine)
