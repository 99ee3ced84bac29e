"""The ladder of feature differential privacy, arXiv 2506.19836v1.

Algorithm 1: a Poisson batch at rate p = m/n for the private gradient, an independent batch for the public
one, Gaussian noise on the total. The hyper-parameters of the experiments were not recovered: the defaults
are a setting of ours on the size of Purchase100. `noise_multiplier` is the standard deviation of the noise
on the *sum* of private gradients over τ, the bound on their norm; the mean over m = p·n has noise
noise_multiplier·τ/m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder import search
from exactdp.accounting.ladder.feature_setting import (
    ADD_REMOVE,
    ADD_REMOVE_VISIBLE,
    MULTIPLIER_UNIT,
    NUM_RECORDS,
    REPLACE,
    REPLACE_VISIBLE,
    Setting,
)
from exactdp.accounting.ladder.rung import Quantity, Rung
from exactdp.accounting.ladder.visible_bounds import counting_bound
from exactdp.accounting.pairs.gaussian import Gaussian
from exactdp.accounting.printed import feature as printed
from exactdp.accounting.prv.account import Direction
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import ThreatModel

_LEAST_EXACT = 0.05  # below it a step that samples the record tells it with near certainty


def _rung(
    setting: Setting,
    name: str,
    kind: base.Kind,
    threat_model: ThreatModel,
    composition: base.Composition,
    *,
    source: str,
    corrects: str = "",
    note: str = "",
    quantities: tuple[Quantity, ...] = (),
    direction: Direction = "worst",
) -> Rung:
    interval, reason = base.exact(
        composition, delta=setting.delta, tolerance=setting.tolerance, direction=direction
    )
    return Rung(
        name=name,
        kind=kind,
        threat_model=threat_model,
        epsilon=interval,
        reason=reason,
        source=source,
        corrects=corrects,
        note=note,
        command=setting.command,
        quantities=quantities,
        composition=composition if direction == "worst" else None,
    )


def as_printed(setting: Setting) -> Rung:
    """Theorem 5 taken at its word for Algorithm 1: noise σ on the mean, shift τ."""
    m = setting.batch_size
    noise = setting.noise_multiplier / m
    composition = setting.step(noise)
    found: base.Value | None = None
    if noise >= _LEAST_EXACT:
        found, _ = base.exact(
            composition, delta=setting.delta, tolerance=setting.tolerance, direction="remove"
        )
    note = (
        f"The printed curve with the noise of Algorithm 1, whose gradient is a mean over m = {m:.6g}: a "
        "shift of tau where one record moves the mean by tau/m. Valid, and far too large. One direction."
    )
    if found is None:
        found = counting_bound(
            noise,
            sampling_probability=setting.sampling_probability,
            num_steps=setting.num_steps,
            delta=setting.delta,
        )
        note += " An upper bound of that curve's epsilon, from the number of steps that sample the record."
    return Rung(
        name="printed, noise on the mean",
        kind="printed",
        threat_model=ADD_REMOVE,
        epsilon=found,
        source=str(printed.THEOREM_5.source),
        note=note,
        command=setting.command,
        quantities=(Quantity("noise_multiplier", noise, "noise std on the mean / norm bound"),),
    )


def shift(setting: Setting) -> Rung:
    """The shift τ/m, one direction as printed."""
    return _rung(
        setting,
        "shift tau/m",
        "repaired",
        ADD_REMOVE,
        setting.step(),
        source="derived",
        corrects="printed, noise on the mean: " + printed.SUM_VERSUS_AVERAGE.defect,
        note="The same as Theorem 5 with sigma read as noise on the sum. Still the printed direction alone: "
        "T(base, mixture), that is delta = sup mixture(A) - e^epsilon base(A).",
        quantities=(Quantity("noise_multiplier", float(setting.noise_multiplier), MULTIPLIER_UNIT),),
        direction="remove",
    )


def both_directions(setting: Setting) -> Rung:
    """The worse of both directions, each composed on its own."""
    composition = setting.step()
    ends = [
        base.exact(composition, delta=setting.delta, tolerance=setting.tolerance, direction=direction)[0]
        for direction in ("remove", "add")
    ]
    names = ("epsilon of the printed direction", "epsilon of the other direction")
    known = tuple(Quantity(n, end, "nats") for n, end in zip(names, ends, strict=True) if end is not None)
    return _rung(
        setting,
        "both directions",
        "exact",
        ADD_REMOVE,
        composition,
        source="derived",
        corrects="shift tau/m: " + printed.BOTH_DIRECTIONS.defect,
        note="Exact for a public constant p. The two directions are composed apart and never symmetrised "
        "per step.",
        quantities=known,
    )


def rates(setting: Setting) -> Rung:
    """The rate m/(n+1) of the mechanism on n+1 records."""
    n = setting.num_records
    first, second = printed.sampling_rates(n, batch_size=setting.batch_size)
    return _rung(
        setting,
        "rate m/(n+1)",
        "exact",
        ADD_REMOVE,
        setting.step(probability=first),
        source="derived",
        corrects="both directions: " + printed.FIXED_RATE.defect,
        note=(
            "Definition 6 lets the simulator know n, so that it may sample at m/(n+1) as well: then this "
            "value is exact. With the simulator at m/n, as printed, the two data sets sample all other "
            "records at different rates, which Theorem 5 does not account for. A public constant p avoids "
            "the question."
        ),
        quantities=(
            Quantity("sampling_probability of the mechanism, m/(n+1)", first, "1"),
            Quantity("sampling_probability of the simulator, m/n", second, "1"),
        ),
    )


def replacement(setting: Setting) -> Rung:
    """Definition 5: one record replaced by another with the same public features."""
    pair = PoissonReplaceGaussian(float(setting.noise_multiplier), float(setting.sampling_probability))
    return _rung(
        setting,
        "replacement",
        "exact",
        REPLACE,
        ((pair, setting.num_steps),),
        source="derived",
        corrects="both directions: " + printed.REPLACEMENT.defect,
        note="The pair with means +tau and -tau dominates all gradients of norm <= tau, for one step and "
        "under composition (Neyman and Pearson; proof at PoissonReplaceGaussian), and two data sets attain "
        "it.",
    )


def naive(setting: Setting) -> Rung:
    """One batch for both gradients: the coins are visible."""
    pair = PoissonVisible(Gaussian(float(setting.noise_multiplier)), float(setting.sampling_probability))
    return _rung(
        setting,
        "naive single batch",
        "exact",
        ADD_REMOVE_VISIBLE,
        ((pair, setting.num_steps),),
        source=str(printed.PROPOSITION_3.source),
        corrects="both directions: " + printed.NAIVE_BATCH.defect,
        note="A record pays for Binomial(T, p) steps without amplification. Of a pure mechanism sampling "
        "takes nothing off epsilon (Proposition 3), only off delta.",
    )


def naive_replacement(setting: Setting) -> Rung:
    """The same under replacement."""
    pair = PoissonVisible(
        Gaussian(float(setting.noise_multiplier), sensitivity=2.0), float(setting.sampling_probability)
    )
    return _rung(
        setting,
        "naive single batch, replacement",
        "exact",
        REPLACE_VISIBLE,
        ((pair, setting.num_steps),),
        source="derived",
        corrects="replacement: " + printed.NAIVE_BATCH.defect,
    )


def schedule(setting: Setting) -> Rung:
    """The printed σ schedule: what it claims."""
    return Rung(
        name="noise schedule",
        kind="printed",
        threat_model=ADD_REMOVE,
        epsilon=float(setting.epsilon),
        source=str(printed.SCHEDULE.source),
        note=f"sigma = c tau m/(epsilon n) sqrt(T log(1/delta) log(T/delta)); the paper leaves c open, here "
        f"c = {setting.constant:g}, and sigma is read as noise on the sum.",
        command=setting.command,
        quantities=(Quantity("noise_multiplier", setting.scheduled, MULTIPLIER_UNIT),),
    )


def schedule_exact(setting: Setting) -> Rung:
    """The exact ε of the scheduled σ."""
    return _rung(
        setting,
        "noise schedule, exact",
        "exact",
        ADD_REMOVE,
        setting.step(setting.scheduled),
        source="derived",
        corrects="noise schedule: what that noise really gives",
        quantities=(Quantity("noise_multiplier", setting.scheduled, MULTIPLIER_UNIT),),
    )


def schedule_calibrated(setting: Setting) -> Rung:
    """The least σ that meets the target, and the constant c that it amounts to."""
    name, corrects = "calibrated noise", "noise schedule: the least noise that meets the target"
    try:
        found = search.least_private(
            setting.step,
            epsilon=setting.epsilon,
            delta=setting.delta,
            start=setting.scheduled,
            increasing=False,
        )
    except ArithmeticError as error:
        return Rung(
            name=name,
            kind="exact",
            threat_model=ADD_REMOVE,
            epsilon=None,
            reason=f"no noise multiplier was certified: {error}",
            source="derived",
            corrects=corrects,
            command=setting.command,
        )
    return Rung(
        name=name,
        kind="exact",
        threat_model=ADD_REMOVE,
        epsilon=found.epsilon,
        source="derived",
        corrects=corrects,
        note="A constant c that suffices at these parameters; it depends on them.",
        command=setting.command,
        quantities=(
            Quantity("noise_multiplier", found.met, MULTIPLIER_UNIT),
            Quantity("constant c", setting.constant * found.met / setting.scheduled, "1"),
        ),
        composition=setting.step(found.met),
    )


def theorem_6(setting: Setting) -> Rung:
    """Theorem 6 as printed: a bound on excess risk, with the units of a loss."""
    mean_noise = setting.noise_multiplier / setting.batch_size
    value = printed.excess_risk(
        setting.num_steps,
        diameter=setting.diameter,
        constant=setting.step_size,
        lipschitz=1.0,
        dimension=setting.dimension,
        noise=mean_noise,
    )
    return Rung(
        name="excess risk",
        kind="printed",
        threat_model=ADD_REMOVE,
        epsilon=None,
        reason="it bounds the excess risk of a convex loss, not privacy",
        source=str(printed.THEOREM_6.source),
        note="The print is garbled; read as (M^2/c + c tau'^2 + c d sigma^2)(2 + log T)/sqrt(T) with tau' = "
        "1 and sigma the noise on the mean gradient.",
        command=setting.command,
        quantities=(Quantity("excess risk", value, "loss"),),
    )


AUDITED: ThreatModel = REPLACE
"""What an audit must have attacked to fill the ladder's open rung."""


def _audited(setting: Setting) -> Rung:
    return base.open_audit(AUDITED, command=setting.command)


BUILDERS: Mapping[str, Callable[[Setting], Rung]] = {
    "printed, noise on the mean": as_printed,
    "shift tau/m": shift,
    "both directions": both_directions,
    "rate m/(n+1)": rates,
    "replacement": replacement,
    "naive single batch": naive,
    "naive single batch, replacement": naive_replacement,
    "noise schedule": schedule,
    "noise schedule, exact": schedule_exact,
    "calibrated noise": schedule_calibrated,
    "excess risk": theorem_6,
    "audited": _audited,
}


def rungs(
    *,
    noise_multiplier: float = 1.0,
    sampling_probability: float = 0.02,
    num_steps: int = 2_000,
    delta: float = 1e-5,
    num_records: int = NUM_RECORDS,
    epsilon: float = 1.0,
    constant: float = 1.0,
    diameter: float = 1.0,
    dimension: int = 60_000,
    step_size: float = 1.0,
    tolerance: float = 1e-4,
) -> list[Rung]:
    """The ladder, from Theorem 5 as printed to the exact values.

    Args:
      noise_multiplier: standard deviation of the noise on the sum of private gradients over their norm
        bound, > 0.
      sampling_probability: p = m/n in (0, 1].
      num_steps: T >= 1.
      delta: in (0, 1).
      num_records: n >= 1.
      epsilon: target of the printed noise schedule, > 0, nats.
      constant: c of the schedule, > 0; the paper leaves it open.
      diameter: M of Theorem 6, > 0.
      dimension: d of Theorem 6, >= 1.
      step_size: c of Theorem 6 (steps c/sqrt(t)), > 0.
      tolerance: width of the certified intervals aimed at, > 0, nats.

    Raises:
      ValueError: a parameter is outside its range.

    Source: arXiv 2506.19836v1; all defaults but num_records are ours, as the paper's were not recovered.
    """
    setting = Setting(
        noise_multiplier,
        sampling_probability,
        num_steps,
        delta,
        num_records,
        epsilon,
        constant,
        diameter,
        dimension,
        step_size,
        tolerance,
    )
    return [build(setting) for build in BUILDERS.values()]
