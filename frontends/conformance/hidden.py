"""What suites and benches share: what may not show, and what a bench does not play."""

from collections.abc import Sequence
from typing import NoReturn, Protocol

import pytest

from ...ports.faults import Fault


def unplayed(what: str) -> NoReturn:
    """Skip the test."""
    pytest.skip(f"this bench does not play: {what}")


class Named(Protocol):
    """What every adapter but a notifier and a storage has."""

    @property
    def name(self) -> str: ...


def check_name(adapter: Named) -> None:
    """It is stored with what the adapter does, and begins the ids of its notes."""
    name = adapter.name
    assert name == adapter.name, "the name changes: objects that are stored with it would not be found again"
    assert 0 < len(name) <= 64, "the name cannot be stored: 1 to 64 characters"
    assert ":" not in name, "the name has a colon, which ends it in the ids of notes"
    assert name.isprintable(), "the name has characters that nobody can read"


def check_hidden(hidden: Sequence[str], adapter: object, *told: object) -> None:
    """None of these shows in the adapter's repr, nor in what it raised or gave."""
    texts = [repr(adapter), str(adapter)]
    for each in told:
        texts += [str(each), repr(each)]
        if isinstance(each, Fault):
            texts.append(repr(each.__cause__))
    assert not [1 for text in texts for secret in hidden if secret in text], "a credential or a person's data shows"
