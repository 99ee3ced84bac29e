"""Sources are checked when they are written down."""

from __future__ import annotations

import pytest

from exactdp.accounting.printed import dirichlet, feature, two_stage
from exactdp.accounting.printed.source import Source


def test_a_source_reads_as_a_citation():
    source = Source("2607.19580", 1, "Lemma 13")
    assert str(source) == "arXiv 2607.19580v1, Lemma 13 (printed)"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("arxiv", ("2607.195", 1, "Lemma 13")),
        ("arxiv", ("cs/0101001", 1, "Lemma 13")),
        ("version", ("2607.19580", 0, "Lemma 13")),
        ("locator", ("2607.19580", 1, "  ")),
        ("certainty", ("2607.19580", 1, "Lemma 13", "guessed")),
    ],
)
def test_malformed_sources(name: str, arguments: tuple[object, ...]):
    with pytest.raises(ValueError, match=name):
        Source(*arguments)


def test_every_entry_is_complete():
    for entry in (*dirichlet.ENTRIES, *feature.ENTRIES, *two_stage.ENTRIES):
        assert entry.name
        assert entry.formula
        assert entry.threat_model.released
        assert entry.source.locator
