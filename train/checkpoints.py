"""Checkpoints by Orbax: the whole state, and what the ledger was when it was saved.

A checkpoint appears under its name once it is whole; an older one is deleted only after that. So a crash or a
full disk leaves the last whole checkpoint as it was.

It holds the run key, from which the noise can be computed again: keep it like the data. What is written is
for its owner alone, whatever the folder of the run is.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import jax
import orbax.checkpoint as ocp

from exactdp.train.folder import owner_only
from exactdp.train.state import State

_KEPT = 2
_FULL = os.strerror(errno.ENOSPC)


class NotSaved(OSError):
    """A checkpoint could not be written; the earlier ones are as they were."""


@contextlib.contextmanager
def _untold_tracebacks() -> Generator[None]:
    """Orbax's threads log each exception that they pass on; who gets it tells it once, in plain words."""

    def wanted(entry: logging.LogRecord) -> bool:
        return not (entry.exc_info and "orbax" in entry.pathname)

    logger = logging.getLogger("absl")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


class Checkpoints:
    """The checkpoints of one run.

    Args:
      folder: theirs; created where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=_KEPT, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        with owner_only():
            self._manager = ocp.CheckpointManager(self._folder, options=options)

    def latest(self) -> int | None:
        """Step of the newest whole checkpoint; None where there is none."""
        return self._manager.latest_step()

    def save(self, state: State, *, record: dict[str, Any]) -> None:
        """Saves a state; returns once it is whole on the disk.

        Args:
          state: to save, under its own step.
          record: JSON to save with it.

        Raises:
          NotSaved: the disk refuses; earlier checkpoints are as they were.
        """
        step = int(state.step)
        items = ocp.args.Composite(
            state=ocp.args.StandardSave(_plain(state)),  # pyright: ignore[reportCallIssue]
            record=ocp.args.JsonSave(record),  # pyright: ignore[reportCallIssue]
        )
        try:
            with owner_only(), _untold_tracebacks():
                self._manager.save(step, args=items, force=True)
                self._manager.wait_until_finished()
        except Exception as error:  # what a full disk raises depends on the layer that met it
            for left in self._folder.glob(f"{step}.*tmp*"):
                shutil.rmtree(left, ignore_errors=True)
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if _FULL.lower() in reason.lower():
                reason = _FULL
            raise NotSaved(f"the checkpoint of step {step} could not be written: {reason}") from error

    def restore(self, like: State) -> tuple[State, dict[str, Any]]:
        """The newest state, and the record saved with it.

        Args:
          like: a state of the same run; its shapes, placement and kind of key are taken over.

        Raises:
          ValueError: there is no checkpoint, or it is of another model.
        """
        step = self.latest()
        if step is None:
            raise ValueError(f"checkpoints must hold one at least, got none in {self._folder}")
        wanted = jax.tree.map(ocp.utils.to_shape_dtype_struct, _plain(like))
        items = ocp.args.Composite(
            state=ocp.args.StandardRestore(wanted),  # pyright: ignore[reportCallIssue]
            record=ocp.args.JsonRestore(),  # pyright: ignore[reportCallIssue]
        )
        try:
            found = self._manager.restore(step, args=items)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ValueError(
                f"checkpoint of step {step} must be whole and of this model, got {self._folder / str(step)}: "
                f"{str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
            ) from error
        state = cast(State, found["state"])
        key = jax.random.wrap_key_data(state.key, impl=jax.random.key_impl(like.key))
        return state._replace(key=key), cast("dict[str, Any]", found["record"])

    def close(self) -> None:
        """Gives everything back."""
        self._manager.close()


def _plain(state: State) -> State:
    return state._replace(key=jax.random.key_data(state.key))
