"""Identifiers: a prefix that says what a thing is, and a UUID."""

import re

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


def is_prefixed(prefix: str, text: str) -> bool:
    """Whether `text` could be an id of this prefix at all; what could not be is never looked up."""
    return text.startswith(prefix) and _UUID.match(text, len(prefix)) is not None
