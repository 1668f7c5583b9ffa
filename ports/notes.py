"""An adapter's notes, kept between two steps at a provider or across a crash."""

from datetime import datetime

import msgspec

ENCRYPTED = b"\0"
"""Prefix of an encrypted body, before the vault's value. No JSON begins with it."""


def note_aad(note_id: str) -> str:
    """Return the associated data of an encrypted body."""
    return f"provider_notes.body:{note_id}"


class ProviderNote(msgspec.Struct, frozen=True, kw_only=True):
    """One page of an adapter's operation log, stored with all other records.

    Real adapters keep provider references here between two calls of one operation; simulators keep the whole state of
    the simulated provider, so that it survives a restart. `id` begins with the adapter's name.
    """

    id: str
    provider: str
    body: bytes
    """JSON of the adapter. The storage encrypts what adapters write."""
    created_at: datetime
    version: int = 0
