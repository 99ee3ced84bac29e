"""The files that a synthetic table is made of: read and checked before anything is written."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from exactdp.train.gpt2 import config as configs
from exactdp.train.gpt2 import tokenizer as tokenizers
from exactdp.train.gpt2 import weights as gpt2_weights
from exactdp.train.tables import csv_file, mix
from exactdp.train.tables import schema as schemas
from exactdp.train.tables.csv_file import RawTable
from exactdp.train.tables.schema import Column
from exactdp.train.two_stage.settings import TwoStageSettings

_SPLIT_WORD = b"held-out rows"
FEWEST_ROWS = 4
"""A batch is a quarter of the rows at most, and one row at least."""


@dataclasses.dataclass(frozen=True)
class Files:
    """Where to read.

    Attributes:
      csv: the private table.
      schema: JSON file with the public domain of some columns, or all; None where none is declared.
      test: rows to measure on, which are not trained on; None for the held-out share of the private table.
      first_csv: the public table of stage 1.
      weights: a folder, or the name of a model hub's repository, with a GPT-2 in the Hugging Face layout.
    """

    csv: Path
    schema: Path | None = None
    test: Path | None = None
    first_csv: Path | None = None
    weights: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """What was read.

    Attributes:
      private: the rows that are trained on.
      test: the rows that are measured on; None where there are none.
      declared: columns whose domain is public.
      label: name of the label's column, or None.
      first: the public table of stage 1, or None.
      digest: of the private table, as private as it is.
    """

    private: RawTable
    test: RawTable | None
    declared: tuple[Column, ...]
    label: str | None
    first: RawTable | None
    digest: str

    @property
    def num_undeclared(self) -> int:
        """How many columns' domains are not public."""
        return len(self.private.names) - len(self.declared)


def read(files: Files, settings: TwoStageSettings) -> Inputs:
    """Reads and checks everything.

    With `holdout`, a row is kept from training by a hash of its own cells: a row more or less changes no
    other's place, so that neighbours of the table are neighbours of what is trained on; equal rows stay
    together.

    Raises:
      ValueError: a file is missing or damaged, or does not fit the others or the settings. No message holds a
        cell of the private table.
    """
    if (files.first_csv is not None) != (settings.stage_1 == "table"):
        raise ValueError(
            f"first_csv must be {'left out' if files.first_csv else 'given'} with first_stage "
            f"{settings.stage_1}"
        )
    raw = csv_file.read(files.csv)
    for name in settings.drop:
        if name not in raw.names:
            raise ValueError(f"drop must be columns of {files.csv}, whose header has no {name!r}")
    raw = RawTable(raw.table.drop_columns(list(settings.drop)))
    if not raw.names:
        raise ValueError("drop must leave a column, got all of them")
    label = settings.label
    declared: tuple[Column, ...] = ()
    if files.schema is not None:
        found = schemas.read(files.schema)
        declared, label = found.columns, label or found.label
    if label is not None and label not in raw.names:
        raise ValueError(
            f"label must be a column of {files.csv}, whose header has {len(raw.names)} other names, got "
            f"{label!r}"
        )
    for column in declared:
        if column.name not in raw.names:
            raise ValueError(f"schema must be of columns in {files.csv}, whose header has no {column.name!r}")
    test = None
    with files.csv.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if files.test is not None:
        test = csv_file.read(files.test)
        lacking = [name for name in raw.names if name not in test.names]
        if lacking:
            raise ValueError(f"test must have the columns of {files.csv}, {files.test} has no {lacking[0]!r}")
    elif settings.holdout:
        kept = held_out(raw, share=settings.holdout)
        if kept.any() and not kept.all():
            raw, test = raw.select(np.flatnonzero(~kept)), raw.select(np.flatnonzero(kept))
    if raw.num_rows < FEWEST_ROWS:
        raise ValueError(f"csv must have {FEWEST_ROWS} rows at least to train on, got {raw.num_rows}")
    if files.weights is not None:
        folder = gpt2_weights.locate(files.weights)
        tokenizers.load(folder)
        configs.read(folder)
    first = None if files.first_csv is None else csv_file.read(files.first_csv)
    return Inputs(raw, test, declared, label, first, digest)


def held_out(raw: RawTable, *, share: float) -> Bool[np.ndarray, " rows"]:
    """Which rows are kept from training: those whose hash falls into a share of all hashes.

    Args:
      raw: the table.
      share: in [0, 1).

    Returns:
      A function of each row's cells alone.
    """
    hashes = np.zeros(raw.num_rows, np.uint64)
    for name in raw.names:
        begin = 0
        for chunk in raw.column(name).chunks:
            coded = chunk.dictionary_encode()
            known = [_hash(name, value) for value in coded.dictionary.to_pylist()]
            own = np.array(known, np.uint64)[coded.indices.to_numpy(zero_copy_only=False)]
            end = begin + len(chunk)
            hashes[begin:end] = mix.mixed(hashes[begin:end] ^ own)
            begin = end
    return hashes < np.uint64(share * 2.0**64)


def _hash(name: str, value: str) -> int:
    text = f"{name}\0{value}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=_SPLIT_WORD).digest(), "little")
