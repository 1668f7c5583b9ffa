"""The YooKassa adapter, assembled from its parts."""

from datetime import timedelta

from ....ports.bank import BankCapabilities
from ....ports.faults import NotConfigured, Unavailable
from ....ports.receipts import ReceiptNeed
from ....ports.tools import Tools
from ...provider_http import ProviderHttp
from .calls import Calls
from .charges import Charges
from .core import NAME, Note
from .mandates import Mandates
from .notifications import Notifications
from .payouts import PAYOUT_MOST, Payouts
from .reporting import Reporting
from .settings import BASE
from .shops import Shop, Shops
from .till import Till
from .wire import Me

MOST = 700_000_00
"""Kopecks of one payment, until YooKassa raises the shop's limit."""
_LEAST = 1_00
_LIMIT = 15.0
"""Seconds of a call. YooKassa itself answers within 30, but the app ends a call after 20."""
_REPEATS = timedelta(hours=23)
"""YooKassa remembers idempotence keys for 24 hours."""
_POLLS = 300


class YooKassaBank(Mandates, Charges, Till, Payouts, Notifications, Reporting):
    """Implement the ports ListingBank, ReportingBank, MandateBank, RemittanceBank, ReceiptBank, Notifications,
    Checkable, TellsTime, and all of ports/searching.py."""

    def __init__(
        self,
        tools: Tools,
        shops: Shops,
        *,
        gateway: Shop | None = None,
        base_url: str = BASE,
        by_page: bool = False,
        mandates: bool = False,
        receipts: ReceiptNeed = ReceiptNeed.NONE,
        max_kopecks: int = MOST,
    ) -> None:
        """Open no connections yet. `gateway`: credentials of payouts. `by_page`: send payers to a page of YooKassa
        instead of showing a QR. `mandates`: whether YooKassa allows the shop to save methods and charge them.
        `receipts`: requirements of its cash register.

        Raises: NotConfigured.
        """
        super().__init__(
            Calls(ProviderHttp(NAME, base_url, limit=_LIMIT, clock=tools.clock), tools.clock),
            shops,
            gateway,
            tools.operation_log(NAME, Note),
            tools.clock,
            page=tools.base_url if by_page else None,
            mandates=mandates,
            receipts=receipts,
            max_kopecks=max_kopecks,
        )

    @property
    def capabilities(self) -> BankCapabilities:
        remits = self._gateway is not None
        return BankCapabilities(
            min_kopecks=_LEAST,
            max_kopecks=self._max_kopecks,
            receipts=self._receipts,
            rewrites_receipts=True,
            mandates=self._mandates,
            mandate_charges=self._mandates,
            remittances=remits,
            remittance_max_kopecks=PAYOUT_MOST if remits else None,
            sends_notifications=True,
            polls_per_minute=_POLLS,
            repeat_window=_REPEATS,
        )

    @property
    def clock_skew(self) -> float | None:
        return self._calls.clock_skew

    async def check(self) -> None:
        """Read the account of the installation's shop (or a merchant's, if there is none) and of the gateway."""
        for shop in (self._shops.all()[0], self._gateway):
            if shop is not None:
                await self._check(shop)

    async def _check(self, shop: Shop) -> None:
        me = await self._calls.find(shop, "/me", Me)
        if me is None:
            raise Unavailable("yookassa does not say who we are")
        if me.status != "enabled":
            raise NotConfigured(f"yookassa: {shop!r} is not enabled")
        if me.test:
            raise NotConfigured(f"yookassa: {shop!r} is a demo shop, which has no SBP")

    async def close(self) -> None:
        """Close the connections. The app calls this for each gateway it creates."""
        await self._calls.close()
