"""A chain watcher over a custom node with an HTTP interface, only for TRON."""

import re

import httpx2
import msgspec

import cambist
from cambist.ports import (
    AdapterFactory,
    ChainWatcher,
    Final,
    InBlock,
    Network,
    NotFound,
    NotSupported,
    Reverted,
    Sighting,
    Unavailable,
    UsdtTransfer,
)

from .answers import check_taken, client
from .settings import DeskSettings

USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
"""Contract of genuine USDT on TRON. Any other token may use the same name."""
_HASH = re.compile(r"[0-9a-f]{64}\Z")


class _Event(msgspec.Struct):
    """An event of the node's answer. Answers are decoded into the required fields only; one without them is
    unreadable."""

    index: int
    sender: str = msgspec.field(name="from")
    to: str
    amount: int
    contract: str


class _Transaction(msgspec.Struct):
    final: bool
    reverted: bool
    events: list[_Event]


class DeskChain:
    """Implement cambist.ports.ChainWatcher."""

    def __init__(self, url: str, token: str) -> None:
        self._http = client(url, token, 10)

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        if not _HASH.match(tx_hash):
            raise ValueError("a transaction hash is 64 hex digits in lower case")
        if network is not Network.TRON:
            raise NotSupported(f"this watcher does not see {network}")
        found = await self._read(f"/transactions/{tx_hash}")
        if found is None:
            return NotFound()
        if not found.final:
            return InBlock()
        if found.reverted:
            return Reverted()
        transfers = tuple(
            UsdtTransfer(index=event.index, sender=event.sender, recipient=event.to, units=event.amount * 100)
            for event in found.events
            if event.contract == USDT and event.amount > 0  # TRON counts with 6 decimals, the port with 8
        )
        return Final(transfers)

    async def close(self) -> None:
        await self._http.aclose()

    async def _read(self, path: str) -> _Transaction | None:
        """A failed read says nothing about the transaction: never NotFound."""
        if self._http.is_closed:
            raise Unavailable("the adapter is closed")
        try:
            answer = await self._http.get(path)
            check_taken(answer)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=_Transaction)
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise Unavailable("the node did not answer") from error


def _make(_: cambist.Tools, own: DeskSettings) -> ChainWatcher:
    """Build it of its settings. mypy and pyright check the class against the protocol that is returned."""
    return DeskChain(own.url, own.token)


desk = AdapterFactory(settings=DeskSettings, make=_make)
"""The entry point names it."""
