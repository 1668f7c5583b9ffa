"""Helpers of suites and harnesses: checks for leaked secrets, and skips for features that a harness does not
simulate."""

import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

import pytest

from ...ports.faults import Fault


def unplayed(what: str, *methods: str) -> NoReturn:
    """Skip the test: the harness does not simulate this feature. The skip names the members to override, by default the
    harness's method that calls this."""
    names = methods or (sys._getframe(1).f_code.co_name,)
    pytest.skip(f"this harness does not play {what}: override {' or '.join(f'`{name}`' for name in names)}")


class Named(Protocol):
    """An adapter with a name: every adapter except notifiers and storages."""

    @property
    def name(self) -> str: ...


def check_name(adapter: Named) -> None:
    """Assert that the name can be stored. It is stored with the adapter's operations and begins the ids of its
    notes."""
    name = adapter.name
    assert name == adapter.name, "the name changes: objects that are stored with it would not be found again"
    assert 0 < len(name) <= 64, "the name cannot be stored: 1 to 64 characters"
    assert ":" not in name, "the name has a colon, which ends it in the ids of notes"
    assert name.isprintable(), "the name has characters that nobody can read"


def check_hidden(hidden: Sequence[str], adapter: object, *told: object) -> None:
    """Assert that none of these strings shows in the adapter's repr, or in what it raised or returned."""
    texts = [repr(adapter), str(adapter)]
    for each in told:
        texts += [str(each), repr(each)]
        if isinstance(each, Fault):
            texts.append(repr(each.__cause__))
    assert not [1 for text in texts for secret in hidden if secret in text], "a credential or a person's data shows"
