"""Identifiers: a prefix that says what a thing is, and a UUID."""

import re
from hashlib import sha256
from uuid import UUID

ACCOUNT = "acc_"
PAYMENT = "pay_"
REFUND = "ref_"
EVENT = "evt_"
SUBSCRIPTION = "sub_"
SETTLEMENT = "stl_"
WITHDRAWAL = "wd_"
EXCHANGE = "exch_"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.ASCII)


def canonical_uuid(text: str) -> str | None:
    """The UUID in lower case when `text` is one in the 8-4-4-4-12 form, any version; else None.

    Only this form, because `uuid.UUID` also reads braces, URNs and bare hex, and two spellings of one
    Idempotency-Key must not be two keys, nor two texts one key by accident.
    """
    lowered = text.lower()
    return lowered if _UUID.match(lowered) else None


def prefixed(prefix: str, uuid: str) -> str:
    """`pay_` and a UUID: an object's public id."""
    return f"{prefix}{uuid}"


def derived(prefix: str, *causes: str) -> str:
    """The id of what follows from these causes, in their order: the same causes always give the same id.

    So whoever does it again, having forgotten the first time, speaks of the same operation. The UUID is of version 8, a
    digest: it says nothing of time, and whoever knows the causes can tell it. So it opens nothing by itself.
    """
    return prefixed(prefix, _uuid(sha256("\0".join((prefix, *causes)).encode()).digest(), version=8))


def derived_after(prefix: str, earlier: str, digest: bytes) -> str:
    """The same for what belongs to an earlier object, from a digest of its causes; if that is a keyed one, nobody else
    can tell the id. The UUID is of version 7 with the time of that object's, so it comes before whatever is made from
    now on. Raises: ValueError for an id without a UUID."""
    return prefixed(prefix, _uuid(UUID(earlier.rpartition("_")[2]).bytes[:6] + digest, version=7))


def _uuid(digest: bytes, *, version: int) -> str:
    """Its first 16 bytes, but for what says that it is a UUID."""
    number = int.from_bytes(digest[:16], "big") & ~(0xF << 76) & ~(0b11 << 62)
    return str(UUID(int=number | version << 76 | 0b10 << 62))


def is_prefixed(prefix: str, text: str) -> bool:
    """Whether `text` could be an id of this prefix at all; what could not be is never looked up."""
    return text.startswith(prefix) and _UUID.match(text, len(prefix)) is not None
