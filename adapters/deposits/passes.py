"""One pass over all watched addresses.

A query covers many addresses, so the cost depends on blocks and hundreds of addresses, and not on how often clients
poll (docs/providers/chains.md "Deposits").
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from ...ports.chain import UsdtTransfer
from ...ports.deposits import Deposit
from ...ports.faults import NO_ANSWER, Unavailable
from ..nodes.logs import SPAN, LogSearch
from ..nodes.nodes import Nodes, View
from ..nodes.records import FoundLog, Receipt, topic_of
from .watched import WatchedAddress

K = TypeVar("K")
V = TypeVar("V")

_TOGETHER = 500
"""Addresses in one query. Nodes accept 1000."""
_AT_ONCE = 4
_SPANS = 40
"""Queries of one pass about the same addresses. Addresses further behind continue in the next pass."""
_REMEMBERED = 4096
"""Cached transactions and blocks, which need no second request while no page has them."""


log = logging.getLogger("cambist.providers")


class StillReading(Unavailable):
    """The read works, and is not complete yet."""


class _Moved(msgspec.Struct, frozen=True):
    """Movements of a transaction in its block."""

    transfers: tuple[UsdtTransfer, ...]
    at: datetime


class Passes:
    """Reader of the blocks since the last read, for some addresses."""

    def __init__(self, nodes: Nodes, *, span: int = SPAN) -> None:
        self._nodes = nodes
        self._search = LogSearch(nodes, span=span)
        self._span = span
        self._moved: OrderedDict[tuple[str, str, bool], _Moved] = OrderedDict()
        self._moments: OrderedDict[str, datetime] = OrderedDict()

    async def read(self, watched: Sequence[WatchedAddress], now: float) -> None:
        """Read the addresses up to the present. Each records whether that succeeded. `now`: start of the pass."""
        try:
            view = await self._nodes.view()
        except NO_ANSWER as fault:
            _fail(watched, fault, now)
            return
        places = asyncio.Semaphore(_AT_ONCE)
        parts = _parts(sorted(watched, key=lambda each: each.since), self._span)
        await asyncio.gather(*(self._read_part(view, part, now, places) for part in parts))

    async def _read_part(
        self, view: View, part: Sequence[WatchedAddress], now: float, places: asyncio.Semaphore
    ) -> None:
        async with places:
            try:
                await self._read_blocks(view, part)
            except NO_ANSWER as fault:
                _fail(part, fault, now)
                return
        for each in part:
            each.seen_at = now

    async def _read_blocks(self, view: View, part: Sequence[WatchedAddress]) -> None:
        for each in part:
            await self._prove(view, each)
        by_topic = {topic_of(each.payload): each for each in part}
        by_address = {each.address: each for each in part}
        pending: dict[str, list[Deposit]] = {}
        read, settled = 0, min(view.final, view.latest - self._nodes.chain.reread)
        async for span in self._search.spans(view, part[0].since + 1, view.latest, list(by_topic)):
            if not span.is_agreed:
                # One node may hide or lack a deposit, so read these blocks and all later ones again.
                settled = min(settled, part[0].since)
            for event in span.logs:
                is_final = event.height <= view.final
                for deposit, recipient in await self._deposits(view, event, is_final=is_final):
                    to = by_address.get(recipient)
                    if to is not None and is_final:
                        to.add(deposit)
                    elif to is not None:
                        pending.setdefault(recipient, []).append(deposit)
            for each in part:
                each.since = max(each.since, min(span.end, settled))
            read += 1
            if read >= _SPANS and span.end < view.latest:
                raise StillReading(f"{self._nodes.chain.network}: blocks up to {span.end} are read, of {view.latest}")
        for each in part:
            each.pending = tuple(pending.get(each.address, ()))

    async def _prove(self, view: View, watched: WatchedAddress) -> None:
        """Check the page's deposits with the network."""
        for tx_hash in watched.claimed:
            receipt = await self._nodes.receipt(view, tx_hash, sure=True)
            is_final = receipt is not None and receipt.height <= view.final
            moved = None if receipt is None else await self._moved_in(view, receipt, is_final=is_final)
            if moved is None or not is_final:
                log.error("%s: the network knows nothing of %s, which is kept as final", watched.address, tx_hash)
                continue
            for each in moved.transfers:
                if each.recipient == watched.address:
                    watched.add(_deposit(tx_hash, each, moved.at, is_final=True))
        watched.claimed = frozenset()

    async def _deposits(self, view: View, event: FoundLog, *, is_final: bool) -> list[tuple[Deposit, str]]:
        """Return all movements of the transaction with their recipients, from its receipt; the event only shows that
        there is one. Empty if the transaction left its block meanwhile.
        """
        tx_hash, block_hash = event.tx_hash, event.block_hash
        moved = self._moved.get((tx_hash, block_hash, is_final))
        if moved is None:
            receipt = await self._nodes.receipt(view, tx_hash)
            if receipt is not None and receipt.block_hash == block_hash:
                moved = await self._moved_in(view, receipt, is_final=is_final)
        if moved is None and is_final:
            raise Unavailable(f"{self._nodes.chain.network}: a node is not at one with itself about a final block")
        if moved is None:
            return []
        return [(_deposit(tx_hash, each, moved.at, is_final=is_final), each.recipient) for each in moved.transfers]

    async def _moved_in(self, view: View, receipt: Receipt, *, is_final: bool) -> _Moved | None:
        """Return its movements; None if it was reverted, or its block was replaced."""
        at = None if receipt.is_reverted else await self._moment(view, receipt.height, receipt.block_hash)
        if at is None:
            return None
        moved = _Moved(receipt.transfers, at)
        _remember(self._moved, (receipt.tx_hash, receipt.block_hash, is_final), moved)
        return moved

    async def _moment(self, view: View, height: int, block_hash: str) -> datetime | None:
        """Return when the block was made; None if another has replaced it."""
        if block_hash not in self._moments:
            block = await self._nodes.block(view, height)
            if block.hash.lower() != block_hash:
                return None
            _remember(self._moments, block_hash, block.at)
        return self._moments[block_hash]


def _parts(watched: Sequence[WatchedAddress], span: int) -> Iterator[Sequence[WatchedAddress]]:
    """Yield groups of some hundred addresses that are read about equally far, so that one far behind does not delay
    the others.
    """
    begin = 0
    for place, each in enumerate(watched):
        if place - begin >= _TOGETHER or each.since - watched[begin].since > span:
            yield watched[begin:place]
            begin = place
    if watched:
        yield watched[begin:]


def _deposit(tx_hash: str, moved: UsdtTransfer, at: datetime, *, is_final: bool) -> Deposit:
    return Deposit(tx_hash=tx_hash, index=moved.index, units=moved.units, at=at, is_final=is_final)


def _fail(watched: Sequence[WatchedAddress], fault: Exception, now: float) -> None:
    for each in watched:
        each.fault, each.failed_at = fault, now


def _remember(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    if len(kept) > _REMEMBERED:
        kept.popitem(last=False)
