"""The states of the page on which a payer confirms a subscription (docs/window.md "Subscriptions")."""

from datetime import datetime
from enum import StrEnum

from ..payments.payments import Payment, PaymentStatus
from ..subscriptions.subscriptions import Subscription, SubscriptionStatus, awaits_binding, binding_ends_at
from .window import MINUTE


class BindingFace(StrEnum):
    """Content of the page."""

    TERMS = "terms"
    """The terms, and a button that requests a QR code. The bank has not been called yet."""
    PREPARING = "preparing"
    """The bank has not returned its QR code yet."""
    WAITING = "waiting"
    PROCESSING = "processing"
    """Money came, and the mandate is still to come: the payer should not pay again."""
    LAPSED = "lapsed"
    """The last QR code is no longer valid; the payer may request a new one."""
    LAPSED_PAID = "lapsed_paid"
    """No QR code is valid, and the first charge is paid: the next QR code takes no money."""
    ACTIVE = "active"
    PAUSED = "paused"
    """The mandate was lost, and the shop has not requested a new one."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"


FINAL_BINDING_FACES = frozenset((BindingFace.ACTIVE, BindingFace.CANCELLED, BindingFace.EXPIRED))
"""Nothing of interest to the payer happens after these."""

_F, _S, _P = BindingFace, SubscriptionStatus, PaymentStatus
_SETTLED_FACES = {
    _S.ACTIVE: _F.ACTIVE,
    _S.CANCELLED: _F.CANCELLED,
    _S.EXPIRED: _F.EXPIRED,
    _S.PAUSED: _F.PAUSED,
}


def binding_face(subscription: Subscription, payment: Payment | None, now: datetime) -> BindingFace:
    """Return the content of the page at `now`. `payment` is that of the present binding, None before there is one.

    The page remains for a subscription that is active or over: it shows only what the payer agreed to.
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
    """Return whether the page redirects to the shop by itself: only shortly after the confirmation, not on a later
    visit."""
    closed_at = None if payment is None else payment.closed_at
    return face is _F.ACTIVE and closed_at is not None and now < closed_at + MINUTE
