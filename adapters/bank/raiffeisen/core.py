"""What all parts of the adapter share: calls, credentials, notes, and how a payment is read."""

from datetime import timedelta

import msgspec

from ....ports.bank import Transfer
from ....ports.faults import NotConfigured, Unavailable
from ....ports.tools import Tools
from .api import PRODUCTION, RaiffeisenApi
from .merchants import NAME, Merchants, Pair, PayoutPair, Reference
from .register import Register
from .wire import PaymentInfo, PayoutBank, RefundInfo, kopecks, read_moment

NO_REGISTER = Register()

GRACE = timedelta(minutes=2)
"""After a QR's end: what its payer did in time is told by then, however clocks differ."""


class Page(msgspec.Struct, frozen=True):
    """What is noted of an order, a subscription or a payout, by the number that the bank knows it by."""

    operation: str
    """Ours: the way back from a notice."""
    qr_id: str | None = None
    """Which QR was handed out for it: of several that were registered for one order only one ever is."""
    payload: str | None = None
    revoked: bool = False
    """Of a mandate that we ended; the bank has no call for it."""
    reference: str = ""
    """Of a charge: by which subscription it went."""


class RaiffeisenCore:
    """The parts of the adapter extend this."""

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
        """`base_url` stands in place of production's. `payouts`: by what people are paid; None: nobody is. `aliases`:
        the bank's words for banks, by SBP's ids, beside those that are known (payouts.py). `subscriptions`: the bank
        has switched them on for us. `register`: the cash register that writes receipts.

        Raises: NotConfigured for an address that may not be called.
        """
        self._api = RaiffeisenApi(NAME, base_url, tools.clock)
        self._notes = tools.notebook(NAME, Page)
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
        """The house closes what it made."""
        await self._api.close()

    def _whose(self, reference: Reference) -> Pair:
        return self._merchants.pair(reference.owner)

    def _pair_of(self, account: str | None, shop: str | None, terminal: str | None) -> tuple[str, Pair]:
        """Whose credentials a request goes by: the narrowest that has any."""
        owner = self._merchants.owner_of(terminal, shop, account)
        return owner, self._merchants.pair(owner)

    async def _payment(self, who: Pair, qr_id: str) -> PaymentInfo | None:
        return await self._api.ask(who, PaymentInfo, "sbp", "v1", "qr", qr_id, "payment-info")

    def _is_over(self, info: PaymentInfo) -> bool:
        """Whether the QR of this payment has ended for certain."""
        ends = read_moment(info.qr_expiration_date)
        return ends is not None and self._clock.now() >= ends + GRACE

    def _transfer(self, info: PaymentInfo) -> Transfer:
        """The money of a payment that succeeded. Its id is the order: the one number that the bank's registry, its
        notices and all its answers have, and one order is paid once. Raises: Unavailable for money that cannot be
        counted."""
        amount = None if info.amount is None else kopecks(info.amount)
        if not amount or amount < 0 or info.currency not in (None, "RUB"):
            raise Unavailable(f"{NAME}: a payment is shown without its money")
        at = read_moment(info.transaction_date) or self._clock.now()
        return Transfer(id=info.order, amount_kopecks=amount, at=at)

    async def check(self) -> None:
        """Ask for a refund that nobody made, and for the banks that payouts reach. Raises: NotConfigured, which says
        which key is not taken; Unavailable."""
        shared = self._merchants.shared
        if shared is not None:
            await self._api.ask(shared, RefundInfo, "sbp", "v1", "refund", "cambist-check")
        if self._payouts is not None:
            try:
                await self._api.ask(self._payouts, list[PayoutBank], "payout", "v1", "sbp", "banks")
            except NotConfigured as fault:
                raise NotConfigured(f"{fault} (of payouts)") from None
