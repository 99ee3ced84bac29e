"""The generation speed script: what is generated along, and what is concluded."""

from __future__ import annotations

from exactdp.benchmarks import two_stage_generation_speed as script


def test_chain() -> None:
    automaton = script.chain(4)
    assert automaton.states == 5 and automaton.final(4)
    assert automaton.widest == script.CANDIDATES
    assert automaton.tokens.min() > 0 and automaton.tokens.max() < script.VOCABULARY - 1


def test_verdict() -> None:
    def row(library: str, batch: int, rate: float) -> script.Row:
        return {"model": "tiny", "library": library, "batch": batch, "rows_per_second": rate}

    ours = [row(script.FREE, 32, 40.0), row(script.FREE, 64, 60.0), row(script.AUTOMATON, 64, 44.0)]
    assert script.verdict(ours) == ["tiny: transformers was not measured"]
    free, along = script.verdict([*ours, row(script.PEER, 64, 5.0), row(script.PEER, 256, 10.0)])
    assert "exactdp 6.0 times" in free and free.endswith("reached")
    assert "automaton 4.4 times" in along and along.endswith("missed")
