"""Identifiers: a prefix that says what a thing is, and a UUID."""

import re
from hashlib import sha256

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
    number = int.from_bytes(sha256("\0".join((prefix, *causes)).encode()).digest()[:16], "big")
    number = number & ~(0xF << 76) & ~(0b11 << 62) | 8 << 76 | 0b10 << 62
    digits = f"{number:032x}"
    return f"{prefix}{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_prefixed(prefix: str, text: str) -> bool:
    """Whether `text` could be an id of this prefix at all; what could not be is never looked up."""
    return text.startswith(prefix) and _UUID.match(text, len(prefix)) is not None
