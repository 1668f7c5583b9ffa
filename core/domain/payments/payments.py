"""Payments: the record, and its states (docs/payments.md "What you get"). What asks for a new one, and
the order in which it is refused, are in orders.py."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from ..accounts.accounts import Account, Mode
from ..accounts.receipts import ReceiptTerms
from ..accounts.shops import Shop
from ..machine import Move, Moves
from ..money import Rub, Usdt


class PaymentStatus(StrEnum):
    """See docs/states.md "Payment"."""

    PENDING = "pending"
    PROCESSING = "processing"
    PAID = "paid"
    SETTLED = "settled"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    AMOUNT_MISMATCH = "amount_mismatch"
    REFUNDED = "refunded"


class FailureReason(StrEnum):
    """Why a payment failed (docs/payments.md "What you get")."""

    INSUFFICIENT_FUNDS = "insufficient_funds"
    DECLINED_BY_BANK = "declined_by_bank"
    MANDATE_REVOKED = "mandate_revoked"
    CANCELLED_BY_CUSTOMER = "cancelled_by_customer"
    CANCELLED_BY_BANK = "cancelled_by_bank"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


class Opening(StrEnum):
    """How far the bank's side of a new payment got."""

    ASKING = "asking"
    """Written, the bank not yet heard. A crash leaves it here; the watch asks the bank by our id."""
    OPEN = "open"
    """The bank has it."""
    UNKNOWN = "unknown"
    """The bank gave no definite answer. The key keeps 502 for ever; the watch finds out what became of it."""


class LinkKind(StrEnum):
    """Where the bank's link of a payment leads, if not to SBP (docs/window.md "Without a QR")."""

    PAGE = "page"
    """To a page of the provider."""
    DEEPLINK = "deeplink"
    """Into an application on the payer's phone."""


PENDING: Final = PaymentStatus.PENDING
ASKING: Final = Opening.ASKING
OPEN: Final = Opening.OPEN
"""For what every new payment passes (accounts.py: TEST)."""


class PaymentTrigger(StrEnum):
    """What moves a payment."""

    STARTED = "the bank started on it"
    PAID = "the payer paid"
    OTHER_AMOUNT = "another amount came"
    REFUSED = "the bank refused"
    CANCELLED = "cancelled at the bank"
    SUBSCRIPTION_OVER = "its subscription was cancelled"
    LAPSED = "nobody paid in time"
    ACCEPTED = "the operator accepts what came"
    SENT_BACK = "the operator sends it back"
    SETTLED = "daily settlement"
    REFUNDED = "refunded in full"
    RESTORED = "refund reversed before settlement"
    RESTORED_SETTLED = "refund reversed after settlement"


_S = PaymentStatus
_T = PaymentTrigger

PAYMENT_MOVES: Moves[PaymentStatus, PaymentTrigger] = Moves(
    (
        Move(_S.PENDING, _S.PROCESSING, _T.STARTED),
        Move(_S.PENDING, _S.PAID, _T.PAID),
        Move(_S.PENDING, _S.AMOUNT_MISMATCH, _T.OTHER_AMOUNT),
        Move(_S.PENDING, _S.FAILED, _T.REFUSED),
        Move(_S.PENDING, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PENDING, _S.CANCELLED, _T.SUBSCRIPTION_OVER),
        Move(_S.PENDING, _S.EXPIRED, _T.LAPSED),
        Move(_S.PROCESSING, _S.PAID, _T.PAID),
        Move(_S.PROCESSING, _S.AMOUNT_MISMATCH, _T.OTHER_AMOUNT),
        Move(_S.PROCESSING, _S.FAILED, _T.REFUSED),
        Move(_S.PROCESSING, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PROCESSING, _S.CANCELLED, _T.SUBSCRIPTION_OVER),
        Move(_S.PROCESSING, _S.EXPIRED, _T.LAPSED),
        Move(_S.EXPIRED, _S.PAID, _T.PAID),
        Move(_S.EXPIRED, _S.AMOUNT_MISMATCH, _T.OTHER_AMOUNT),
        Move(_S.AMOUNT_MISMATCH, _S.PAID, _T.ACCEPTED),
        Move(_S.AMOUNT_MISMATCH, _S.FAILED, _T.SENT_BACK),
        Move(_S.PAID, _S.SETTLED, _T.SETTLED),
        Move(_S.PAID, _S.REFUNDED, _T.REFUNDED),
        Move(_S.SETTLED, _S.REFUNDED, _T.REFUNDED),
        Move(_S.REFUNDED, _S.PAID, _T.RESTORED),
        Move(_S.REFUNDED, _S.SETTLED, _T.RESTORED_SETTLED),
    )
)
"""The moves (docs/states.md "Payment"). Every move sends one `payment.status_changed`."""

WAITING = (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
"""The bank's answer is still to come."""

RECURRING = "recurring"
"""The payment method of subscription charges and bindings."""

LIFETIME = timedelta(minutes=15)
LATE_WINDOW = timedelta(hours=6)
"""From creation; later money moves nothing and goes to suspense."""
MINIMUM = Rub(30_00)


class BindingCharge(StrEnum):
    """Whether the binding takes money."""

    FIRST = "first"
    """It is the first charge, of `amount_rub`."""
    NONE = "none"
    """The payer confirms a symbolic QR of 1 RUB that the bank does not debit."""


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """One payment. What merchants see of it is made by the frontends and by events.py; the rest stays inside."""

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    status: PaymentStatus
    amount: Rub
    payment_method: str
    created_at: datetime
    expires_at: datetime
    actual_amount: Rub | None = None
    amount_usdt: Usdt | None = None
    external_id: str | None = None
    subscription_id: str | None = None
    """The subscription that it charges or binds; null for a one-off payment."""
    period_ref: str | None = None
    """The period of the subscription that it pays for."""
    binding: BindingCharge | None = None
    """That it binds the payer to the subscription, and whether it takes money for it; null for charges by the mandate,
    and for one-off payments."""
    shown_amount: Rub | None = None
    """The amount of each charge that the page of this binding shows the payer. When the payer confirms it becomes the
    subscription's consent. Null of payments that bind nobody."""
    description: str | None = None
    method_id: str | None = None
    """The terminal it goes by."""
    markup: str | None = None
    """The shop's, when it was accepted: the settlement takes this one. None, of one from before: as the shop's stands
    then."""
    ttl_minutes: int | None = None
    """The lifetime that the merchant wished, where its terminal lets it: it counts at banks that can do it, too."""
    metadata: dict[str, Any] | None = None
    auto_return: bool = True
    failure_reason: FailureReason | None = None
    refund_pending: bool = False
    refund_taken: Rub = Rub(0)
    """What refunds under way or done have taken out of it."""
    paid_at: datetime | None = None
    settled_at: datetime | None = None
    settlement_id: str | None = None
    """The statement that it is in."""
    closed_at: datetime | None = None
    """When it last came to rest (paid, settled, failed, cancelled): the payer window's minute runs from it."""
    private: bytes | None = None
    """Sealed: payer data as the merchant gave it, never returned (payer, phone, e-mail, client_info)."""
    payer_contact: str | None = None
    """The mask of the payer's phone: `***` and its last 4 digits."""
    payer_name: bytes | None = None
    """Sealed: as the bank reported it with the money."""
    receipt: ReceiptTerms | None = None
    """What its receipts say, where a bank of its routes writes any; None: it has none."""
    key_id: str | None = None
    """The record of the Idempotency-Key that made it; taken back with it when every bank refused."""
    opening: Opening = Opening.ASKING
    bank: str | None = None
    """The name of the bank whose route it took."""
    bank_reference: str | None = None
    qr_payload: str | None = None
    bank_link: str | None = None
    link_kind: LinkKind | None = None
    """None: the link is SBP's, and `qr_payload` is what its QR says."""
    pay_tag: bytes | None = None
    """The vault's tag over where the payer pays; null until a bank says where."""
    transfer_id: str | None = None
    """The bank's id of the transfer that moved it; any further one is suspense."""
    transfer_at: datetime | None = None
    """When that transfer reached the bank."""
    provider_fee: Rub | None = None
    """What the provider kept of that, as it said with the money: for operators. Nothing is booked by it."""
    payer_bank: str | None = None
    sbp_operation_id: str | None = None
    """For operators, as the bank told them."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    @property
    def is_charge(self) -> bool:
        """It charges a subscription by its mandate; the bank knows it as a charge, not as an invoice."""
        return self.subscription_id is not None and self.binding is None


def moved_to(payment: Payment, trigger: PaymentTrigger, **changes: Any) -> Payment:
    """The payment after its trigger, with what else the move changes. Nobody else writes a payment's status; every move
    has an event, so its sequence rises.

    Raises: IllegalMove for a trigger that does not move a payment of this status.
    """
    status = PAYMENT_MOVES.move(payment.status, trigger)
    return msgspec.structs.replace(payment, status=status, sequence=payment.sequence + 1, **changes)


def announced(payment: Payment) -> Payment:
    """The payment with one more event about it that tells of no move."""
    return msgspec.structs.replace(payment, sequence=payment.sequence + 1)


class PaymentMove(msgspec.Struct, frozen=True):
    """A payment's move in the unit that saves it, with who is told of it, as read in that unit."""

    before: Payment
    after: Payment
    account: Account | None
    shop: Shop | None


def lifetime(ttl_minutes: int | None, *, own: bool) -> timedelta:
    """How long a payment waits. `own`: its bank can do lifetimes other than the usual one
    (docs/payments.md "Taking one")."""
    return LIFETIME if ttl_minutes is None or not own else timedelta(minutes=ttl_minutes)


_FROM_PAID_ON = frozenset((PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED))


def shows_payer_name(payment: Payment) -> bool:
    """The payer's name appears with status `paid` or later (docs/payments.md "What you get"), and only where the bank
    gave one."""
    return payment.payer_name is not None and payment.status in _FROM_PAID_ON


CONTACT_KEY = "payerContactMasked"
_AFTER_PAYMENT = frozenset((PaymentStatus.SETTLED, PaymentStatus.REFUNDED))


def shown_metadata(payment: Payment) -> dict[str, Any] | None:
    """The merchant's keys, and after the payment the mask of the payer's phone (docs/payments.md "What you get")."""
    if payment.payer_contact is None or payment.payment_method != "sbp" or payment.status not in _AFTER_PAYMENT:
        return payment.metadata
    return {**(payment.metadata or {}), CONTACT_KEY: payment.payer_contact}
