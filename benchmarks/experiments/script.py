"""Flags and main of the scripts that train: one CSV file, one figure drawn from it alone."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from absl import app, flags, logging

from exactdp.benchmarks.curves import store
from exactdp.benchmarks.experiments import experiment, sweep
from exactdp.benchmarks.experiments.experiment import Experiment
from exactdp.train.data import Dataset

Compute = Callable[[Path, Experiment, Mapping[str, Dataset]], list[store.Row]]
Draw = Callable[[Path], list[Path]]


@dataclasses.dataclass(frozen=True)
class Script:
    """One figure of the paper's results.

    Attributes:
      name: of the files, before the name of the data set.
      compute: (path of the CSV file, experiment, data) -> all rows; what the file has already it keeps.
      draw: (path of the CSV file) -> paths of the figure, drawn from that file alone.
      presets: data set -> sizes and model that suit it; the first one is the default.
      table: the rows as text.
    """

    name: str
    compute: Compute
    draw: Draw
    presets: Mapping[str, Experiment]
    table: Callable[[Sequence[store.Row]], str] = sweep.table

    def path(self, out: Path, dataset: str) -> Path:
        """Of the CSV file."""
        return out / f"{self.name}_{dataset}.csv"

    def make(self, out: str | Path, chosen: Experiment) -> tuple[list[store.Row], list[Path]]:
        """Computes what is missing and draws; returns all rows and the paths written.

        Raises:
          ValueError: bad input; data that is not there; a file made with other settings.
        """
        data = chosen.load()
        path = self.path(store.prepare_directory("out", out), chosen.dataset)
        rows = self.compute(path, chosen, data)
        return rows, [path, *self.draw(path)]

    def redraw(self, out: str | Path, dataset: str) -> list[Path]:
        """Draws the figure again; returns its paths.

        Raises:
          ValueError: there is no such file.
        """
        path = self.path(Path(out), dataset)
        if not path.is_file():
            raise ValueError(f"out must hold {path.name} to draw it again, got {out}")
        return self.draw(path)

    def run(self) -> None:
        """Entry point. The flags are defined here, so that importing a script defines none."""
        logging.set_verbosity(logging.WARNING)  # libraries' progress hides the script's own
        flags.DEFINE_enum(
            "dataset", next(iter(self.presets)), list(self.presets), "Data set, with its preset sizes."
        )
        flags.DEFINE_string("model", None, "Model, instead of the preset's.")
        flags.DEFINE_integer("train_records", None, "Training records, 0 for all.", lower_bound=0)
        flags.DEFINE_integer("test_records", None, "Test records, 0 for all.", lower_bound=0)
        flags.DEFINE_integer("num_steps", None, "Steps of a run.", lower_bound=1)
        flags.DEFINE_integer("num_seeds", None, "Runs of each point.", lower_bound=1)
        flags.DEFINE_float("sampling_probability", None, "q of all methods (each method's default).")
        flags.DEFINE_float("delta", None, "At which epsilon is stated.")
        flags.DEFINE_string("out", self.name, f"Directory for {self.name}_DATASET.csv, .pdf and .png.")
        flags.DEFINE_boolean("json", False, "Print one JSON object instead of the table.")
        flags.DEFINE_boolean("redraw", False, "Only draw the figure again from the CSV file in --out.")
        app.run(self._main)

    def _main(self, argv: Sequence[str]) -> None:
        if len(argv) > 1:
            raise app.UsageError(f"no positional arguments are taken, got {argv[1:]}")
        given = flags.FLAGS
        names = [
            field.name for field in dataclasses.fields(Experiment) if field.name not in ("dataset", "paper")
        ]
        try:
            if given.redraw:
                rows, written = [], self.redraw(given.out, given.dataset)
            else:
                chosen = experiment.of(
                    self.presets, given.dataset, **{name: given[name].value for name in names}
                )
                rows, written = self.make(given.out, chosen)
        except ValueError as error:
            raise app.UsageError(str(error)) from error
        if given.json:
            print(json.dumps({"rows": rows, "written": [str(path) for path in written]}))
            return
        if rows:
            print(self.table(rows))
        for path in written:
            print(path)


def define_output(name: str, *, instead_of: str) -> None:
    """The flags of a script that needs no data set: --out, --json and --redraw.

    Args:
      name: of its files.
      instead_of: what is printed without --json.
    """
    flags.DEFINE_string("out", name, f"Directory for {name}.csv, .pdf and .png.")
    flags.DEFINE_boolean("json", False, f"Print one JSON object instead of the {instead_of}.")
    flags.DEFINE_boolean("redraw", False, "Only draw the figure again from the CSV file in --out.")


def own_table(argv: Sequence[str], *, name: str, compute: Callable[[Path], object]) -> Path:
    """The CSV file of such a script: computed, or with --redraw the one that is there.

    Args:
      argv: what is left of the command line.
      name: of the file.
      compute: writes the file of that path.

    Raises:
      UsageError: positional arguments, bad input, or no file to draw again.
    """
    if len(argv) > 1:
        raise app.UsageError(f"no positional arguments are taken, got {argv[1:]}")
    given = flags.FLAGS
    try:
        path = store.prepare_directory("out", given.out) / f"{name}.csv"
        if given.redraw and not path.is_file():
            raise ValueError(f"out must hold {path.name} to draw it again, got {given.out}")
        if not given.redraw:
            compute(path)
    except ValueError as error:
        raise app.UsageError(str(error)) from error
    return path
