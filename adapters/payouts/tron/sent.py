"""What a wallet on TRON sent, read back from the chain: each of its transfers has the mark of its operation (marks.py).

The token's events name the transactions, and the blocks are read once: what is in those that are final is noted, with
how far was read. A database that was restored from a backup has forgotten both alike, so it reads on from where it was.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from ....ports.faults import Unavailable
from ....ports.notebook import Notebook
from ...nodes.logs import LogSearch
from ...nodes.nodes import Nodes, View
from ...nodes.records import FoundLog, plain_hash, topic_of
from . import transaction
from .api import TronApi, first_answer
from .marks import mark_on
from .transaction import tx_id

BACK = 28_800
"""Blocks that are read at the first look of all: a day."""


class Read(msgspec.Struct, frozen=True):
    """How far the chain was read."""

    height: int


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction that moved USDT out of the wallet."""

    raw: bytes
    """As it was broadcast, with its signature."""


class SentTransfers:
    """Of one wallet."""

    def __init__(
        self, nodes: Nodes, apis: Sequence[TronApi], owner: bytes, read: Notebook[Read], sent: Notebook[Sent]
    ) -> None:
        self._apis = apis
        self._owner = owner
        self._name = nodes.chain.spelling.write(owner)
        self._search = LogSearch(nodes)
        self._read = read
        self._sent = sent
        self._turn = asyncio.Lock()

    async def marked(self, view: View, mark: str) -> list[bytes]:
        """What was sent with this mark. Raises: Unavailable, which says nothing of it; NotConfigured."""
        async with self._turn:
            recent = await self._read_on(view)
        noted = [page.raw for page in await self._sent.below(f"#sent/{self._name}/{mark}")]
        return noted + [raw for each, raw in recent if each == mark and raw not in noted]

    async def _read_on(self, view: View) -> list[tuple[str, bytes]]:
        """Note what is final; the rest, which may be taken back, with its marks."""
        begin = Read(max(0, view.final - BACK))
        known = await self._read.read(self._place) or (await self._read.start(self._place, begin))[0]
        recent: list[tuple[str, bytes]] = []
        spans = self._search.spans(view, known.height + 1, view.latest, (), sender=topic_of(self._owner))
        async for _, logs in spans:
            for each in logs:
                mark, raw = await self._marked(each)
                if each.height > view.final:
                    recent.append((mark, raw))
                else:
                    key = f"#sent/{self._name}/{mark}/{plain_hash(each.transaction_hash)}"
                    await self._sent.start(key, Sent(raw=raw))
        if view.final > known.height:
            await self._read.change(self._place, lambda before: max(before, Read(view.final), key=_height))
        return recent

    async def _marked(self, log: FoundLog) -> tuple[str, bytes]:
        tx_hash = plain_hash(log.transaction_hash)
        raw, signature = await first_answer(self._apis, lambda api: api.transaction(tx_hash))
        if tx_id(raw).hex() != tx_hash:
            raise Unavailable(f"transaction {tx_hash} is told otherwise than it was signed")
        try:
            mark = mark_on(transaction.read(raw))
        except ValueError:
            mark = "none"  # somebody else built it
        return mark, transaction.signed(raw, signature)

    @property
    def _place(self) -> str:
        return f"#read/{self._name}"


def _height(read: Read) -> int:
    return read.height
