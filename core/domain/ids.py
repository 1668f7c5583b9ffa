"""Identifiers: a prefix that says what a thing is, and a UUID."""

import re
from base64 import b32decode, b32encode
from hashlib import sha256
from uuid import UUID

ACCOUNT = "acc_"
PAYMENT = "pay_"
REFUND = "ref_"
EVENT = "evt_"
ENDPOINT = "we_"
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


_PACKED = re.compile(r"([a-z2-7]{26})_([a-z0-9]{1,9})\Z", re.ASCII)


def operation(prefix: str, object_id: str, which: int | str) -> str:
    """The id of one of an object's operations at a provider, of 40 characters at most (docs/adapters.md "Operation
    ids"): a prefix of 4, the object's UUID in 26, and `which` of them, in 9 of `[a-z0-9]` at most. It leads back
    (`read_operation`). Raises: ValueError for what does not fit."""
    packed = f"{_base32(UUID(object_id.rpartition('_')[2]).bytes)}_{which}"
    if len(prefix) > 4 or not _PACKED.match(packed):
        raise ValueError(f"no operation id can be made of {object_id} and {which!r}")
    return f"{prefix}{packed}"


def read_operation(prefix: str, text: str) -> tuple[str, str] | None:
    """The UUID of the object whose operation this is, and which one; None for what `operation` does not make."""
    found = _PACKED.match(text, len(prefix)) if text.startswith(prefix) else None
    if found is None:
        return None
    digest = b32decode(f"{found[1].upper()}======")
    return (str(UUID(bytes=digest)), found[2]) if _base32(digest) == found[1] else None


def read_number(text: str) -> int | None:
    """A number as `operation` writes it; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") else None


def tail(text: str, number: int) -> str:
    """`which`, for what has no UUID of its own: 8 characters of a digest, and a number from 1 to 31 in one. Two of one
    object share it with a chance below 10^-12.

    Raises: ValueError for another number.
    """
    if not 1 <= number < len(_DIGITS):
        raise ValueError(f"{number} is no number of an attempt")
    return f"{_base32(sha256(text.encode()).digest()[:5])}{_DIGITS[number]}"


def tail_number(text: str, which: str) -> int | None:
    """The number in a `tail` of this text; None for what is none of it."""
    number = _DIGITS.find(which[-1:] or "0")
    return number if number > 0 and tail(text, number) == which else None


_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def _base32(raw: bytes) -> str:
    return b32encode(raw).decode().rstrip("=").lower()
