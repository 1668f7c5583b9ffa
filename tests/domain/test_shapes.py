"""Rules of short texts that several orders share (docs/concepts.md "Shops")."""

import unicodedata

import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.shapes import check_text, has_control
from tests.tables import table

TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
"""Bidirectional classes of the characters that reorder adjacent text."""


def test_exactly_controls_surrogates_and_direction_changes_are_refused() -> None:
    """Letters of every script, combining and joining characters, and emoji are allowed."""
    refused = {chr(code) for code in range(0x110000) if has_control(chr(code))}
    by_class = {
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cs") or unicodedata.bidirectional(chr(code)) in TURNS
    }
    assert refused == by_class
    assert not has_control("חנות הספרים \u200f مكتبة \u200d👩‍🍳 Čaj")


@table("char", ["\u202e", "\u2067", "\u2066", "\u202a"])
def test_text_that_turns_direction_is_refused_by_field(char: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_text("description", f"Order {char}7", 255)
    assert caught.value.code == "VALIDATION_ERROR"
    assert "description" in caught.value.message
