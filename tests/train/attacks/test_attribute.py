"""Attribute inference: a model that keeps its records is read, one that does not is not."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from exactdp.train.attacks import Attribute, Inference, infer

KEY = jax.random.key(1)
COLUMNS = ("a", "b", "sex=F", "sex=M", "age")
SEX = Attribute.of("sex", columns=COLUMNS)


def records(seed: int, n: int, *, linked: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Binary columns and labels at random; with `linked` > 0, sex follows column b."""
    generator = np.random.default_rng(seed)
    x = np.zeros((n, 5), np.float32)
    x[:, :2] = generator.integers(0, 2, (n, 2))
    x[:, 4] = generator.uniform(size=n)
    sex = np.where(generator.uniform(size=n) < linked, x[:, 1], generator.integers(0, 2, n)).astype(int)
    x[:, 2:4] = np.eye(2)[sex]
    return x, generator.integers(0, 2, n).astype(np.int32)


def memory(x: np.ndarray, y: np.ndarray) -> Any:
    """A model that is sure of the labels of the records it has seen, and guesses those of others."""
    seen = {row.tobytes(): int(label) for row, label in zip(x, y, strict=True)}

    def loss(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        right = np.array([seen.get(row.tobytes()) == label for row, label in zip(x, y, strict=True)])
        return np.where(right, 0.01, np.log(2.0))

    return loss


def unaware(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.full(len(x), 0.7)


def test_memorised_records_are_read_and_others_are_not() -> None:
    members, others, reference = records(0, 300), records(1, 300), records(2, 600)
    arguments: dict[str, Any] = {"attribute": SEX, "known": [0, 1, 4], "reference": reference, "key": KEY}
    loss = memory(*members)
    on_members, on_others = infer(loss, *members, **arguments), infer(loss, *others, **arguments)
    assert on_members.right == 300 and on_members.advantage().lower > 0.3
    assert 0.0 in on_others.advantage()
    assert 0.5 in on_others.accuracy(confidence=0.999)


def test_a_model_that_ignores_the_attribute_adds_nothing() -> None:
    members, reference = records(0, 300, linked=0.8), records(2, 600, linked=0.8)
    found = infer(unaware, *members, attribute=SEX, known=[0, 1, 4], reference=reference, key=KEY)
    assert 0.0 in found.advantage() and found.advantage().width < 0.1
    # The baseline knows column b, which goes with sex in nine cases of ten.
    assert found.baseline().lower > 0.83
    blind = infer(unaware, *members, attribute=SEX, known=[0], reference=reference, key=KEY)
    assert blind.baseline().upper < 0.65


def test_what_is_not_known_is_not_looked_at() -> None:
    """Unknown columns come from reference records: changing the record's own changes nothing."""
    members, reference = records(0, 200, linked=0.8), records(2, 400, linked=0.8)
    weights = np.random.default_rng(3).normal(size=5)

    def loss(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, (1 - 2 * y) * (x @ weights))

    arguments: dict[str, Any] = {"attribute": SEX, "known": [0], "reference": reference, "key": KEY}
    changed = members[0].copy()
    changed[:, [1, 4]] = 0.5
    assert infer(loss, *members, **arguments) == infer(loss, changed, members[1], **arguments)


def test_single_binary_column_is_an_attribute() -> None:
    a = Attribute.of("a", columns=COLUMNS)
    x, _ = records(0, 20)
    np.testing.assert_array_equal(a.of_records(x), x[:, 0])
    assert (a.put(x, 1)[:, 0] == 1.0).all() and (a.put(x, 1)[:, 1:] == x[:, 1:]).all()
    age = Attribute.of("age", columns=COLUMNS)
    with pytest.raises(ValueError, match="age must be one of its 2 values in every record, record 0 has"):
        age.of_records(x)


def test_paired_interval_covers() -> None:
    """Of 500 pairs of guesses at 90 %, at most 10 % are missed, up to chance."""
    generator = np.random.default_rng(7)
    missed = 0
    for _ in range(500):
        kinds = generator.choice(3, size=80, p=[0.2, 0.1, 0.7])
        found = Inference(80, 0, 0, gained=int((kinds == 0).sum()), lost=int((kinds == 1).sum()))
        missed += 0.1 not in found.advantage(confidence=0.9)
    assert missed <= stats.binom.ppf(0.999, 500, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"known": [0, 2]}, "known must hold no column of sex"),
        ({"known": [0, 5]}, "known must be below the 5 columns, got 5"),
        ({"imputations": 0}, "imputations must be a whole number >= 1"),
        ({"loss": lambda x, y: np.full(len(x), np.nan)}, "loss must be finite"),
        (
            {"x": np.zeros((4, 5), np.float32)},
            "sex must be one of its 2 values in every record, record 0 has",
        ),
        ({"x": np.zeros((3, 5), np.float32)}, "x and y must be as many records"),
        (
            {"reference": (np.tile(np.array([0, 0, 1, 0, 0], np.float32), (6, 1)), np.zeros(6, np.int32))},
            "sex must take each of its 2 values among the reference records, value 1 does not occur",
        ),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    x, y = records(0, 4)
    good: dict[str, Any] = {"loss": unaware, "x": x, "y": y, "attribute": SEX, "known": [0], "key": KEY}
    given: dict[str, Any] = {"reference": records(2, 50)} | good | arguments
    with pytest.raises(ValueError, match=message):
        infer(given.pop("loss"), given.pop("x"), given.pop("y"), **given)


def test_unknown_attribute() -> None:
    with pytest.raises(ValueError, match="attribute must be one of a, b, sex, age, .* got 'race'"):
        Attribute.of("race", columns=COLUMNS)
    with pytest.raises(
        ValueError, match=r"x: values must be two rows at least of 2 columns, got shape \(1, 2\)"
    ):
        Attribute("x", (0, 1), np.zeros((1, 2), np.float32))


def test_nothing_known() -> None:
    found = infer(
        unaware, *records(0, 100), attribute=SEX, known=[], reference=records(2, 100), key=KEY, imputations=2
    )
    assert found.records == 100 and 0.5 in found.accuracy(confidence=0.999)
