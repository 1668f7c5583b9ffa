"""Payments: the record and its states (docs/payments.md "What you get"). The body of a new payment, and the order of
its refusals, are in orders.py."""

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
    """How far the creation at the bank has got."""

    ASKING = "asking"
    """Stored, before the bank's answer. A crash leaves the payment here; the watch then queries the bank by our id."""
    OPEN = "open"
    """The bank has the payment."""
    UNKNOWN = "unknown"
    """The bank gave no definite answer. The idempotency key keeps 502 forever; the watch finds out the outcome."""


class LinkKind(StrEnum):
    """Destination of the bank's link if it is not an SBP link (docs/window.md "Without a QR")."""

    PAGE = "page"
    """A page of the provider."""
    DEEPLINK = "deeplink"
    """An application on the payer's phone."""


PENDING: Final = PaymentStatus.PENDING
ASKING: Final = Opening.ASKING
OPEN: Final = Opening.OPEN
"""Constants for the path of every new payment, where reading an enumeration member is slow (accounts.py: TEST)."""


class PaymentTrigger(StrEnum):
    """Cause of a payment's move."""

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

USUAL_STATUSES = (_S.PENDING, _S.PROCESSING, _S.PAID, _S.SETTLED)
"""Statuses on the usual way of a payment. No index contains them: lists by one of them walk the payments in the order
of their moments (docs/performance.md "Writes of a payment")."""

WAITING = (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
"""The bank's answer is still pending."""

RECURRING = "recurring"
"""The payment method of subscription charges and bindings."""

LIFETIME = timedelta(minutes=15)
LATE_WINDOW = timedelta(hours=6)
"""Counted from creation; money that comes later does not move the payment and goes to suspense."""
RETRIES_MOST = 5
"""Further payments of one order that its payer may make on the page."""
MINIMUM = Rub(30_00)


class BindingCharge(StrEnum):
    """Whether the binding takes money."""

    FIRST = "first"
    """It takes the first charge, of `amount_rub`."""
    NONE = "none"
    """The payer confirms a symbolic QR of 1 RUB that the bank does not debit."""


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """One payment. The frontends and events.py decide which fields merchants see; the others are internal.

    The order of the fields is that of the columns. Fields that change come last, because Postgres logs a changed row
    from its first to its last changed byte.
    """

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    amount: Rub
    payment_method: str
    created_at: datetime
    number: str | None = None
    """Last eight characters of the id, which payers read out to support."""
    external_id: str | None = None
    subscription_id: str | None = None
    """The subscription that this payment charges or binds; null for a one-off payment."""
    link_id: str | None = None
    """The payment link on which the payer made it."""
    retry_of: str | None = None
    """The payment of the same order after which the payer made this one on its page."""
    retried_by: str | None = None
    """The payment that its payer made after it."""
    period_ref: str | None = None
    """The subscription's period that this payment pays for."""
    binding: BindingCharge | None = None
    """Set when the payment binds the payer to the subscription; says whether it takes money for that. Null for charges
    by the mandate and for one-off payments."""
    shown_amount: Rub | None = None
    """Amount of each charge, as shown to the payer on the page of this binding. When the payer confirms, it becomes the
    subscription's consent. Null for payments that are not bindings."""
    description: str | None = None
    method_id: str | None = None
    """Id of the payment's terminal."""
    markup: str | None = None
    """The shop's markup when the payment was accepted; the settlement uses this one. None if no shop was known then:
    the settlement uses the present markup of the payment's shop."""
    ttl_minutes: int | None = None
    """Lifetime requested by the merchant, if its terminal allows one; it also needs a bank with `own_lifetime`."""
    metadata: dict[str, Any] | None = None
    auto_return: bool = True
    private: bytes | None = None
    """Encrypted: payer data as the merchant gave it, never returned (payer, phone, e-mail, client_info)."""
    payer_contact: str | None = None
    """The mask of the payer's phone: `***` and its last 4 digits."""
    payer_email_digest: bytes | None = None
    """The vault's digest of the payer's e-mail address, by which people find the payment."""
    receipt: ReceiptTerms | None = None
    """Content of its receipts, if a bank of its routes writes any; None: it has none."""
    key_id: str | None = None
    """Record of the Idempotency-Key that created it; deleted together with the payment when every bank refused."""
    bank: str | None = None
    """Name of the bank that handles it."""
    qr_payload: str | None = None
    bank_link: str | None = None
    link_kind: LinkKind | None = None
    """None: an SBP link, whose QR code contains `qr_payload`."""
    pay_tag: bytes | None = None
    """The vault's tag of the link and QR code with which the payer pays; null until a bank returns them."""
    bank_reference: str | None = None
    opening: Opening = Opening.ASKING
    expires_at: datetime
    status: PaymentStatus
    actual_amount: Rub | None = None
    amount_usdt: Usdt | None = None
    failure_reason: FailureReason | None = None
    refund_pending: bool = False
    refund_taken: Rub = Rub(0)
    """Amount taken out of it by refunds in progress or completed."""
    paid_at: datetime | None = None
    settled_at: datetime | None = None
    settlement_id: str | None = None
    """The statement that includes it."""
    closed_at: datetime | None = None
    """When it last reached a closing status (paid, failed, cancelled): the payer window's minute starts here."""
    payer_name: bytes | None = None
    """Encrypted: the name that the bank reported with the money."""
    transfer_id: str | None = None
    """The bank's id of the transfer that paid it; any further transfer goes to suspense."""
    transfer_at: datetime | None = None
    """When that transfer reached the bank."""
    provider_fee: Rub | None = None
    """The provider's fee, as reported with the money: for operators. No journal entry uses it."""
    payer_bank: str | None = None
    sbp_operation_id: str | None = None
    """Reported by the bank, for operators."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    @property
    def is_charge(self) -> bool:
        """Whether it charges a subscription by its mandate. The bank knows such a payment as a charge, not as an
        invoice."""
        return self.subscription_id is not None and self.binding is None


def moved_to(payment: Payment, trigger: PaymentTrigger, **changes: Any) -> Payment:
    """Return the payment after the trigger, with the other changes of the move. Nothing else writes a payment's status;
    every move has an event, so the sequence rises.

    Raises: IllegalMove for a trigger that does not move a payment of this status.
    """
    status = PAYMENT_MOVES.move(payment.status, trigger)
    return msgspec.structs.replace(payment, status=status, sequence=payment.sequence + 1, **changes)


def short_number(payment_id: str) -> str:
    """Return the end of a payment's id, which a payer can read out."""
    return payment_id[-8:]


def announced(payment: Payment) -> Payment:
    """Return the payment with the sequence of one more event that reports no move."""
    return msgspec.structs.replace(payment, sequence=payment.sequence + 1)


class PaymentMove(msgspec.Struct, frozen=True):
    """A payment's move in the unit that saves it, with the account and shop that its event needs, read in that unit."""

    before: Payment
    after: Payment
    account: Account | None
    shop: Shop | None


def lifetime(ttl_minutes: int | None, *, own: bool) -> timedelta:
    """Return how long a payment stays open. `own`: its bank supports other lifetimes than the usual one
    (docs/payments.md "Taking one")."""
    return LIFETIME if ttl_minutes is None or not own else timedelta(minutes=ttl_minutes)


_FROM_PAID_ON = frozenset((PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED))


def shows_payer_name(payment: Payment) -> bool:
    """Return whether the payer's name may be shown: from status `paid` on (docs/payments.md "What you get"), and only
    if the bank reported one."""
    return payment.payer_name is not None and payment.status in _FROM_PAID_ON


CONTACT_KEY = "payerContactMasked"
_AFTER_PAYMENT = frozenset((PaymentStatus.SETTLED, PaymentStatus.REFUNDED))


def shown_metadata(payment: Payment) -> dict[str, Any] | None:
    """Return the merchant's metadata, and after the payment also the mask of the payer's phone
    (docs/payments.md "What you get")."""
    if payment.payer_contact is None or payment.payment_method != "sbp" or payment.status not in _AFTER_PAYMENT:
        return payment.metadata
    return {**(payment.metadata or {}), CONTACT_KEY: payment.payer_contact}
