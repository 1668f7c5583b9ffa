"""Subscriptions: the record and its states (docs/subscriptions.md "Making one"; docs/states.md "Subscription").

How one moves is in moves.py and charge_moves.py, what merchants ask for in orders.py,
patches.py and charges.py."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode, Scheme
from ..machine import Move, Moves
from ..money import Rub
from ..payments.payments import BindingCharge
from .charge_decisions import Attempts, ChargeState
from .periods import Interval, Terms

LINK_WAIT = timedelta(hours=1)
"""How long the payment system may take to issue a binding link (docs/limits.md "Times")."""
CONFIRMATION_WAIT = timedelta(hours=24)
"""How long the payer may take to confirm, from the link's issue (docs/subscriptions.md "How the payer binds")."""
PAUSE_LONGEST = timedelta(days=90)
"""A subscription that is paused for longer expires (docs/subscriptions.md "When the mandate is lost")."""


class SubscriptionStatus(StrEnum):
    """See docs/states.md "Subscription"."""

    PENDING_BINDING = "pending_binding"
    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


BINDING_SYMBOL = Rub(1_00)
"""What the QR of a binding without a charge says."""


class SubscriptionTrigger(StrEnum):
    """What moves a subscription."""

    CONFIRMED = "the payer confirmed"
    NO_LINK = "no link came"
    UNCONFIRMED = "nobody confirmed in time"
    CANCELLED = "the merchant cancelled"
    MANDATE_LOST = "the bank accepts the token no more"
    MANDATE_RESTORED = "the token is valid again"
    CONSENT_ENDED = "the payer's consent ended"
    PAUSE_ENDED = "paused for too long"


_S = SubscriptionStatus
_T = SubscriptionTrigger

SUBSCRIPTION_MOVES: Moves[SubscriptionStatus, SubscriptionTrigger] = Moves(
    (
        Move(_S.PENDING_BINDING, _S.ACTIVE, _T.CONFIRMED),
        Move(_S.PENDING_BINDING, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PENDING_BINDING, _S.CANCELLED, _T.NO_LINK),
        Move(_S.PENDING_BINDING, _S.EXPIRED, _T.UNCONFIRMED),
        Move(_S.ACTIVE, _S.PAUSED, _T.MANDATE_LOST),
        Move(_S.ACTIVE, _S.CANCELLED, _T.CANCELLED),
        Move(_S.ACTIVE, _S.EXPIRED, _T.CONSENT_ENDED),
        Move(_S.PAUSED, _S.ACTIVE, _T.CONFIRMED),
        Move(_S.PAUSED, _S.ACTIVE, _T.MANDATE_RESTORED),
        Move(_S.PAUSED, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PAUSED, _S.EXPIRED, _T.PAUSE_ENDED),
    )
)
"""The moves (docs/states.md "Subscription"). Every move sends one `subscription.status_changed`."""


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """The present attempt to get a mandate, at the bank's side."""

    operation: str
    """The id under which the bank is asked; chosen before it is."""
    requested_at: datetime
    """When the link was asked for: the hour's wait runs from it."""
    link_issued_at: datetime | None = None
    """When the payer could first confirm; the 24 hours run from it."""
    payment_id: str | None = None
    """The binding payment; null while the payer has not opened the link."""
    bank: str | None = None
    bank_reference: str | None = None
    qr_payload: str | None = None
    bank_link: str | None = None


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription. What merchants see of it is made by the frontends and by events; the rest stays inside."""

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    scheme: Scheme
    """The account's when it was created; a later change of the setting does not touch it."""
    status: SubscriptionStatus
    amount: Rub
    cap_amount: Rub
    """The most that one charge may be of."""
    interval: Interval
    interval_count: int
    description: str
    binding_charge: BindingCharge
    created_at: datetime
    updated_at: datetime
    cap_window: Rub | None = None
    """The most that one period may take."""
    consent: Rub | None = None
    """The amount of each charge that the page of the confirmed binding showed: neither `amount` nor `cap_amount` may be
    above it. Null until the payer confirms for the first time."""
    external_id: str | None = None
    client_ref: str | None = None
    phone_mask: str | None = None
    """`***` and the last 4 digits of `client_phone`, which is kept nowhere."""
    method_id: str | None = None
    success_url: str | None = None
    past_due: bool = False
    rebind_required: bool = False
    binding_url: str | None = None
    binding_url_pending: bool = False
    binding: Binding | None = None
    """Null in the window scheme until the payer opens the link."""
    first_payment_id: str | None = None
    """The binding payment that took the first charge, whether or not the mandate has come since; null for none."""
    mandate_bank: str | None = None
    """The bank that holds the mandate; null before the first binding."""
    mandate_reference: str | None = None
    """The bank's reference of the binding that made it: tells two bindings apart, also where they gave one token."""
    mandate_token: bytes | None = None
    """Sealed: by what the bank knows the mandate. Kept while paused, as the bank may find it valid again."""
    revoke_pending: bool = False
    """The bank's side of the mandate, or of a binding that is open, is still to be ended."""
    paused_at: datetime | None = None
    anchor: datetime | None = None
    """When the last successful payment was made, the binding included; periods count from its day."""
    attempts: Attempts | None = None
    """The charges of the period that was tried last."""
    current_period_start: datetime | None = None
    current_period_end: datetime | None = None
    """The period that the last successful payment opened; null before activation."""
    key_id: str | None = None
    """The record of the Idempotency-Key that made it."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    @property
    def terms(self) -> Terms:
        return Terms(scheme=self.scheme, interval=self.interval, interval_count=self.interval_count)

    @property
    def charge_state(self) -> ChargeState:
        return ChargeState(anchor=self.anchor, attempts=self.attempts)

    @property
    def is_final(self) -> bool:
        return SUBSCRIPTION_MOVES.is_final(self.status)

    @property
    def can_be_charged(self) -> bool:
        """There is a mandate, and the bank accepts it as far as we know."""
        return self.status is SubscriptionStatus.ACTIVE and self.mandate_token is not None and self.anchor is not None


def announces(before: Subscription, after: Subscription) -> bool:
    """Whether the change is told by `subscription.status_changed`: a status, a flag, or a link that got ready
    (docs/webhooks.md "Events")."""
    if any(getattr(before, name) != getattr(after, name) for name in ("status", "past_due", "rebind_required")):
        return True
    link_before = None if before.binding_url_pending else before.binding_url
    link_after = None if after.binding_url_pending else after.binding_url
    return link_after is not None and link_after != link_before


def awaits_binding(subscription: Subscription) -> bool:
    """A payer may bind now: for the first time, or anew once the merchant asked for that."""
    if subscription.status is SubscriptionStatus.PENDING_BINDING:
        return True
    if subscription.status is not SubscriptionStatus.PAUSED or not subscription.rebind_required:
        return False
    binding = subscription.binding
    mandate = (subscription.mandate_bank, subscription.mandate_reference)
    return binding is None or (binding.bank, binding.bank_reference) != mandate


def binding_ends_at(subscription: Subscription) -> datetime | None:
    """Until when a first binding is waited for: an hour for its link, then 24 hours for the payer. None: for none."""
    if subscription.status is not SubscriptionStatus.PENDING_BINDING:
        return None
    binding = subscription.binding
    if binding is not None and binding.link_issued_at is not None:
        return binding.link_issued_at + CONFIRMATION_WAIT
    if subscription.binding_url is not None:
        return subscription.created_at + CONFIRMATION_WAIT
    return (subscription.created_at if binding is None else binding.requested_at) + LINK_WAIT


def pause_ends_at(subscription: Subscription) -> datetime | None:
    """When a paused subscription expires. None: it is not paused."""
    if subscription.status is not SubscriptionStatus.PAUSED or subscription.paused_at is None:
        return None
    return subscription.paused_at + PAUSE_LONGEST


def masked_phone(phone: str) -> str:
    """`***` and the last 4 digits of at least 5; of fewer only the stars, for else the mask would tell the whole."""
    digits = [char for char in phone if char.isascii() and char.isdigit()]
    return f"***{''.join(digits[-4:])}" if len(digits) > 4 else "***"
