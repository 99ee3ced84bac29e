"""DP-2Stage, arXiv 2412.02467v2: the printed accountant of its private stage, and what it leaves out.

Stage 2 is DP-SGD with Poisson batches of mean 32 for 10 epochs, at δ = 1e-5. The released code takes its
noise
multiplier from Opacus: exact Rényi curve of the subsampled Gaussian on a fixed grid of orders, the
conversion of Balle et al., and a bisection that stops once ε is within 0.01 below the target. Both are
reproduced here.
"""

from __future__ import annotations

import dataclasses
import functools
import math

from exactdp.accounting import validate
from exactdp.accounting.printed.source import PrintedBound, Repair, Source
from exactdp.accounting.rdp.account import OPACUS_ORDERS, compose
from exactdp.accounting.rdp.bound import UpperBound
from exactdp.accounting.rdp.conversion import epsilon as convert
from exactdp.accounting.rdp.poisson_gaussian import subsampled_gaussian
from exactdp.accounting.threat import Adjacency, Coins, ThreatModel

DELTA = 1e-5
EPSILONS = (1.0, 8.0)
BATCH_SIZE = 32
NUM_EPOCHS = 10
CLIP_NORM = 1.0

_ARXIV, _VERSION = "2412.02467", 2
_STAGE_2 = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "all noisy gradient sums of stage 2")
_END_TO_END = ThreatModel(Adjacency.ADD_REMOVE, Coins.HIDDEN, "the synthetic table and what it was made from")


def _code(locator: str) -> Source:
    return Source(_ARXIV, _VERSION, locator, "code")


def _derived(locator: str) -> Source:
    return Source(_ARXIV, _VERSION, locator, "derived")


PRINTED = PrintedBound(
    name="printed",
    source=_code("stage 2 training, Opacus RDP accountant"),
    formula="min over λ in {1.1, …, 10.9, 12, …, 63} of T·D_λ + log((λ-1)/λ) - (log δ + log λ)/(λ-1)",
    threat_model=_STAGE_2,
    note="About stage 2 alone.",
)

EXACT_STAGE_2 = Repair(
    name="exact",
    corrects=PRINTED.name,
    defect="a Rényi conversion on a fixed grid is loose",
    formula="exact (ε, δ) of the T-fold subsampled Gaussian, both directions",
    threat_model=_STAGE_2,
    source=_derived("stage 2 training"),
)

UNIFORM = Repair(
    name="variant U end to end",
    corrects=PRINTED.name,
    defect="the pseudo table of stage 1 is drawn over the private columns' ranges and category lists",
    formula="private quantile ranges and private category selection, composed with stage 2",
    threat_model=_END_TO_END,
    source=_derived("stage 1, uniform pseudo table"),
)

OUT_OF_DISTRIBUTION = Repair(
    name="variant O end to end",
    corrects=PRINTED.name,
    defect="prompts use exact label frequencies and rejection uses the private category sets",
    formula="noisy label histogram and private (or public) domains, composed with stage 2",
    threat_model=_END_TO_END,
    source=_derived("generation"),
)

SENSITIVITY = Repair(
    name="sensitivity",
    corrects=PRINTED.name,
    defect="class means over the batch and unmasked padding make one record's gradient depend on others",
    formula="per-record normalisation, padding masked: then clipping bounds the sensitivity",
    threat_model=_STAGE_2,
    source=_derived("stage 2 loss"),
)

ENTRIES = (PRINTED, EXACT_STAGE_2, UNIFORM, OUT_OF_DISTRIBUTION, SENSITIVITY)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One of the paper's tables.

    Attributes:
      name: lower-case name.
      train_rows: rows of the training split.
      test_rows: rows of the test split.
      columns: number of columns.
    """

    name: str
    train_rows: int
    test_rows: int
    columns: int

    @property
    def batches_per_epoch(self) -> int:
        """⌈rows/32⌉, the length of the released data loader."""
        return -(-self.train_rows // BATCH_SIZE)

    @property
    def sampling_probability(self) -> float:
        """q, one over the length of the loader."""
        return 1.0 / self.batches_per_epoch

    @property
    def num_steps(self) -> int:
        """T = 10/q."""
        return NUM_EPOCHS * self.batches_per_epoch


DATASETS: dict[str, Dataset] = {
    "adult": Dataset("adult", 30_932, 16_858, 15),
    "airline": Dataset("airline", 103_904, 24_976, 24),
    "texas": Dataset("texas", 60_127, 13_978, 18),
}
"""Row and column counts; source: the released code and data."""


@dataclasses.dataclass(frozen=True)
class Published:
    """One published utility figure at ε = 1: F1 of the minority class in per cent; source: released logs.

    Attributes:
      method: as the paper calls it.
      f1: per data set.
    """

    method: str
    f1: dict[str, float]


def _published(method: str, adult: float, airline: float, texas: float) -> Published:
    return Published(method, {"adult": adult, "airline": airline, "texas": texas})


PUBLISHED_F1 = (
    _published("real", 69.9, 90.6, 86.6),
    _published("GPT-2 non-DP", 68.9, 89.6, 83.9),
    _published("DP-Standard", 27.8, 60.5, 55.4),
    _published("DP-2Stage-U", 21.2, 68.5, 23.5),
    _published("DP-2Stage-O (best)", 31.6, 55.2, 74.8),
    _published("AIM", 59.6, 77.3, 84.5),
    _published("MST", 39.6, 72.2, 81.7),
    _published("DP-CTGAN", 42.2, 67.1, 63.9),
)


def epsilon(
    noise_multiplier: float, *, sampling_probability: float, num_steps: int, delta: float = DELTA
) -> UpperBound:
    """ε as the released code's accountant reports it.

    min over the Opacus grid of T·D_λ + log((λ−1)/λ) − (log δ + log λ)/(λ−1).

    Arguments:
      noise_multiplier: σ > 0.
      sampling_probability: q in [0, 1].
      num_steps: T >= 0.
      delta: δ in (0, 1).

    Returns:
      the bound and its order.

    Raises:
      ValueError: an argument is outside its range.

    Source: arXiv 2412.02467v2, released code.
    """
    steps = validate.count("num_steps", num_steps)
    step = functools.partial(
        subsampled_gaussian, noise_multiplier=noise_multiplier, sampling_probability=sampling_probability
    )
    curve = compose([(step, steps)])
    best = UpperBound(math.inf, math.nan)
    for order in OPACUS_ORDERS:
        value = convert(order, renyi=curve(order), delta=delta, conversion="balle")
        if value < best.value:
            best = UpperBound(value, order)
    return best


def noise_multiplier(
    epsilon: float,
    *,
    sampling_probability: float,
    num_steps: int,
    delta: float = DELTA,
    tolerance: float = 0.01,
) -> float:
    """The noise multiplier that the released code trains with, by Opacus' search.

    Double 10 until ε is at most the target; halve [0, that] until the ε of the upper end is within
    `tolerance` of the target; return the upper end.

    Arguments:
      epsilon: target ε > 0.
      sampling_probability: q in (0, 1].
      num_steps: T >= 1.
      delta: δ in (0, 1).
      tolerance: > 0, how far below the target ε may stay.

    Returns:
      σ, on the side where ε is at most the target.

    Raises:
      ValueError: an argument is outside its range, or no σ below 1e6 reaches the target.

    Source: arXiv 2412.02467v2, released code; the search is Opacus 1.4.1's.
    """
    target = validate.positive("epsilon", epsilon)
    tolerance = validate.positive("tolerance", tolerance)
    steps = validate.count("num_steps", num_steps, minimum=1)

    def spent(sigma: float) -> float:
        return _epsilon(sigma, sampling_probability=sampling_probability, num_steps=steps, delta=delta).value

    low, high, at_high = 0.0, 10.0, math.inf
    while at_high > target:
        high *= 2.0
        if high > 1e6:
            raise ValueError(f"epsilon must be reachable by a noise multiplier <= 1e6, got {epsilon}")
        at_high = spent(high)
    while target - at_high > tolerance:
        middle = 0.5 * (low + high)
        value = spent(middle)
        if value < target:
            high, at_high = middle, value
        else:
            low = middle
    return high


_epsilon = epsilon  # `noise_multiplier` has an argument of that name


def split_budget(epsilon: float, *, statistics_share: float = 0.1) -> tuple[float, float]:
    """(ε for private statistics, ε for stage 2) of an end-to-end budget: their sum is the budget.

    The private ranges, categories and label histogram that replace the exact ones take the first part as
    pure DP; basic composition adds the two.

    Arguments:
      epsilon: end-to-end ε > 0.
      statistics_share: in (0, 1).

    Raises:
      ValueError: an argument is outside its range.
    """
    total = validate.positive("epsilon", epsilon)
    first = total * validate.open_probability("statistics_share", statistics_share)
    return first, total - first
