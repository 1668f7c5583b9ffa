"""Terminals: ways to pay with their own rules, agreed with an account (docs/payments.md "Terminals")."""

from datetime import datetime
from enum import StrEnum

import msgspec

from ..errors import FieldFault, Refusal
from ..money import Rub
from .accounts import plain_name

PAYMENT_METHODS = ("sbp",)
"""Methods for one-off payments, and so for terminals."""

REQUIRABLE = ("client_phone", "payer", "client_email", "description")
"""The fields of POST /payments that a terminal may require (docs/payments.md "Terminals")."""

EXCHANGE_LOWEST = Rub(10_000_00)
EXCHANGE_HIGHEST = Rub(80_000_00)
"""Limits of a payment through a terminal of the exchange kind, both inclusive (docs/payments.md "Terminals")."""


class TerminalKind(StrEnum):
    """Purpose of a terminal."""

    ORDINARY = "ordinary"
    EXCHANGE = "exchange"
    """The payer buys USDT: special limits, no direct link, delivery proofs."""


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal of an account, the same in both modes, as shops are. `id` is a bare UUID: the `method_id`.

    Only `enabled` ever changes: payments store only the terminal's id, and the terms at their creation must remain
    valid as long as they exist. Other terms need another terminal.
    """

    id: str
    account_id: str
    label: str
    payment_method: str
    kind: TerminalKind
    created_at: datetime
    required_fields: tuple[str, ...] = ()
    """Members of REQUIRABLE, in the order in which a refusal lists the missing ones."""
    own_lifetime: bool = True
    """Whether a merchant's `ttl_minutes` is honoured, if the bank supports it, too."""
    direct_link: bool = False
    """Whether merchants may get the bank's link even if the account's `direct_links` is off."""
    credit_follows_receipt: bool = False
    """Forbids partial refunds before settlement (`PARTIAL_BEFORE_SETTLEMENT`)."""
    routes: tuple[str, ...] = ()
    """Names of banks in the order of attempts; empty: the mode's order."""
    enabled: bool = True
    version: int = 0

    @property
    def is_exchange(self) -> bool:
        return self.kind is TerminalKind.EXCHANGE


class TerminalWish(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's request, as typed."""

    label: str
    payment_method: str = "sbp"
    kind: str = "ordinary"
    required_fields: tuple[str, ...] = ()
    own_lifetime: bool = True
    direct_link: bool = False
    credit_follows_receipt: bool = False
    routes: tuple[str, ...] = ()


def new_terminal(
    wish: TerminalWish, *, terminal_id: str, account_id: str, banks: tuple[str, ...], now: datetime
) -> Terminal:
    """Return the terminal of this request; `banks` are the valid names of routes.

    Raises: Refusal VALIDATION_ERROR that lists all faults at once.
    """
    label = plain_name(wish.label, "A terminal's")
    faults = [
        *_unlisted("method", (wish.payment_method,), PAYMENT_METHODS),
        *_unlisted("kind", (wish.kind,), tuple(TerminalKind)),
        *_unlisted("require", wish.required_fields, REQUIRABLE),
        *_unlisted("route", wish.routes, banks),
    ]
    if faults:
        message = "; ".join(f"{fault.path} {fault.message}" for fault in faults)
        raise Refusal("VALIDATION_ERROR", message, details=faults)
    return Terminal(
        id=terminal_id,
        account_id=account_id,
        label=label,
        payment_method=wish.payment_method,
        kind=TerminalKind(wish.kind),
        created_at=now,
        required_fields=wish.required_fields,
        own_lifetime=wish.own_lifetime,
        direct_link=wish.direct_link,
        credit_follows_receipt=wish.credit_follows_receipt,
        routes=wish.routes,
    )


def _unlisted(path: str, given: tuple[str, ...], known: tuple[str, ...]) -> list[FieldFault]:
    """Return the fault of an unknown or repeated name, if there is one."""
    if set(given) <= set(known) and len(set(given)) == len(given):
        return []
    return [FieldFault(path, f"names each once, of: {', '.join(known)}")]
