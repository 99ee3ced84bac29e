"""Ctrl-C and a polite kill end a run after the step at hand, with its state saved."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run was interrupted and can be resumed; the message says how."""


class Watch:
    """While open, the signals only set `asked`; a second one acts as it always did.

    In another thread than the main one signals cannot be watched, and nothing changes.

    Args:
      active: whether to watch at all.
    """

    def __init__(self, *, active: bool = True) -> None:
        self.asked, self._active = False, active
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Watch:
        if self._active and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
