"""Names of columns, and the fixed split."""

from __future__ import annotations

import numpy as np
import pytest

from exactdp.mechanisms.public import feature_groups
from exactdp.train.data import Dataset, split


def table(columns: tuple[str, ...], *, shape: tuple[int, ...] = (3,)) -> Dataset:
    x, y = np.zeros((4, *shape), np.float32), np.array([0, 1, 0, 1], np.int32)
    return Dataset(x, y, x, y, 2, "some", "made up", columns)


def test_groups() -> None:
    assert feature_groups(("age", "sex=F", "sex=M", "job=a", "hours")) == {
        "age": (0,),
        "sex": (1, 2),
        "job": (3,),
        "hours": (4,),
        "sex=F": (1,),
        "sex=M": (2,),
        "job=a": (3,),
    }
    # A feature that bears the attribute's own name is one of its features.
    assert feature_groups(("sex", "sex=missing")) == {"sex": (0, 1), "sex=missing": (1,)}
    assert feature_groups(()) == {}


def test_columns_are_optional_and_kept() -> None:
    assert table(()).columns == ()
    assert table(("a", "b=1", "b=?")).columns == ("a", "b=1", "b=?")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a", "b"), r"one name a feature of flat records, got 2 names for records of shape \(3,\)"),
        (("a", "b", "a"), "different names, 'a' comes twice"),
        (("a", "b", ""), "must be a word that .* got ''"),
        (("a", "b", "12"), "is no number, got '12'"),
        (("a", "b", "=x"), "does not begin with '=' .* got '=x'"),
        (("a", "b", "c d"), "must be a word .* got 'c d'"),
        (("a", "b", "c,d"), "must hold none of , . : >, got 'c,d'"),
        (("a", "b", "c+d"), "must hold none of"),
    ],
)
def test_names_refused(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^some: .*{message}"):
        table(columns)


def test_images_have_no_columns() -> None:
    with pytest.raises(ValueError, match=r"got 3 names for records of shape \(1, 3\)"):
        table(("a", "b", "c"), shape=(1, 3))


def test_split_is_fixed_and_a_fifth() -> None:
    train, test = split.fixed(5010)
    assert (len(train), len(test)) == (4008, 1002)
    assert sorted([*train, *test]) == list(range(5010))
    # Fixed by the number of records alone: these places stand in published results.
    assert split.fixed(10)[1].tolist() == [2, 4]
    # No trend along the file: the mean place of a random fifth of it, within four standard errors.
    assert abs(test.mean() - 2504.5) < 4 * 5010 / np.sqrt(12 * 1002)
