"""The ledger: an append-only list of releases, written to disk before the noise is drawn.

The file is JSON Lines: a header with the threat model, then one entry a line. Every line carries a digest of
itself and of the line before, so that a changed line, a reordered one, or one lost from before the last is
noticed. Whole lines removed from the end are not: what is left is a valid, younger ledger. Keep backups.

*Never under-counting.* `append` returns only after the line, ended by a newline, has been flushed and
fsynced; the caller draws noise after that. So a line without its newline announces a release that did not
start:

- a tail without a newline that is not a whole line is left out when read, and cut off by the next writer;
- a tail that is a whole line but for the newline is counted all the same (over-counting is harmless);
- anything else (a damaged line with its newline, a tail that no line starts with, a file without a header
  of this ledger) is not what a torn write leaves: the file is refused and not touched.

A tail can only be torn by a crash of the machine or a full disk. On a failed write, `append` cuts the file
back to its last whole line and raises, and nothing has been announced.

*One writer.* A file lock keeps other processes out, a mutex serves threads in turn, a forked process is
refused, and so is every append to a file that is not at its path or not as long as this writer left it.
"""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import hashlib
import json
import math
import os
import threading
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
_ENTRY_START = b'{"body":{"count":'
_COUNT_LIMIT = 2**63


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
    `Ledger.load(path)` to read one, whoever writes to it. Threads may share one object.

    Args:
      path: the file; created with its header where it does not exist.
      threat_model: the adjacency and coins that every release has; entries may differ in what is released.

    Raises:
      ValueError: `threat_model` is no `ThreatModel`, or the file is no ledger, holds another threat model or
        is damaged; no byte of it is changed.
      BlockingIOError: another process (or object) has it open for writing.
      OSError: the disk refuses.
    """

    def __init__(self, path: str | os.PathLike[str], *, threat_model: ThreatModel) -> None:
        _require_threat_model(threat_model)
        self.path = Path(path).absolute()  # the same file after a change of folder
        self.threat_model = threat_model
        self._lock, self._process = threading.Lock(), os.getpid()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file: int | None = os.open(self.path, flags, 0o644)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BlockingIOError(
                    error.errno, "ledger is open for writing elsewhere", str(self.path)
                ) from None
            with open(self._file, "rb", closefd=False) as stream:
                data = stream.read()
            header, self._entries, self._size, self._digest = _parse(data, str(self.path))
            body = {"format": _FORMAT, "version": _VERSION, "threat_model": threat_model.as_dict()}
            if header is not None:
                header.require_same(threat_model)
                self.threat_model = header
            elif not _line("", body)[0].startswith(data):
                raise ValueError(
                    f"path must be a ledger, a new or an empty file, got {self.path} with other content"
                )
            if self._size < len(data):
                self._cut()
            if header is None:
                self._write(body)
            elif data[self._size - 1 : self._size] != b"\n":
                self._put(b"\n", self._digest)
            _sync_folder(self.path.parent)
        except BaseException:
            self._release()
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """A ledger to read: `append` refuses.

        Raises:
          ValueError: the file is damaged or has no header.
          FileNotFoundError: there is none.
        """
        ledger = cls.__new__(cls)
        ledger.path, ledger._file, ledger._size = Path(path).absolute(), None, 0
        ledger._lock, ledger._process = threading.Lock(), os.getpid()
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
          count: how often it is going to be run, >= 1 and < 2**63.
          threat_model: the ledger's own by default.
          note: free text.

        Returns:
          The entry, which is on the disk.

        Raises:
          ValueError: bad input, another threat model (of the entry, or by the mechanism's own `adjacency` and
            `coins`), or a ledger that is not open for writing.
          RuntimeError: this process was forked from the one that opened the ledger, or the file was removed,
            replaced, lengthened or shortened since; it is not touched.
          OSError: the disk refuses; the file is as before and nothing is announced.
        """
        model = self.threat_model if threat_model is None else threat_model
        _require_threat_model(model)
        self.threat_model.require_same(model)
        _require_fitting(mechanism, model)
        steps = _count(count)
        record = families.encode(mechanism)
        if os.getpid() != self._process:  # before the mutex: a fork may have copied it locked
            raise RuntimeError(f"ledger must be used by the process that opened it: {self.path}")
        with self._lock:
            if self._file is None:
                raise ValueError(
                    "ledger must be open for writing: use Ledger(path, threat_model=...), not load or close"
                )
            time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            entry = Entry(mechanism, steps, model, str(note), time)
            self._write(
                {
                    "mechanism": record,
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
        for entry in self.entries:
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
        """Gives the lock back, in a forked process only the file; reading goes on working."""
        if os.getpid() != self._process:
            self._release()
            return
        with self._lock:
            self._release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._entries)

    def _write(self, body: dict[str, Any]) -> None:
        self._put(*_line(self._digest, body))

    def _put(self, line: bytes, digest: str) -> None:
        if self._file is None:
            raise ValueError("ledger is closed")
        self._require_untouched(self._file)
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except BaseException:  # an interrupt counts too: what is not known to be whole is taken back
            self._cut()
            raise
        self._size, self._digest = self._size + len(line), digest

    def _require_untouched(self, file: int) -> None:
        held = os.fstat(file)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            there = None
        if there is None or not os.path.samestat(held, there):
            raise RuntimeError(f"ledger must stay at its path: {self.path} was removed or replaced")
        if held.st_size != self._size:
            raise RuntimeError(
                f"ledger must have one writer: {self.path} had {self._size} bytes, has {held.st_size}"
            )

    def _cut(self) -> None:
        """Back to the last whole line. Should this fail too, whoever reads next leaves the tail out."""
        if self._file is not None:
            try:
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
            except OSError:
                # The state on disk is unknown: no more writes, so that no line is glued to a torn one.
                self._release()

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if os.getpid() == self._process:
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked process may hold on to the file
        finally:
            os.close(file)


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _link(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()[:32]


def _line(previous: str, body: dict[str, Any]) -> tuple[bytes, str]:
    """The line of a body, and its digest."""
    digest = _link(previous, _canonical(body))
    return _canonical({"check": digest, "body": body}).encode() + b"\n", digest


def _parse(data: bytes, name: str) -> tuple[ThreatModel | None, list[Entry], int, str]:
    """Header, entries, length of the whole lines, and the last digest; what follows them is torn.

    Without a header, whoever calls must judge what the file holds.
    """
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
            if header is None:
                if body["format"] != _FORMAT or body["version"] != _VERSION:
                    raise ValueError(f"it is no header of format {_FORMAT!r} version {_VERSION}")
                header = _threat(body["threat_model"])
            else:
                entries.append(_entry(body))
                header.require_same(entries[-1].threat_model)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if torn and (header is None or _is_torn(data[whole:], error)):
                break
            raise ValueError(f"ledger must be undamaged: line {number} of {name} is not ({error})") from None
        digest, whole = link, stop
    return header, entries, whole, digest


def _is_torn(tail: bytes, error: Exception) -> bool:
    """Whether a tail may be the start of an entry, perhaps with zeros where the disk did not get to."""
    start = tail.rstrip(b"\0")[: len(_ENTRY_START)]
    return isinstance(error, json.JSONDecodeError) and _ENTRY_START.startswith(start)


def _entry(body: dict[str, Any]) -> Entry:
    return Entry(
        families.decode(body["mechanism"]),
        _count(body["count"]),
        _threat(body["threat_model"]),
        str(body["note"]),
        str(body["time"]),
    )


def _count(value: int) -> int:
    steps = validate.count("count", value, minimum=1)
    if steps >= _COUNT_LIMIT:
        raise ValueError("count must be a whole number >= 1 and < 2**63, got one beyond")
    return steps


def _require_threat_model(value: object) -> None:
    if not isinstance(value, ThreatModel):
        raise ValueError(f"threat_model must be a ThreatModel, got {value!r}")


def _require_fitting(mechanism: Mechanism, model: ThreatModel) -> None:
    """Refuses a mechanism whose own `adjacency` or `coins`, where it has them, are not the model's."""
    adjacency = "add_remove" if model.adjacency == Adjacency.ADD_REMOVE else "replace"
    for name, wanted in (("adjacency", adjacency), ("coins", str(model.coins))):
        own = getattr(mechanism, name, None)
        if own is not None and own != wanted:
            raise ValueError(f"mechanism must have the ledger's {name} {wanted}, got {own} of {mechanism!r}")


def _threat(data: dict[str, str]) -> ThreatModel:
    return ThreatModel(Adjacency(data["adjacency"]), Coins(data["coins"]), data["released"])


def _sync_folder(folder: Path) -> None:
    """Makes the name of a new file durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
