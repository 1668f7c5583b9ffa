"""Which of its faces the page shows where a payer confirms a subscription (docs/window.md "Subscriptions")."""

from datetime import datetime
from enum import StrEnum

from ..payments.payments import Payment, PaymentStatus
from ..subscriptions.subscriptions import Subscription, SubscriptionStatus, awaits_binding, binding_ends_at
from .window import MINUTE


class BindingFace(StrEnum):
    """What the payer sees."""

    TERMS = "terms"
    """The terms, and a button by which the payer asks for a QR. No bank was asked."""
    PREPARING = "preparing"
    """The bank has not given its QR yet."""
    WAITING = "waiting"
    PROCESSING = "processing"
    """Money came, and the mandate is still to come: nobody should pay again."""
    LAPSED = "lapsed"
    """The last QR is no longer valid; the payer may ask for a new one."""
    LAPSED_PAID = "lapsed_paid"
    """No QR is valid, and the first charge is paid: the next QR takes nothing."""
    ACTIVE = "active"
    PAUSED = "paused"
    """The mandate was lost, and the shop has not asked for a new one."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"


FINAL_BINDING_FACES = frozenset((BindingFace.ACTIVE, BindingFace.CANCELLED, BindingFace.EXPIRED))
"""Nothing that a payer should watch for comes after these."""

_F, _S, _P = BindingFace, SubscriptionStatus, PaymentStatus
_SETTLED_FACES = {
    _S.ACTIVE: _F.ACTIVE,
    _S.CANCELLED: _F.CANCELLED,
    _S.EXPIRED: _F.EXPIRED,
    _S.PAUSED: _F.PAUSED,
}


def binding_face(subscription: Subscription, payment: Payment | None, now: datetime) -> BindingFace:
    """Return what the page shows at `now`. `payment` is that of the present binding, None before there is one.

    The page of a subscription that is active or over stays: it says no more than what the payer agreed to.
    """
    if not awaits_binding(subscription):
        return _SETTLED_FACES[subscription.status]
    ends_at = binding_ends_at(subscription)
    if ends_at is not None and now >= ends_at:
        return _F.EXPIRED
    if payment is not None and payment.status in (_P.PENDING, _P.PROCESSING) and now < payment.expires_at:
        return _F.PREPARING if payment.qr_payload is None and payment.bank_link is None else _F.WAITING
    if payment is not None and payment.id == subscription.first_payment_id and now < payment.expires_at:
        return _F.PROCESSING
    if subscription.status is _S.PENDING_BINDING and subscription.first_payment_id is not None:
        return _F.LAPSED_PAID
    return _F.TERMS if payment is None else _F.LAPSED


def returns_by_itself(face: BindingFace, payment: Payment | None, now: datetime) -> bool:
    """Only who has just confirmed is sent back to the shop; who opens the page later is not."""
    closed_at = None if payment is None else payment.closed_at
    return face is _F.ACTIVE and closed_at is not None and now < closed_at + MINUTE
