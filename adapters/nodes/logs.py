"""Searches blocks for USDT that came to some addresses, or left one, by spans that nodes take: how many blocks and
addresses one question may have, each node decides for itself, and says it in words and codes of its own."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from ...ports.faults import Unavailable
from .nodes import Nodes, View
from .records import TRANSFER, FoundLog, read_logs
from .rpc import Node, NodeRefused, TooOften

SPAN = 1000
"""Blocks of one question, at first: what most nodes take."""
_TRUSTED = 32
"""After so many answers in a row the span is doubled again."""
_NO_METHOD = -32601


class Span(msgspec.Struct, frozen=True):
    """Result of a search in some blocks."""

    end: int
    """The last of them."""
    logs: Sequence[FoundLog]
    is_agreed: bool
    """Enough nodes gave a whole answer. Otherwise there may be more logs."""


class _Taken(msgspec.Struct):
    """The blocks that one node takes in a question."""

    span: int
    answered: int = 0


class LogSearch:
    """Searches by the nodes of one network, and learns which spans they take."""

    def __init__(self, nodes: Nodes, *, span: int = SPAN) -> None:
        self._nodes = nodes
        self._most = span
        self._taken: dict[str, _Taken] = {}
        """By the node's name."""

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
        """Search these blocks span by span for movements of USDT to one of `recipients` (topics; empty: to anybody),
        from `sender` where it is given. One node's word is enough for a log. `sure`: raise where too few nodes answer.

        Raises: Unavailable, NotConfigured, after a span of which no node gave a whole answer; earlier spans stay valid.
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
        """Add the nodes' logs to `found`, and return how many gave a whole answer. Raises: Unavailable for none."""

        async def ask(node: Node) -> None:
            # A node cannot tell of blocks that it does not have yet, and some refuse the question.
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
        """Ask one node, in spans that it takes, and return whether all its logs were readable.

        Raises: NodeRefused where it refuses one block for one address; Unavailable.
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
                    taken.span = self._most  # the span was not the matter
                    raise
                middle = len(recipients) // 2
                for half in (recipients[:middle], recipients[middle:]):
                    is_whole &= await self._of_node(node, first, end, half, sender, found)
            except TooOften:
                raise
            except Unavailable:
                # Also an answer that takes too long, or has too much in it: the next search asks for less.
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
