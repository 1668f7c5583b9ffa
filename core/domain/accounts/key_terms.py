"""Permissions of a key pair, and its allowed addresses (docs/concepts.md "Keys with fewer rights")."""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_network

import msgspec

from ..errors import Refusal
from .rate_limit import Network


class Right(StrEnum):
    """Rights that operations require. None includes another: a key for refunds need not be able to read."""

    READ = "read"
    """All GET requests."""
    PAYMENTS = "payments"
    """Payments, subscriptions and their charges, delivery proofs."""
    REFUNDS = "refunds"
    EXCHANGES = "exchanges"
    KYC = "kyc"
    """Verification of clients, including the query of a client's state, which is personal data."""
    WEBHOOKS = "webhooks"
    """Resending events, test events, and creating and changing further endpoints."""
    SANDBOX = "sandbox"
    """The sandbox's own calls, except its reads."""


MOST_ADDRESSES = 50
LONGEST_NAME = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class KeyTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Permissions of a pair."""

    rights: tuple[str, ...] | None = None
    """Values of Right, or of a newer version; None: all present and future ones."""
    addresses: tuple[str, ...] | None = None
    """Networks from which it may be used; None: everywhere."""


def key_name(text: str) -> str:
    """Check the name that distinguishes a key with terms from the others of its mode. Raises: Refusal
    VALIDATION_ERROR."""
    if not _NAME.match(text) or len(text) > LONGEST_NAME:
        raise Refusal(
            "VALIDATION_ERROR", f"A key's name has 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        )
    return text


def read_rights(texts: Collection[str]) -> tuple[str, ...]:
    """Return rights in the order of Right, without repetition. Raises: Refusal VALIDATION_ERROR for an unknown one, and
    for an empty list."""
    unknown = sorted(set(texts) - {*Right})
    if unknown or not texts:
        raise Refusal("VALIDATION_ERROR", f"Rights are some of: {', '.join(Right)}")
    return tuple(each.value for each in Right if each in texts)


def read_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Return addresses and networks (`203.0.113.7`, `2001:db8::/32`) as networks. Raises: Refusal VALIDATION_ERROR."""
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
    """Return stored addresses as networks. Cached, because every request needs it."""
    return tuple(ip_network(each) for each in addresses)
