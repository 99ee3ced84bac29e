"""What a user asks of a run, checked before anything else happens; needs no JAX."""

from __future__ import annotations

import dataclasses
from typing import Any

from exactdp.accounting import validate
from exactdp.train.feature_settings import FeatureSettings

METHODS = ("dirichlet", "dpsgd", "feature", "nonprivate", "gaussian_features", "label_public")
ACCOUNTANTS = ("exact", "printed")

_OWN: dict[str, tuple[str, ...]] = {
    "scaling": ("dirichlet",),
    "offset": ("dirichlet",),
    "effective_learning_rate": ("dirichlet",),
    "noise_multiplier": ("dpsgd", "feature", "gaussian_features", "label_public"),
    "clip_norm": ("dpsgd", "feature", "gaussian_features", "label_public"),
}
# Methods that release something of each record in a batch, without amplification: small batches suit them.
_PER_RECORD = ("dirichlet", "gaussian_features")
_BATCH = {False: 256.0, True: 64.0}
_OFFSET, _CLIP_NORM, _NUM_STEPS = 3.0, 1.0, 500
_LARGEST_EPSILON = 1000.0
_LEAST, _LARGEST = 1e-15, 1e15  # such numbers and their products are far from the ends of float32
COUNT_LIMIT = 2**31 - 1  # steps are counted in int32


@dataclasses.dataclass(frozen=True)
class Settings:
    """A run, as a user describes it.

    Of target epsilon, number of steps and noise (scaling for dirichlet), any two are given and the third
    follows: noise for epsilon in so many steps (500 where only epsilon is given); the number of steps at
    which epsilon is reached; or the epsilon of both.

    Attributes:
      method: one of `METHODS`.
      epsilon: target, in (0, 1000]; None for nonprivate, or where noise and steps are given.
      delta: in (0, 1).
      sampling_probability: q in (0, 1); None for an expected batch of 256 (dirichlet, gaussian_features: 64),
        of a quarter of the records at most.
      num_steps: >= 1, below 2^31.
      noise_multiplier: noise standard deviation / clip norm, in [1e-15, 1e15].
      scaling: r of dirichlet, in [1e-15, 1e15].
      offset: alpha of dirichlet, in [1e-15, 1e15]; 3 by default.
      clip_norm: in [1e-15, 1e15]; 1 by default.
      learning_rate: gamma in [1e-15, 1e15]; 0.5 by default, and gamma_eff / kappa for dirichlet.
      effective_learning_rate: gamma_eff of dirichlet, 3 by default; excludes `learning_rate`.
      accountant: "exact", or "printed" to choose the scaling of dirichlet as the paper does.
      feature: what is public and how it is used, of feature; None for the others.

    Raises:
      ValueError: an argument is out of range, of another method, or missing.
    """

    method: str
    epsilon: float | None = None
    delta: float = 1e-5
    sampling_probability: float | None = None
    num_steps: int | None = None
    noise_multiplier: float | None = None
    scaling: float | None = None
    offset: float | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    effective_learning_rate: float | None = None
    accountant: str = "exact"
    feature: FeatureSettings | None = None

    def __post_init__(self) -> None:
        validate.one_of("method", self.method, METHODS)
        validate.open_probability("delta", self.delta)
        if (self.method == "feature") != (self.feature is not None):
            raise ValueError(
                f"public must be {'given' if self.method == 'feature' else 'left out'} for {self.method}"
            )
        for name in ("epsilon", "learning_rate", *_OWN):
            value = getattr(self, name)
            if value is not None:
                validate.positive(name, value)
                if self.method not in _OWN.get(name, METHODS):
                    raise ValueError(f"{name} must be left out for {self.method}, got {value}")
                if name != "epsilon" and not _LEAST <= value <= _LARGEST:
                    raise ValueError(
                        f"{name} must be in [{_LEAST:g}, {_LARGEST:g}], as steps are computed in float32, "
                        f"got {value}"
                    )
        if self.epsilon is not None and self.epsilon > _LARGEST_EPSILON:
            raise ValueError(f"epsilon must be at most {_LARGEST_EPSILON:g}, got {self.epsilon}")
        if self.sampling_probability is not None:
            validate.open_probability("sampling_probability", self.sampling_probability)
        if self.num_steps is not None:
            whole("num_steps", self.num_steps, minimum=1)
        validate.one_of("accountant", self.accountant, ACCOUNTANTS)
        if self.learning_rate is not None and self.effective_learning_rate is not None:
            raise ValueError(
                "effective_learning_rate must be left out where learning_rate is given, got "
                f"{self.effective_learning_rate} and {self.learning_rate}"
            )
        self._check_target()

    def _check_target(self) -> None:
        if self.method == "nonprivate":
            if self.epsilon is not None:
                raise ValueError(f"epsilon must be left out for nonprivate, got {self.epsilon}")
        else:
            if self.epsilon is None and (self.noise is None or self.num_steps is None):
                raise ValueError(
                    f"epsilon must be given, or both {self.parameter} and num_steps, got neither"
                )
            if None not in (self.epsilon, self.noise, self.num_steps):
                raise ValueError(
                    f"{self.parameter} must be left out where epsilon and num_steps are given (any two of "
                    f"the three make the third), got {self.noise}"
                )
        if self.accountant == "printed":
            if self.method != "dirichlet":
                raise ValueError(
                    f"accountant must be exact for {self.method}, as no printed rule chooses its noise, "
                    "got printed"
                )
            if self.epsilon is None or self.noise is not None:
                raise ValueError("scaling must be left out with accountant printed, which chooses it")

    @property
    def parameter(self) -> str | None:
        """What sets the noise of the method; None for nonprivate."""
        if self.method == "nonprivate":
            return None
        return "scaling" if self.method == "dirichlet" else "noise_multiplier"

    @property
    def noise(self) -> float | None:
        """Value of `parameter`, where it is given."""
        return self.scaling if self.method == "dirichlet" else self.noise_multiplier

    @property
    def steps(self) -> int | None:
        """Number of steps, 500 where it does not follow from the rest; None where it does."""
        if self.num_steps is None and self.noise is None:
            return _NUM_STEPS
        return None if self.num_steps is None else int(self.num_steps)

    @property
    def alpha(self) -> float:
        """The offset, with its default."""
        return _OFFSET if self.offset is None else float(self.offset)

    @property
    def clip(self) -> float:
        """The clip norm, with its default."""
        return _CLIP_NORM if self.clip_norm is None else float(self.clip_norm)

    def rate(self, num_records: int) -> float:
        """q, with its default for a data set of that size.

        Raises:
          ValueError: the expected batch is smaller than one record.
        """
        if self.sampling_probability is None:
            return min(_BATCH[self.method in _PER_RECORD] / num_records, 0.25)
        q = float(self.sampling_probability)
        if q * num_records < 1.0:
            raise ValueError(
                "sampling_probability must give batches of one record at least: "
                f"{1.0 / num_records:.3g} for {num_records} records, got {q}"
            )
        return q

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON; clip norm and offset of the methods that have them with their defaults."""
        own = {"clip_norm": self.clip, "offset": self.alpha}
        return dataclasses.asdict(self) | {name: own[name] for name in own if self.method in _OWN[name]}


def whole(name: str, value: float, *, minimum: int) -> int:
    """`value` as an integer >= `minimum` that int32 holds.

    Raises:
      ValueError: it is none.
    """
    number = validate.count(name, value, minimum=minimum)
    if number > COUNT_LIMIT:
        raise ValueError(f"{name} must be at most {COUNT_LIMIT}, got {float(value):g}")
    return number
