"""Peers' steps in processes that wait for their turn, so that they interleave with ours."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exactdp.benchmarks.speed.measure import environment

WORKER = Path(__file__).with_name("turn_worker.py")


class Peer:
    """One library on one case: a process with its steps, built and warmed.

    Args:
      python: interpreter that has the library; None where there is none.
      library: opacus or jax-privacy for a training step, torch for the Dirichlet sampler, transformers for
        generation.
      case: the model, the size and concentration, or JSON with the model and what is generated.
      records: batch size; None for the usual one.
      worker: the script that the process runs.

    Attributes:
      status: ok, not installed or error.
      note: what went wrong; empty where nothing did.
      megabytes: for each step by name what it asks for, and parameters and batch.
      versions: of the libraries that take part.
    """

    def __init__(
        self,
        python: str | None,
        library: str,
        case: str,
        *,
        records: int | None = None,
        worker: Path = WORKER,
    ) -> None:
        self.library = library
        self.megabytes: dict[str, tuple[float, float]] = {}
        self.versions: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None
        if python is None:
            self.status, self.note = "not installed", "no interpreter with the peers: see --peers_python"
            return
        self._process = subprocess.Popen(
            [python, "-P", str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment(os.environ),
        )  # fmt: skip
        try:
            answer: dict[str, Any] = self._ask(
                json.dumps({"library": library, "case": case, "records": records})
            )
        except RuntimeError as problem:
            answer = {"status": "error", "note": str(problem)}
        self.status, self.note = str(answer["status"]), str(answer.get("note", ""))
        self.megabytes = {name: (a / 1e6, b / 1e6) for name, (a, b) in answer.get("steps", {}).items()}
        self.versions = dict(answer.get("versions", {}))
        if self.status != "ok":
            self.close()

    def _ask(self, line: str) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError(f"{self.library} has no process")
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError as problem:
            raise RuntimeError(f"{self.library} ended: {problem}") from problem
        if not answer:
            raise RuntimeError(f"{self.library} ended with exit status {process.wait()}")
        return dict(json.loads(answer))

    def milliseconds(self, step: str) -> float:
        """Processor time of one step.

        Raises:
          RuntimeError: the process has ended.
        """
        return float(self._ask(step)["milliseconds"])

    def turns(self) -> dict[str, Callable[[], float]]:
        """For each step a function that takes its turn and returns the milliseconds."""
        return {name: lambda name=name: self.milliseconds(name) for name in self.megabytes}

    def close(self) -> None:
        """Ends the process; nothing where there is none."""
        if self._process is not None:
            self._process.communicate()
            self._process = None
