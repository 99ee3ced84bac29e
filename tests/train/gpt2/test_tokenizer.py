"""Byte-level BPE: round trips, training, GPT-2's own files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.train.gpt2 import tokenizer

TEXTS = [f" age is {n}, class is {'low' if n % 3 else 'high'}, ürün is {n * 0.5:.2f}" for n in range(60)]
SMALL = tokenizer.train(TEXTS, vocabulary=300)


def test_a_frequent_piece_becomes_one_token() -> None:
    """Pieces are not cut into words; digits stay apart, and nothing spans two pieces."""
    pieces = [" capital-gain", " is", " never, ever", " 1470", " 0"] * 40
    found = tokenizer.train(pieces, vocabulary=400)
    for piece in (" capital-gain", " is", " never, ever"):
        assert [found.token_bytes(i) for i in found.encode(piece)] == [piece.encode()]
    assert [found.token_bytes(i) for i in found.encode(" 1470")] == [b" ", b"1", b"4", b"7", b"0"]
    digits = [i for i in range(found.vocabulary) if set(found.token_bytes(i)) & set(b"0123456789")]
    assert len(digits) == 10
    assert 257 < SMALL.vocabulary <= 300


def test_training_is_deterministic(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        tokenizer.train(iter(TEXTS), vocabulary=300).save(tmp_path / folder)
    assert (tmp_path / "a" / tokenizer.FILE).read_bytes() == (tmp_path / "b" / tokenizer.FILE).read_bytes()


def test_saved_and_loaded(tmp_path: Path) -> None:
    SMALL.save(tmp_path)
    again = tokenizer.load(tmp_path)
    assert (again.vocabulary, again.end) == (SMALL.vocabulary, SMALL.end)
    assert again.encode_batch(TEXTS) == SMALL.encode_batch(TEXTS)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(text: str) -> None:
    tokens = SMALL.encode(text)
    assert SMALL.decode(tokens) == text
    assert b"".join(SMALL.token_bytes(token) for token in tokens) == text.encode()


def test_a_text_cannot_end_itself() -> None:
    text = f" name is {tokenizer.END}, x"
    tokens = SMALL.encode(text)
    assert SMALL.end not in tokens
    assert SMALL.decode(tokens) == text
    assert SMALL.token_bytes(SMALL.end) == b""
    assert SMALL.decode((*SMALL.encode("a"), SMALL.end)) == "a"
    assert SMALL.decode([SMALL.encode("é")[0]]) == "\ufffd"


def test_refused() -> None:
    with pytest.raises(ValueError, match="vocabulary must be a whole number >= 257, got 256"):
        tokenizer.train(TEXTS, vocabulary=256)
    with pytest.raises(ValueError, match="got a surrogate in text 1$"):
        SMALL.encode_batch(["fine", "secret\ud800"])
    for token in (-1, SMALL.vocabulary):
        with pytest.raises(ValueError, match="token must be an id below"):
            SMALL.token_bytes(token)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must hold tokenizer.json, or vocab.json and merges.txt"):
        tokenizer.load(tmp_path)
    path = tmp_path / tokenizer.FILE
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold a whole tokenizer"):
        tokenizer.load(tmp_path)
    SMALL.save(tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    lowered = {**content, "normalizer": {"type": "Lowercase"}}
    words = dict(content["model"]["vocab"])
    words["日"] = words.pop(tokenizer.END)
    endless = {**content, "added_tokens": [], "model": {**content["model"], "vocab": words}}
    for changed, message in (
        (lowered, "got one that normalises them"),
        (endless, "must have the token"),
    ):
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            tokenizer.load(tmp_path)


def test_vocabulary_and_merges(tmp_path: Path) -> None:
    SMALL.save(tmp_path)
    content = json.loads((tmp_path / tokenizer.FILE).read_text(encoding="utf-8"))["model"]
    (tmp_path / tokenizer.FILE).unlink()
    (tmp_path / "vocab.json").write_text(json.dumps(content["vocab"]), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in content["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = tokenizer.load(tmp_path)
    assert found.end == SMALL.end
    assert found.encode(" age is") == SMALL.encode(" age is")
    assert found.decode(found.encode("ß 日本 12")) == "ß 日本 12"


def test_gpt2() -> None:
    folder = Path(os.environ.get("EXACTDP_DATA", "")) / "gpt2_tokenizer"
    if not os.environ.get("EXACTDP_DATA") or not folder.is_dir():
        pytest.skip("EXACTDP_DATA/gpt2_tokenizer, with vocab.json and merges.txt of GPT-2, is not there")
    found = tokenizer.load(folder)
    assert (found.vocabulary, found.end) == (50_257, 50_256)
    assert found.encode("Hello world") == (15496, 995)
    assert found.encode(" age is 39,") == (2479, 318, 5014, 11)
