"""The ladders of the three papers, by name: their parameters, their rungs, and the rungs as a table."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from exactdp.accounting import validate
from exactdp.accounting.interval import Interval

if TYPE_CHECKING:
    from exactdp.accounting.ladder.rung import Rung
    from exactdp.accounting.threat import ThreatModel

PAPERS = ("dirichlet", "feature", "two_stage")
ARXIV: Mapping[str, str] = {
    "dirichlet": "arXiv 2607.19580v1",
    "feature": "arXiv 2506.19836v1",
    "two_stage": "arXiv 2412.02467v2",
}
TITLES: Mapping[str, str] = {
    "dirichlet": "Dirichlet softmax training",
    "feature": "Feature differential privacy",
    "two_stage": "DP-2Stage",
}
# Those parameters of a ladder that decide what the audited release is. That of two_stage is also decided by
# its data set, which gives the sampling probability.
_DECISIVE: Mapping[str, tuple[str, ...]] = {
    "dirichlet": ("scaling", "offset", "sampling_probability", "num_steps"),
    "feature": ("noise_multiplier", "sampling_probability", "num_steps"),
    "two_stage": ("dataset", "noise_multiplier", "num_steps"),
}


def _signature(paper: str) -> inspect.Signature:
    module = importlib.import_module(f"exactdp.accounting.ladder.{paper}")
    return inspect.signature(module.rungs)


def defaults(paper: str) -> dict[str, Any]:
    """The parameters of a paper's ladder with the paper's own values."""
    return {name: parameter.default for name, parameter in _signature(paper).parameters.items()}


def parameters() -> dict[str, list[str]]:
    """The parameters of each paper's ladder."""
    return {paper: list(defaults(paper)) for paper in PAPERS}


def audited(paper: str) -> ThreatModel:
    """What an audit must have attacked to fill the open rung of a paper's ladder."""
    module = importlib.import_module(f"exactdp.accounting.ladder.{paper}")
    return module.AUDITED


def decisive(paper: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those parameters of a ladder in which an audit must agree with it, but for delta.

    Args:
      paper: a name in `PAPERS`.
      parameters: of the ladder, all of them.
    """
    return {name: parameters[name] for name in _DECISIVE[paper] if name in parameters}


def reader(name: str) -> Callable[[str], Any]:
    """How a parameter is read from the command line: as its default's type, a number where that is None."""
    values = [defaults(paper)[name] for paper in PAPERS if name in defaults(paper)]
    return str if any(isinstance(value, str) for value in values) else number


def number(text: str) -> float | int:
    """An integer where `text` is one, so that large counts stay exact; else a float."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def rungs(paper: str, **parameters: Any) -> list[Rung]:
    """The rungs of a paper's ladder, printed ones first.

    Raises:
      ValueError: an unknown paper, a parameter that its ladder does not have, or one out of range.
    """
    validate.one_of("paper", paper, PAPERS)
    known = defaults(paper)
    for name, value in parameters.items():
        if name not in known:
            raise ValueError(
                f"{name} must be left out for {paper}, whose parameters are {', '.join(known)}, got {value}"
            )
    module = importlib.import_module(f"exactdp.accounting.ladder.{paper}")
    return list(module.rungs(**parameters))


def ends(epsilon: float | Interval | None) -> tuple[float | None, float | None]:
    """Lower and upper end of a rung's epsilon; the two are equal where it is one number."""
    if isinstance(epsilon, Interval):
        return epsilon.lower, epsilon.upper
    return epsilon, epsilon


def cell(lower: float | None, upper: float | None) -> str:
    """A rung's epsilon as people read it: the digits that both ends share, or the upper end."""
    if lower is None or upper is None:
        return "-"
    low, high = f"{lower:.6g}", f"{upper:.6g}"
    return high if low == high else f"[{low}, {high}]"


def quantities(rung: Rung) -> str:
    """The numbers beside a rung's epsilon, with their units."""
    shown: list[str] = []
    for quantity in rung.quantities:
        unit = "" if quantity.unit == "1" else f" {quantity.unit}"
        shown.append(f"{quantity.name} = {cell(*ends(quantity.value))}{unit}")
    return ", ".join(shown)


def text(ladder: Sequence[Rung], *, marked: str | None = None) -> str:
    """The rungs as a table, then a paragraph for each on what it says.

    Args:
      ladder: the rungs.
      marked: the name of the one to mark with a star.
    """
    from exactdp.benchmarks.cli import output

    rows: list[list[object]] = [["rung", "kind", "epsilon", "neighbours", "coins"]]
    for rung in ladder:
        model = rung.threat_model
        name = f"{rung.name} *" if rung.name == marked else rung.name
        rows.append([name, rung.kind, cell(*ends(rung.epsilon)), str(model.adjacency), str(model.coins)])
    lines: list[str] = []
    for rung in ladder:
        lines += ["", f"{rung.name}: {rung.source}"]
        parts = {
            "released": rung.threat_model.released,
            "corrects": rung.corrects,
            "beside it": quantities(rung),
            "note": rung.note,
            "no value": rung.reason,
        }
        lines += [
            textwrap.fill(f"{name}: {part}", 110, initial_indent="  ", subsequent_indent="    ")
            for name, part in parts.items()
            if part
        ]
    return "\n".join([output.table(rows), *lines])
