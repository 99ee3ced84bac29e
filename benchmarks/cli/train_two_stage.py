"""`exactdp train two_stage`: a synthetic table from a private one, and what certifies it."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactdp.accounting import validate
from exactdp.benchmarks.cli import flags, output, training
from exactdp.benchmarks.cli.training import Flag
from exactdp.benchmarks.curves.ladders import number
from exactdp.train.two_stage.settings import DECODERS, FIRST_STAGES, MODELS, ORDERS, TwoStageSettings

HELP = "synthetic tables from a language model, arXiv 2412.02467"
EXAMPLES = """\
  exactdp train two_stage --csv data.csv --label income --epsilon 1
  exactdp train two_stage --csv data.csv --schema schema.json --epsilon 1 --out runs/table --json
  exactdp train two_stage --csv data.csv --label income --epsilon 1 --as_published
  exactdp train two_stage --csv data.csv --label income --nonprivate
  exactdp train two_stage --csv data.csv --epsilon 8 --weights gpt2/
The synthetic table is DIR/synthetic.csv. What is measured on held-out rows (the report, and f1 and hist of
--json) is covered by no certificate: keep it like the table. An interrupted run goes on with the command that
it prints. A seed is as secret as the table; the noise of the statistics is the operating system's always."""

_D = TwoStageSettings()
_FILES: Mapping[str, Flag] = {
    "csv": Flag("the private table: a CSV file with a header", Path),
    "schema": Flag(
        "JSON file with the public domain of some columns, or all (none: released privately)", Path
    ),
    "test": Flag("CSV file with rows to measure on (--holdout of the table)", Path),
    "first_csv": Flag("public table for --first_stage table", Path),
    "weights": Flag("folder or hub name of a GPT-2 in the Hugging Face layout (trained from nothing)", str),
}
_SETTINGS: Mapping[str, Flag] = {
    "label": Flag("column to predict; rows begin with it (the schema's, or none)", str),
    "drop": Flag("columns to leave out, separated by commas, such as a number of each row", str),
    "epsilon": Flag("of everything together, in (0, 1000]"),
    "delta": Flag("in (0, 1) (1e-5)", float, _D.delta),
    "statistics_share": Flag(
        f"share of epsilon for the statistics, in (0, 1) ({_D.statistics_share:g})",
        float,
        _D.statistics_share,
    ),
    "first_stage": Flag(
        "what the model learns first: marginals, uniform, table or none (marginals; uniform where statistics "
        "are exact)",
        str,
        None,
        FIRST_STAGES,
    ),
    "holdout": Flag(f"share of rows kept to measure on ({_D.holdout:g})", float, _D.holdout),
    "model": Flag(f"size: {', '.join(MODELS)} ({_D.model})", str, _D.model, MODELS),
    "vocabulary": Flag(f"of the tokenizer that is trained ({_D.vocabulary})", number, _D.vocabulary),
    "order": Flag("of the columns after the label (alphabetical)", str, _D.order, ORDERS),
    "value_weight": Flag(f"weight of values in stage 2's loss ({_D.value_weight:g})", float, _D.value_weight),
    "first_rows": Flag("rows of the pseudo table (as many as are trained on)", number),
    "first_steps": Flag("steps of stage 1 (five passes)", number),
    "num_steps": Flag("steps of stage 2 (ten passes)", number),
    "batch_size": Flag(
        f"expected, of stage 2 ({_D.batch_size}; a quarter of the rows at most)", number, _D.batch_size
    ),
    "first_batch_size": Flag(f"of stage 1 ({_D.first_batch_size})", number, _D.first_batch_size),
    "clip_norm": Flag(f"of a row's gradient ({_D.clip_norm:g})", float, _D.clip_norm),
    "learning_rate": Flag(f"of stage 2 ({_D.learning_rate:g})", float, _D.learning_rate),
    "first_learning_rate": Flag(f"of stage 1 ({_D.first_learning_rate:g})", float, _D.first_learning_rate),
    "lora_rank": Flag("train low-rank updates of this rank in stage 2 (all weights)", number),
    "rows": Flag("synthetic rows (as many as are trained on)", number),
    "temperature": Flag(f"of sampling ({_D.temperature:g})", float, _D.temperature),
    "top_k": Flag("sample among so many tokens (all)", number),
    "top_p": Flag("sample among the most likely tokens of this probability (1)", float, _D.top_p),
    "decoder": Flag(
        "grammar: only rows of the domain; rejection: free text, and rows that do not parse again (grammar)",
        str,
        _D.decoder,
        DECODERS,
    ),
}
_RUN: Mapping[str, Flag] = {
    "devices": Flag("devices that share a batch (1)", number, 1),
    "seed": Flag(
        "of all randomness but the statistics' noise, in [0, 2^64) (from the operating system)", number
    ),
}
_SWITCHES: Mapping[str, str] = {
    "nonprivate": "train without privacy, on exact statistics; instead of --epsilon",
    "as_published": "take ranges, categories and label frequencies without noise, as the released code does: "
    "not DP end to end",
    "bfloat16": "compute activations in bfloat16",
    "resume": "go on with the run in --out",
}
_OF_SETTINGS = ("as_published", "bfloat16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    training.add_flags(parser, {**_FILES, **_SETTINGS, **_RUN}, switches=_SWITCHES)
    training.add_out(parser)
    flags.add_json(parser)


def execute(arguments: argparse.Namespace) -> tuple[str, int]:
    """Makes the table; progress and what certifies it go to stderr."""
    if arguments.csv is None:
        raise ValueError("csv must be given, got nothing")
    if (arguments.epsilon is None) != arguments.nonprivate:
        raise ValueError(
            "epsilon must be given, or nonprivate set, and not both, got "
            f"{'both' if arguments.nonprivate else 'neither'}"
        )
    given = {name: getattr(arguments, name) for name in (*_SETTINGS, *_OF_SETTINGS)}
    given["drop"] = _names(arguments.drop)
    settings = TwoStageSettings(**given)
    if arguments.seed is not None and validate.count("seed", arguments.seed) >= 2**64:
        raise ValueError(f"seed must be < 2^64, got {arguments.seed:g}")
    if arguments.resume and arguments.out is None:
        raise ValueError("out must be given when resume is set, got nothing")
    out = arguments.out or training.folder_name("two_stage", arguments.csv.stem)
    with training.begun(out, going_on=lambda: _going_on(arguments, out)):
        outcome, report = _run(arguments, settings, out)
    if arguments.json:
        return output.as_json(outcome.as_dict()), 0
    return "\n".join(_lines(outcome, report)), 0


def _run(arguments: argparse.Namespace, settings: TwoStageSettings, out: str) -> tuple[Any, list[Path]]:
    """What came out, and the files of the report."""
    # JAX is imported from here on, so that the accountants' commands do without.
    from exactdp.benchmarks.two_stage_report import outcome as reports
    from exactdp.train.two_stage import pipeline
    from exactdp.train.two_stage.inputs import Files

    files = Files(**{name: getattr(arguments, name) for name in _FILES})
    prepared = pipeline.prepare(settings, files)

    def announce() -> None:
        print("\n".join(_opening(prepared)), file=sys.stderr, flush=True)

    outcome = pipeline.run(
        prepared,
        out=Path(out),
        seed=arguments.seed,
        resume=arguments.resume,
        devices=arguments.devices,
        announce=announce,
    )
    return outcome, reports.write(outcome, title=arguments.csv.name)


def _opening(prepared: Any) -> list[str]:
    """What is said before the first phase."""
    plan, inputs, settings = prepared.plan, prepared.inputs, prepared.settings
    columns = len(inputs.private.names)
    shown = {
        "noise_multiplier": plan.noise,
        "sampling_probability": plan.sampler.sampling_probability,
        "num_steps": plan.num_steps,
    }
    numbers = ", ".join(f"{name} {output.show(value)}" for name, value in shown.items() if value is not None)
    tested = "none" if inputs.test is None else str(inputs.test.num_rows)
    lines = [
        f"two_stage: {inputs.private.num_rows} rows to train on, {tested} to measure on, {columns} columns "
        f"({columns - inputs.num_undeclared} with a declared domain), stage 1 {settings.stage_1}",
        f"stage 2: {numbers}",
        *plan.certificate.lines(),
    ]
    if plan.budget is not None:
        spent = plan.budget.interval()
        lines.append(f"statistics alone: epsilon <= {output.show(spent.upper)}")
    if not settings.end_to_end:
        lines.append("NOT DP END TO END: statistics are taken from the table without noise")
    return lines


def _lines(outcome: Any, report: list[Path]) -> list[str]:
    """What came out, for people."""
    epsilon = outcome.epsilon
    found = outcome.as_dict()
    cells: list[tuple[str, Any]] = [("rows", outcome.rows), ("validity", outcome.validity.rate)]
    if epsilon is not None:
        cells += [
            ("epsilon, lower", epsilon.lower),
            ("epsilon, upper", epsilon.upper),
            ("delta", outcome.delta),
        ]
    cells += [
        (name, found[name]) for name in ("f1", "auc", "accuracy", "hist", "pair") if found[name] is not None
    ]
    lines = [output.statement(outcome.threat_model), outcome.statement]
    if outcome.leaks:
        lines += ["", "taken from the table without noise:", *(f"  {leak}" for leak in outcome.leaks)]
    lines += ["", output.table([tuple(name for name, _ in cells), tuple(value for _, value in cells)])]
    if outcome.rows == 0:
        lines.append(
            f"none of {outcome.validity.asked} texts was a row of the domain: train for longer, or leave "
            "decoder at grammar"
        )
    if outcome.comparison is not None:
        lines.append("f1 and what follows it are measured on held-out rows; no certificate covers them")
    return [*lines, "", *(str(path) for path in report), f"run: {outcome.run} ({outcome.seconds:.1f} s)"]


def _names(text: str | None) -> tuple[str, ...]:
    """Names of columns, separated by commas and quoted where they hold one."""
    if text is None:
        return ()
    return tuple(next(csv.reader([text], skipinitialspace=True)))


def _going_on(arguments: argparse.Namespace, out: str) -> str:
    """How to go on with a run that was begun; nothing where none was."""
    if not (Path(out) / "two_stage.json").is_file():
        return ""
    return training.going_on(arguments, out, values={**_FILES, **_SETTINGS, **_RUN}, switches=_SWITCHES)
