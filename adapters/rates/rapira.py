"""Rapira, an exchange with an order book of USDT/RUB. Its public rates need no key."""

import ssl
from decimal import Context, Decimal

import msgspec

from ...ports.clock import Clock
from ...ports.faults import Unavailable
from ...ports.rates import RateQuote
from ..provider_http import ProviderHttp
from .web import price, read

BASE = "https://api.rapira.net"
_PAIR = "USDT/RUB"
_DIGITS = 40


class _Row(msgspec.Struct, frozen=True):
    """The name of a pair. Other fields are decoded later, because other pairs may lack prices."""

    symbol: str


class _Market(_Row, frozen=True):
    ask: Decimal = msgspec.field(name="askPrice")
    bid: Decimal = msgspec.field(name="bidPrice")


class _Answer(msgspec.Struct, frozen=True):
    data: list[msgspec.Raw]


class RapiraRates:
    """Implement the port RateSource: the middle between ask and bid."""

    name = "rapira"

    def __init__(
        self, clock: Clock, *, base: str = BASE, limit: float = 5.0, tls: ssl.SSLContext | None = None
    ) -> None:
        """Open no connections yet. `limit`: seconds for a whole exchange."""
        self._clock = clock
        self._http = ProviderHttp(self.name, base, limit=limit, tls=tls)

    async def quote(self) -> RateQuote:
        """Return the current price with our time: Rapira reports no time, and answers from its current order book.
        Raises: Unavailable."""
        at = self._clock.now()
        answer = await read(self._http, "/open/market/rates", _Answer)
        market = self._market(answer)
        ask, bid = price(self.name, market.ask), price(self.name, market.bid)
        if bid > ask:
            raise Unavailable("rapira: more is bid than asked")
        arithmetic = Context(prec=_DIGITS)
        middle = arithmetic.divide(arithmetic.add(ask, bid), Decimal(2))
        return RateQuote(rate=middle, at=at, source=self.name)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def _market(self, answer: _Answer) -> _Market:
        try:
            for raw in answer.data:
                if msgspec.json.decode(raw, type=_Row).symbol == _PAIR:
                    return msgspec.json.decode(raw, type=_Market)
        except msgspec.MsgspecError:
            raise Unavailable("rapira: the answer is not of the shape known to us") from None
        raise Unavailable(f"rapira: no {_PAIR}")
