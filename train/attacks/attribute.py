"""Attribute inference: a private attribute guessed from the rest of a record and from a trained model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from scipy import special

from exactdp.accounting import validate
from exactdp.accounting.clopper_pearson import clopper_pearson
from exactdp.accounting.interval import Interval
from exactdp.mechanisms.public import feature_groups

Loss = Callable[[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]], Float[np.ndarray, " n"]]
"""(x, y) -> the trained model's loss of each record: minus log of the probability of y."""


@dataclasses.dataclass(frozen=True)
class Attribute:
    """A categorical attribute of tabular records.

    Attributes:
      name: of the attribute.
      columns: the places of its features.
      values: what these features are for each of its values, [values, columns].

    Raises:
      ValueError: there are fewer than two values, or their width is not the number of columns.
    """

    name: str
    columns: tuple[int, ...]
    values: Float[np.ndarray, "values columns"]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.values) < 2 or self.values.shape[1] != len(self.columns):
            raise ValueError(
                f"{self.name}: values must be two rows at least of {len(self.columns)} columns, got shape "
                f"{self.values.shape}"
            )

    @classmethod
    def of(cls, name: str, *, columns: Sequence[str]) -> Attribute:
        """The attribute of that name: one indicator a value, or a single feature that is 0 or 1.

        Args:
          name: of an attribute or of one feature; see `exactdp.mechanisms.public.feature_groups`.
          columns: as in `Dataset.columns`.

        Raises:
          ValueError: there is none of that name.
        """
        groups = feature_groups(columns)
        if name not in groups:
            raise ValueError(f"attribute must be one of {', '.join(list(groups)[:20])}, ..., got {name!r}")
        places = groups[name]
        values = np.eye(len(places)) if len(places) > 1 else np.array([[0.0], [1.0]])
        return cls(name, places, values.astype(np.float32))

    def of_records(self, x: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """Which value each record has.

        Raises:
          ValueError: a record has none of them.
        """
        same = (x[:, list(self.columns)][:, None, :] == self.values).all(axis=2)
        without = np.flatnonzero(~same.any(axis=1))
        if without.size:
            raise ValueError(
                f"{self.name} must be one of its {len(self.values)} values in every record, record "
                f"{int(without[0])} has {x[without[0], list(self.columns)].tolist()}"
            )
        return same.argmax(axis=1)

    def put(self, x: Float[np.ndarray, "n d"], value: int) -> Float[np.ndarray, "n d"]:
        """The records with that value."""
        changed = x.copy()
        changed[:, list(self.columns)] = self.values[value]
        return changed


@dataclasses.dataclass(frozen=True)
class Inference:
    """What the guesses were worth, on records of one kind (trained on, or not).

    Attributes:
      records: how many were guessed.
      right: of the attack.
      right_baseline: of the regression alone, which never sees the model.
      gained: records that the attack has right and the baseline wrong.
      lost: the other way round.
    """

    records: int
    right: int
    right_baseline: int
    gained: int
    lost: int

    def accuracy(self, *, confidence: float = 0.95) -> Interval:
        """Clopper and Pearson's interval of the attack's accuracy."""
        return clopper_pearson(self.right, trials=self.records, confidence=confidence)

    def baseline(self, *, confidence: float = 0.95) -> Interval:
        """The same of the baseline's."""
        return clopper_pearson(self.right_baseline, trials=self.records, confidence=confidence)

    def advantage(self, *, confidence: float = 0.95) -> Interval:
        """Interval of accuracy minus baseline accuracy, from the records on which the two differ.

        The shares of gained and of lost records each get an interval at half of the miss, and the ends are
        combined: valid for any dependence between the two.
        """
        half = (1.0 + validate.open_probability("confidence", confidence)) / 2.0
        gained, lost = (
            clopper_pearson(count, trials=self.records, confidence=half) for count in (self.gained, self.lost)
        )
        return Interval(gained.lower - lost.upper, gained.upper - lost.lower, "Clopper-Pearson, paired")


def infer(
    loss: Loss,
    x: Float[np.ndarray, "n d"],
    y: Int[np.ndarray, " n"],
    *,
    attribute: Attribute,
    known: Sequence[int],
    reference: tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " m"]],
    key: Array,
    imputations: int = 8,
) -> Inference:
    """Guesses an attribute of each record by the likelihood of its label under the model.

    The adversary knows the columns `known`, the label and the model, and has reference records of the same
    population. The guess is the value v that maximises

      log p(v | known columns) + log mean_j p_model(y | v, known columns, others of reference record j)

    by Bayes' rule, where p is a logistic regression on the reference records and the mean runs over some of
    them, drawn at random, for the columns that are neither known nor the attribute's. The baseline maximises
    p(v | known columns, y), of the same regression with the label: all that can be had without the model. On
    records that the model was trained on, what the attack has right beyond the baseline is what it kept of
    them, or learnt of the population from more data than the reference; on others it can only be the latter,
    which is no breach of a record. So compare the two.

    Args:
      loss: of the trained model.
      x: records to guess about; their attribute is looked at only to count.
      y: their labels.
      attribute: what is guessed.
      known: places of the columns that the adversary knows, none of them the attribute's.
      reference: other records and labels, among which each value occurs.
      key: of the draw of reference records.
      imputations: how many are drawn; 1 suffices where all else is known, and 1 is then used.

    Raises:
      ValueError: `known` has a column of the attribute or one that is not there; a value does not occur among
        the reference records; shapes differ.
    """
    told = sorted({validate.count("known", place) for place in known})
    if set(told) & set(attribute.columns):
        raise ValueError(f"known must hold no column of {attribute.name}, got {told}")
    if told and told[-1] >= x.shape[1]:
        raise ValueError(f"known must be below the {x.shape[1]} columns, got {told[-1]}")
    if len(x) != len(y) or not len(x) or x.shape[1:] != reference[0].shape[1:]:
        raise ValueError(
            f"x and y must be as many records, and alike to the reference's, got {x.shape}, {y.shape}"
        )
    unknown = sorted(set(range(x.shape[1])) - set(told) - set(attribute.columns))
    draws = validate.count("imputations", imputations, 1) if unknown else 1
    prior, baseline = _regressions(x, y, attribute=attribute, known=told, reference=reference)
    likelihood = np.zeros((draws, len(x), len(attribute.values)))
    for draw in range(draws):
        filled = x
        if unknown:
            places = jax.random.randint(jax.random.fold_in(key, draw), (len(x),), 0, len(reference[0]))
            filled = x.copy()
            filled[:, unknown] = reference[0][np.asarray(places)][:, unknown]
        for value in range(len(attribute.values)):
            likelihood[draw, :, value] = -loss(attribute.put(filled, value), y)
    if not np.isfinite(likelihood).all():
        raise ValueError("loss must be finite for each record and value, got NaN or infinity")
    score = prior + special.logsumexp(likelihood, axis=0)
    truth = attribute.of_records(x)
    right, right_prior = score.argmax(axis=1) == truth, baseline.argmax(axis=1) == truth
    return Inference(
        records=len(x),
        right=int(right.sum()),
        right_baseline=int(right_prior.sum()),
        gained=int((right & ~right_prior).sum()),
        lost=int((right_prior & ~right).sum()),
    )


def _regressions(
    x: Float[np.ndarray, "n d"],
    y: Int[np.ndarray, " n"],
    *,
    attribute: Attribute,
    known: Sequence[int],
    reference: tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " m"]],
) -> tuple[Float[np.ndarray, "n values"], Float[np.ndarray, "n values"]]:
    """log p(v | known columns) and log p(v | known columns, y) of each record."""
    # Imported here: scikit-learn takes a second to import.
    from sklearn.linear_model import LogisticRegression

    values = attribute.of_records(reference[0])
    missing = set(range(len(attribute.values))) - set(values.tolist())
    if missing:
        raise ValueError(
            f"{attribute.name} must take each of its {len(attribute.values)} values among the reference "
            f"records, value {min(missing)} does not occur"
        )
    classes = np.eye(int(max(y.max(), reference[1].max())) + 1)
    # A column of zeros, so that there is something to regress on where nothing is known.
    sides = [np.pad(records[:, list(known)], ((0, 0), (0, 1))) for records in (reference[0], x)]
    found: list[Float[np.ndarray, "n values"]] = []
    for labels in ((), (reference[1], y)):
        told = sides
        if labels:
            told = [
                np.concatenate([side, classes[part]], axis=1)
                for side, part in zip(sides, labels, strict=True)
            ]
        model = LogisticRegression(max_iter=1000).fit(told[0], values)
        found.append(np.asarray(model.predict_log_proba(told[1])))
    return found[0], found[1]
