"""Private list of a column's categories where no public list is known.

Each value present gets a noisy count; the values whose noisy count reaches t are released with it. A value
that no record holds is never released, which is what costs a delta:

    t = the least whole number with Pr[1 + noise >= t] <= delta

*Proof.* Let D' have one record more than D, whose value is v. If some record of D holds v, the two answers
differ by 1 in the count of v alone: they are dominated by `noise` (what follows is post-processing). If none
does, the answers have the same law but for the event that v, with count 1, reaches t: its probability is at
most delta, so they are (0, delta)-indistinguishable, in both directions. The composition of `noise` with
ApproximateDP(0, delta) dominates either. For discrete Laplace noise of scale 1/epsilon this is within
(epsilon, delta)-DP.

Whether a value is present is looked up once, and the time that takes is not hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute

from exactdp.accounting import validate
from exactdp.accounting.pairs.approximate import ApproximateDP
from exactdp.mechanisms.statistics import counts
from exactdp.mechanisms.statistics.counts import Noise

# Its functions are made at import, and untyped.
_pc: Any = pyarrow.compute


def pairs(noise: Noise, *, delta: float) -> tuple[Noise, ApproximateDP]:
    """What accounts for one release: the two, composed.

    Raises:
      ValueError: `delta` is outside (0, 1).
    """
    return noise, ApproximateDP(0.0, validate.open_probability("delta", delta))


def threshold(noise: Noise, *, delta: float) -> int:
    """t above: the least noisy count that is released.

    Raises:
      ValueError: `delta` is outside (0, 1), or `noise` is none of `counts.Noise`.
    """
    return 1 + counts.quantile(noise, delta)


def present(texts: Any) -> dict[str, int]:
    """How many cells hold each text, spaces around it and empty cells aside. Exact: private.

    Args:
      texts: an Arrow array of type string, chunked or not.
    """
    found = _pc.value_counts(_pc.utf8_trim_whitespace(texts))
    values, numbers = found.field("values").to_pylist(), found.field("counts").to_pylist()
    return {value: number for value, number in zip(values, numbers, strict=True) if value}


def release(texts: Any, *, noise: Noise, delta: float, limit: int) -> dict[str, int]:
    """The categories of a column, privately, with their noisy counts.

    Guarantee: dominated by the composition of `pairs` under add/remove of a record.

    Args:
      texts: the column, as in `present`.
      noise: of each count.
      delta: in (0, 1).
      limit: how many values are kept at most, those of the largest noisy counts; a public number >= 0.

    Returns:
      Value to noisy count, the largest first, equal ones in the order of their texts; perhaps none.

    Raises:
      ValueError: bad input.
    """
    most = validate.count("limit", limit)
    least = threshold(noise, delta=delta)
    exact = present(texts)
    noisy = counts.noisy(np.array(list(exact.values()), np.int64), noise=noise)
    kept = [(value, int(count)) for value, count in zip(exact, noisy, strict=True) if count >= least]
    return dict(sorted(kept, key=lambda entry: (-entry[1], entry[0]))[:most])
