"""Where a printed bound comes from, what it claims, and what a repair corrects."""

from __future__ import annotations

import dataclasses
import re

from exactdp.accounting.threat import ThreatModel

CERTAINTY = ("printed", "code", "derived")


@dataclasses.dataclass(frozen=True)
class Source:
    """A place in a paper, or our own derivation about it.

    Attributes:
      arxiv: identifier, for example "2607.19580".
      version: arXiv version read, >= 1.
      locator: theorem, equation, table or file.
      certainty: "printed" (in the paper), "code" (in the authors' released code or logs) or "derived" (ours).

    Raises:
      ValueError: a field is malformed.
    """

    arxiv: str
    version: int
    locator: str
    certainty: str = "printed"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{4}\.\d{4,5}", self.arxiv):
            raise ValueError(f"arxiv must look like 2607.19580, got {self.arxiv!r}")
        if self.version < 1:
            raise ValueError(f"version must be >= 1, got {self.version}")
        if not self.locator.strip():
            raise ValueError("locator must say where in the paper, got an empty string")
        if self.certainty not in CERTAINTY:
            raise ValueError(f"certainty must be one of {', '.join(CERTAINTY)}, got {self.certainty!r}")

    def __str__(self) -> str:
        return f"arXiv {self.arxiv}v{self.version}, {self.locator} ({self.certainty})"


@dataclasses.dataclass(frozen=True)
class PrintedBound:
    """A bound exactly as its paper states it.

    Attributes:
      name: short name of the rung.
      source: where it stands.
      formula: the formula as printed, in plain text.
      threat_model: the neighbours, coins and release that the statement is about.
      note: what to know before quoting it.
    """

    name: str
    source: Source
    formula: str
    threat_model: ThreatModel
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Repair:
    """A bound with one more defect of a printed one corrected.

    Attributes:
      name: short name of the rung.
      corrects: the name of the printed bound, or of the repair before it.
      defect: what was wrong, in a sentence.
      formula: what replaces it.
      threat_model: the neighbours, coins and release that the repaired statement is about.
      source: where the replacement comes from.
    """

    name: str
    corrects: str
    defect: str
    formula: str
    threat_model: ThreatModel
    source: Source
