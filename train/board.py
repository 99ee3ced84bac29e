"""Scalars for TensorBoard, written at once, so that a full disk is heard of where it is met."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]


class Board:
    """One event file.

    The library's own writer hands events to a thread, which ends on a full disk without a word, and whoever
    waits for it then waits for ever.

    Args:
      folder: of the event files; created where it does not exist.
      step: the run goes on from here: TensorBoard hides what earlier files say of later steps.

    Raises:
      OSError: the disk refuses.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        folder.mkdir(exist_ok=True)
        self._events = EventsWriter(str(folder / "events"), f".step{step}")
        if step:
            self._events.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
        self._events.flush()

    def write(self, values: Mapping[str, float], *, step: int) -> None:
        """The scalars of a step; infinities and NaN, which cannot be drawn, are left out.

        Raises:
          OSError: the disk refuses.
        """
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        shown = [Summary.Value(tag=name, simple_value=value) for name, value in finite.items()]
        self._events.write_event(Event(wall_time=time.time(), step=step, summary=Summary(value=shown)))
        self._events.flush()

    def close(self) -> None:
        """Ends the file."""
        self._events.close()
