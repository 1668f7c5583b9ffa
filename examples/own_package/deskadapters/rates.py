"""Rate of the company's own desk, over HTTP: `{"rub_per_usdt": "92.50", "at": "2026-01-01T09:30:00Z"}`; `at` may be
missing."""

import json
from datetime import datetime
from decimal import Decimal, InvalidOperation

import httpx2

import cambist
from cambist.ports import AdapterFactory, RateQuote, RateSource, Unavailable

from .answers import check_taken, client
from .settings import DeskSettings


class DeskRates:
    """Implement cambist.ports.RateSource."""

    name = "desk"
    """Stored with every accepted rate, so it must never change."""

    def __init__(self, tools: cambist.Tools, url: str, token: str) -> None:
        self._clock = tools.clock
        self._http = client(url, token, 5)

    async def quote(self) -> RateQuote:
        """Read the rate. Any failure means that there is no rate now: Unavailable. Only rejected credentials are
        NotConfigured, for an operator."""
        try:
            answer = await self._http.get("/rate")
            check_taken(answer)
            answer.raise_for_status()
            # Parse numbers as Decimal, because a float would lose digits.
            document = json.loads(answer.text, parse_float=Decimal, parse_int=Decimal)
            said, stated = document["rub_per_usdt"], document.get("at")
            at = self._clock.now() if stated is None else datetime.fromisoformat(stated)
            rate = said if isinstance(said, Decimal) else Decimal(str(said))
        except (httpx2.HTTPError, ValueError, LookupError, TypeError, InvalidOperation, RuntimeError) as error:
            # A closed httpx2 client raises a RuntimeError.
            raise Unavailable("the desk gave no rate") from error
        if not rate.is_finite() or rate <= 0 or at.tzinfo is None:
            raise Unavailable("what the desk says is no rate")
        return RateQuote(rate=rate, at=at, source=self.name)

    async def close(self) -> None:
        """Close the connections. The app calls this for each adapter it creates."""
        await self._http.aclose()


def _make(tools: cambist.Tools, own: DeskSettings) -> RateSource:
    """Build it of its settings. mypy and pyright check the class against the protocol that is returned."""
    return DeskRates(tools, own.url, own.token)


desk = AdapterFactory(settings=DeskSettings, make=_make)
"""The entry point names it."""
