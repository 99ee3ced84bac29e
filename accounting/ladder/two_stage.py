"""The ladder of DP-2Stage, arXiv 2412.02467v2: its private stage, and the pipeline end to end.

Stage 2 is DP-SGD. What the pipeline takes from the private table outside stage 2 (column ranges, category
lists, label frequencies) is replaced here by private statistics of the same release, composed exactly with
stage 2:

* a range or a category list of one column: any (ε₀, 0)-DP mechanism, for example two quantiles by the
  exponential mechanism at ε₀/2 each, or noisy counts over a public list of candidates. (Candidates that are
  not public need an additional δ: this is not covered.)
* the label histogram: discrete Laplace noise of scale 1/ε₀ on each count; a record is in one of them.

All statistics of a variant get an equal share ε₀ of `statistics_share · epsilon`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.rung import Composition, Quantity, Rung
from exactdp.accounting.ladder.two_stage_setting import END_TO_END, STAGE_2, Setting, budget_noise
from exactdp.accounting.printed import two_stage as printed
from exactdp.accounting.threat import ThreatModel

LAST_TRAINING_STEP, LOGGED_STEPS = 6_650, 9_660
"""Adult: about where the released scheduler's rate reaches 0, of how many steps (released code, logs)."""

_MULTIPLIER = "noise std / clip norm"


def _noise(value: float) -> Quantity:
    return Quantity("noise_multiplier", value, _MULTIPLIER)


def as_printed(setting: Setting) -> Rung:
    """Stage 2 by the released accountant: Rényi orders of a fixed grid."""
    bound = printed.epsilon(
        setting.noise,
        sampling_probability=setting.data.sampling_probability,
        num_steps=setting.steps,
        delta=setting.delta,
    )
    return Rung(
        name="printed",
        kind="printed",
        threat_model=STAGE_2,
        epsilon=bound.value,
        source=str(printed.PRINTED.source),
        note="Valid for stage 2 alone, if clipping bounds what one record adds. The search of the released "
        "code stops within 0.01 below the target.",
        command=setting.command,
        quantities=(
            _noise(setting.noise),
            Quantity("sampling_probability", setting.data.sampling_probability, "1"),
            Quantity("num_steps", float(setting.steps), "steps"),
            Quantity("order", bound.order, "1"),
        )
        if bound.order == bound.order
        else (_noise(setting.noise),),
    )


def _exact(
    setting: Setting,
    name: str,
    threat_model: ThreatModel,
    composition: Composition,
    corrects: str,
    *,
    note: str = "",
    quantities: tuple[Quantity, ...] = (),
) -> Rung:
    interval, reason = base.exact(composition, delta=setting.delta, tolerance=setting.tolerance)
    return Rung(
        name=name,
        kind="exact",
        threat_model=threat_model,
        epsilon=interval,
        reason=reason,
        source="derived",
        corrects=corrects,
        note=note,
        command=setting.command,
        quantities=quantities,
        composition=composition,
    )


def exact(setting: Setting) -> Rung:
    """Stage 2, exact."""
    return _exact(
        setting,
        "exact",
        STAGE_2,
        setting.stage_2(),
        "printed: " + printed.EXACT_STAGE_2.defect,
        note="Both directions, composed apart.",
        quantities=(_noise(setting.noise),),
    )


def _none(
    setting: Setting, name: str, threat_model: ThreatModel, reason: str, corrects: str, note: str
) -> Rung:
    return Rung(
        name=name,
        kind="exact",
        threat_model=threat_model,
        epsilon=None,
        reason=reason,
        source="derived",
        corrects=corrects,
        note=note,
        command=setting.command,
    )


def batch_coupled_loss(setting: Setting) -> Rung:
    """The released loss couples the records of a batch: no bound."""
    return _none(
        setting,
        "released loss",
        STAGE_2,
        "class means over the batch and padding to the longest row make one record's gradient depend on the "
        "others, so that clipping each gradient does not bound what one record changes",
        "printed: " + printed.SENSITIVITY.defect,
        "With per-record normalisation and masked padding the exact rung holds.",
    )


def uniform_released(setting: Setting) -> Rung:
    """Variant U as released."""
    return _none(
        setting,
        "U, as released",
        END_TO_END,
        "the pseudo table takes column ranges and category lists from the private table without noise, and "
        "prompts and rejection take label frequencies and categories: stage 2's epsilon does not cover them",
        "printed: " + printed.UNIFORM.defect,
        "One record can hold the largest value of a column or be alone in its category, and is then seen.",
    )


def uniform_repaired(setting: Setting) -> Rung:
    """Variant U with private statistics, the noise of stage 2 unchanged: what the statistics cost."""
    each, statistics = setting.statistics(columns=setting.data.columns)
    return _exact(
        setting,
        "U, private statistics",
        END_TO_END,
        setting.stage_2() + statistics,
        "U, as released: a private range or category list for each column and a noisy label histogram",
        note=f"{setting.data.columns + 1} statistics beside stage 2 at its own noise.",
        quantities=(_noise(setting.noise), Quantity("epsilon of each statistic", each, "nats")),
    )


def _within(setting: Setting, name: str, columns: int, corrects: str) -> Rung:
    each, statistics = setting.statistics(columns=columns)
    try:
        noise = budget_noise(
            setting.dataset, float(setting.epsilon), share=float(setting.statistics_share), columns=columns
        )
    except ArithmeticError as error:
        reason = f"no noise multiplier was certified: {error}"
        return _none(setting, name, END_TO_END, reason, corrects, "")
    return _exact(
        setting,
        name,
        END_TO_END,
        setting.stage_2(noise) + statistics,
        corrects,
        note=f"Stage 2's noise is calibrated, at the paper's own number of steps and delta, so that "
        f"everything together stays within epsilon = {setting.epsilon:g}.",
        quantities=(_noise(noise), Quantity("epsilon of each statistic", each, "nats")),
    )


def uniform_budget(setting: Setting) -> Rung:
    """Variant U with everything under one budget."""
    return _within(
        setting, "U, one budget", setting.data.columns, "U, private statistics: all of it within the target"
    )


def public_released(setting: Setting) -> Rung:
    """Variant O as released."""
    return _none(
        setting,
        "O, as released",
        END_TO_END,
        "prompts use exact private label frequencies and rejection uses the private category sets: stage 2's "
        "epsilon does not cover them",
        "printed: " + printed.OUT_OF_DISTRIBUTION.defect,
        "Its stage 1 uses an unrelated public table and costs nothing. Training without stage 1 generates "
        "alike.",
    )


def public_domains(setting: Setting) -> Rung:
    """Variant O with public domains and a noisy label histogram."""
    each, statistics = setting.statistics(columns=0)
    return _exact(
        setting,
        "O, public domains",
        END_TO_END,
        setting.stage_2() + statistics,
        "O, as released: a noisy label histogram; the category sets are public",
        note="One statistic beside stage 2 at its own noise.",
        quantities=(_noise(setting.noise), Quantity("epsilon of the histogram", each, "nats")),
    )


def private_domains(setting: Setting) -> Rung:
    """Variant O with privately selected domains and a noisy label histogram."""
    columns = setting.data.columns - 1
    each, statistics = setting.statistics(columns=columns)
    return _exact(
        setting,
        "O, private domains",
        END_TO_END,
        setting.stage_2() + statistics,
        "O, as released: a noisy label histogram, and a private category set for every other column",
        note=f"{columns + 1} statistics beside stage 2 at its own noise.",
        quantities=(_noise(setting.noise), Quantity("epsilon of each statistic", each, "nats")),
    )


def public_budget(setting: Setting) -> Rung:
    """Variant O with public domains under one budget."""
    return _within(
        setting, "O, public domains, one budget", 0, "O, public domains: all of it within the target"
    )


def schedule(setting: Setting) -> Rung:
    """What the steps cost that still train under the released scheduler."""
    name, corrects = (
        "steps that train",
        "exact: the released scheduler steps once a micro-batch and reaches 0 early",
    )
    share = LAST_TRAINING_STEP / LOGGED_STEPS
    if setting.dataset != "adult":
        reason = "where the learning rate reaches 0 was read for Adult only"
        return _none(setting, name, STAGE_2, reason, corrects, "")
    steps = round(setting.steps * share)
    return _exact(
        setting,
        name,
        STAGE_2,
        setting.stage_2(num_steps=steps),
        corrects,
        note=f"On Adult the rate is 0 from about step {LAST_TRAINING_STEP} of {LOGGED_STEPS} (released code "
        f"and logs): the last {100.0 * (1.0 - share):.0f} % of the steps cost privacy and change nothing. "
        "Stopping there costs this much; stepping the scheduler once a logical batch uses all of them.",
        quantities=(_noise(setting.noise), Quantity("num_steps", float(steps), "steps")),
    )


AUDITED: ThreatModel = END_TO_END
"""What an audit must have attacked to fill the ladder's open rung."""


def _audited(setting: Setting) -> Rung:
    return base.open_audit(AUDITED, command=setting.command)


BUILDERS: Mapping[str, Callable[[Setting], Rung]] = {
    "printed": as_printed,
    "exact": exact,
    "steps that train": schedule,
    "released loss": batch_coupled_loss,
    "U, as released": uniform_released,
    "U, private statistics": uniform_repaired,
    "U, one budget": uniform_budget,
    "O, as released": public_released,
    "O, public domains": public_domains,
    "O, private domains": private_domains,
    "O, public domains, one budget": public_budget,
    "audited": _audited,
}


def rungs(
    *,
    dataset: str = "adult",
    epsilon: float = 1.0,
    delta: float = printed.DELTA,
    noise_multiplier: float | None = None,
    num_steps: int | None = None,
    statistics_share: float = 0.1,
    tolerance: float = 1e-4,
) -> list[Rung]:
    """The ladder, from the released accountant to the pipeline under one budget.

    Args:
      dataset: "adult", "airline" or "texas": sets q, T and the number of columns.
      epsilon: target of the pipeline, > 0, nats; the paper uses 1 and 8.
      delta: in (0, 1).
      noise_multiplier: of stage 2, > 0; when omitted, what the released code trains with for `epsilon` at the
        paper's own number of steps and delta.
      num_steps: T >= 0; the paper's own when omitted.
      statistics_share: share of epsilon for private statistics, in (0, 1).
      tolerance: width of the certified intervals aimed at, > 0, nats.

    Raises:
      ValueError: a parameter is outside its range.

    Source: arXiv 2412.02467v2 and its released code.
    """
    setting = Setting(dataset, epsilon, delta, noise_multiplier, num_steps, statistics_share, tolerance)
    return [build(setting) for build in BUILDERS.values()]


@dataclasses.dataclass(frozen=True)
class NoiseRow:
    """Stage 2 of one data set at one target.

    Attributes:
      dataset: its name.
      epsilon: the target, nats.
      noise_multiplier: what the released code trains with.
      printed: epsilon by the released accountant, nats.
      exact: the certified epsilon, nats; None where it could not be certified.
    """

    dataset: str
    epsilon: float
    noise_multiplier: float
    printed: float
    exact: base.Value | None


def noise_table() -> list[NoiseRow]:
    """Printed and exact ε of stage 2 for the paper's three data sets and two targets."""
    rows: list[NoiseRow] = []
    for dataset in printed.DATASETS:
        for epsilon in printed.EPSILONS:
            setting = Setting(dataset, epsilon, printed.DELTA, None, None, 0.1, 1e-4)
            bound, found = as_printed(setting), exact(setting)
            rows.append(NoiseRow(dataset, epsilon, setting.noise, bound.upper or 0.0, found.epsilon))
    return rows
