"""Subscriptions: the record and its states (docs/subscriptions.md "Making one"; docs/states.md "Subscription").
moves.py and charge_moves.py contain its moves; orders.py, patches.py and charges.py the merchants' requests."""

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
"""Longest pause, after which a subscription expires (docs/subscriptions.md "When the mandate is lost")."""


class SubscriptionStatus(StrEnum):
    """See docs/states.md "Subscription"."""

    PENDING_BINDING = "pending_binding"
    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


BINDING_SYMBOL = Rub(1_00)
"""Amount in the QR code of a binding without a charge."""


class SubscriptionTrigger(StrEnum):
    """Cause of a subscription's move."""

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
    """The present attempt to get a mandate, with its state at the bank."""

    operation: str
    """Operation id at the bank; chosen before the request."""
    requested_at: datetime
    """When the link was requested: its one-hour limit starts here."""
    link_issued_at: datetime | None = None
    """When the payer could first confirm: the limit of 24 hours starts here."""
    payment_id: str | None = None
    """The binding payment; null while the payer has not opened the link."""
    bank: str | None = None
    bank_reference: str | None = None
    qr_payload: str | None = None
    bank_link: str | None = None


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription. The frontends and events decide which fields merchants see; the others are internal."""

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    scheme: Scheme
    """The account's scheme at creation; a later change of the setting has no effect."""
    status: SubscriptionStatus
    amount: Rub
    cap_amount: Rub
    """Largest amount of one charge."""
    interval: Interval
    interval_count: int
    description: str
    binding_charge: BindingCharge
    created_at: datetime
    updated_at: datetime
    cap_window: Rub | None = None
    """Largest sum of one period."""
    consent: Rub | None = None
    """Amount of each charge that the page of the confirmed binding showed: neither `amount` nor `cap_amount` may exceed
    it. Null until the payer confirms for the first time."""
    external_id: str | None = None
    client_ref: str | None = None
    phone_mask: str | None = None
    """`***` and the last 4 digits of `client_phone`, which is not stored."""
    method_id: str | None = None
    success_url: str | None = None
    past_due: bool = False
    rebind_required: bool = False
    binding_url: str | None = None
    link_tag: bytes | None = None
    """The vault's tag over `binding_url`; null without one."""
    binding_url_pending: bool = False
    binding: Binding | None = None
    """Null in the window scheme until the payer opens the link."""
    first_payment_id: str | None = None
    """The binding payment that took the first charge, with or without a mandate since then; null: none."""
    mandate_bank: str | None = None
    """The bank with the mandate; null before the first binding."""
    mandate_reference: str | None = None
    """The bank's reference of the mandate's binding: it distinguishes two bindings even if they gave the same token."""
    mandate_token: bytes | None = None
    """Encrypted: the bank's token for the mandate. Kept while paused, since the bank may accept it again."""
    revoke_pending: bool = False
    """The mandate, or an open binding, must still be ended at the bank."""
    paused_at: datetime | None = None
    anchor: datetime | None = None
    """Time of the last successful payment, the binding included; periods count from its day."""
    attempts: Attempts | None = None
    """Charges of the period that was charged last."""
    current_period_start: datetime | None = None
    current_period_end: datetime | None = None
    """The period of `current_period_start` and `current_period_end` was opened by the last successful payment; null
    before activation."""
    key_id: str | None = None
    """Record of the Idempotency-Key that created it."""
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
        """Whether there is a mandate that the bank accepts, as far as we know."""
        return self.status is SubscriptionStatus.ACTIVE and self.mandate_token is not None and self.anchor is not None


def announces(before: Subscription, after: Subscription) -> bool:
    """Return whether `subscription.status_changed` reports the change: a new status or flag, or a link that became
    ready (docs/webhooks.md "Events")."""
    if any(getattr(before, name) != getattr(after, name) for name in ("status", "past_due", "rebind_required")):
        return True
    link_before = None if before.binding_url_pending else before.binding_url
    link_after = None if after.binding_url_pending else after.binding_url
    return link_after is not None and link_after != link_before


def awaits_binding(subscription: Subscription) -> bool:
    """Return whether a payer may bind now: for the first time, or again after the merchant requested it."""
    if subscription.status is SubscriptionStatus.PENDING_BINDING:
        return True
    if subscription.status is not SubscriptionStatus.PAUSED or not subscription.rebind_required:
        return False
    binding = subscription.binding
    mandate = (subscription.mandate_bank, subscription.mandate_reference)
    return binding is None or (binding.bank, binding.bank_reference) != mandate


def binding_ends_at(subscription: Subscription) -> datetime | None:
    """Return the deadline of a first binding: an hour for its link, then 24 hours for the payer. None: it awaits
    none."""
    if subscription.status is not SubscriptionStatus.PENDING_BINDING:
        return None
    binding = subscription.binding
    if binding is not None and binding.link_issued_at is not None:
        return binding.link_issued_at + CONFIRMATION_WAIT
    if subscription.binding_url is not None:
        return subscription.created_at + CONFIRMATION_WAIT
    return (subscription.created_at if binding is None else binding.requested_at) + LINK_WAIT


def pause_ends_at(subscription: Subscription) -> datetime | None:
    """Return when a paused subscription expires. None: it is not paused."""
    if subscription.status is not SubscriptionStatus.PAUSED or subscription.paused_at is None:
        return None
    return subscription.paused_at + PAUSE_LONGEST


def masked_phone(phone: str) -> str:
    """Return `***` and the last 4 digits of at least 5; for fewer digits only the stars, since the mask would reveal
    all."""
    digits = [char for char in phone if char.isascii() and char.isdigit()]
    return f"***{''.join(digits[-4:])}" if len(digits) > 4 else "***"
