"""Exchanges of end clients between USDT and RUB: the record, its states, and its moves
(docs/exchanges.md "How it ends", "Rules").

USDT to RUB: the client sends USDT to an address of this exchange only, and gets RUB by phone. RUB to USDT: the client
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
"""Time for the client to send the money (docs/limits.md "Times")."""
HOLD = timedelta(minutes=5)
"""From `rub_received` until USDT are sent: chargeback protection (docs/exchanges.md "RUB to USDT")."""
NETWORK = "tron"
"""The only supported network (docs/exchanges.md "Rules")."""
NETWORK_STEP = Usdt(100)
"""The smallest amount of USDT that it moves: 6 decimals."""

ACTIVE_RULE = "exchanges_active"
"""The storage's unique rule over `active_slot`: its Conflict becomes `409 EXCHANGE_IN_PROGRESS`."""


class Direction(StrEnum):
    """Direction from the client's point of view."""

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
    """Cause of an exchange's move."""

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
"""Statuses that merchants learn by an event; all others are internal (docs/webhooks.md "Events")."""


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
"""The moves by direction (docs/states.md "Exchange, USDT to RUB", "Exchange, RUB to USDT"). An exchange can be
cancelled only before funds came; an invoice expires just as an address does; several transfers add up, so `partial` can
still be completed."""

CANCELLABLE = frozenset((_S.PENDING, _S.AWAITING_USDT, _S.AWAITING_RUB))
"""A merchant can cancel in `pending` and `awaiting_usdt`, an operator in `pending` and `awaiting_rub`."""

AWAITING = frozenset((_S.AWAITING_USDT, _S.AWAITING_RUB, _S.PARTIAL))
"""The client's money still counts, until `expires_at`."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange. The frontends and payloads decide which fields merchants see; the others are internal."""

    id: str
    account_id: str
    mode: Mode
    status: ExchangeStatus
    direction: Direction
    amount_usdt: Usdt
    """Amount that the client sends or gets."""
    amount_rub: Rub
    """Amount that the client gets or sends."""
    rate: str
    """RUB per 1 USDT for the client, as shown. The amounts follow from `base_rate` and `markup_percent`, not from
    it."""
    base_rate: str
    """Market rate of the quote, RUB per 1 USDT, with all its digits."""
    markup_percent: str
    client_phone: bytes
    """Encrypted."""
    phone_digest: bytes
    """Keyed digest of account, mode and phone."""
    active_slot: bytes | None
    """`phone_digest` until the exchange is final, then null: no two exchanges have the same (ACTIVE_RULE)."""
    created_at: datetime
    expires_at: datetime
    network: str = NETWORK
    client_id: str | None = None
    """The client's record; null for phones that test mode treats as verified without one."""
    client_bank_id: str | None = None
    """Destination of the RUB: `bank<digits>`, not encrypted, because it reveals nothing without the phone."""
    client_wallet: str | None = None
    """Destination of the USDT; RUB to USDT only."""
    external_id: str | None = None
    key_id: str | None = None
    """Record of the Idempotency-Key that created it; null for an exchange created by an operator."""
    watcher: str | None = None
    """Name of the watcher that returned `crypto_deposit_address`."""
    crypto_deposit_address: str | None = None
    bank: str | None = None
    """Name of the bank that pays or receives the RUB."""
    invoice_reference: str | None = None
    invoice_payload: str | None = None
    """Content of the QR code."""
    amount_usdt_received: Usdt = Usdt(0)
    """Total that came in time, even above `amount_usdt`; merchants see it from a final status on (`shown_received`)."""
    amount_rub_received: Rub = Rub(0)
    hold_until: datetime | None = None
    """RUB to USDT: nothing is sent before this time."""
    parts: tuple[PayoutPart, ...] = ()
    """USDT to RUB: the remittances; all of them exist from `rub_sending` on."""
    sender: str | None = None
    """RUB to USDT: name of the sending wallet."""
    tx_hash: str | None = None
    blob: bytes | None = None
    """The signed transfer, while it may have to be broadcast again. Anybody who has it can send it."""
    signed_until: datetime | None = None
    completed_at: datetime | None = None
    """When it reached a final status."""
    failure: str | None = None
    """Why it failed, for operators."""
    tag: bytes | None = None
    """The vault's tag of both amounts and of their destinations."""
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
        """Whether the client sends USDT; otherwise RUB."""
        return self.direction is Direction.USDT_TO_RUB


class DirectionSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a direction (the id) is on for all merchants; on if there is no such record. When off, new exchanges are
    refused (`503 FEATURE_DISABLED`) and existing ones continue."""

    id: str
    is_on: bool
    since: datetime
    version: int = 0


def asked_units(exchange: Exchange) -> int:
    """Return the amount that the client must send, in the smallest unit of its currency."""
    return exchange.amount_usdt.units if exchange.takes_usdt else exchange.amount_rub.kopecks


def held_units(exchange: Exchange) -> int:
    """Return how much of the client's money the exchange holds, in the smallest unit of its currency: the received
    amount up to the requested one, until the end."""
    if exchange.is_final:
        return 0
    received = exchange.amount_usdt_received.units if exchange.takes_usdt else exchange.amount_rub_received.kopecks
    return min(received, asked_units(exchange))


def shown_received(exchange: Exchange) -> Usdt | None:
    """Return `amount_usdt_received` for merchants: null until a final status (docs/exchanges.md "How it ends"). For RUB
    to USDT it is the amount that the client received: everything once completed, otherwise nothing."""
    if not exchange.is_final:
        return None
    if exchange.takes_usdt:
        return exchange.amount_usdt_received
    return exchange.amount_usdt if exchange.status is _S.COMPLETED else Usdt(0)


def moved_to(exchange: Exchange, trigger: ExchangeTrigger, now: datetime, failure: str | None = None) -> Exchange:
    """Return the exchange after one move; nothing else writes its status. A final status frees the slot, deletes the
    signed transfer, and raises the sequence for its event. RUB that were received are held from `now` on.

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
    """Return the exchange with its signed transfer of USDT, which must be stored before the first broadcast.

    Raises: IllegalMove outside `usdt_sending`, and if it already has one: a second transfer would pay twice.
    """
    if exchange.status is not _S.USDT_SENDING or exchange.tx_hash is not None:
        raise IllegalMove(f"{exchange.id} is not to be signed")
    return msgspec.structs.replace(exchange, tx_hash=tx_hash, blob=blob, signed_until=until)


def signed_anew(exchange: Exchange, tx_hash: str, blob: bytes, until: datetime | None) -> Exchange:
    """Return the exchange with the wallet's replacement of the signed transfer: only one of the two can ever take
    effect."""
    return msgspec.structs.replace(exchange, tx_hash=tx_hash, blob=blob, signed_until=until)


def unsigned(exchange: Exchange) -> Exchange:
    """Return the exchange without its transfer, which is proven never to take effect, so that it can be signed again.
    Raises: IllegalMove."""
    if exchange.status is not _S.USDT_SENDING or exchange.tx_hash is None:
        raise IllegalMove(f"{exchange.id} has no transfer under way")
    return msgspec.structs.replace(exchange, tx_hash=None, blob=None, signed_until=None)


_INVOICE = "inv_"


def invoice_operation(exchange_id: str) -> str:
    """Return the operation id of an exchange's invoice (docs/adapters.md "Operation ids")."""
    return f"{_INVOICE}{exchange_id.removeprefix(ids.EXCHANGE)}"


def operation_exchange(operation: str) -> str | None:
    """Return the exchange of an operation. The operation may be an invoice, a part of a payout, or the exchange's own
    id, which a wallet's operation has. None for any other operation."""
    part = read_part(operation)
    if part is not None:
        return part[0]
    is_invoice = operation.startswith(_INVOICE)
    exchange_id = f"{ids.EXCHANGE}{operation.removeprefix(_INVOICE)}" if is_invoice else operation
    return exchange_id if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
