"""Identifiers: a prefix for the kind of object, and a UUID."""

import re
from base64 import b32decode, b32encode
from hashlib import sha256
from uuid import UUID

ACCOUNT = "acc_"
PAYMENT = "pay_"
PAYMENT_LINK = "plink_"
LOGO = "logo_"
REFUND = "ref_"
EVENT = "evt_"
ENDPOINT = "we_"
SUBSCRIPTION = "sub_"
SETTLEMENT = "stl_"
WITHDRAWAL = "wd_"
EXCHANGE = "exch_"
RECEIPT = "rcpt_"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.ASCII)


def canonical_uuid(text: str) -> str | None:
    """Return the UUID in lower case if `text` is one in the 8-4-4-4-12 form, of any version; otherwise None.

    Only this form, because `uuid.UUID` also accepts braces, URNs and bare hex: two spellings of one Idempotency-Key
    must not be two keys, and two texts must not accidentally be one key.
    """
    lowered = text.lower()
    return lowered if _UUID.match(lowered) else None


def prefixed(prefix: str, uuid: str) -> str:
    """Return an object's public id: a prefix such as `pay_`, and a UUID."""
    return f"{prefix}{uuid}"


def derived(prefix: str, *causes: str) -> str:
    """Return the id derived from these causes, in their order: the same causes always give the same id.

    So a program that repeats the work without any memory of the first time uses the same operation. The UUID is of
    version 8, a digest: it contains no time, and anybody who knows the causes can compute it. So it must not grant
    access by itself.
    """
    return prefixed(prefix, _uuid(sha256("\0".join((prefix, *causes)).encode()).digest(), version=8))


def derived_after(prefix: str, earlier: str, digest: bytes) -> str:
    """Return an id derived from a digest of its causes, for an object that belongs to an earlier one. With a keyed
    digest nobody else can compute it. The UUID is of version 7 with the earlier object's time, so it sorts before all
    later objects. Raises: ValueError for an id without a UUID."""
    return prefixed(prefix, _uuid(UUID(earlier.rpartition("_")[2]).bytes[:6] + digest, version=7))


def _uuid(digest: bytes, *, version: int) -> str:
    """Return a UUID with the digest's first 16 bytes, except for the version and variant bits."""
    number = int.from_bytes(digest[:16], "big") & ~(0xF << 76) & ~(0b11 << 62)
    return str(UUID(int=number | version << 76 | 0b10 << 62))


def is_prefixed(prefix: str, text: str) -> bool:
    """Return whether `text` can be an id with this prefix; other texts need no look-up."""
    return text.startswith(prefix) and _UUID.match(text, len(prefix)) is not None


_PACKED = re.compile(r"([a-z2-7]{26})_([a-z0-9]{1,9})\Z", re.ASCII)


def operation(prefix: str, object_id: str, which: int | str) -> str:
    """Return the id of one of an object's operations at a provider, of 40 characters at most
    (docs/adapters.md "Operation ids"): a prefix of at most 4, the object's UUID in 26, and `which` operation, in at
    most 9 of `[a-z0-9]`. It can be decoded (`read_operation`). Raises: ValueError for values that do not fit."""
    packed = f"{_base32(UUID(object_id.rpartition('_')[2]).bytes)}_{which}"
    if len(prefix) > 4 or not _PACKED.match(packed):
        raise ValueError(f"no operation id can be made of {object_id} and {which!r}")
    return f"{prefix}{packed}"


def read_operation(prefix: str, text: str) -> tuple[str, str] | None:
    """Return the UUID of the operation's object, and `which` operation it is; None for ids that are not from
    `operation`."""
    found = _PACKED.match(text, len(prefix)) if text.startswith(prefix) else None
    if found is None:
        return None
    digest = b32decode(f"{found[1].upper()}======")
    return (str(UUID(bytes=digest)), found[2]) if _base32(digest) == found[1] else None


def read_number(text: str) -> int | None:
    """Parse a number as `operation` writes it; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") else None


def tail(text: str, number: int) -> str:
    """Return a `which` for objects without a UUID of their own: 8 characters of a digest, and a number from 1 to 31 in
    one character. Two of one object collide with a probability below 10^-12.

    Raises: ValueError for another number.
    """
    if not 1 <= number < len(_DIGITS):
        raise ValueError(f"{number} is no number of an attempt")
    return f"{_base32(sha256(text.encode()).digest()[:5])}{_DIGITS[number]}"


def tail_number(text: str, which: str) -> int | None:
    """Return the number in a `tail` of this text; None for another text's."""
    number = _DIGITS.find(which[-1:] or "0")
    return number if number > 0 and tail(text, number) == which else None


_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def _base32(raw: bytes) -> str:
    return b32encode(raw).decode().rstrip("=").lower()
