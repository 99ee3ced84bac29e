"""Rows asked for, kept and rejected."""

from __future__ import annotations

import pytest

from exactdp.train.table_metrics.validity import Validity


def test_rates_and_sums() -> None:
    first = Validity(10, 7, {"column lacking": 2, "out of domain": 1})
    both = first + Validity(5, 4, {"unreadable": 1})
    assert first.rate == 0.7
    assert both == Validity(15, 11, {"column lacking": 2, "out of domain": 1, "unreadable": 1})
    assert Validity(0, 0).rate is None


def test_counts_must_add_up() -> None:
    with pytest.raises(ValueError, match="accepted and rejected rows together, got 10 for 7 and 2"):
        Validity(10, 7, {"column lacking": 2})
    with pytest.raises(ValueError, match="accepted must be a whole number >= 0, got -1"):
        Validity(1, -1, {"x": 2})
