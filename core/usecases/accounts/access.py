"""Authentication: turns a key pair into a Caller, with the same refusal for every failure (docs/concepts.md "Accounts,
keys, modes")."""

import hmac
import logging
from ipaddress import IPv4Address, IPv6Address

from ....ports.bundle import Ports
from ...domain.accounts.accounts import KEY_PREFIXES, LIVE, Account, ApiKey, Caller
from ...domain.accounts.key_terms import Right, networks
from ...domain.accounts.rate_limit import is_among
from ...domain.cells import AccountMove, Departure
from ...domain.errors import Refusal
from ..common.encrypted import key_fits

log = logging.getLogger("cambist.keys")

_LONGEST_KEY = 128
_PREFIXES = tuple(KEY_PREFIXES.values())
RECENT = 2.0
"""Seconds within which every process notifications changes by another one: a revoked key, settings, a gateway."""
_NO_DIGEST = bytes(32)
"""Digest to compare with when the key is unknown, so that unknown keys and wrong secrets take the same time."""


def _may_be_a_key(text: str) -> bool:
    # Text that cannot be a key never reaches the storage: no NUL, no lone surrogate, no other length class.
    return text.startswith(_PREFIXES) and len(text) <= _LONGEST_KEY and text.isascii() and text.isprintable()


def _has_ended(ports: Ports, key: ApiKey) -> bool:
    return key.ends_at is not None and key.ends_at <= ports.clock.now()


async def authenticate(ports: Ports, api_key: str, api_secret: str) -> Caller:
    """Return the caller with this key pair.

    Raises: Refusal Unauthorized, with the same message for a wrong prefix, an unknown or expired key, and a wrong
    secret; ACCOUNT_MOVING for a key whose account left this cell.
    """
    # A header may contain any byte. Text that no issued secret contains becomes the empty one, which matches no digest.
    given = ports.vault.fingerprint(api_secret if api_secret.isascii() else "")
    key: ApiKey | None = None
    account: Account | None = None
    if _may_be_a_key(api_key):
        key = await ports.storage.recent(ApiKey, api_key, within=RECENT)
        if key is not None:
            # Another process may move the clock of a test account, and its time must never go back.
            within = RECENT if key.mode is LIVE else 0.0
            account = await ports.storage.recent(Account, key.account_id, within=within)
        elif ports.cell is not None and await ports.storage.get(Departure, api_key) is not None:
            raise moving()
    matches = hmac.compare_digest(given, _NO_DIGEST if key is None else key.secret_digest)
    if not matches or key is None or account is None or _has_ended(ports, key):
        raise _unauthorized()
    if not key_fits(ports.vault, key):
        log.error("API key %s is not what the vault tagged, and opens nothing: run `cambist ledger verify`", key.id)
        raise _unauthorized()
    return Caller(account=account, mode=key.mode, key_id=key.id, terms=key.terms, key_maker=key.made_by)


def moving() -> Refusal:
    """Return the refusal of a request about an account that is being moved, or was moved, to another cell."""
    return Refusal("ACCOUNT_MOVING", "The account is being moved to other servers; repeat the request", retry_after=2)


async def departed_to(ports: Ports, object_id: str) -> str | None:
    """Return the address of the payment window in the cell to which the object's account moved; None if it did not."""
    departure = await ports.storage.get(Departure, object_id)
    move = None if departure is None else await ports.storage.get(AccountMove, departure.account_id)
    return None if move is None else move.pay_url


def _unauthorized() -> Refusal:
    return Refusal("Unauthorized", "The API key or secret is not valid")


def require_address(caller: Caller, address: IPv4Address | IPv6Address | None) -> None:
    """Refuse a caller whose key is bound to other addresses. Raises: Refusal KEY_ADDRESS_NOT_ALLOWED."""
    allowed = caller.terms.addresses
    if allowed is not None and (address is None or not is_among(address, networks(allowed))):
        raise Refusal("KEY_ADDRESS_NOT_ALLOWED", "The key may not be used from this address")


def require_right(caller: Caller, right: Right) -> None:
    """Refuse a caller whose key lacks a right. Raises: Refusal KEY_RIGHT_MISSING."""
    rights = caller.terms.rights
    if rights is not None and right not in rights:
        raise Refusal("KEY_RIGHT_MISSING", f"The key lacks the right {right}", details={"right": right.value})
