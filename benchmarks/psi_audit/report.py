"""An audit as JSON, as lines for people, and as a CSV file from which its figure is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exactdp.accounting.interval import Interval
from exactdp.benchmarks.curves import store
from exactdp.benchmarks.psi_audit.audit import Audit
from exactdp.benchmarks.psi_audit.inference import Attacked
from exactdp.train.attacks import Reidentification

COLUMNS = ("part", "series", "distance", "noise", "x", "lower", "value", "upper", "chance")
"""`part` is reidentification (x: how many guesses), ball or advantage (x: the radius), or inference (of an
attribute from a trained model; chance: the accuracy without the model, the others: what the model adds)."""

_TOP = (1, 5)


def as_dict(audit: Audit, *, confidence: float) -> dict[str, Any]:
    """The numbers, at the radius asked for."""
    at = audit.place
    seen, blind = audit.curves.with_view[at], audit.curves.without_view[at]
    best = max(audit.matches, key=lambda match: (match.noise > 0.0, match.rate(1)))
    return {
        "reidentification": {
            "candidates": best.candidates,
            "chance": {str(top): best.chance(top) for top in _TOP},
            "best": _match(best, confidence),
            "attacks": [_match(match, confidence) for match in audit.matches],
        },
        "ball": {
            "lower": audit.ball[at].lower,
            "upper": audit.ball[at].upper,
            "upper_certified": seen.certified,
            "estimate": seen.estimate,
            "radius": audit.radii[at],
            "typical_distance": audit.typical,
            "confidence": confidence,
            "method": audit.curves.method,
            "statement": seen.statement,
            "guess_lower": audit.curves.guessed[at].lower if audit.curves.guessed else None,
            "guess_median_error": audit.curves.error,
            "refuted_by_guess": audit.curves.refuted(at),
            "without_view": {"lower": blind.lower, "upper": blind.upper},
        },
        "attribute_advantage": (
            {"lower": audit.advantage[at].lower, "upper": audit.advantage[at].upper}
            if audit.advantage
            else None
        ),
        "verdict": audit.verdict.text,
        "reasons": list(audit.verdict.reasons),
    }


def _match(match: Reidentification, confidence: float) -> dict[str, Any]:
    rates = {
        f"top{top}": {
            "rate": match.rate(top),
            "lower": match.interval(top, confidence=confidence).lower,
            "upper": match.interval(top, confidence=confidence).upper,
        }
        for top in _TOP
    }
    return {"matcher": match.matcher, "distance": match.distance, "noise": match.noise, **rates}


def rows(audit: Audit, *, confidence: float) -> list[list[object]]:
    """All numbers, in the order of `COLUMNS`."""
    table: list[list[object]] = []
    for match in audit.matches:
        for top in _TOP:
            found = match.interval(top, confidence=confidence)
            table.append(
                [
                    "reidentification",
                    match.matcher,
                    match.distance,
                    match.noise,
                    top,
                    found.lower,
                    match.rate(top),
                    found.upper,
                    match.chance(top),
                ]
            )
    for place, radius in enumerate(audit.radii):
        seen, blind = audit.curves.with_view[place], audit.curves.without_view[place]
        table.append(_ball(audit.curves.method, radius, seen.interval, seen.estimate))
        table.append(_ball("no view", radius, blind.interval, blind.estimate))
        if audit.curves.guessed:
            table.append(_ball("guess", radius, audit.curves.guessed[place], None))
        if audit.advantage:
            bound = audit.advantage[place]
            table.append(["advantage", "Theorem 4", None, None, radius, bound.lower, None, bound.upper, None])
    return table


def _ball(series: str, radius: float, found: Interval, value: float | None) -> list[object]:
    return ["ball", series, None, None, radius, found.lower, value, found.upper, None]


def write(
    directory: Path,
    audit: Audit,
    attacked: Sequence[Attacked],
    *,
    asked: Mapping[str, object],
    confidence: float,
) -> list[Path]:
    """Writes psi_audit.csv, then psi_audit.pdf and psi_audit.png from it."""
    from exactdp.benchmarks.psi_audit import figure

    path = directory / "psi_audit.csv"
    header = {**store.versions(), **asked, "radius": audit.radii[audit.place], "verdict": audit.verdict.text}
    guessed = [row for found in attacked for row in found.rows(confidence=confidence)]
    store.write_csv(path, header, COLUMNS, [*rows(audit, confidence=confidence), *guessed])
    return [path, *figure.draw(path)]


def lines(answer: Mapping[str, Any]) -> str:
    """The answer for people."""
    match, ball, bound = answer["reidentification"], answer["ball"], answer["attribute_advantage"]
    best = match["best"]
    text = [
        f"{answer['dataset']}, public: {answer['public']}",
        "",
        f"verdict: {answer['verdict']}",
        *(f"  - {reason}" for reason in answer["reasons"]),
        "",
        f"re-identification among {match['candidates']} records, altered copies, best attack "
        f"({best['matcher']}, {best['distance']}):",
        *(
            f"  top {top}: {best[f'top{top}']['rate']:.3g}  [{best[f'top{top}']['lower']:.3g}, "
            f"{best[f'top{top}']['upper']:.3g}]  chance {match['chance'][str(top)]:.3g}"
            for top in _TOP
        ),
        f"Ball at radius {ball['radius']:.4g} (two records are {ball['typical_distance']:.4g} apart at "
        f"the median): [{ball['lower']:.4g}, {ball['upper']:.4g}], without the view "
        f"[{ball['without_view']['lower']:.4g}, {ball['without_view']['upper']:.4g}]",
        f"  {ball['method']}: {ball['statement']}",
    ]
    if ball["guess_lower"] is not None:
        text.append(
            f"  linear guess: {ball['guess_lower']:.4g} of the records at least, certified; median error "
            f"{ball['guess_median_error']:.4g}"
        )
    if bound is not None:
        text.append(
            f"Theorem 4, success of attribute inference on the claimed release: at most {bound['upper']:.4g} "
            f"({bound['lower']:.4g} if Ball is its lower end)"
        )
    for found in answer["attribute_inference"]:
        text.append(f"{found['attribute']} guessed from the trained model:")
        text += [
            f"  {who}: {found[who]['accuracy']:.4g}, without the model {found[who]['baseline']:.4g}, "
            f"difference in [{found[who]['advantage']['lower']:.3g}, {found[who]['advantage']['upper']:.3g}]"
            for who in ("members", "others")
        ]
    return "\n".join(text)
