"""Reading a private table: what is trained on, and what is kept to measure on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from exactdp.train.tables.csv_file import RawTable
from exactdp.train.two_stage import inputs
from exactdp.train.two_stage.inputs import Files
from exactdp.train.two_stage.settings import TwoStageSettings
from tests.train.two_stage import tables


def rows(table: RawTable) -> list[tuple[str, ...]]:
    return sorted(tuple(row.values()) for row in table.table.to_pylist())


@pytest.mark.parametrize("place", [0, 1, 150, 399])
def test_neighbours_stay_neighbours(tmp_path: Path, place: int) -> None:
    """A row removed anywhere leaves the training rows or the held-out ones, and nothing else moves."""
    whole = tables.write(tmp_path)
    lines = whole.read_text().splitlines(keepends=True)
    less = tmp_path / "less.csv"
    less.write_text("".join(lines[: place + 1] + lines[place + 2 :]))
    settings = TwoStageSettings(label="bought", epsilon=1.0, holdout=0.2)
    one, other = (inputs.read(Files(path), settings) for path in (whole, less))
    assert one.test is not None
    assert other.test is not None
    moved = [len(rows(a)) - len(rows(b)) for a, b in ((one.private, other.private), (one.test, other.test))]
    assert sorted(moved) == [0, 1]
    for a, b in ((one.private, other.private), (one.test, other.test)):
        left = rows(a)
        for row in rows(b):
            left.remove(row)
        assert len(left) <= 1


def test_the_share_and_the_order() -> None:
    column = pa.array([str(n) for n in range(20_000)])
    table = RawTable(pa.table({"a": column, "b": pa.array(["x"] * 20_000)}))
    kept = inputs.held_out(table, share=0.1)
    assert abs(kept.mean() - 0.1) < 0.01
    order = np.random.default_rng(0).permutation(20_000)
    assert np.array_equal(inputs.held_out(table.select(order), share=0.1), kept[order])
    assert not inputs.held_out(table, share=0.0).any()
    # Equal cells in two columns do not cancel, and the column matters.
    twice = RawTable(pa.table({"a": column, "b": column}))
    assert abs(inputs.held_out(twice, share=0.1).mean() - 0.1) < 0.01
    assert not np.array_equal(inputs.held_out(twice, share=0.1), kept)


def test_bad_weights_are_refused_before_anything(tmp_path: Path) -> None:
    tables.write(tmp_path)
    settings = TwoStageSettings(label="bought", epsilon=1.0)
    with pytest.raises(ValueError, match="source must be a folder"):
        inputs.read(Files(tmp_path / "private.csv", weights=str(tmp_path / "none")), settings)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        inputs.read(Files(tmp_path / "private.csv", weights=str(tmp_path / "empty")), settings)
