"""Search of blocks for USDT that some addresses received, or that one sent.

It works in spans, because each node limits the blocks and addresses of one query in its own way, and reports this
with its own texts and codes.
"""

from collections.abc import AsyncIterator, Sequence

import msgspec

from ...ports.faults import Unavailable
from .nodes import Nodes, View
from .records import TRANSFER, FoundLog, read_logs
from .rpc import Node, NodeRefused, TooOften

SPAN = 1000
"""Blocks in one query at first. Most nodes accept as many."""
_TRUSTED = 32
"""Successful answers in a row after which the span is doubled."""
_NO_METHOD = -32601


class Span(msgspec.Struct, frozen=True):
    """Result of a search in some blocks."""

    end: int
    """Last block of the span."""
    logs: Sequence[FoundLog]
    is_agreed: bool
    """Whether enough nodes gave a complete answer. Otherwise there may be more logs."""


class _Taken(msgspec.Struct):
    """Blocks that one node accepts in a query."""

    span: int
    answered: int = 0


class LogSearch:
    """Search by the nodes of one network, which learns the spans that they accept."""

    def __init__(self, nodes: Nodes, *, span: int = SPAN) -> None:
        self._nodes = nodes
        self._most = span
        self._taken: dict[str, _Taken] = {}
        """State by the node's name."""

    async def spans(
        self,
        view: View,
        first: int,
        last: int,
        recipients: Sequence[str],
        *,
        sender: str | None = None,
        sure: bool = False,
    ) -> AsyncIterator[Span]:
        """Search these blocks in spans for movements of USDT to one of `recipients` (topics; empty: to any address),
        and from `sender` if it is given.

        A log needs only one node. `sure`: raise if too few nodes answer. Raises: Unavailable or NotConfigured after
        a span for which no node gave a complete answer; earlier spans stay valid.
        """
        while first <= last:
            end = min(last, first + min(self._of(node).span for node in view.nodes[: self._nodes.needed]) - 1)
            found: dict[FoundLog, None] = {}
            voices, fault = 0, None
            try:
                voices = await self._search(view, first, end, recipients, sender, found)
            except Unavailable as missing:
                fault = missing
            if sure and fault is None:
                self._nodes.demand(voices, "logs")
            if fault is None or found:
                yield Span(end, list(found), voices >= self._nodes.needed)
            if fault is not None:
                raise fault
            first = end + 1

    async def _search(
        self,
        view: View,
        first: int,
        last: int,
        recipients: Sequence[str],
        sender: str | None,
        found: dict[FoundLog, None],
    ) -> int:
        """Add the nodes' logs to `found`, and return how many gave a complete answer.

        Raises: Unavailable if none did.
        """

        async def ask(node: Node) -> None:
            # A node has no logs for blocks that it lacks, and some refuse the query.
            end = min(last, view.heads[node.name])
            if not await self._of_node(node, first, end, recipients, sender, found):
                raise Unavailable(f"{node.name}: a log cannot be read, and may be of USDT")

        return len(await self._nodes.voices(view, "logs", ask))

    async def _of_node(
        self,
        node: Node,
        first: int,
        last: int,
        recipients: Sequence[str],
        sender: str | None,
        found: dict[FoundLog, None],
    ) -> bool:
        """Query one node in spans that it accepts, and return whether all its logs were readable.

        Raises: NodeRefused if it refuses one block for one address; Unavailable.
        """
        taken, is_whole = self._of(node), True
        while first <= last:
            end = min(last, first + taken.span - 1)
            try:
                logs, is_read = await self._asked(node, first, end, recipients, sender)
            except NodeRefused as fault:
                if fault.code == _NO_METHOD:
                    raise
                if first < end:
                    taken.span, taken.answered = (end - first + 1) // 2, 0
                    continue
                if len(recipients) <= 1:
                    taken.span = self._most  # the span was not the reason
                    raise
                middle = len(recipients) // 2
                for half in (recipients[:middle], recipients[middle:]):
                    is_whole &= await self._of_node(node, first, end, half, sender, found)
            except TooOften:
                raise
            except Unavailable:
                # This includes answers that take too long or are too large: the next search asks for less.
                taken.span, taken.answered = max(1, (end - first + 1) // 2), 0
                raise
            else:
                found.update(dict.fromkeys(logs))
                is_whole &= is_read
                self._trust(taken)
            first = end + 1
        return is_whole

    async def _asked(
        self, node: Node, first: int, last: int, recipients: Sequence[str], sender: str | None
    ) -> tuple[list[FoundLog], bool]:
        wanted = {
            "fromBlock": hex(first),
            "toBlock": hex(last),
            "address": self._nodes.chain.usdt,
            "topics": [TRANSFER, sender, *([list(recipients)] if recipients else ())],
        }
        return read_logs(self._nodes.chain, await node.ask("eth_getLogs", list[msgspec.Raw], wanted), first, last)

    def _of(self, node: Node) -> _Taken:
        return self._taken.setdefault(node.name, _Taken(self._most))

    def _trust(self, taken: _Taken) -> None:
        taken.answered += 1
        if taken.answered >= _TRUSTED:
            taken.span, taken.answered = min(self._most, taken.span * 2), 0
