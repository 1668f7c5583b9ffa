"""CoinGecko, which averages over exchanges. A key is optional and raises its limits."""

import ssl
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec

from ...ports.faults import Unavailable
from ...ports.rates import RateQuote
from ..provider_http import ProviderHttp
from .web import price, read

BASE = "https://api.coingecko.com"
_PATH = "/api/v3/simple/price?ids=tether&vs_currencies=rub&include_last_updated_at=true&precision=full"
_KEY = "x-cg-demo-api-key"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Price(msgspec.Struct, frozen=True):
    rub: Decimal
    last_updated_at: int


class _Answer(msgspec.Struct, frozen=True):
    tether: _Price


class CoinGeckoRates:
    """Implement the port RateSource: USDT in RUB."""

    name = "coingecko"

    def __init__(
        self,
        *,
        key: str | None = None,
        base: str = BASE,
        limit: float = 5.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Open no connections yet. `limit`: seconds for a whole exchange."""
        self._headers = {} if key is None else {_KEY: key}
        self._http = ProviderHttp(self.name, base, limit=limit, tls=tls)

    async def quote(self) -> RateQuote:
        """Return the price and the time when CoinGecko computed it. Raises: Unavailable; NotConfigured for a wrong
        key."""
        answer = await read(self._http, _PATH, _Answer, self._headers)
        try:
            at = _EPOCH + timedelta(seconds=answer.tether.last_updated_at)
        except OverflowError:
            raise Unavailable("coingecko: not a time") from None
        return RateQuote(rate=price(self.name, answer.tether.rub), at=at, source=self.name)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()
