"""Exchanges of end clients between USDT and RUB: the record, its states, and how it moves
(docs/exchanges.md "How it ends", "Rules").

USDT to RUB: the client sends USDT to an address of this exchange alone, and gets RUB by phone. RUB to USDT: the client
pays an SBP invoice, and gets USDT on chain after a hold.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..machine import IllegalMove, Move, Moves
from ..money import Rub, Usdt
from .payouts import PayoutPart, read_part

LIFETIME = timedelta(minutes=15)
"""How long a client has to send the money (docs/limits.md "Times")."""
HOLD = timedelta(minutes=5)
"""From `rub_received` until USDT are sent: chargeback protection (docs/exchanges.md "RUB to USDT")."""
NETWORK = "tron"
"""The only one there is (docs/exchanges.md "Rules")."""
NETWORK_STEP = Usdt(100)
"""The smallest part of USDT that it moves: 6 decimals."""

ACTIVE_RULE = "exchanges_active"
"""The storage's unique rule over `active_slot`: a Conflict of it is `409 EXCHANGE_IN_PROGRESS`."""


class Direction(StrEnum):
    """What the client gives and gets."""

    USDT_TO_RUB = "usdt_to_rub"
    RUB_TO_USDT = "rub_to_usdt"


class ExchangeStatus(StrEnum):
    """The statuses of both directions (docs/exchanges.md "How it ends")."""

    PENDING = "pending"
    AWAITING_USDT = "awaiting_usdt"
    USDT_RECEIVED = "usdt_received"
    RUB_SENDING = "rub_sending"
    AWAITING_RUB = "awaiting_rub"
    RUB_RECEIVED = "rub_received"
    USDT_SENDING = "usdt_sending"
    COMPLETED = "completed"
    PARTIAL = "partial"
    EXPIRED = "expired"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExchangeTrigger(StrEnum):
    """What moves an exchange."""

    ADDRESS_GIVEN = "deposit address obtained"
    INVOICE_MADE = "SBP invoice created"
    CALLED_OFF = "called off before funds came"
    FUNDED = "client sent all of it"
    UNDERPAID = "client sent less than requested"
    LAPSED = "15 minutes passed"
    TAKEN_BACK = "payer's bank took RUB back during the hold"
    PAYOUT_STARTED = "SBP payout started"
    HELD = "hold is over"
    DELIVERED = "client received RUB"
    CONFIRMED = "USDT confirmed on chain"
    FAILED = "technical error, or refused for good"


_S = ExchangeStatus
_T = ExchangeTrigger

FINAL = frozenset((_S.COMPLETED, _S.FAILED, _S.EXPIRED, _S.CANCELLED))
"""What merchants are told by an event; all others are internal (docs/webhooks.md "Events")."""


def _to_failed(*states: ExchangeStatus) -> tuple[Move[ExchangeStatus, ExchangeTrigger], ...]:
    return tuple(Move(state, _S.FAILED, _T.FAILED) for state in states)


EXCHANGE_MOVES: Mapping[Direction, Moves[ExchangeStatus, ExchangeTrigger]] = {
    Direction.USDT_TO_RUB: Moves(
        (
            Move(_S.PENDING, _S.AWAITING_USDT, _T.ADDRESS_GIVEN),
            Move(_S.PENDING, _S.CANCELLED, _T.CALLED_OFF),
            Move(_S.AWAITING_USDT, _S.USDT_RECEIVED, _T.FUNDED),
            Move(_S.AWAITING_USDT, _S.PARTIAL, _T.UNDERPAID),
            Move(_S.AWAITING_USDT, _S.EXPIRED, _T.LAPSED),
            Move(_S.AWAITING_USDT, _S.CANCELLED, _T.CALLED_OFF),
            Move(_S.PARTIAL, _S.USDT_RECEIVED, _T.FUNDED),
            Move(_S.PARTIAL, _S.EXPIRED, _T.LAPSED),
            Move(_S.USDT_RECEIVED, _S.RUB_SENDING, _T.PAYOUT_STARTED),
            Move(_S.RUB_SENDING, _S.COMPLETED, _T.DELIVERED),
            *_to_failed(_S.PENDING, _S.AWAITING_USDT, _S.PARTIAL, _S.USDT_RECEIVED, _S.RUB_SENDING),
        )
    ),
    Direction.RUB_TO_USDT: Moves(
        (
            Move(_S.PENDING, _S.AWAITING_RUB, _T.INVOICE_MADE),
            Move(_S.PENDING, _S.CANCELLED, _T.CALLED_OFF),
            Move(_S.AWAITING_RUB, _S.RUB_RECEIVED, _T.FUNDED),
            Move(_S.AWAITING_RUB, _S.PARTIAL, _T.UNDERPAID),
            Move(_S.AWAITING_RUB, _S.EXPIRED, _T.LAPSED),
            Move(_S.AWAITING_RUB, _S.CANCELLED, _T.CALLED_OFF),
            Move(_S.PARTIAL, _S.RUB_RECEIVED, _T.FUNDED),
            Move(_S.PARTIAL, _S.EXPIRED, _T.LAPSED),
            Move(_S.RUB_RECEIVED, _S.PARTIAL, _T.TAKEN_BACK),
            Move(_S.RUB_RECEIVED, _S.USDT_SENDING, _T.HELD),
            Move(_S.USDT_SENDING, _S.COMPLETED, _T.CONFIRMED),
            *_to_failed(_S.PENDING, _S.AWAITING_RUB, _S.PARTIAL, _S.RUB_RECEIVED, _S.USDT_SENDING),
        )
    ),
}
"""The moves by direction (docs/states.md "Exchange, USDT to RUB", "Exchange, RUB to USDT"). An exchange is called off
before funds came, in whatever state that is; an invoice expires as an address does; several transfers add up, so
`partial` is no dead end."""

CANCELLABLE = frozenset((_S.PENDING, _S.AWAITING_USDT, _S.AWAITING_RUB))
"""A merchant cancels `pending` and `awaiting_usdt`, an operator `pending` and `awaiting_rub`."""

AWAITING = frozenset((_S.AWAITING_USDT, _S.AWAITING_RUB, _S.PARTIAL))
"""The client's money still counts, until `expires_at`."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange. What merchants see of it is made by the frontends and by payloads; the rest stays inside."""

    id: str
    account_id: str
    mode: Mode
    status: ExchangeStatus
    direction: Direction
    amount_usdt: Usdt
    """What the client sends, or gets."""
    amount_rub: Rub
    """What the client gets, or sends."""
    rate: str
    """RUB per 1 USDT for the client, as shown. Amounts follow from the two beneath, not from it."""
    base_rate: str
    """RUB per 1 USDT of the market when the quote was made, all its digits."""
    markup_percent: str
    client_phone: bytes
    """Sealed."""
    phone_digest: bytes
    """Keyed, over account, mode and phone."""
    active_slot: bytes | None
    """`phone_digest` until the exchange is final, then null: no two exchanges hold the same (ACTIVE_RULE)."""
    created_at: datetime
    expires_at: datetime
    network: str = NETWORK
    client_id: str | None = None
    """The client's record; null for the phones that are verified in test mode without one."""
    client_bank_id: str | None = None
    """Where RUB go to: `bank<digits>`, plain, for it says nothing without the phone."""
    client_wallet: str | None = None
    """Where USDT go to, RUB to USDT only."""
    external_id: str | None = None
    key_id: str | None = None
    """The record of the Idempotency-Key that made it; null for an operator's."""
    watcher: str | None = None
    """The name of the watcher that gave `crypto_deposit_address`."""
    crypto_deposit_address: str | None = None
    bank: str | None = None
    """The name of the bank that pays RUB out, or takes them in."""
    invoice_reference: str | None = None
    invoice_payload: str | None = None
    """What the QR says."""
    amount_usdt_received: Usdt = Usdt(0)
    """All that came in time, also beyond `amount_usdt`; merchants see it from a final status on (`shown_received`)."""
    amount_rub_received: Rub = Rub(0)
    hold_until: datetime | None = None
    """RUB to USDT: nothing is sent before."""
    parts: tuple[PayoutPart, ...] = ()
    """USDT to RUB: the remittances, all of them from `rub_sending` on."""
    sender: str | None = None
    """RUB to USDT: the name of the wallet that sends."""
    tx_hash: str | None = None
    blob: bytes | None = None
    """The signed transfer, while it may have to be broadcast again. Whoever has it can send it."""
    signed_until: datetime | None = None
    completed_at: datetime | None = None
    """When it came to its end, whichever it was."""
    failure: str | None = None
    """Why it failed, for operators."""
    tag: bytes | None = None
    """The vault's, over what the client gives and gets, and where that goes to."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    def __repr__(self) -> str:
        return f"<{self.status} exchange {self.id} of {self.amount_usdt} USDT and {self.amount_rub} RUB>"

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def takes_usdt(self) -> bool:
        """The client brings USDT; else RUB."""
        return self.direction is Direction.USDT_TO_RUB


class DirectionSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a direction (the id) is on for all merchants; on where there is no such record. Off: new ones are
    refused (`503 FEATURE_DISABLED`), those under way go on."""

    id: str
    is_on: bool
    since: datetime
    version: int = 0


def asked_units(exchange: Exchange) -> int:
    """What the client is asked for, in the smallest part of its currency."""
    return exchange.amount_usdt.units if exchange.takes_usdt else exchange.amount_rub.kopecks


def held_units(exchange: Exchange) -> int:
    """How much of the client's money the exchange holds, in the smallest part of its currency: what came up to what
    was asked, until the end."""
    if exchange.is_final:
        return 0
    received = exchange.amount_usdt_received.units if exchange.takes_usdt else exchange.amount_rub_received.kopecks
    return min(received, asked_units(exchange))


def shown_received(exchange: Exchange) -> Usdt | None:
    """`amount_usdt_received`: null until a final status (docs/exchanges.md "How it ends"). RUB to USDT it is the client
    who receives: all of it once completed, else nothing."""
    if not exchange.is_final:
        return None
    if exchange.takes_usdt:
        return exchange.amount_usdt_received
    return exchange.amount_usdt if exchange.status is _S.COMPLETED else Usdt(0)


def moved_to(exchange: Exchange, trigger: ExchangeTrigger, now: datetime, failure: str | None = None) -> Exchange:
    """The exchange one move further; nobody else writes its status. At a final one it gives its slot back and forgets
    the signed transfer, and its event's sequence rises. RUB that are received are held from `now` on.

    Raises: IllegalMove.
    """
    after = EXCHANGE_MOVES[exchange.direction].move(exchange.status, trigger)
    ends = after in FINAL
    return msgspec.structs.replace(
        exchange,
        status=after,
        active_slot=None if ends else exchange.active_slot,
        completed_at=now if ends else None,
        blob=None if ends else exchange.blob,
        hold_until=now + HOLD if after is _S.RUB_RECEIVED else exchange.hold_until,
        failure=failure,
        sequence=exchange.sequence + ends,
    )


def signed(exchange: Exchange, tx_hash: str, blob: bytes, until: datetime | None) -> Exchange:
    """The exchange with its signed transfer of USDT, as it must be stored before the first broadcast.

    Raises: IllegalMove outside `usdt_sending`, and for one that has a signed transfer: a second would pay twice.
    """
    if exchange.status is not _S.USDT_SENDING or exchange.tx_hash is not None:
        raise IllegalMove(f"{exchange.id} is not to be signed")
    return msgspec.structs.replace(exchange, tx_hash=tx_hash, blob=blob, signed_until=until)


def signed_anew(exchange: Exchange, tx_hash: str, blob: bytes, until: datetime | None) -> Exchange:
    """The exchange whose wallet put another transfer in the place of the signed one: of both one alone can move."""
    return msgspec.structs.replace(exchange, tx_hash=tx_hash, blob=blob, signed_until=until)


def unsigned(exchange: Exchange) -> Exchange:
    """The exchange whose transfer is proven never to take effect: it may be signed again. Raises: IllegalMove."""
    if exchange.status is not _S.USDT_SENDING or exchange.tx_hash is None:
        raise IllegalMove(f"{exchange.id} has no transfer under way")
    return msgspec.structs.replace(exchange, tx_hash=None, blob=None, signed_until=None)


_INVOICE = "inv_"


def invoice_operation(exchange_id: str) -> str:
    """The operation id of an exchange's invoice (docs/adapters.md "Operation ids")."""
    return f"{_INVOICE}{exchange_id.removeprefix(ids.EXCHANGE)}"


def operation_exchange(operation: str) -> str | None:
    """The exchange whose invoice or part of a payout this operation is, or whose own id it is: a wallet's operation,
    and an invoice's in earlier versions. None for what is no such operation."""
    part = read_part(operation)
    if part is not None:
        return part[0]
    is_invoice = operation.startswith(_INVOICE)
    exchange_id = f"{ids.EXCHANGE}{operation.removeprefix(_INVOICE)}" if is_invoice else operation
    return exchange_id if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
