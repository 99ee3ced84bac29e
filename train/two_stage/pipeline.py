"""A synthetic table from a private one: statistics, stage 1, stage 2, rows, metrics, in one folder.

Each phase leaves a file; a run that was stopped goes on with the first phase whose file is missing.

1. *Statistics.* Announced in the ledger, drawn, written. A crash in between leaves announced releases of
   which nobody saw anything: at most an unfinished file in the owner's folder, which is removed first.
   Drawing them again releases them once.
2. *Language.* Tokenizer, length of rows and stage 1's rows follow from the statistics, from public text and
   from the key.
3. *Stages.* Runs of the common loop: stage 1 in a folder of its own, stage 2 in this one, behind the
   statistics in the same ledger.
4. *Rows* are drawn from the weights and the label's released frequencies; *metrics* compare them with rows
   that were not trained on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from exactdp import __version__
from exactdp.accounting.ladder import rung
from exactdp.accounting.ledger import Ledger
from exactdp.mechanisms import keys
from exactdp.train import folder as folders
from exactdp.train import parallel, reservation
from exactdp.train.gpt2 import model as gpt2
from exactdp.train.gpt2 import weights as gpt2_weights
from exactdp.train.interrupt import Interrupted, Watch
from exactdp.train.state import Parameters
from exactdp.train.table_metrics.validity import Validity
from exactdp.train.tables import as_published, csv_file, pseudo
from exactdp.train.tables import statistics as table_statistics
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.statistics import Statistics
from exactdp.train.tables.template import Template
from exactdp.train.tables.tokens import RowTokens
from exactdp.train.two_stage import inputs as table_inputs
from exactdp.train.two_stage import languages, measured, sampling, stages
from exactdp.train.two_stage import plan as plans
from exactdp.train.two_stage.inputs import Files, Inputs
from exactdp.train.two_stage.language import Language
from exactdp.train.two_stage.measured import Comparison
from exactdp.train.two_stage.outcome import Outcome
from exactdp.train.two_stage.plan import Plan
from exactdp.train.two_stage.run_folder import (
    DRAWN,
    FIRST,
    METRICS,
    MODEL,
    RESULT,
    STATISTICS,
    SYNTHETIC,
    RunFolder,
)
from exactdp.train.two_stage.settings import TwoStageSettings

PHASES = ("statistics", "language", "stage 1", "stage 2", "rows", "metrics")
"""In their order."""

_PSEUDO = 0  # use of the host's generator
_NO_NOISE = "stage 2 adds no noise: the weights may give any row away"
_FREE = {
    "marginals": "Stage 1 reads rows drawn from released statistics: it costs nothing.",
    "uniform": "Stage 1 reads rows that are uniform over the domain: it costs nothing.",
    "table": "Stage 1 reads a public table: it costs nothing.",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A run that is ready to start; nothing has been written yet.

    Attributes:
      settings: what was asked for.
      files: where it was read.
      inputs: what was read.
      plan: noise and certificate.
    """

    settings: TwoStageSettings
    files: Files
    inputs: Inputs
    plan: Plan


def prepare(settings: TwoStageSettings, files: Files) -> Prepared:
    """Reads all files and solves for the noise; writes nothing.

    Raises:
      ValueError: bad input, or a target that cannot be reached.
      ArithmeticError: no noise could be certified.
    """
    found = table_inputs.read(files, settings)
    made = plans.plan(
        settings,
        num_rows=found.private.num_rows,
        num_columns=len(found.private.names),
        num_undeclared=found.num_undeclared,
    )
    return Prepared(settings, files, found, made)


def run(
    prepared: Prepared,
    *,
    out: Path,
    seed: int | None = None,
    resume: bool = False,
    progress: bool = True,
    devices: int = 1,
    announce: Callable[[], None] | None = None,
    begun: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Carries a prepared run out, from the start or from where it was stopped.

    Args:
      prepared: as `prepare` gives it.
      out: folder of the run.
      seed: of all randomness but that of the statistics' noise, which is the operating system's; None for the
        operating system's, or the folder's key. As secret as the table.
      resume: go on with the run in `out`.
      progress: whether to show bars on stderr.
      devices: how many devices share a batch.
      announce: called once, when nothing is left that could be refused.
      begun: called with the name of each phase of `PHASES` when it begins.

    Raises:
      ValueError: bad input, before any file is touched.
      OSError: the disk refuses; the run can be resumed.
      Interrupted: by Ctrl-C; likewise.
    """
    start = time.perf_counter()
    parallel.make(devices)  # refuses devices that are not there
    place = RunFolder(out)
    if resume:
        key = place.key(seed)
        place.require_same(_asked(prepared, key))
    else:
        place.require_fresh()
        key = keys.run_key(seed)
        place.create(_asked(prepared, key), key=key)
    if announce is not None:
        announce()
    return _Run(prepared, place, key, progress, int(devices), begun).outcome(start)


class _Run:
    """The phases of one call of `run`."""

    def __init__(
        self,
        prepared: Prepared,
        place: RunFolder,
        key: jax.Array,
        progress: bool,
        devices: int,
        begun: Callable[[str], None],
    ) -> None:
        self.settings, self.plan, self.inputs = prepared.settings, prepared.plan, prepared.inputs
        self.files, self.place, self.key = prepared.files, place, key
        self.progress, self.devices, self.begun = progress, devices, begun

    def outcome(self, start: float) -> Outcome:
        """All phases that are not done."""
        self.begun("statistics")
        found = self._statistics()
        self.begun("language")
        pseudo_rows = self._pseudo(found)
        first = None if self.inputs.first is None else _coded(self.inputs.first)
        language, params = languages.make(
            self.settings, self.files, found.schema, place=self.place, pseudo=pseudo_rows, first=first
        )
        self.begun("stage 1")
        initialise = self._first(language, pseudo_rows, first, params)
        self.begun("stage 2")
        rows = stages.token_rows(
            language,
            rows=csv_file.encode(self.inputs.private, found.schema).codes,
            others=self._others(found, pseudo_rows),
        )
        init_key = keys.step_key(self.key, step=0, purpose="init")
        second = stages.second(self.settings, language, self.plan, initialise=initialise, key=init_key)
        trained = stages.carry_out(
            second.task,
            rows=rows,
            optimiser=second.optimiser,
            num_steps=self.plan.num_steps,
            delta=self.settings.delta,
            out=self.place.path,
            key=self.key,
            described=self.settings.as_dict(),
            progress=self.progress,
            devices=self.devices,
        )
        weights = second.whole(trained.state.weights)
        self._keep(language, weights)
        self.begun("rows")
        validity = self._draw(found, language, weights)
        self.begun("metrics")
        comparison = self._compare(language, weights, rows.x_test, validity)
        private = self.settings.private
        result = Outcome(
            rows=int(self.place.read(DRAWN)["rows"]),
            validity=validity,
            epsilon=trained.epsilon if private else None,
            delta=self.settings.delta,
            threat_model=self.plan.certificate.threat_model,
            statement=self.plan.certificate.statement,
            end_to_end=self.settings.end_to_end,
            leaks=(*found.leaks, *([] if private else [_NO_NOISE])),
            comparison=comparison,
            rows_per_second=float(self.place.read(DRAWN)["rows_per_second"]),
            seconds=time.perf_counter() - start,
            run=self.place.path,
        )
        epsilon = None if result.epsilon is None else rung.encode(result.epsilon)
        self.place.write(RESULT, result.as_dict() | {"epsilon": epsilon})
        return result

    def _statistics(self) -> Statistics:
        path = self.place.path / STATISTICS
        if not self.place.has(STATISTICS):
            self.place.remove_unfinished(STATISTICS)
            raw, label, budget = self.inputs.private, self.inputs.label, self.plan.budget
            if budget is None:
                found = as_published.exact(raw, label=label)
            else:
                certificate = self.plan.certificate
                with Ledger(
                    self.place.path / folders.LEDGER, threat_model=certificate.threat_model
                ) as ledger:
                    reservation.announce(ledger, certificate)
                    found = table_statistics.measure(
                        raw, declared=self.inputs.declared, label=label, budget=budget
                    )
            self.place.write(STATISTICS, found.as_dict())
        return table_statistics.read(path)

    def _pseudo(self, found: Statistics) -> Int[np.ndarray, "rows columns"]:
        method = "marginals" if found.private else "uniform"
        if self.settings.stage_1 == "uniform":
            method = "uniform"
        return pseudo.draw(
            found,
            num_rows=self.settings.first_rows or self.inputs.private.num_rows,
            method=method,
            rng=stages.generator(self.key, number=_PSEUDO),
        )

    def _others(
        self, found: Statistics, pseudo_rows: Int[np.ndarray, "rows columns"]
    ) -> Int[np.ndarray, "m columns"]:
        """What the loss is measured on: held-out rows, or made-up ones where there are none."""
        if self.inputs.test is None:
            return pseudo_rows[: measured.FEW]
        return csv_file.encode(self.inputs.test, found.schema).codes

    def _first(
        self,
        language: Language,
        pseudo_rows: Int[np.ndarray, "rows columns"],
        first: languages.Coded | None,
        params: Parameters | None,
    ) -> stages.Initialise:
        """Where stage 2 starts."""
        loaded = language.initialise if params is None else lambda _: jax.tree.map(np.array, params)
        if self.settings.stage_1 == "none":
            return loaded
        done = self.place.path / FIRST
        if (done / folders.RESULT).is_file():
            return _starting_at(folders.read_weights(done, like=gpt2.abstract(language.config)[1]))
        if first is None:
            rows = stages.token_rows(language, rows=pseudo_rows, others=pseudo_rows[: measured.FEW])
        else:
            own = dataclasses.replace(
                language,
                rows=RowTokens(Template(first.schema, languages.order_of(self.settings)), language.tokenizer),
            )
            rows = stages.token_rows(own, rows=first.codes, others=first.codes[: measured.FEW])
        task, optimiser, steps = stages.first(
            self.settings, language, rows, initialise=loaded, reason=_FREE[self.settings.stage_1]
        )
        found = stages.carry_out(
            task,
            rows=rows,
            optimiser=optimiser,
            num_steps=steps,
            delta=self.settings.delta,
            out=done,
            key=stages.first_key(self.key),
            described=self.settings.as_dict(),
            progress=self.progress,
            devices=self.devices,
        )
        return _starting_at(found.state.weights)

    def _keep(self, language: Language, weights: Parameters) -> None:
        """The model with its tokenizer, in the layout that transformers reads."""
        end = language.tokenizer.end
        gpt2_weights.save(self.place.path / MODEL, weights, config=language.config, end=end)
        language.tokenizer.save(self.place.path / MODEL)

    def _draw(self, found: Statistics, language: Language, params: Parameters) -> Validity:
        if self.place.has(SYNTHETIC) and self.place.has(DRAWN):
            record = self.place.read(DRAWN)
            return Validity(record["asked"], record["accepted"], record["reasons"])
        start, wanted = time.perf_counter(), self.settings.rows or self.inputs.private.num_rows

        def labels(count: int, rng: np.random.Generator) -> Int[np.ndarray, " rows"]:
            return pseudo.draw_labels(found, num_rows=count, rng=rng)

        with (
            Watch() as watch,
            tqdm(total=wanted, disable=not self.progress, unit="row", desc="synthetic rows") as bar,
        ):

            def told(kept: int) -> None:
                bar.update(kept - bar.n)
                if watch.asked:
                    raise Interrupted(
                        f"interrupted after {kept} of {wanted} synthetic rows; they are drawn again when "
                        "resumed"
                    )

            drawn = sampling.draw(
                language,
                params,
                num_rows=wanted,
                # A row of nothing but its label needs no prompt: the model draws it.
                labels=None if found.schema.label is None or len(found.schema.columns) == 1 else labels,
                key=self.key,
                sampling=sampling.Sampling(
                    self.settings.temperature, self.settings.top_k, self.settings.top_p
                ),
                constrained=self.settings.decoder == "grammar",
                progress=told,
            )
        csv_file.write(self.place.path / SYNTHETIC, drawn.codes, found.schema)
        speed = drawn.validity.asked / (time.perf_counter() - start)
        record = {"rows": len(drawn.codes), "rows_per_second": speed}
        self.place.write(DRAWN, dataclasses.asdict(drawn.validity) | record)
        return drawn.validity

    def _compare(
        self, language: Language, params: Parameters, x_test: np.ndarray, validity: Validity
    ) -> Comparison | None:
        if self.inputs.test is None or not self.place.read(DRAWN)["rows"]:
            return None
        objective = language.objective(start=language.initialise, value_weight=self.settings.value_weight)
        found = measured.compare(
            self.inputs.test,
            csv_file.read(self.place.path / SYNTHETIC),
            train=self.inputs.private,
            label=self.inputs.label,
            validity=validity,
            perplexities=objective.perplexities(params, x_test),
        )
        self.place.write(METRICS, found.as_dict())
        return found


def _starting_at(weights: Parameters) -> stages.Initialise:
    """Copies, as the steps of a stage consume what they start from."""
    kept = jax.tree.map(np.asarray, weights)
    return lambda _: jax.tree.map(jax.numpy.array, kept)


def _coded(raw: RawTable) -> languages.Coded:
    """A public table in its own exact domain."""
    schema = as_published.exact(raw, label=None).schema
    return languages.Coded(schema, csv_file.encode(raw, schema).codes)


def _asked(prepared: Prepared, key: jax.Array) -> dict[str, Any]:
    """What a run is resumed under; the table's digest is salted by the key, and tells nothing without it."""
    files = prepared.files
    salt = np.asarray(jax.random.key_data(key)).tobytes()
    return {
        "version": __version__,
        "digest": hashlib.sha256(salt + prepared.inputs.digest.encode()).hexdigest(),
        **prepared.settings.as_dict(),
        "label": prepared.inputs.label,
        "drop": list(prepared.settings.drop),
        "schema": [column.as_dict() for column in prepared.inputs.declared],
        "test": None if files.test is None else str(files.test),
        "first_csv": None if files.first_csv is None else str(files.first_csv),
        "weights": files.weights,
    }
