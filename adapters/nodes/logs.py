"""Searches blocks for USDT that came to some addresses, or left one, by spans that the node takes: how many blocks and
addresses one question may have, each node decides for itself, and says it in words and codes of its own."""

from collections.abc import AsyncIterator, Sequence

from ...ports.faults import Unavailable
from .nodes import Nodes, View
from .records import TRANSFER, FoundLog, moves_something
from .rpc import Node, NodeRefused, TooOften

SPAN = 1000
"""Blocks of one question, at first: what most nodes take."""
_TRUSTED = 32
"""After so many answers in a row the span is doubled again."""


class LogSearch:
    """Searches by the nodes of one network, and learns which spans they take."""

    def __init__(self, nodes: Nodes, *, span: int = SPAN) -> None:
        self._nodes = nodes
        self._most = span
        self._span = span
        self._answered = 0

    async def spans(
        self, view: View, first: int, last: int, recipients: Sequence[str], *, sender: str | None = None
    ) -> AsyncIterator[tuple[int, list[FoundLog]]]:
        """Span after span of these blocks: the last block of it, and what moved USDT there to one of `recipients` (as
        topics; none: to anybody), from `sender` where it is given. Raises: Unavailable, NotConfigured; what came before
        holds."""
        while first <= last:
            end = min(last, first + self._span - 1)
            try:
                found = await self._found(view, first, end, recipients, sender)
            except NodeRefused:
                self._halve(end - first + 1)
                continue
            except TooOften:
                raise
            except Unavailable:
                # Also an answer that takes too long, or has too much in it: the next look asks for less.
                self._halve(end - first + 1)
                raise
            yield end, found
            first = end + 1
            self._trust()

    async def _found(
        self, view: View, first: int, last: int, recipients: Sequence[str], sender: str | None
    ) -> list[FoundLog]:
        """Raises: NodeRefused, unless it is one block: then the addresses are too many, or the node is of no use."""
        wanted = {
            "fromBlock": hex(first),
            "toBlock": hex(last),
            "address": self._nodes.chain.usdt,
            "topics": [TRANSFER, sender, *([list(recipients)] if recipients else ())],
        }

        async def ask(node: Node) -> list[FoundLog]:
            return await node.ask("eth_getLogs", list[FoundLog], wanted)

        try:
            told = await self._nodes.ask(view, ask)
        except NodeRefused as fault:
            if first < last:
                raise
            if len(recipients) <= 1:
                raise Unavailable(str(fault)) from None
            middle = len(recipients) // 2
            halves = recipients[:middle], recipients[middle:]
            return [each for half in halves for each in await self._found(view, first, last, half, sender)]
        found = [each for each in told if not each.removed and moves_something(self._nodes.chain, each)]
        if any(not first <= each.height <= last for each in found):
            raise Unavailable(f"{self._nodes.chain.network}: a node answers of other blocks than it was asked for")
        return found

    def _halve(self, blocks: int) -> None:
        self._span, self._answered = max(1, min(self._span, blocks) // 2), 0

    def _trust(self) -> None:
        self._answered += 1
        if self._answered >= _TRUSTED:
            self._span, self._answered = min(self._most, self._span * 2), 0
