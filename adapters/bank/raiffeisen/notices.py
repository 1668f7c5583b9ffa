"""What Raiffeisenbank posts: a payment, a payout, a subscription; proved by an HMAC over some of its values, the amount
as it is spelt there."""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from ....ports.bank import Notice
from ....ports.faults import Forged
from ....ports.notices import Heard, InboundNotice
from .core import RaiffeisenCore
from .merchants import NAME, mandate_page, subscription_of
from .wire import PayoutStatus

NETWORKS = ("193.28.44.23/32",)
"""Where it posts from, as its documents of 2021 say."""


class Paid(msgspec.Struct, frozen=True, rename="camel"):
    """A payment."""

    amount: msgspec.Raw
    """As it is spelt: 1110 and 1110.00 are signed differently."""
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
    """Anything that names what it is; a payment names nothing."""

    event: str | None = None
    payout: PayoutTold | None = None
    subscription: Numbered | None = None


class RaiffeisenNotices(RaiffeisenCore):
    """The part that listens: fills Notices."""

    @property
    def notice_networks(self) -> tuple[str, ...]:
        return NETWORKS

    async def hear(self, notice: InboundNotice) -> Heard:
        """A subscription's notice is not signed, as far as the bank's documents go: it counts where the number is one
        that we gave, and then as the hint that every notice is."""
        event = _read(notice.body, Event)
        if event.payout is not None:
            if self._payouts is None:
                return Heard()
            self._prove(notice, event.payout.signed, (self._payouts.secret_key,))
            return await self._heard(event.payout.id)
        if event.subscription is not None:
            return await self._heard(mandate_page(event.subscription.id))
        if event.event is not None:
            return Heard()
        paid = _read(notice.body, Paid)
        self._prove(notice, paid.signed, self._merchants.keys_of(paid.sbp_merchant_id))
        subscription = subscription_of(paid.order)
        if subscription is not None:
            return await self._heard(mandate_page(subscription))
        return await self._heard(paid.order, paid.order)

    async def _heard(self, noted: str, number: str = "") -> Heard:
        """The operation that is noted so, else what the number itself is, where it is no digest: of another's digest
        we know nothing."""
        page = await self._notes.read(noted) if len(noted) <= _LONGEST else None
        operation = number if page is None else page.operation
        return Heard(notices=(Notice(operation=operation),)) if "_" in operation else Heard()

    def _prove(self, notice: InboundNotice, signed: str, keys: Iterable[str]) -> None:
        """Raises: Forged where none of the keys signed it."""
        told = notice.headers.get("x-api-signature-sha256", "").lower().encode("utf-8", "surrogatepass")
        text = signed.encode("utf-8", "surrogatepass")
        is_proved = False
        for key in keys:
            expected = hmac.new(key.encode(), text, hashlib.sha256).hexdigest().encode()
            is_proved |= hmac.compare_digest(expected, told)
        if not is_proved:
            raise Forged(f"{NAME}: the signature is wrong")


_LONGEST = 64
"""Characters of a number that can be ours."""


def _read(body: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Forged(f"{NAME}: it is no notice") from None


def _spelt(amount: msgspec.Raw) -> str:
    return bytes(amount).decode("utf-8", "replace").strip()
