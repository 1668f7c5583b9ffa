"""Notifications of Raiffeisenbank about payments, payouts and subscriptions. An HMAC over some of their values proves
them; it covers the amount exactly as the notification spells it."""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from ....ports.bank import Notification
from ....ports.faults import Forged
from ....ports.notifications import InboundNotification, Received
from .core import RaiffeisenCore
from .merchants import NAME, mandate_page, subscription_of
from .wire import PayoutStatus

NETWORKS = ("193.28.44.23/32",)
"""Source network of the notifications, from the bank's documents of 2021."""


class Paid(msgspec.Struct, frozen=True, rename="camel"):
    """Notification of a payment."""

    amount: msgspec.Raw
    """The raw text, because the signatures of 1110 and 1110.00 differ."""
    sbp_merchant_id: str
    order: str
    payment_status: str
    transaction_date: str

    @property
    def signed(self) -> str:
        parts = (self.sbp_merchant_id, self.order, self.payment_status, self.transaction_date)
        return "|".join((_spelt(self.amount), *parts))


class StatusTold(PayoutStatus, frozen=True, rename="camel", kw_only=True):
    date: str


class PayoutTold(msgspec.Struct, frozen=True):
    amount: msgspec.Raw
    id: str
    status: StatusTold

    @property
    def signed(self) -> str:
        return f"{_spelt(self.amount)}|{self.id}|{self.status.value}|{self.status.date}"


class Numbered(msgspec.Struct, frozen=True):
    id: str


class Event(msgspec.Struct, frozen=True):
    """Any notification. The fields show its kind; for a payment all are absent."""

    event: str | None = None
    payout: PayoutTold | None = None
    subscription: Numbered | None = None


class RaiffeisenNotifications(RaiffeisenCore):
    """Notifications part of the adapter. Implement Notifications."""

    @property
    def notification_networks(self) -> tuple[str, ...]:
        return NETWORKS

    async def receive(self, notification: InboundNotification) -> Received:
        """Verify a notification and return the operation it is about.

        The bank documents no signature for subscriptions. Such a notification counts only if its number is one of ours,
        and like every notification it only triggers a poll.
        """
        event = _read(notification.body, Event)
        if event.payout is not None:
            if self._payouts is None:
                return Received()
            self._prove(notification, event.payout.signed, (self._payouts.secret_key,))
            return await self._heard(event.payout.id)
        if event.subscription is not None:
            return await self._heard(mandate_page(event.subscription.id))
        if event.event is not None:
            return Received()
        paid = _read(notification.body, Paid)
        self._prove(notification, paid.signed, self._merchants.keys_of(paid.sbp_merchant_id))
        subscription = subscription_of(paid.order)
        if subscription is not None:
            return await self._heard(mandate_page(subscription))
        return await self._heard(paid.order, paid.order)

    async def _heard(self, noted: str, number: str = "") -> Received:
        """Return the operation noted under this key. Without a note, use the number itself, unless it is a digest: a
        digest of another system means nothing to us."""
        page = await self._notes.read(noted) if len(noted) <= _LONGEST else None
        operation = number if page is None else page.operation
        return Received(notifications=(Notification(operation=operation),)) if "_" in operation else Received()

    def _prove(self, notification: InboundNotification, signed: str, keys: Iterable[str]) -> None:
        """Verify the signature. Raises: Forged if none of the keys signed the notification."""
        told = notification.headers.get("x-api-signature-sha256", "").lower().encode("utf-8", "surrogatepass")
        text = signed.encode("utf-8", "surrogatepass")
        is_proved = False
        for key in keys:
            expected = hmac.new(key.encode(), text, hashlib.sha256).hexdigest().encode()
            is_proved |= hmac.compare_digest(expected, told)
        if not is_proved:
            raise Forged(f"{NAME}: the signature is wrong")


_LONGEST = 64
"""Maximum length of our numbers, in characters."""


def _read(body: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Forged(f"{NAME}: it is no notification") from None


def _spelt(amount: msgspec.Raw) -> str:
    return bytes(amount).decode("utf-8", "replace").strip()
