"""The ledger: an append-only list of releases, written to disk before the noise is drawn.

The file is JSON Lines: a header with the threat model, then one entry a line. Every line carries a digest of
itself and of the line before, so that a changed, lost or reordered line is noticed.

*Never under-counting.* `append` returns only after the line, ended by a newline, has been flushed and
fsynced; the caller draws noise after that. So a line without its newline announces a release that did not
start:

- a tail without a newline that is not a whole line is left out when read, and cut off by the next writer;
- a tail that is a whole line but for the newline is counted all the same (over-counting is harmless);
- a damaged line that does end in a newline is not what a torn write leaves: reading refuses the file.

A tail can only be torn by a crash of the machine or a full disk. On a failed write, `append` cuts the file
back to its last whole line and raises, and nothing has been announced.
"""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import hashlib
import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

from exactdp.accounting import composed, families, prv, validate
from exactdp.accounting.fdp.approximation import Approximation
from exactdp.accounting.interval import Interval
from exactdp.accounting.prv import Mechanism
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

_FORMAT, _VERSION = "exactdp ledger", 1


@dataclasses.dataclass(frozen=True)
class Entry:
    """One announced release.

    Attributes:
      mechanism: a pair or a sampled pair.
      count: how often it is run, >= 1.
      threat_model: what the claim is about.
      note: free text.
      time: when it was announced, ISO 8601 in UTC.
    """

    mechanism: Mechanism
    count: int
    threat_model: ThreatModel
    note: str
    time: str


class Ledger:
    """An append-only ledger on disk, open for writing by one process at a time (POSIX file lock).

    Use `Ledger(path, threat_model=...)` to create or continue one, as a context manager or with `close`; use
    `Ledger.load(path)` to read one, whoever writes to it.

    Args:
      path: the file; created with its header where it does not exist.
      threat_model: the adjacency and coins that every release has; entries may differ in what is released.

    Raises:
      ValueError: the file holds another threat model, or is damaged.
      BlockingIOError: another process (or object) has it open for writing.
      OSError: the disk refuses.
    """

    def __init__(self, path: str | os.PathLike[str], *, threat_model: ThreatModel) -> None:
        self.path = Path(path)
        self.threat_model = threat_model
        self._entries: list[Entry] = []
        self._digest = ""
        self._file: int | None = None
        created = not self.path.exists()
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BlockingIOError(
                    error.errno, "ledger is open for writing elsewhere", str(self.path)
                ) from None
            self._size = 0
            data = self.path.read_bytes()
            header, entries, whole, self._digest = _parse(data, str(self.path))
            if header is not None:
                header.require_same(threat_model)
                self.threat_model, self._entries = header, entries
            self._file, self._size = file, whole
            if whole < len(data):
                self._cut()
            if header is None:
                self._write({"format": _FORMAT, "version": _VERSION, "threat_model": threat_model.as_dict()})
            elif data[whole - 1 : whole] != b"\n":
                self._put(b"\n")
            if created:
                _sync_folder(self.path.parent)
        except BaseException:
            self._file = None
            os.close(file)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """A ledger to read: `append` refuses.

        Raises:
          ValueError: the file is damaged or has no header.
          FileNotFoundError: there is none.
        """
        ledger = cls.__new__(cls)
        ledger.path, ledger._file, ledger._size = Path(path), None, 0
        header, ledger._entries, _, ledger._digest = _parse(ledger.path.read_bytes(), str(path))
        if header is None:
            raise ValueError(f"path must be a ledger with a header, got {path}")
        ledger.threat_model = header
        return ledger

    def append(
        self, mechanism: Mechanism, *, count: int, threat_model: ThreatModel | None = None, note: str = ""
    ) -> Entry:
        """Announces releases. Draw no noise before it returns.

        Args:
          mechanism: a pair or a sampled pair.
          count: how often it is going to be run, >= 1.
          threat_model: the ledger's own by default.
          note: free text.

        Returns:
          The entry, which is on the disk.

        Raises:
          ValueError: bad input, another threat model, or a ledger that is not open for writing.
          OSError: the disk refuses; the file is as before and nothing is announced.
        """
        if self._file is None:
            raise ValueError(
                "ledger must be open for writing: use Ledger(path, threat_model=...), not load or close"
            )
        model = self.threat_model if threat_model is None else threat_model
        self.threat_model.require_same(model)
        steps = validate.count("count", count, minimum=1)
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = Entry(mechanism, steps, model, str(note), time)
        self._write(
            {
                "mechanism": families.encode(mechanism),
                "count": steps,
                "threat_model": model.as_dict(),
                "note": entry.note,
                "time": time,
            }
        )
        self._entries.append(entry)
        return entry

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases announced so far, in order."""
        return tuple(self._entries)

    def composition(self) -> list[tuple[Mechanism, int]]:
        """Mechanisms with their total counts, equal ones merged, in order of first use."""
        totals: dict[Mechanism, int] = {}
        for entry in self._entries:
            totals[entry.mechanism] = totals.get(entry.mechanism, 0) + entry.count
        return list(totals.items())

    def epsilon(
        self, *, delta: float, accountant: Literal["prv", "rdp", "gdp"] = "prv"
    ) -> Interval | UpperBound | Approximation:
        """Epsilon of all that was announced, at `delta`.

        Args:
          delta: in (0, 1).
          accountant: `"prv"`: a certified interval; `"rdp"`: an upper bound from the exact Renyi curve;
            `"gdp"`: an approximation by the central limit, no bound.

        Returns:
          A value of the type that says what it is; 0 for an empty ledger.

        Raises:
          ValueError: bad input.
          ArithmeticError: the accountant cannot answer.
        """
        validate.open_probability("delta", delta)
        validate.one_of("accountant", accountant, ("prv", "rdp", "gdp"))
        composition = self.composition()
        if accountant == "prv":
            return (
                prv.epsilon(composition, delta=delta) if composition else Interval(0.0, 0.0, "empty ledger")
            )
        if not composition:
            return (
                UpperBound(0.0, math.nan)
                if accountant == "rdp"
                else Approximation(0.0, "empty ledger", "none needed")
            )
        return (composed.rdp_epsilon if accountant == "rdp" else composed.gdp_epsilon)(
            composition, delta=delta
        )

    def close(self) -> None:
        """Gives the lock back; reading goes on working."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._entries)

    def _write(self, body: dict[str, Any]) -> None:
        text = _canonical(body)
        digest = _link(self._digest, text)
        self._put(_canonical({"check": digest, "body": body}).encode() + b"\n")
        self._digest = digest

    def _put(self, line: bytes) -> None:
        if self._file is None:
            raise ValueError("ledger is closed")
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except BaseException:  # an interrupt counts too: what is not known to be whole is taken back
            self._cut()
            raise
        self._size += len(line)

    def _cut(self) -> None:
        """Back to the last whole line. Should this fail too, whoever reads next leaves the tail out."""
        if self._file is not None:
            try:
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
            except OSError:
                # The state on disk is unknown: no more writes, so that no line is glued to a torn one.
                os.close(self._file)
                self._file = None


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _link(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()[:32]


def _parse(data: bytes, name: str) -> tuple[ThreatModel | None, list[Entry], int, str]:
    """Header, entries, length of the whole lines, and the last digest."""
    header: ThreatModel | None = None
    entries: list[Entry] = []
    digest, whole, number = "", 0, 0
    while whole < len(data):
        end = data.find(b"\n", whole)
        torn, stop = end < 0, len(data) if end < 0 else end + 1
        number += 1
        try:
            line = json.loads(data[whole:stop].decode())
            body = cast("dict[str, Any]", line["body"])
            link = _link(digest, _canonical(body))
            if link != line["check"]:
                raise ValueError("its digest does not fit")
        except (ValueError, KeyError, TypeError) as error:
            if torn:
                break
            raise ValueError(f"ledger must be undamaged: line {number} of {name} is not ({error})") from None
        if header is None:
            if body.get("format") != _FORMAT or body.get("version") != _VERSION:
                raise ValueError(f"ledger must have format {_FORMAT!r} version {_VERSION}, got {name}")
            header = _threat(body["threat_model"])
        else:
            entry = _entry(body, number, name)
            header.require_same(entry.threat_model)
            entries.append(entry)
        digest, whole = link, stop
    return header, entries, whole, digest


def _entry(body: dict[str, Any], number: int, name: str) -> Entry:
    try:
        return Entry(
            families.decode(body["mechanism"]),
            validate.count("count", body["count"], minimum=1),
            _threat(body["threat_model"]),
            str(body["note"]),
            str(body["time"]),
        )
    except KeyError as error:
        raise ValueError(f"ledger entry must have {error}: line {number} of {name}") from None


def _threat(data: dict[str, str]) -> ThreatModel:
    return ThreatModel(Adjacency(data["adjacency"]), Coins(data["coins"]), data["released"])


def _sync_folder(folder: Path) -> None:
    """Makes the name of a new file durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
