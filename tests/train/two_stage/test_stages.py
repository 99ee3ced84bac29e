"""In how many parts stage 2 computes a batch."""

from __future__ import annotations

import pytest

from exactdp.train.gpt2 import config
from exactdp.train.two_stage import stages


class Language:
    """What the number of parts depends on."""

    def __init__(self, name: str, length: int, vocabulary: int) -> None:
        self.config = config.named(name, vocabulary=vocabulary, positions=length)
        self.length = length


@pytest.mark.parametrize(
    ("name", "length", "vocabulary", "capacity"),
    [
        ("tiny", 64, 512, 1),
        ("tiny", 96, 1024, 700),
        ("tiny", 17, 300, 701),
        ("gpt2", 128, 50257, 700),
        ("gpt2", 1024, 50257, 9),
    ],
)
def test_parts_are_within_32_mib_or_of_eight_rows(
    name: str, length: int, vocabulary: int, capacity: int
) -> None:
    language = Language(name, length, vocabulary)
    parts = stages._parts(language, capacity)  # type: ignore[arg-type]
    rows = -(-capacity // parts)
    sizes = language.config
    row_bytes = 4 * length * max(sizes.vocabulary, sizes.layers * sizes.inner)
    assert 1 <= parts <= capacity
    assert rows <= 8 or rows * row_bytes <= 2**25
    if parts > 1:  # with one part fewer there would be too many rows
        fewer = -(-capacity // (parts - 1))
        assert fewer > 8
        assert fewer * row_bytes > 2**25
