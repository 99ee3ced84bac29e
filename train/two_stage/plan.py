"""What follows from a table's size and a target epsilon: batches, steps, noise, and the one certificate."""

from __future__ import annotations

import dataclasses
import math

from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel
from exactdp.mechanisms.batches import Poisson
from exactdp.train import calibration, certificates
from exactdp.train.certificate import Certificate
from exactdp.train.tables.budget import Budget
from exactdp.train.two_stage.settings import TwoStageSettings

EPOCHS, FIRST_EPOCHS = 10, 5
"""Passes over the rows in stage 2 and in stage 1 (arXiv 2412.02467v2, released code)."""

_ROWS = "the number of rows, by which sums are divided, is public"
_EVERYTHING = ThreatModel(
    Adjacency.ADD_REMOVE, Coins.HIDDEN, "noisy statistics of the table and all noisy gradient sums"
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What runs.

    Attributes:
      certificate: the claim, of statistics and stage 2 together.
      sampler: draws the batches of stage 2.
      num_steps: of stage 2.
      noise: noise standard deviation / clip norm; None without privacy.
      budget: of the statistics; None where they are exact.
    """

    certificate: Certificate
    sampler: Poisson
    num_steps: int
    noise: float | None
    budget: Budget | None


def plan(settings: TwoStageSettings, *, num_rows: int, num_columns: int, num_undeclared: int) -> Plan:
    """Solves for the noise of stage 2.

    Repaired: the statistics' releases are fixed first, at their share of epsilon; then stage 2's noise is the
    least with which everything together is certified to be (epsilon, delta)-DP. As published: the noise by
    the released accountant for stage 2 alone.

    Args:
      settings: what was asked for.
      num_rows: trained on; public.
      num_columns: of the table; public.
      num_undeclared: columns whose domain is not declared; public.

    Raises:
      ValueError: no noise reaches the target.
      ArithmeticError: no value could be certified.
    """
    poisson, steps = sampler(settings, num_rows=num_rows)
    if settings.epsilon is None:
        return Plan(certificates.nonprivate(sampler=poisson), poisson, steps, None, None)
    if settings.as_published:
        noise = printed.noise_multiplier(
            settings.epsilon,
            sampling_probability=poisson.sampling_probability,
            num_steps=steps,
            delta=settings.delta,
        )
        return Plan(_as_published(noise, poisson), poisson, steps, noise, None)
    budget = Budget(
        settings.statistics_share * settings.epsilon,
        settings.delta,
        num_columns=num_columns,
        num_undeclared=num_undeclared,
    )

    def certify(noise: float) -> Certificate:
        return end_to_end(noise, sampler=poisson, budget=budget)

    noise = calibration.noise_for(certify, epsilon=settings.epsilon, delta=settings.delta, num_steps=steps)
    return Plan(certify(noise), poisson, steps, noise, budget)


def end_to_end(noise_multiplier: float, *, sampler: Poisson, budget: Budget) -> Certificate:
    """Statistics and stage 2 under one budget: add/remove neighbours, hidden coins; covers all that is made.

    Args:
      noise_multiplier: of stage 2, noise standard deviation / clip norm, > 0.
      sampler: draws its batches.
      budget: of the statistics.

    Source: arXiv 2412.02467v2, repaired; the composition is derived here.
    """
    return dataclasses.replace(
        certificates.dpsgd(noise_multiplier, sampler=sampler),
        threat_model=_EVERYTHING,
        rung="statistics and stage 2, one budget (two_stage ladder)",
        statement=(
            "The certificate covers the domain, the statistics, the tokenizer, the weights and every row "
            f"drawn from them; {_ROWS}. What is measured on held-out rows it does not cover."
        ),
        before=tuple(budget.releases()),
    )


def _as_published(noise_multiplier: float, sampler: Poisson) -> Certificate:
    return dataclasses.replace(
        certificates.dpsgd(noise_multiplier, sampler=sampler),
        rung="exact (two_stage ladder): stage 2 alone",
        statement=(
            "Not DP end to end: the certificate covers stage 2's noisy gradient sums alone, and not what is "
            f"taken from the table without noise beside them; {_ROWS}."
        ),
        covers_weights=False,
    )


def free(*, reason: str) -> Certificate:
    """Of a stage that reads nothing private: it costs nothing.

    Args:
      reason: one sentence on what it reads.
    """
    return Certificate(
        mechanisms=(ApproximateDP(0.0, 0.0),),
        threat_model=ThreatModel(Adjacency.ADD_REMOVE, Coins.NONE, "all gradients, of no private row"),
        rung="post-processing",
        statement=reason,
        covers_weights=True,
    )


def sampler(settings: TwoStageSettings, *, num_rows: int) -> tuple[Poisson, int]:
    """Poisson batches of the expected size, and the number of steps of stage 2.

    Args:
      settings: batch size, steps and delta.
      num_rows: n >= 4.
    """
    q = min(settings.batch_size / num_rows, 0.25)
    steps = math.ceil(EPOCHS / q) if settings.num_steps is None else int(settings.num_steps)
    slots = calibration.capacity(num_rows, sampling_probability=q, num_steps=steps, delta=settings.delta)
    return Poisson(num_rows, q, slots), steps
