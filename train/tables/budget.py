"""How the privacy of a table's statistics is split into releases: a function of public numbers alone.

With k columns, u of them without a declared domain:

    kind       u times   DiscreteGaussian(sigma_kind)      which kind a column is
    domain     u times   DiscreteGaussian(sigma_domain)    its range or its categories,
               u times   ApproximateDP(0, delta_list / u)  which may list a value that no other record has
    tables     k times   DiscreteGaussian(sigma_table)     the label's histogram, a table of label by column
                                                           for each other one; without a label k histograms

A record is in one count of each. Which of range and categories is released depends on the noisy kind; the
pairs of the second dominate either, so that the composition holds for the adaptive choice. A fully declared
table spends nothing on kinds and domains.

The shares are shares of the precision sum of 1 / sigma^2, which is what composes for Gaussian noise:

    k / sigma_table^2 = (1 - s) R,    u / sigma_domain^2 = s (1 - t) R,    u / sigma_kind^2 = s t R

with s = `domain_share` (0 where u = 0), t = `kind_share`, and R the largest at which everything is certified
to be (epsilon, delta)-DP by the exact accountant, to a relative 1e-3 of the noise.
"""

from __future__ import annotations

import dataclasses
import functools
import math

from exactdp.accounting import calibrate, prv, validate
from exactdp.accounting.interval import Interval
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.accounting.pairs.discrete_gaussian import DiscreteGaussian
from exactdp.train.certificate import Release

_TOLERANCE = 1e-3
_LIMITS = (1e-2, 1e6)  # of 1 / sqrt(R): sigma stays below the 1e8 that a pair may have


@dataclasses.dataclass(frozen=True)
class Budget:
    """The releases of a table's statistics, together (epsilon, delta)-DP under add/remove of a row.

    Attributes:
      epsilon: of all statistics together, > 0, nats.
      delta: of all statistics together, in (0, 1).
      num_columns: k >= 1.
      num_undeclared: u, of 0 ... k.
      domain_share: s, the share of kinds and domains, in (0, 1).
      kind_share: t, the share of kinds in that, in (0, 1).
      delta_share: share of delta for lists of categories, in (0, 1).

    Raises:
      ValueError: an attribute is outside its range.
    """

    epsilon: float
    delta: float
    num_columns: int
    num_undeclared: int
    domain_share: float = 0.4
    kind_share: float = 0.1
    delta_share: float = 0.1

    def __post_init__(self) -> None:
        validate.positive("epsilon", self.epsilon)
        validate.open_probability("delta", self.delta)
        columns = validate.count("num_columns", self.num_columns, minimum=1)
        if validate.count("num_undeclared", self.num_undeclared) > columns:
            raise ValueError(
                f"num_undeclared must be at most num_columns = {columns}, got {self.num_undeclared}"
            )
        for name in ("domain_share", "kind_share", "delta_share"):
            validate.open_probability(name, getattr(self, name))

    @property
    def table_noise(self) -> DiscreteGaussian:
        """Of every count of a table.

        Raises:
          ArithmeticError: the accountant cannot certify any noise.
          ValueError: no noise within reach meets the budget.
        """
        return self._noises(self._scale)[0]

    @property
    def domain_noise(self) -> DiscreteGaussian | None:
        """Of every count of a range or a list; None where all columns are declared."""
        noises = self._noises(self._scale)
        return noises[1] if len(noises) > 1 else None

    @property
    def kind_noise(self) -> DiscreteGaussian | None:
        """Of every count of a kind; None where all columns are declared."""
        noises = self._noises(self._scale)
        return noises[2] if len(noises) > 1 else None

    @property
    def list_delta(self) -> float:
        """Of one list of categories; 0 where all columns are declared."""
        return self.delta_share * self.delta / self.num_undeclared if self.num_undeclared else 0.0

    def releases(self) -> list[Release]:
        """What the ledger is told, before any noise is drawn.

        Raises:
          ArithmeticError: as `table_noise`.
          ValueError: as `table_noise`.
        """
        return self._releases(self._scale)

    def interval(self) -> Interval:
        """Certified epsilon of all statistics together, at `delta`."""
        return prv.epsilon([(pair, count) for pair, count, _ in self.releases()], delta=self.delta)

    def _noises(self, scale: float) -> list[DiscreteGaussian]:
        k, u, s, t = self.num_columns, self.num_undeclared, self.domain_share, self.kind_share
        if not u:
            return [DiscreteGaussian(scale * math.sqrt(k))]
        weights = (k / (1.0 - s), u / (s * (1.0 - t)), u / (s * t))
        return [DiscreteGaussian(scale * math.sqrt(weight)) for weight in weights]

    def _releases(self, scale: float) -> list[Release]:
        noises, u = self._noises(scale), self.num_undeclared
        found: list[Release] = []
        if len(noises) > 1:
            found += [
                (noises[2], u, "kind of each undeclared column"),
                (noises[1], u, "range or list of categories of each undeclared column"),
                (ApproximateDP(0.0, self.list_delta), u, "list of categories of each undeclared column"),
            ]
        return [*found, (noises[0], self.num_columns, "histogram of the label, and table of label by column")]

    @functools.cached_property
    def _scale(self) -> float:
        """1 / sqrt(R)."""
        found = calibrate.noise_multiplier(
            lambda scale: [(pair, count) for pair, count, _ in self._releases(scale)],
            epsilon=self.epsilon,
            delta=self.delta,
            tolerance=_TOLERANCE,
            limits=_LIMITS,
        )
        return found.value
