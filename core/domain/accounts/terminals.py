"""Terminals: ways of paying with rules of their own, agreed per account (docs/payments.md "Terminals")."""

from datetime import datetime
from enum import StrEnum

import msgspec

from ..errors import FieldFault, Refusal
from ..money import Rub
from .accounts import plain_name

PAYMENT_METHODS = ("sbp",)
"""What a one-off payment may be paid by, and so what a terminal may offer."""

REQUIRABLE = ("client_phone", "payer", "client_email", "description")
"""The fields of POST /payments that a terminal may require (docs/payments.md "Terminals")."""

EXCHANGE_LOWEST = Rub(10_000_00)
EXCHANGE_HIGHEST = Rub(80_000_00)
"""Bounds of a payment by a terminal of the exchange kind, both inclusive (docs/payments.md "Terminals")."""


class TerminalKind(StrEnum):
    """What a terminal is for."""

    ORDINARY = "ordinary"
    EXCHANGE = "exchange"
    """The payer buys USDT: bounds of its own, no direct link, delivery proofs."""


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal of an account, the same in both modes, as shops are. `id` is a bare UUID: the `method_id`.

    It never changes but for `enabled`: payments keep only its id, and what it said when they were made must hold for
    as long as they live. Another rule is another terminal.
    """

    id: str
    account_id: str
    label: str
    payment_method: str
    kind: TerminalKind
    created_at: datetime
    required_fields: tuple[str, ...] = ()
    """Of REQUIRABLE, in the order in which a refusal names the missing ones."""
    own_lifetime: bool = True
    """A merchant's `ttl_minutes` counts, where the bank can do it, too."""
    direct_link: bool = False
    """The bank's link may be handed out although the account's `direct_links` is off."""
    credit_follows_receipt: bool = False
    """No partial refund before settlement (`PARTIAL_BEFORE_SETTLEMENT`)."""
    routes: tuple[str, ...] = ()
    """Names of banks, the first tried first; empty: the mode's order."""
    enabled: bool = True
    version: int = 0

    @property
    def is_exchange(self) -> bool:
        return self.kind is TerminalKind.EXCHANGE


class TerminalWish(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for, as typed."""

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
    """The terminal of this wish; `banks` are the names that a route may have.

    Raises: Refusal VALIDATION_ERROR that names every fault at once.
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
    """The fault of naming what is not known, or one thing twice; none when all is well."""
    if set(given) <= set(known) and len(set(given)) == len(given):
        return []
    return [FieldFault(path, f"names each once, of: {', '.join(known)}")]
