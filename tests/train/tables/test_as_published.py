"""Statistics without privacy, as the published pipeline takes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from exactdp.train.tables import as_published, csv_file, pseudo
from exactdp.train.tables.csv_file import RawTable


def table() -> RawTable:
    columns = {
        "age": ["17", "90", "35", ""],
        "pay": ["1.5", "-2.25", "3", "4"],
        "work": ["?", "Private", "Private", "State"],
        "code": ["?", "1", "2", "3"],
        "empty": ["", "", "", " "],
        "label": ["no", "yes", "no", "no"],
    }
    return RawTable(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}))


def test_domains_are_exact() -> None:
    found = as_published.exact(table(), label="label")
    age, pay, work, code, empty, label = found.schema.columns
    assert (age.kind, age.minimum, age.maximum, age.missing) == ("integer", 17, 90, True)
    assert (pay.kind, pay.decimals, pay.minimum, pay.maximum, pay.missing) == ("float", 2, -225, 400, False)
    assert (work.values, work.missing) == (("?", "Private", "State"), False)
    assert code.values == ("1", "2", "3", "?")
    assert (empty.values, empty.missing) == ((), True)
    assert label.values == ("no", "yes")
    assert csv_file.encode(table(), found.schema).replaced == (0,) * 6


def test_it_says_that_it_is_not_private_and_why() -> None:
    found = as_published.exact(table(), label="label")
    assert not found.private
    assert found.noise == 0.0
    assert len(found.leaks) == 8
    assert found.leaks[0] == "column 'age': its range is exact, so that its extreme rows show"
    assert found.leaks[-1] == as_published.LABEL_LEAK
    assert as_published.LABEL_LEAK not in as_published.exact(table(), label=None).leaks
    # Only names of columns are told.
    assert not any(value in " ".join(found.leaks) for value in ("17", "90", "Private", "yes"))


def test_the_label_alone_has_a_table() -> None:
    found = as_published.exact(table(), label="label")
    assert found.tables[-1].tolist() == [[3, 1]]
    assert [own.size for own in found.tables[:-1]] == [0] * 5
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="table of column 'age'"):
        pseudo.draw(found, num_rows=5, method="marginals", rng=rng)
    codes = pseudo.draw(found, num_rows=500, method="uniform", rng=rng)
    assert set(codes[:, 0]) == set(range(17, 91))


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="label must be one of"):
        as_published.exact(table(), label="none")
