"""A provider's notebook: what an adapter must remember between two steps at a provider, or across a crash."""

from datetime import datetime

import msgspec


class ProviderNote(msgspec.Struct, frozen=True, kw_only=True):
    """One page of an adapter's notebook, kept in the storage beside everything else.

    Real adapters keep provider references here between two calls of one operation; simulators keep the whole state
    of the provider that they simulate, so that it survives a restart. `id` begins with the adapter's name.
    """

    id: str
    provider: str
    body: bytes
    """The adapter's own JSON."""
    created_at: datetime
    version: int = 0
