"""The record behind Idempotency-Key (docs/concepts.md "Idempotency")."""

from datetime import datetime

import msgspec

from .accounts import Mode


class IdempotencyKey(msgspec.Struct, frozen=True, kw_only=True):
    """Which resource a key made. Kept for ever; its id spells (account, mode, key), so that the primary key is the
    unique rule and the lookup is one read."""

    id: str
    kind: str
    """The kind of resource: a key is one over all endpoints of an account and mode."""
    resource_id: str
    created_at: datetime
    version: int = 0


def key_id(account_id: str, mode: Mode, key: str) -> str:
    """The record id of a canonical key."""
    return ":".join((account_id, mode, key))
