"""Shared base of the adapter: calls, credentials, notes and decoding of payments."""

from datetime import timedelta

import msgspec

from ....ports.bank import Transfer
from ....ports.faults import NotConfigured, Unavailable
from ....ports.tools import Tools
from .api import RaiffeisenApi
from .merchants import NAME, Merchants, Pair, PayoutPair, Reference
from .register import Register
from .settings import PRODUCTION
from .wire import PaymentInfo, PayoutBank, RefundInfo, kopecks, read_moment

NO_REGISTER = Register()

GRACE = timedelta(minutes=2)
"""Wait after a QR's expiry. After it the bank shows every payment made in time, even if the clocks differ."""


class Page(msgspec.Struct, frozen=True):
    """Note of an order, a subscription or a payout, stored under the number by which the bank knows it."""

    operation: str
    """Our operation, to resolve notifications."""
    qr_id: str | None = None
    """QR that was handed out. If several QRs were registered for one order, only this one is ever handed out."""
    payload: str | None = None
    revoked: bool = False
    """Set on a mandate that we ended, because the bank has no call for it."""
    reference: str = ""
    """For a charge: its reference, which names the charged subscription."""


class RaiffeisenCore:
    """Base of all parts of the adapter."""

    def __init__(
        self,
        tools: Tools,
        *,
        merchants: Merchants,
        base_url: str = PRODUCTION,
        payouts: PayoutPair | None = None,
        aliases: dict[str, str] | None = None,
        subscriptions: bool = False,
        register: Register = NO_REGISTER,
    ) -> None:
        """`base_url` replaces the production address. `payouts`: credentials of payouts; None turns payouts off.
        `aliases`: the bank's names for receivers' banks by SBP id, in addition to the known ones (payouts.py).
        `subscriptions`: whether the bank has enabled subscriptions for us. `register`: the cash register that writes
        receipts.

        Raises: NotConfigured for an address that must not be called.
        """
        self._api = RaiffeisenApi(NAME, base_url, tools.clock)
        self._notes = tools.operation_log(NAME, Page)
        self._clock = tools.clock
        self._merchants = merchants
        self._payouts = payouts
        self._aliases = aliases or {}
        self._subscriptions = subscriptions
        self._till = register

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @property
    def name(self) -> str:
        return NAME

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which the bank's clock was ahead of ours at its last answer."""
        return self._api.clock_skew

    async def close(self) -> None:
        """Close the connections. The app calls this for each gateway it creates."""
        await self._api.close()

    def _whose(self, reference: Reference) -> Pair:
        return self._merchants.pair(reference.owner)

    def _pair_of(self, account: str | None, shop: str | None, terminal: str | None) -> tuple[str, Pair]:
        """Choose the most specific owner that has credentials: terminal, shop, account, then the installation."""
        owner = self._merchants.owner_of(terminal, shop, account)
        return owner, self._merchants.pair(owner)

    async def _payment(self, who: Pair, qr_id: str) -> PaymentInfo | None:
        return await self._api.ask(who, PaymentInfo, "sbp", "v1", "qr", qr_id, "payment-info")

    def _is_over(self, info: PaymentInfo) -> bool:
        """Report whether the payment's QR has certainly expired."""
        ends = read_moment(info.qr_expiration_date)
        return ends is not None and self._clock.now() >= ends + GRACE

    def _transfer(self, info: PaymentInfo) -> Transfer:
        """Build the transfer of a successful payment.

        Its id is the order: the only number that the bank's registry, notifications and answers all contain, and an
        order is paid once. Raises: Unavailable if the amount cannot be read.
        """
        amount = None if info.amount is None else kopecks(info.amount)
        if not amount or amount < 0 or info.currency not in (None, "RUB"):
            raise Unavailable(f"{NAME}: a payment is shown without its money")
        at = read_moment(info.transaction_date) or self._clock.now()
        return Transfer(id=info.order, amount_kopecks=amount, at=at)

    async def check(self) -> None:
        """Check the credentials with a refund that does not exist and with the list of payout banks. Raises:
        NotConfigured, naming the rejected key; Unavailable."""
        shared = self._merchants.shared
        if shared is not None:
            await self._api.ask(shared, RefundInfo, "sbp", "v1", "refund", "cambist-check")
        if self._payouts is not None:
            try:
                await self._api.ask(self._payouts, list[PayoutBank], "payout", "v1", "sbp", "banks")
            except NotConfigured as fault:
                raise NotConfigured(f"{fault} (of payouts)") from None
