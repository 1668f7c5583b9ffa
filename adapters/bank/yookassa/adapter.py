"""The adapter, of all its parts."""

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
from .notices import Notices
from .payouts import PAYOUT_MOST, Payouts
from .refunds import Refunds
from .reporting import Reporting
from .shops import Shop, Shops
from .wire import Me

BASE = "https://api.yookassa.ru/v3"
MOST = 700_000_00
"""Kopecks of one payment, until the shop's manager allows more."""
_LEAST = 1_00
_LIMIT = 15.0
"""Seconds of a call. It answers within 30 itself, and a call of the house ends after 20."""
_REPEATS = timedelta(hours=23)
"""It knows its keys for 24 hours."""
_LOOKS = 300


class YooKassaBank(Mandates, Charges, Refunds, Payouts, Notices, Reporting):
    """Fills the ports ListingBank, ReportingBank, MandateBank, RemittanceBank, Notices, Checkable, TellsTime, and all
    of ports/searching.py."""

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
        """Opens nothing yet. `gateway`: of payouts. `by_page`: payers go on a page of YooKassa's instead of a QR.
        `mandates`: its manager has allowed the shop to save methods and charge them. `receipts`: what its cash register
        wants.

        Raises: NotConfigured.
        """
        super().__init__(
            Calls(ProviderHttp(NAME, base_url, limit=_LIMIT, clock=tools.clock), tools.clock),
            shops,
            gateway,
            tools.notebook(NAME, Note),
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
            mandates=self._mandates,
            mandate_charges=self._mandates,
            remittances=remits,
            remittance_max_kopecks=PAYOUT_MOST if remits else None,
            sends_notices=True,
            looks_per_minute=_LOOKS,
            repeat_window=_REPEATS,
        )

    @property
    def clock_skew(self) -> float | None:
        return self._calls.clock_skew

    async def check(self) -> None:
        """Read who we are, as the installation's shop (where it has none, a merchant's) and as the gateway."""
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
        """The house closes what it made."""
        await self._calls.close()
