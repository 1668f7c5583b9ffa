"""A provider's notebook: what an adapter must remember between two steps at a provider, or across a crash."""

from datetime import datetime

import msgspec

ENCRYPTED = b"\0"
"""What an encrypted body begins with, before the vault's value. No JSON does."""


def note_place(note_id: str) -> str:
    """Return the associated data of an encrypted body."""
    return f"provider_notes.body:{note_id}"


class ProviderNote(msgspec.Struct, frozen=True, kw_only=True):
    """One page of an adapter's notebook, kept in the storage beside everything else.

    Real adapters keep provider references here between two calls of one operation; simulators keep the whole state
    of the provider that they simulate, so that it survives a restart. `id` begins with the adapter's name.
    """

    id: str
    provider: str
    body: bytes
    """The adapter's own JSON. What an adapter writes lies encrypted in the storage."""
    created_at: datetime
    version: int = 0
