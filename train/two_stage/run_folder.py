"""The folder of a synthetic table: what was asked for, the key, and which phases are done."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exactdp.mechanisms import keys
from exactdp.train import folder

ASKED, KEY, STATISTICS, TOKENIZER, FIRST, MODEL, SYNTHETIC, DRAWN, METRICS, RESULT = (
    "two_stage.json",
    "key.json",
    "statistics.json",
    "tokenizer",
    "stage_1",
    "model",
    "synthetic.csv",
    "drawn.json",
    "metrics.json",
    "two_stage_result.json",
)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Files of one run, each written whole or not at all; a phase is done when its file is there.

    Attributes:
      path: the folder.
    """

    path: Path

    def require_fresh(self) -> None:
        """Refuses a folder that holds a run or cannot be written to.

        Raises:
          ValueError: it is refused.
        """
        folder.require_fresh(self.path)
        if (self.path / ASKED).exists():
            raise ValueError(
                f"out must be a folder without a run, or resume must be set, got {self.path} with {ASKED}"
            )

    def create(self, asked: Mapping[str, Any], *, key: jax.Array) -> None:
        """Makes the folder, for its owner alone, with the key and what was asked for.

        Raises:
          ValueError: the folder cannot be made.
          OSError: the disk refuses.
        """
        words = [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]
        folder.make(self.path)
        with folder.owner_only():
            folder.write_json(self.path / KEY, {"key": words})
            folder.write_json(self.path / ASKED, asked)

    def require_same(self, asked: Mapping[str, Any]) -> None:
        """Refuses to go on with another run's folder, or with other settings.

        Raises:
          ValueError: it is refused; the message names the setting.
        """
        found = self.read(ASKED)
        wanted = json.loads(json.dumps(asked))
        for name in sorted({*found, *wanted}):
            if found.get(name) != wanted.get(name):
                shown = "" if name == "digest" else f", {found.get(name)!r}, got {wanted.get(name)!r}"
                what = "the private table" if name == "digest" else name
                raise ValueError(f"{what} must be what the run in {self.path} was started with{shown}")

    def key(self, seed: int | None) -> jax.Array:
        """The run key.

        Raises:
          ValueError: a seed is given that is not the run's.
        """
        words = jnp.asarray(self.read(KEY)["key"], jnp.uint32)
        found = jax.random.wrap_key_data(words, impl=jax.random.key_impl(keys.run_key(0)))
        if seed is not None and not bool(
            jnp.all(jax.random.key_data(keys.run_key(seed)) == jax.random.key_data(found))
        ):
            raise ValueError("seed must be the one that the run was started with, or be left out")
        return found

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return (self.path / name).is_file()

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file.

        Raises:
          ValueError: it is not there, or damaged.
        """
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"out must hold a run when resume is set, got {self.path}: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{name} must be a JSON object, got another in {self.path}")
        return found

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """A JSON file, whole or not at all.

        Raises:
          OSError: the disk refuses.
        """
        folder.write_json(self.path / name, value)

    def remove_unfinished(self, name: str) -> None:
        """Removes what a call of `write` left that was killed."""
        folder.unfinished(self.path / name).unlink(missing_ok=True)
