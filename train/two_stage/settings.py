"""What a user asks of a synthetic table, checked before anything else happens; needs no JAX."""

from __future__ import annotations

import dataclasses
from typing import Any

from exactdp.accounting import validate
from exactdp.train.settings import whole

FIRST_STAGES = ("marginals", "uniform", "table", "none")
MODELS = ("tiny", "small", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
DECODERS = ("grammar", "rejection")
ORDERS = ("alphabetical", "header", "shuffled")

_LARGEST_EPSILON = 1000.0
_LEAST, _LARGEST = 1e-15, 1e15  # such numbers and their products are far from the ends of float32
_SMALLEST_VOCABULARY, _LARGEST_VOCABULARY = 300, 50_257  # every byte has a token; rows are kept in 16 bits


@dataclasses.dataclass(frozen=True)
class TwoStageSettings:
    """A synthetic table, as a user describes it.

    Attributes:
      label: column whose value a row begins with, and that a classifier is to predict; None for none.
      drop: columns that are left out, such as a unique number of each row.
      epsilon: of everything that is released together, in (0, 1000]; None for training without privacy.
      delta: in (0, 1).
      statistics_share: share of epsilon that private statistics get, in (0, 1).
      first_stage: what the model learns before it sees the private table: rows drawn from private
        label-by-column tables ("marginals"), rows uniform over the domain ("uniform", the paper's U), a
        public table ("table", the paper's O), or nothing ("none", the paper's DP-Standard). None for
        marginals where all of it is private, else uniform.
      as_published: take ranges, categories and label frequencies from the private table without noise, as
        the released code does; epsilon is then stage 2's alone, and nothing is private end to end.
      holdout: share of the rows that are kept from training, to measure on, in [0, 1).
      model: one of `MODELS`.
      vocabulary: of the tokenizer that is trained here, in [300, 50257]; not of one that is loaded.
      order: of the columns in a row's text, after the label; one of `ORDERS`. "shuffled", another in each
        row, needs the decoder "rejection".
      value_weight: lambda in [0, 1]: weight of the values' tokens in stage 2's loss.
      first_rows: rows of the pseudo table; None for as many as are trained on.
      first_steps: steps of stage 1; None for five passes over its rows, as the paper.
      num_steps: steps of stage 2; None for ten passes, as the paper.
      batch_size: expected, of stage 2; a quarter of the rows at most. Large batches suit it: noise is added
        once a step.
      first_batch_size: of stage 1, where small batches train faster.
      clip_norm: of a row's gradient, in [1e-15, 1e15].
      learning_rate: of AdamW in stage 2, which decays linearly to 0.
      first_learning_rate: of AdamW in stage 1, likewise.
      lora_rank: of the low-rank updates that stage 2 trains in place of all weights; None for all weights.
      rows: how many synthetic rows; None for as many as are trained on.
      temperature: of sampling, > 0.
      top_k: sample among so many tokens, >= 1; None for all.
      top_p: sample among the most likely tokens of this probability, in (0, 1].
      decoder: "grammar" for rows of the domain only, or "rejection" of those that do not parse.
      bfloat16: compute activations in bfloat16.

    Raises:
      ValueError: an argument is outside its range, or contradicts another.
    """

    label: str | None = None
    drop: tuple[str, ...] = ()
    epsilon: float | None = None
    delta: float = 1e-5
    statistics_share: float = 0.5
    first_stage: str | None = None
    as_published: bool = False
    holdout: float = 0.1
    model: str = "tiny"
    vocabulary: int = 1024
    order: str = "alphabetical"
    value_weight: float = 0.65
    first_rows: int | None = None
    first_steps: int | None = None
    num_steps: int | None = None
    batch_size: int = 1024
    first_batch_size: int = 32
    clip_norm: float = 1.0
    learning_rate: float = 5e-4
    first_learning_rate: float = 2e-3
    lora_rank: int | None = None
    rows: int | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    decoder: str = "grammar"
    bfloat16: bool = False

    def __post_init__(self) -> None:
        if self.label is not None and not self.label:
            raise ValueError("label must be the name of a column, got ''")
        if self.epsilon is not None and validate.positive("epsilon", self.epsilon) > _LARGEST_EPSILON:
            raise ValueError(f"epsilon must be at most {_LARGEST_EPSILON:g}, got {self.epsilon}")
        validate.open_probability("delta", self.delta)
        validate.open_probability("statistics_share", self.statistics_share)
        if self.first_stage is not None:
            validate.one_of("first_stage", self.first_stage, FIRST_STAGES)
        for name, choices in (
            ("model", MODELS),
            ("order", ORDERS),
            ("decoder", DECODERS),
        ):
            validate.one_of(name, getattr(self, name), choices)
        if not 0.0 <= validate.non_negative("holdout", self.holdout) < 1.0:
            raise ValueError(f"holdout must be in [0, 1), got {self.holdout}")
        if not _SMALLEST_VOCABULARY <= whole("vocabulary", self.vocabulary, minimum=1) <= _LARGEST_VOCABULARY:
            raise ValueError(
                f"vocabulary must be in {_SMALLEST_VOCABULARY} ... {_LARGEST_VOCABULARY}, got "
                f"{self.vocabulary}"
            )
        validate.probability("value_weight", self.value_weight)
        for name in ("first_rows", "first_steps", "num_steps", "lora_rank", "rows", "top_k"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), minimum=1)
        for name in ("batch_size", "first_batch_size"):
            whole(name, getattr(self, name), minimum=1)
        for name in ("clip_norm", "learning_rate", "first_learning_rate", "temperature"):
            value = validate.positive(name, getattr(self, name))
            if not _LEAST <= value <= _LARGEST:
                raise ValueError(f"{name} must be in [{_LEAST:g}, {_LARGEST:g}], got {value}")
        if not 0.0 < validate.positive("top_p", self.top_p) <= 1.0:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.first_stage == "marginals" and not self.end_to_end:
            raise ValueError(
                "first_stage must be uniform, table or none where statistics are exact (as_published, or "
                "without privacy), got marginals"
            )
        if self.order == "shuffled" and self.decoder == "grammar":
            raise ValueError("decoder must be rejection with order shuffled, got grammar")
        if self.as_published and not self.private:
            raise ValueError("epsilon must be given with as_published, got none")
        if self.label is not None and self.label in self.drop:
            raise ValueError(f"drop must not hold the label, got {self.label!r}")

    @property
    def private(self) -> bool:
        """Whether stage 2 adds noise."""
        return self.epsilon is not None

    @property
    def stage_1(self) -> str:
        """`first_stage`, with its default."""
        return self.first_stage or ("marginals" if self.end_to_end else "uniform")

    @property
    def end_to_end(self) -> bool:
        """Whether all that is released is private."""
        return self.private and not self.as_published

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return dataclasses.asdict(self)
