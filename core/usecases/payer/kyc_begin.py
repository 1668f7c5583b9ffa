"""The hosted KYC page for visitors without a merchant's link: find the merchant, and ask for the phone (docs/kyc.md
"Without a link of yours").

No merchant vouches for such a visitor, so the page reveals nothing about a phone that is known already (kyc_page.py).
"""

import asyncio
from collections import Counter
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Account, KycDemand, Mode
from ...domain.errors import Refusal
from ...domain.masked import Masked
from ...domain.payer.kyc_page import origin_of, shop_origins, typed_phone
from ..accounts.rate_limits import admit_stranger
from ..kyc.gate import client_id
from ..kyc.links import new_session

PER_ADDRESS = 30
"""Sessions that one client address may start in a window; a mobile operator puts many people behind one address."""
PER_PHONE = 10
"""Sessions that may be started for one phone in a window, from all addresses."""

_KEPT = timedelta(minutes=1)


class Merchants:
    """Merchants whose clients may come without a link, by the origin of the shop. The data is up to a minute old:
    visitors are anonymous, and each uncached lookup would read all accounts.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._reading = asyncio.Lock()
        self._read_at: datetime | None = None
        self._by_origin: dict[str, str] = {}
        self._only: str | None = None

    async def are_there(self) -> bool:
        """Return whether any merchant allows this."""
        await self._refresh()
        return self._only is not None or bool(self._by_origin)

    async def find(self, site: str | None, redirect: str | None) -> str | None:
        """Return the account of the typed shop, or of the address to return to, or the only account that allows this.
        An origin that several accounts share matches none.
        """
        await self._refresh()
        if site:
            return next((self._by_origin[each] for each in shop_origins(site) if each in self._by_origin), None)
        return self._by_origin.get(origin_of(redirect) or "", self._only)

    async def _refresh(self) -> None:
        async with self._reading:
            now = self._ports.clock.now()
            if self._read_at is not None and abs(now - self._read_at) < _KEPT:
                return
            origins: dict[str, str] = {}
            shared: Counter[str] = Counter()
            found: list[str] = []
            async for batch in self._ports.storage.scan(Account, readable=True):
                for account in batch:
                    if account.settings.kyc is not KycDemand.REQUIRED or not account.settings.kyc_open_page:
                        continue
                    found = [*found[:1], account.id]
                    origin = origin_of(account.settings.return_url)
                    if origin is not None:
                        origins[origin] = account.id
                        shared[origin] += 1
            self._by_origin = {origin: of for origin, of in origins.items() if shared[origin] == 1}
            self._only = found[0] if len(found) == 1 else None
            self._read_at = now


class Begun(Masked, frozen=True, kw_only=True):
    """Result of a start: a session, or the data that is still missing. Its repr hides the session."""

    _shown = ("account_id", "asks_phone", "asks_site")

    session: str | None = None
    account_id: str | None = None
    """The merchant, once known."""
    asks_phone: bool = False
    asks_site: bool = False


async def begin(
    ports: Ports, merchants: Merchants, address: str, phone: str | None, site: str | None, redirect: str | None
) -> Begun:
    """Start a session for a typed phone, with the merchant whose shop the visitor named or came from. Nothing is
    stored.

    Raises: Refusal NOT_FOUND if no merchant has the page open; RATE_LIMIT_EXCEEDED.
    """
    if not await merchants.are_there():
        raise Refusal("NOT_FOUND", "Clients need a link: no merchant is set up for visits without one")
    account_id = await merchants.find(site, redirect)
    known = None if phone is None else typed_phone(phone)
    if account_id is None or known is None:
        return Begun(account_id=account_id, asks_phone=known is None, asks_site=account_id is None)
    await _count(ports, f"ip:{address}", PER_ADDRESS)
    await _count(ports, client_id(ports, account_id, Mode.LIVE, known).hex()[:32], PER_PHONE)
    return Begun(session=new_session(ports, account_id, known, vouched=False), account_id=account_id)


async def _count(ports: Ports, name: str, per_minute: int) -> None:
    counted = await admit_stranger(ports, "kyc-begin", name, per_minute)
    if counted.over:
        raise Refusal("RATE_LIMIT_EXCEEDED", "Too many requests", retry_after=counted.wait)
