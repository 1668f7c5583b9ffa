"""What a key pair may do, and from where (docs/concepts.md "Keys with fewer rights")."""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_network

import msgspec

from ..errors import Refusal
from .quota import Network


class Right(StrEnum):
    """What operations need, as their rows say. None includes another: who may refund need not read."""

    READ = "read"
    """Everything that is asked for by GET."""
    PAYMENTS = "payments"
    """Payments, subscriptions and their charges, delivery proofs."""
    REFUNDS = "refunds"
    EXCHANGES = "exchanges"
    KYC = "kyc"
    """Verifying clients: also to ask how one stands, which tells of a person."""
    WEBHOOKS = "webhooks"
    """To have events sent again, test events, and to make and change further endpoints."""
    SANDBOX = "sandbox"
    """The sandbox's own calls, but for its reads."""


MOST_ADDRESSES = 50
LONGEST_NAME = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_MARK = 0xA5
"""What each byte of the digest of a key with terms is combined with."""


class KeyTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a pair may do. Of a program that is older than this the pair is none (`marked`)."""

    rights: tuple[str, ...] | None = None
    """Values of Right, or words of a newer program; None: all that there are, and will be."""
    addresses: tuple[str, ...] | None = None
    """Networks from which it may be used; None: from everywhere."""

    @property
    def are_all(self) -> bool:
        """Whether nothing is kept from its holder."""
        return self.rights is None and self.addresses is None


def marked(digest: bytes) -> bytes:
    """The digest of a secret as it is stored of a key with terms, and back again: programs from before there were any
    find no match, and refuse a pair of which they would not know what it may not do."""
    return bytes(byte ^ _MARK for byte in digest)


def key_name(text: str) -> str:
    """The name by which a key with terms is told from the others of its mode. Raises: Refusal VALIDATION_ERROR."""
    if not _NAME.match(text) or len(text) > LONGEST_NAME:
        raise Refusal(
            "VALIDATION_ERROR", f"A key's name has 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        )
    return text


def read_rights(texts: Collection[str]) -> tuple[str, ...]:
    """Rights in the order of Right, each once. Raises: Refusal VALIDATION_ERROR for an unknown one, and for none."""
    unknown = sorted(set(texts) - {*Right})
    if unknown or not texts:
        raise Refusal("VALIDATION_ERROR", f"Rights are some of: {', '.join(Right)}")
    return tuple(each.value for each in Right if each in texts)


def read_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Addresses and networks (`203.0.113.7`, `2001:db8::/32`) as networks. Raises: Refusal VALIDATION_ERROR."""
    if not 1 <= len(texts) <= MOST_ADDRESSES:
        raise Refusal("VALIDATION_ERROR", f"A key has 1 to {MOST_ADDRESSES} addresses")
    try:
        return tuple(dict.fromkeys(str(_network(text.strip())) for text in texts))
    except ValueError:
        raise Refusal(
            "VALIDATION_ERROR", "An address is one of IPv4 or IPv6, or a network such as 203.0.113.0/24"
        ) from None


def _network(text: str) -> Network:
    if "%" in text:
        raise ValueError("a zone is of one machine")
    return ip_network(text)


@lru_cache(maxsize=1024)
def networks(addresses: tuple[str, ...]) -> tuple[Network, ...]:
    """Stored addresses as networks. Kept: it is asked for with every request."""
    return tuple(ip_network(each) for each in addresses)
