"""The law of a noisy clipped sum whose rows are sampled, along the two directions that matter.

Every row is in a step's batch with the paper's probability, so that the number of short rows is binomial;
large batches are split as in the released code. All short rows add alike. Along the two directions that the
sums span Gaussian noise is Gaussian with the same standard deviation, so that these two numbers are drawn for
each step rather than all parameters. The first direction is the short rows', whose likelihood is a mixture
over their number; the second is what the long row adds beside it. The two are taken for independent given
the long row: a score is a likelihood ratio up to that, which is exact where what the long row adds in the
second direction does not depend on the number of short rows.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy import optimize, special, stats

from exactdp.accounting import validate
from exactdp.accounting.ladder.two_stage_setting import Setting
from exactdp.accounting.printed import two_stage as printed
from exactdp.benchmarks.two_stage_audit.short_and_long import ClippedSums

_MOST = 80  # short rows in a batch; more have probability 1e-12 a step on Adult, and count as so many
_GRID = 4096
_CHUNK = 1 << 18
_LARGEST = 700.0  # exp of more is no float64


class SampledStep:
    """One step: its noisy sum is drawn, scored, and its epsilon integrated.

    Args:
      sums: of up to 32 short rows, with and without the long one.
      num_rows: of which sums those are along which the second direction is taken, >= 1.
      setting: the paper's sampling and noise.
    """

    def __init__(self, sums: ClippedSums, *, num_rows: int, setting: Setting) -> None:
        first, second = _directions(sums, validate.count("num_rows", num_rows, minimum=1))
        split = sums.split(_MOST).values
        self._along, self._beside = split @ first, split @ second  # [2, counts]
        self._q, self._sigma = setting.data.sampling_probability, setting.noise * printed.CLIP_NORM
        self._size = setting.data.train_rows
        weights = stats.binom.logpmf(np.arange(_MOST + 1), self._size, self._q)
        self._grid = np.linspace(
            self._along.min() - 8.0 * self._sigma, self._along.max() + 8.0 * self._sigma, _GRID
        )
        absent, present = (
            special.logsumexp(weights - 0.5 * ((self._grid[:, None] - means) / self._sigma) ** 2, axis=1)
            for means in self._along
        )
        self._absent, self._ratio = absent, present - absent
        self._beside_mean = float(self._beside[1, min(round(self._q * self._size), _MOST)])

    def scores(self, rng: np.random.Generator, num_steps: int, *, present: bool) -> Float[np.ndarray, " n"]:
        """Draws steps, and the logarithm of each one's likelihood ratio, with the long row over without it.

        Args:
          rng: of all coins and noise.
          num_steps: how many, >= 0.
          present: whether the long row is in the table (and then in a step with the paper's probability).
        """
        count = validate.count("num_steps", num_steps)
        starts = range(0, count, _CHUNK)
        parts = [self._draw(rng, min(_CHUNK, count - start), present) for start in starts]
        return np.concatenate([np.zeros(0), *parts])

    def _draw(self, rng: np.random.Generator, size: int, present: bool) -> Float[np.ndarray, " n"]:
        counts = np.minimum(rng.binomial(self._size, self._q, size), _MOST)
        long = (rng.random(size) < self._q).astype(np.int64) if present else np.zeros_like(counts)
        x = self._along[long, counts] + self._sigma * rng.standard_normal(size)
        y = self._beside[long, counts] + self._sigma * rng.standard_normal(size)
        mean = self._beside_mean
        each = np.interp(x, self._grid, self._ratio) + mean * (y - 0.5 * mean) / self._sigma**2
        return np.logaddexp(math.log1p(-self._q), math.log(self._q) + each)

    def epsilon(self, delta: float) -> float:
        """The epsilon of the step's law, by numerical integration; uncertified, nats.

        With p over p_0 = (1 - q) + q r_x r_y, r_x the mixture's ratio along the first direction and
        r_y = exp(s y - s^2 / 2) the Gaussian one of the second, s = its mean / standard deviation, it solves

            delta = E_0 max(0, q r_x r_y - (e^epsilon - 1 + q))

        of which the mean over y is in closed form and that over x a sum on a grid. 0 where delta is never
        exceeded. Of the two directions of the adjacency this is the one with the row over without it.

        Args:
          delta: in (0, 1).
        """
        validate.open_probability("delta", delta)
        weights = np.exp(self._absent - special.logsumexp(self._absent))
        slope = self._beside_mean / self._sigma
        log_a = math.log(self._q) + self._ratio

        def excess(epsilon: float) -> float:
            b = math.expm1(epsilon) + self._q
            upper = (log_a - math.log(b)) / slope + 0.5 * slope
            # a Phi(upper) - b Phi(upper - slope), with a in logarithms as it may be huge where p_0 is 0.
            a_part = np.exp(np.log(weights, where=weights > 0.0, out=np.full_like(weights, -np.inf)) + log_a)
            mean = a_part * special.ndtr(upper) - b * weights * special.ndtr(upper - slope)
            return float(np.sum(mean)) - delta

        if excess(0.0) <= 0.0:
            return 0.0
        return float(optimize.brentq(excess, 0.0, _LARGEST, xtol=1e-6))


def _directions(sums: ClippedSums, num_rows: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Unit vectors: of a short row's gradient, and of what the long row adds at right angles to it."""
    first = sums.short / np.linalg.norm(sums.short)
    rest = sums.move(num_rows)
    rest = rest - (rest @ first) * first
    return first, rest / np.linalg.norm(rest)
