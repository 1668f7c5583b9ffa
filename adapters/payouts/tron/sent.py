"""Transfers that a wallet on TRON sent, read from the chain. Each call contains its operation (transaction.py).

The token's events name the transactions. Each block is read once: notes hold the transfers in final blocks, and the
range of blocks read. A database restored from a backup has lost both alike, so it continues from its older
position. Progress is stored after every span, so an interrupted read continues there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from ....ports.faults import Unavailable
from ....ports.operation_log import OperationLog
from ...nodes.logs import SPAN, LogSearch, Span
from ...nodes.nodes import Nodes, View
from ...nodes.records import FoundLog, topic_of
from ..signer import signer_is
from . import transaction
from .api import TronApi, first_answer
from .transaction import tx_id

PACE = timedelta(seconds=3)
"""Minimum time from block to block."""
DAY = timedelta(days=1) // PACE
"""Blocks that the very first read covers."""
FARTHEST = 30 * DAY
"""Blocks that a listing reads back at most."""

log = logging.getLogger("cambist.payouts")


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """Range of blocks read, without a gap."""

    first: int
    last: int


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction that moved USDT out of the wallet."""

    raw: bytes
    """The broadcast bytes, with the signature."""


class SentTransfers:
    """Sent transfers of one wallet."""

    def __init__(
        self, nodes: Nodes, apis: Sequence[TronApi], owner: bytes, whole: OperationLog[Whole], sent: OperationLog[Sent]
    ) -> None:
        self._apis = apis
        self._owner = owner
        self._name = nodes.chain.spelling.write(owner)
        self._search = LogSearch(nodes)
        self._whole = whole
        self._sent = sent
        self._turn = asyncio.Lock()

    async def of(self, view: View, operation: str) -> list[bytes]:
        """Return the transfers sent for an operation.

        Raises: Unavailable, which says nothing about them; NotConfigured.
        """
        async with self._turn:
            recent = await self._read_on(view, await self._read_so_far(view))
        noted = [page.raw for page in await self._sent.below(self._of(operation))]
        return noted + [raw for said, raw in recent if said == operation and raw not in noted]

    async def since(self, view: View, moment: datetime, final_at: datetime) -> list[bytes]:
        """Return the transfers sent for operations since `moment`, and perhaps some earlier ones.

        `final_at`: time of the view's final block. Raises: as `of`.
        """
        async with self._turn:
            whole = await self._read_so_far(view)
            recent = await self._read_on(view, whole)
            far = min(max(0, -((moment - final_at) // PACE)), FARTHEST)
            await self._read_back(view, whole, max(0, view.final - far))
        pages = await self._sent.since(moment)
        mine = [msgspec.json.decode(body, type=Sent).raw for key, body in pages if key.startswith(f"{self._all}/")]
        return mine + [raw for said, raw in recent if said and raw not in mine]

    async def _read_so_far(self, view: View) -> Whole:
        known = await self._whole.read(self._place)
        begin = max(0, view.final - DAY)
        return known or (await self._whole.start(self._place, Whole(first=begin, last=begin - 1)))[0]

    async def _read_on(self, view: View, whole: Whole) -> list[tuple[str, bytes]]:
        """Store the transfers in final blocks.

        Return those in later blocks, which may be reverted, with their operations.
        """
        recent: list[tuple[str, bytes]] = []
        async for span in self._spans(view, whole.last + 1, view.latest):
            recent += await self._note(view, span.logs)
            if view.final > whole.last:
                await self._know(whole.first, min(span.end, view.final))
        return recent

    async def _read_back(self, view: View, whole: Whole, first: int) -> None:
        """Store the transfers in the blocks before the range read, the newest span first."""
        end = whole.first - 1
        while end >= first:
            begin = max(first, end - SPAN + 1)
            async for span in self._spans(view, begin, end):
                await self._note(view, span.logs)
            await self._know(begin, whole.last)
            end = begin - 1

    def _spans(self, view: View, first: int, last: int) -> AsyncIterator[Span]:
        return self._search.spans(view, first, last, (), sender=topic_of(self._owner), sure=True)

    async def _note(self, view: View, logs: Sequence[FoundLog]) -> list[tuple[str, bytes]]:
        """Store the transfers in final blocks. Return operation and bytes of the others."""
        recent: list[tuple[str, bytes]] = []
        for each in {found.tx_hash: found for found in logs}.values():
            operation, raw = await self._told(each)
            if each.height > view.final:
                recent.append((operation, raw))
            elif operation:
                await self._sent.start(f"{self._of(operation)}/{each.tx_hash}", Sent(raw=raw))
            else:
                told = "somebody else spends from the wallet %s: transaction %s says no operation"
                log.error(told, self._name, each.tx_hash)
        return recent

    async def _told(self, found: FoundLog) -> tuple[str, bytes]:
        """Return the operation, empty if the transaction names none, and the bytes."""
        return await first_answer(self._apis, lambda api: self._told_by(api, found.tx_hash))

    async def _told_by(self, api: TronApi, tx_hash: str) -> tuple[str, bytes]:
        """Read the bytes from one interface, and check them against their hash. Raises: Unavailable, NotConfigured."""
        raw, signature = await api.transaction(tx_hash)
        blob = transaction.signed(raw, signature)
        try:
            made = transaction.read(raw)
        except ValueError:
            made = None  # another program built it
        is_true = tx_id(raw).hex() == tx_hash
        if made is not None and made.owner == self._owner:
            is_true = is_true and signer_is(self._owner, signature, tx_id(raw))
        if not is_true:
            raise Unavailable(f"{api.name}: transaction {tx_hash} is told otherwise than it was signed")
        return "" if made is None else made.operation, blob

    async def _know(self, first: int, last: int) -> None:
        """Extend the range of blocks read, if these blocks join it."""

        def turn(before: Whole) -> Whole:
            return Whole(first=min(before.first, first), last=max(before.last, last))

        await self._whole.change(self._place, turn)

    @property
    def _place(self) -> str:
        return f"#whole/{self._name}"

    @property
    def _all(self) -> str:
        return f"#sent/{self._name}"

    def _of(self, operation: str) -> str:
        return f"{self._all}/{sha256(operation.encode()).hexdigest()[:32]}"
