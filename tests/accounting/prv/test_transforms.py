"""The contour's sums by transforms against 40 digits, and against the sums multiplied out."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from exactdp.accounting.prv import measures
from exactdp.accounting.prv.saddle import EPS


@pytest.mark.parametrize(("count", "start", "step"), [(1000, 3.0, 0.07), (1001, 40.0, 1.3), (7, 1.0, 1e-3)])
def test_sums_by_transforms(count: int, start: float, step: float) -> None:
    rng = np.random.default_rng(count)
    weight, d = rng.random(300), rng.standard_normal(300) * rng.choice([1e-3, 1.0, 30.0], 300)
    weight /= weight.sum()
    found, error = measures._by_transforms(weight, d, start, step, count)
    assert 0.0 < error < 1e-12
    with mp.workdps(40):
        for k in (0, count // 2, count - 1):
            y = mp.mpf(start) + mp.mpf(step) * k
            terms = [mp.mpf(w) * (mp.expj(y * mp.mpf(x)) - 1) for w, x in zip(weight, d, strict=True)]
            # Rounding of the arguments y d themselves comes on top, as `_characteristic` says.
            allowed = error + 4.0 * EPS * float(y) * float(weight @ np.abs(d))
            assert abs(mp.fsum(terms) - mp.mpc(complex(found[k]))) <= allowed
    products = measures._by_products(weight, d, start, step, count)
    slack = 1e-13 + 16.0 * EPS * (start + step * count) * float(weight @ np.abs(d))
    assert np.abs(found - products).max() <= slack


def test_blocks_cover_every_node_once() -> None:
    for count, step, frequency in ((1, 1.0, 0.1), (1000, 0.5, 7.0), (64, 2.0, 1e-3), (50, 1.0, 1e9)):
        blocks = measures._blocks(count, step, frequency)
        assert [k for block in blocks for k in range(block.start, block.stop)] == list(range(count))
