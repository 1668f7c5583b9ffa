"""The record behind Idempotency-Key (docs/concepts.md "Idempotency")."""

from base64 import urlsafe_b64encode
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

import msgspec

from .accounts import Mode


class IdempotencyKey(msgspec.Struct, frozen=True, kw_only=True):
    """The resource that a key created. Stored forever; its id stands for account, mode and key (`key_id`), so that the
    primary key is the unique rule and the look-up is one read."""

    id: str
    kind: str
    """Kind of the resource: one key is shared by all endpoints of an account and mode."""
    resource_id: str
    created_at: datetime
    version: int = 0


def key_id(account_id: str, mode: Mode, key: str) -> str:
    """Return the record id of a canonical key: a digest of account and mode, and the 16 bytes of the UUID, in 34
    characters instead of 83. Every payment adds an id, and the index of all of them is kept forever."""
    return _scope(account_id, mode) + urlsafe_b64encode(bytes.fromhex(key.replace("-", ""))).decode().rstrip("=")


def key_ids(account_id: str, mode: Mode) -> tuple[str, str]:
    """Return the range of ids of an account's keys in a mode."""
    scope = _scope(account_id, mode)
    return scope, f"{scope}~"


@lru_cache(maxsize=1024)
def _scope(account_id: str, mode: Mode) -> str:
    return urlsafe_b64encode(blake2b(f"{account_id}:{mode}".encode(), digest_size=9).digest()).decode()
