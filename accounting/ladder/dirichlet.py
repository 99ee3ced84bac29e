"""The ladder of Dirichlet softmax training, arXiv 2607.19580v1.

All values are in nats at the given δ. Three threat models appear, and a value of one does not bound another:

* hidden coins, add/remove: what the amplification theorem behind the paper is about. A step shows one draw;
  without the record it is a draw at another input.
* label-public replacement: what the paper is about. The input of one record changes, its label does not.
  The coins are visible, or the draws come with their labels, which in the worst case is the same.
* the trained weights: what is released in the end.

The exact values are those of the vertex pair, which two inputs attain. Where it is proved to dominate every
pair of inputs (always for alpha >= 1/2; see `accounting.worst_pair`) they are the worst case; elsewhere
they are a lower bound of it, and the notes say so.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

from exactdp.accounting.interval import Interval
from exactdp.accounting.ladder import rung as base
from exactdp.accounting.ladder.dirichlet_setting import (
    ADD_REMOVE_HIDDEN,
    CELL,
    REPLACE_GRADIENTS,
    REPLACE_LABELLED,
    REPLACE_STAND_IN,
    REPLACE_VISIBLE,
    REPLACE_WEIGHTS,
    Setting,
)
from exactdp.accounting.ladder.factor_three import factor_three_floor
from exactdp.accounting.ladder.rung import Quantity, Rung
from exactdp.accounting.ladder.subsampled_draw import subsampled_dirichlet
from exactdp.accounting.printed import dirichlet as printed
from exactdp.accounting.rdp import account
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.sampling.hidden import PoissonHidden
from exactdp.accounting.sampling.replace import PoissonReplaceGaussian
from exactdp.accounting.sampling.visible import PoissonVisible
from exactdp.accounting.threat import ThreatModel
from exactdp.accounting.worst_pair.proved import loss_dominance_proved

_MANY = 1_000  # classes: the theorem asks only whether there are more than two


def _vertices(setting: Setting) -> str:
    proof = loss_dominance_proved(scaling=setting.scaling, offset=setting.offset, num_classes=_MANY)
    if proof:
        return f"For the pair of two vertices, which is proved to be the worst pair of inputs ({proof})."
    return (
        "For the pair of two vertices. It is not proved to be the worst one at this scaling and offset: "
        "another pair of inputs may cost more."
    )


def _order(bound: UpperBound) -> tuple[Quantity, ...]:
    return () if math.isnan(bound.order) else (Quantity("order", bound.order, "1"),)


def as_printed(setting: Setting) -> Rung:
    """Theorem 10 with Lemma 13's conversion."""
    bound = setting.rule(conversion="printed")
    least = printed.least_printed_term(setting.delta)
    note = (
        f"The conversion alone is at least {least.value:.4g} at delta = {setting.delta:g}, so that the "
        f"printed bound certifies no epsilon below it. The amplification theorem behind it is about adding "
        f"or removing a record; for replacement see the rungs below."
    )
    if math.isinf(bound.value):
        note = "No whole order lambda >= 2 is below 1 + offset/scaling: the rule says nothing. " + note
    return Rung(
        name="printed",
        kind="printed",
        threat_model=printed.PRINTED.threat_model,
        epsilon=bound.value,
        source=str(printed.PRINTED.source),
        note=note,
        command=setting.command,
        quantities=(*_order(bound), Quantity("least value of the conversion term", least.value, "nats")),
    )


def repaired_conversion(setting: Setting) -> Rung:
    """The rule with the conversion of Balle et al. and Canonne, Kamath, Steinke."""
    bound = setting.rule(conversion="balle")
    floor = factor_three_floor(
        sampling_probability=setting.sampling_probability, num_steps=setting.num_steps, delta=setting.delta
    )
    return Rung(
        name="repaired conversion",
        kind="repaired",
        threat_model=ADD_REMOVE_HIDDEN,
        epsilon=bound.value,
        source=str(printed.REPAIRED_CONVERSION.source),
        corrects="printed: " + printed.REPAIRED_CONVERSION.defect,
        note=(
            "The reading that reproduces the recovered cell of Table 7. Its factor 3 alone costs "
            f"{floor:.4g} however small the scaling."
        ),
        command=setting.command,
        quantities=(*_order(bound), Quantity("limit as scaling -> 0", floor, "nats")),
    )


def mironov_conversion(setting: Setting) -> Rung:
    """The rule with Mironov's conversion, for comparison."""
    bound = setting.rule(conversion="mironov")
    return Rung(
        name="Mironov conversion",
        kind="repaired",
        threat_model=ADD_REMOVE_HIDDEN,
        epsilon=bound.value,
        source=str(printed.MIRONOV_CONVERSION.source),
        corrects="printed: another conversion, valid and looser than the repaired one",
        note="For comparison: it does not reproduce Table 7.",
        command=setting.command,
        quantities=_order(bound),
    )


def exact_draw(setting: Setting) -> Rung:
    """The exact Rényi curve of one draw in place of the trigamma bound."""
    bound = setting.rule(conversion="balle", curve="exact")
    return Rung(
        name="exact Rényi curve of the draw",
        kind="repaired",
        threat_model=ADD_REMOVE_HIDDEN,
        epsilon=bound.value,
        source="derived",
        corrects="repaired conversion: the trigamma bound on one draw is loose",
        note=_vertices(setting),
        command=setting.command,
        quantities=_order(bound),
    )


def without_factor(setting: Setting) -> Rung:
    """The amplification theorem without its factor 3, which the symmetric vertex pair allows."""
    bound = setting.rule(conversion="balle", curve="exact", factor_three=False)
    return Rung(
        name="without the factor 3",
        kind="repaired",
        threat_model=ADD_REMOVE_HIDDEN,
        epsilon=bound.value,
        source="derived",
        corrects=(
            "exact Rényi curve of the draw: the factor 3 is for mechanisms of which only the Rényi curve is "
            "known; the vertex pair is symmetric, and then the sum without it is the value itself"
        ),
        note=_vertices(setting),
        command=setting.command,
        quantities=_order(bound),
    )


def exact_renyi(setting: Setting) -> Rung:
    """Exact Rényi divergence of the subsampled draw, real orders, best conversion."""
    step = functools.partial(
        subsampled_dirichlet,
        scaling=setting.scaling,
        offset=setting.offset,
        sampling_probability=setting.sampling_probability,
    )
    bound = account.epsilon([(step, setting.num_steps)], delta=setting.delta, conversion="optimal")
    return Rung(
        name="exact Rényi divergence of the step",
        kind="repaired",
        threat_model=ADD_REMOVE_HIDDEN,
        epsilon=bound.value,
        source="derived",
        corrects="without the factor 3: whole orders only, and a conversion that drops a term",
        note="What Rényi accounting can give at best: orders end at 1 + offset/scaling. "
        + _vertices(setting),
        command=setting.command,
        quantities=_order(bound),
    )


def _exact(
    setting: Setting,
    name: str,
    threat_model: ThreatModel,
    composition: base.Composition,
    corrects: str,
    note: str,
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
        composition=composition,
    )


def hidden(setting: Setting) -> Rung:
    """Exact ε with hidden coins, add/remove."""
    composition = ((PoissonHidden(setting.pair, setting.sampling_probability), setting.num_steps),)
    return _exact(
        setting,
        "exact, hidden coins",
        ADD_REMOVE_HIDDEN,
        composition,
        "exact Rényi divergence of the step: a Rényi bound is loose",
        "Assumes that a step without the record looks like one with it. If draws can be counted, adding a "
        "record shows in their number, and no epsilon is finite at delta < 1 - (1-q)^T. "
        + _vertices(setting),
    )


def _seen(setting: Setting) -> base.Composition:
    return ((PoissonVisible(setting.pair, setting.sampling_probability), setting.num_steps),)


def visible(setting: Setting) -> Rung:
    """Exact ε with visible coins."""
    return _exact(
        setting,
        "exact, visible coins",
        REPLACE_VISIBLE,
        _seen(setting),
        "exact, hidden coins: whoever can tell which record was sampled gets its draws without amplification",
        "A record pays for Binomial(T, q) draws: delta of one step is q times the draw's. "
        + _vertices(setting),
    )


def label_public(setting: Setting) -> Rung:
    """Exact ε for replacing an input, the draws being released with their labels."""
    return _exact(
        setting,
        "label-public replacement",
        REPLACE_LABELLED,
        _seen(setting),
        "printed: the amplification theorem covers add/remove, the paper replaces an input and keeps its "
        "label",
        "The value with visible coins. No more is needed: with all other coins known, the number of draws "
        "gives the record's coin. No less suffices: a record that is alone with its label shows its coin by "
        "itself. " + _vertices(setting),
    )


def label_public_stand_in(setting: Setting) -> Rung:
    """A proved bracket for replacement where the coins really stay hidden."""
    low, high = hidden(setting), visible(setting)
    ends = (low.epsilon, high.epsilon)
    known = [end for end in ends if isinstance(end, Interval)]
    bracket = Interval(known[0].lower, known[1].upper, "bracket") if len(known) == 2 else None
    return Rung(
        name="label-public replacement, coins really hidden",
        kind="exact",
        threat_model=REPLACE_STAND_IN,
        epsilon=bracket,
        reason="" if bracket else " ".join({low.reason, high.reason} - {""}),
        source="derived",
        corrects="label-public replacement: if a step without the record shows a draw that cannot be told "
        "from its own",
        note=(
            "A bracket, not a tight value. Let N be the law of a step without the record: (1-q)N + qP "
            "against (1-q)N + qQ. Upper end: N can be drawn by whoever sees the coins (joint convexity). "
            "Lower end: N = Q is the pair with hidden coins. " + _vertices(setting)
        ),
        command=setting.command,
    )


def released_weights(setting: Setting) -> Rung:
    """No certificate for the trained weights."""
    return Rung(
        name="released weights",
        kind="exact",
        threat_model=REPLACE_WEIGHTS,
        epsilon=None,
        reason=(
            "the update is no function of the draws: the gradient of -log rho_y contains the Jacobian of "
            "the network at the raw input, so that no epsilon of the draws carries over"
        ),
        source="derived",
        corrects="printed: its epsilon is about draws, the release is about weights",
        note=(
            "In a first dense layer with bias, the weight gradient of one record over its bias gradient is "
            "the input itself; a batch of one record shows it, and of a data set of one record so do the "
            "final weights. As scaling -> 0 with the learning rate scaled up, the printed epsilon -> 0 and "
            "accuracy stays."
        ),
        command=setting.command,
    )


def feature_dp(setting: Setting) -> Rung:
    """What does hold for public labels: feature DP by clipped, noised gradients."""
    pair = PoissonReplaceGaussian(float(setting.noise_multiplier), float(setting.sampling_probability))
    rung = _exact(
        setting,
        "feature DP, label public (reference)",
        REPLACE_GRADIENTS,
        ((pair, setting.num_steps),),
        "released weights: another mechanism, for which a certificate exists",
        "Clipped gradients with Gaussian noise at the same q and T, the record's input replaced. It covers "
        "the trained weights, which are computed from the noisy sums. The noise multiplier is our choice.",
    )
    multiplier = Quantity("noise_multiplier", float(setting.noise_multiplier), "noise std / clip norm")
    return dataclasses.replace(rung, quantities=(multiplier,))


AUDITED: ThreatModel = REPLACE_WEIGHTS
"""What an audit must have attacked to fill the ladder's open rung."""


def _audited(setting: Setting) -> Rung:
    return base.open_audit(AUDITED, command=setting.command)


BUILDERS: Mapping[str, Callable[[Setting], Rung]] = {
    "printed": as_printed,
    "repaired conversion": repaired_conversion,
    "Mironov conversion": mironov_conversion,
    "exact Rényi curve of the draw": exact_draw,
    "without the factor 3": without_factor,
    "exact Rényi divergence of the step": exact_renyi,
    "exact, hidden coins": hidden,
    "exact, visible coins": visible,
    "label-public replacement": label_public,
    "label-public replacement, coins really hidden": label_public_stand_in,
    "released weights": released_weights,
    "feature DP, label public (reference)": feature_dp,
    "audited": _audited,
}


def rungs(
    *,
    scaling: float = CELL.scaling,
    offset: float = CELL.offset,
    sampling_probability: float = CELL.sampling_probability,
    num_steps: int = CELL.num_steps,
    delta: float = CELL.delta,
    noise_multiplier: float = 5.0,
    tolerance: float = 1e-4,
) -> list[Rung]:
    """The ladder, from the bound as printed to the exact values.

    Args:
      scaling: r > 0.
      offset: alpha > 0.
      sampling_probability: q in [0, 1].
      num_steps: T, whole, >= 0.
      delta: in (0, 1).
      noise_multiplier: > 0, of the reference mechanism alone (feature DP); our choice.
      tolerance: width of the certified intervals aimed at, > 0, nats.

    Raises:
      ValueError: a parameter is outside its range.

    Source: arXiv 2607.19580v1; defaults: its CIFAR-10 cell of Table 7 at epsilon = 1.
    """
    setting = Setting(scaling, offset, sampling_probability, num_steps, delta, noise_multiplier, tolerance)
    return [build(setting) for build in BUILDERS.values()]
