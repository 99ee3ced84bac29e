"""The write-ahead ledger of a run: steps are announced in blocks, each before its first step.

A run of T steps is cut into blocks of a fixed length, whatever happens to it. Before the first step of a
block the whole block is announced, durably; at its end the state is saved; only then is the next one
announced. So

- a crash finds every step that was begun in the ledger: what was spent is never under-counted;
- a resumed run repeats steps that are announced already. They draw the same batches and the same noise from
  the same data, hence release the same values: nothing new, and nothing is announced for them;
- the ledger of a finished run is the same whether it was interrupted or not.

What the certificate says is released before the first step comes first; whoever releases it announces it by
`announce`, before.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from exactdp.accounting import validate
from exactdp.accounting.ledger import Ledger
from exactdp.train.certificate import Certificate, Release


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The blocks of a run.

    Attributes:
      num_steps: of the run, >= 1.
      length: of a block, >= 1; the last may be shorter.
    """

    num_steps: int
    length: int

    def __post_init__(self) -> None:
        validate.count("num_steps", self.num_steps, minimum=1)
        validate.count("checkpoint_every", self.length, minimum=1)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return -(-self.num_steps // self.length)

    def ends(self, block: int) -> tuple[int, int]:
        """First step of a block, and the one after its last."""
        return block * self.length, min((block + 1) * self.length, self.num_steps)


def seal(ledger: Path) -> dict[str, Any]:
    """What a checkpoint remembers of the ledger file: its length in bytes, and their digest."""
    data = ledger.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def announce(ledger: Ledger, certificate: Certificate) -> None:
    """Announces what is released before the first step, or what is missing of it: draw nothing before.

    Args:
      ledger: open for writing; empty, or of the same run.
      certificate: of the run.

    Raises:
      ValueError: the ledger holds something else.
      OSError: the disk refuses.
    """
    for place, (mechanism, count, note) in enumerate(certificate.before):
        if place < len(ledger):
            _require_entry(ledger, place, (mechanism, count, note))
        else:
            ledger.append(mechanism, count=count, note=note)


def _require_entry(ledger: Ledger, place: int, wanted: Release | None) -> None:
    """Refuses a ledger whose entry at a place is not the one wanted; None where there should be none."""
    there = ledger.entries[place]
    if (there.mechanism, there.count, there.note) != wanted:
        raise ValueError(
            f"ledger must be the one of this run, got {ledger.path} whose entry {place + 1} is "
            f"{there.count} x {there.mechanism!r} ({there.note!r})"
        )


class Reservation:
    """Announces the blocks of one run.

    Args:
      ledger: open for writing.
      certificate: what each step releases.
      blocks: of the run.
      title: of the run, written into each entry.

    Raises:
      ValueError: the ledger holds entries that are not this run's.
    """

    def __init__(self, ledger: Ledger, *, certificate: Certificate, blocks: Blocks, title: str) -> None:
        self._ledger, self._certificate, self._blocks, self._title = ledger, certificate, blocks, title
        last = self._before + blocks.count * self._each
        for place in range(len(ledger)):
            _require_entry(ledger, place, self._wanted(place) if place < last else None)

    @property
    def announced(self) -> int:
        """Steps announced so far; a block counts once all its mechanisms are in."""
        whole = max(len(self._ledger) - self._before, 0) // self._each
        return self._blocks.ends(whole - 1)[1] if whole else 0

    def require_match(self, step: int, sealed: dict[str, Any]) -> None:
        """Refuses a ledger that is not the one beside which a checkpoint was saved, or a younger state of it.

        Args:
          step: of the checkpoint.
          sealed: what `seal` gave when it was saved.

        Raises:
          ValueError: the ledger does not match the checkpoint.
        """
        path, data = self._ledger.path, self._ledger.path.read_bytes()
        where = f"ledger must match the checkpoint of step {step}"
        if len(data) < sealed["bytes"]:
            raise ValueError(f"{where}, got {path}, which is shorter than it was when that was saved")
        if hashlib.sha256(data[: sealed["bytes"]]).hexdigest() != sealed["sha256"]:
            raise ValueError(f"{where}, got {path}, which differs from what it was when that was saved")
        if self.announced < step:
            raise ValueError(f"{where}, got {path}, which announces {self.announced} steps only")

    def cover(self, step: int) -> None:
        """Returns once the step, counted from 0, is in the ledger on the disk: draw no noise before.

        Raises:
          OSError: the disk refuses; nothing is announced.
          RuntimeError: someone else touched the ledger.
        """
        while len(self._ledger) < self._before + (step // self._blocks.length + 1) * self._each:
            mechanism, count, note = self._wanted(len(self._ledger))
            self._ledger.append(mechanism, count=count, note=note)

    @property
    def _each(self) -> int:
        return len(self._certificate.mechanisms)

    @property
    def _before(self) -> int:
        return len(self._certificate.before)

    def _wanted(self, place: int) -> Release:
        """The entry at a place of the ledger: block by block, mechanism by mechanism."""
        if place < self._before:
            return self._certificate.before[place]
        block, which = divmod(place - self._before, self._each)
        first, end = self._blocks.ends(block)
        note = f"{self._title}: steps {first} to {end - 1}"
        return self._certificate.mechanisms[which], end - first, note
