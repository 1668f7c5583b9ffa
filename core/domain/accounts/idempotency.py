"""The record behind Idempotency-Key (docs/concepts.md "Idempotency")."""

from datetime import datetime

import msgspec

from .accounts import Mode


class IdempotencyKey(msgspec.Struct, frozen=True, kw_only=True):
    """The resource that a key created. Stored forever; its id consists of account, mode and key, so that the primary
    key is the unique rule and the look-up is one read."""

    id: str
    kind: str
    """Kind of the resource: one key is shared by all endpoints of an account and mode."""
    resource_id: str
    created_at: datetime
    version: int = 0


def key_id(account_id: str, mode: Mode, key: str) -> str:
    """Return the record id of a canonical key."""
    return ":".join((account_id, mode, key))
