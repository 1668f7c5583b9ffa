"""Nodes of one network, in the order of the setting (docs/providers/chains.md "Nodes").

If several nodes are set, none is trusted alone. Two nodes must agree on everything that moves money. While only one
answers, it can say that nothing has arrived yet, and everything else waits. A node that refuses a query, or answers
it oddly, is left out of that query only. While nodes contradict each other, nothing is read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ...ports.checking import Shortage
from ...ports.clock import Clock
from ...ports.faults import NO_ANSWER, Fault, NotConfigured, Unavailable
from .networks import Chain
from .records import Block, Receipt, ToldReceipt, plain_hash, quantity, read_receipt
from .rpc import Node, NodeRefused, TooOften

T = TypeVar("T")

VOICES = 2
"""Nodes that must agree, if as many are set."""
_HOLDS = 2.0
"""Seconds for which a view counts as current."""
_AHEAD = timedelta(minutes=1)
"""Time by which a block may be ahead of our clock."""
_REFUSED_FOR = 120.0
"""Seconds for which a node that refused a query counts as missing for it, if the query is not repeated."""
_INVALID_PARAMS = -32602

log = logging.getLogger("cambist.providers")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Present state of the network."""

    nodes: tuple[Node, ...]
    """Nodes that are not behind, at least one. The first is queried first."""
    heads: Mapping[str, int]
    """Newest block of each node, by name."""
    latest: int
    """Newest block of the first node."""
    final: int
    """Final block: neither it nor an earlier one can be reverted."""


class _Standing(msgspec.Struct, frozen=True):
    """State of the network as one node sees it."""

    latest: int
    final: Block


class _Miss(msgspec.Struct, frozen=True):
    """A node that does not answer one kind of query."""

    why: str
    at: float
    counts: bool
    """Whether nodes must agree on this kind of query."""


class Nodes:
    """A network, seen by its nodes."""

    def __init__(self, chain: Chain, urls: Sequence[str], clock: Clock) -> None:
        """Set up the nodes without connecting. Raises: NotConfigured."""
        if not urls:
            raise NotConfigured(f"{chain.network}: no node is set")
        self.chain = chain
        self._clock = clock
        self._nodes = [Node(f"{chain.network} node {place}", url, clock) for place, url in enumerate(urls, 1)]
        self.needed = min(VOICES, len(self._nodes))
        """Number of nodes that must agree."""
        self._of_the_chain: set[str] = set()
        self._counting: set[str] = set()
        """Nodes that do not know the tag `finalized`."""
        self._missing: dict[tuple[str, str], _Miss] = {}
        """Misses by node and kind of query."""
        self._short_since: datetime | None = None
        self._view: tuple[float, View] | None = None
        self._looking: asyncio.Task[View] | None = None

    def __repr__(self) -> str:
        return f"<Nodes of {self.chain.network}: {len(self._nodes)}>"

    async def check(self) -> None:
        """Check that they are nodes of this network.

        Raises: NotConfigured if one belongs to another, or refuses our key; Unavailable if none answers.
        """
        answers = await asyncio.gather(*(tried(self._check_chain(node)) for node in self._nodes))
        wrong = next((each for each in answers if isinstance(each, NotConfigured)), None)
        if wrong is not None:
            raise wrong
        if all(answers):
            raise joined([each for each in answers if each is not None])

    async def view(self) -> View:
        """Return the current state of the network, at most _HOLDS seconds old. Raises: Unavailable, NotConfigured."""
        if self._view is not None and self._clock.monotonic() - self._view[0] < _HOLDS:
            return self._view[1]
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(self._looked)
        # A cancelled caller must not cancel the read for the others.
        return await asyncio.shield(self._looking)

    async def shortage(self) -> Shortage | None:
        """Return why money of this network waits for nodes; None while enough nodes answer."""
        try:
            present = {node.name for node in (await self.view()).nodes}
        except NO_ANSWER as fault:
            present, why = set[str](), str(fault)
        else:
            now, lacking = self._clock.monotonic(), dict[str, set[str]]()
            for (name, what), miss in self._missing.items():
                if miss.counts and name in present and now - miss.at < _REFUSED_FOR:
                    lacking.setdefault(what, set()).add(name)
            worst = max(lacking.values(), key=len, default=set[str]())
            present -= worst
            why = "; ".join(miss.why for (name, _), miss in self._missing.items() if name not in present)
        if len(present) >= self.needed:
            self._short_since = None
            return None
        self._short_since = self._short_since or self._clock.now()
        told = f"{len(present)} of {len(self._nodes)} nodes answer, and {self.needed} have to agree"
        return Shortage(of=self.chain.network, since=self._short_since, told=f"{told}: {why}" if why else told)

    async def first(self, view: View, what: str, question: Callable[[Node], Awaitable[T]]) -> T:
        """Return the first answer of any node, for facts that move no money, or prove themselves.

        `what`: the kind of query. Raises: NodeRefused if all refuse; Unavailable, NotConfigured.
        """
        faults = list[Fault]()
        for node in view.nodes:
            answer = await self._answer(node, what, question(node), counts=False)
            if not isinstance(answer, Fault):
                return answer
            faults.append(answer)
        raise joined(faults)

    async def voices(self, view: View, what: str, question: Callable[[Node], Awaitable[T]]) -> list[T]:
        """Return the answers of as many nodes as must agree, or of all that answer if they are fewer.

        Raises: as `first`.
        """
        said, faults, left = list[T](), list[Fault](), list(view.nodes)
        while left and len(said) < self.needed:
            asked, left = left[: self.needed - len(said)], left[self.needed - len(said) :]
            for answer in await asyncio.gather(*(self._answer(node, what, question(node)) for node in asked)):
                if isinstance(answer, Fault):
                    faults.append(answer)
                else:
                    said.append(answer)
        if not said:
            raise joined(faults)
        return said

    async def agreed(self, view: View, what: str, question: Callable[[Node], Awaitable[T]]) -> list[T]:
        """Return the answers of as many nodes as must agree. Raises: as `first`; Unavailable if fewer answer."""
        said = await self.voices(view, what, question)
        self.demand(len(said), what)
        return said

    def demand(self, voices: int, what: str) -> None:
        """Raise Unavailable if these are fewer answers than needed."""
        if voices < self.needed:
            raise Unavailable(
                f"{voices} of {len(self._nodes)} nodes of {self.chain.network} answer about {what}, and {self.needed} "
                "have to agree"
            )

    async def receipt(self, view: View, tx_hash: str, *, sure: bool = False) -> Receipt | None:
        """Return the receipt of a transaction; None if no node has it in a block.

        Enough nodes agree on a final receipt; with `sure` they also agree on None. `tx_hash` has no `0x`. Raises:
        Unavailable, NotConfigured.
        """
        faults, found, unknown = list[Fault](), list[Receipt](), 0
        for node in view.nodes:
            said = await self._answer(node, "receipts", self._receipt_at(node, tx_hash))
            if isinstance(said, Fault):
                faults.append(said)
                continue
            if said is None:
                unknown += 1
                continue
            if said.height > view.final:
                return said
            found.append(said)
            if said != found[0]:
                raise self._contradicted(f"of transaction {tx_hash} they say different things")
            if len(found) == self.needed:
                return said
        if not found and not unknown:
            raise joined(faults)
        if found and unknown:
            raise self._contradicted(f"one alone knows transaction {tx_hash}, which is final there")
        if found or sure:
            self.demand(len(found) + unknown, "receipts")
        return None

    async def block(self, view: View, height: int) -> Block:
        """Return the head of a block. Enough nodes agree on a final one. Raises: Unavailable, NotConfigured."""
        if height > view.final:
            return await self.first(view, "blocks", lambda node: _block(node, hex(height)))
        said = await self.agreed(view, "blocks", lambda node: _block(node, hex(height)))
        if len({(plain_hash(each.hash), each.at) for each in said}) > 1:
            raise self._contradicted(f"of block {height}, which is final, they say different things")
        return said[0]

    async def close(self) -> None:
        """Close all connections."""
        for node in self._nodes:
            await node.close()
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _answer(self, node: Node, what: str, asked: Awaitable[T], *, counts: bool = True) -> T | Fault:
        answer = await tried(asked)
        self._note(node, what, answer if isinstance(answer, Fault) else None, counts=counts)
        return answer

    async def _receipt_at(self, node: Node, tx_hash: str) -> Receipt | None:
        told = await node.ask_for("eth_getTransactionReceipt", ToldReceipt, f"0x{tx_hash}")
        if told is None:
            return None
        try:
            said = read_receipt(self.chain, told)
        except Unavailable as fault:
            raise Unavailable(f"{node.name}: {fault}") from None
        if plain_hash(told.transaction_hash) != tx_hash:
            raise Unavailable(f"{node.name} answers of another transaction")
        return said

    def _looked(self, task: asyncio.Task[View]) -> None:
        self._looking = None
        # Fetch the exception, because there may be no caller left to get it.
        if not task.cancelled() and task.exception() is None:
            self._view = (self._clock.monotonic(), task.result())

    async def _look(self) -> View:
        answers = await asyncio.gather(*(self._answer(node, "heads", self._standing(node)) for node in self._nodes))
        keeping_up = [
            (node, said) for node, said in zip(self._nodes, answers, strict=True) if not isinstance(said, Fault)
        ]
        if not keeping_up:
            raise joined([each for each in answers if isinstance(each, Fault)])
        final = min((said.final for _, said in keeping_up), key=lambda block: block.height)
        hashes = await asyncio.gather(
            *(self._answer(node, "final blocks", self._hash_at(node, said, final.height)) for node, said in keeping_up)
        )
        good = [each for each, said in zip(keeping_up, hashes, strict=True) if not isinstance(said, Fault)]
        if any(said != plain_hash(final.hash) for said in hashes if not isinstance(said, Fault)):
            raise self._contradicted(f"block {final.height} is final with different hashes")
        return View(
            nodes=tuple(node for node, _ in good),
            heads={node.name: said.latest for node, said in good},
            latest=max(good[0][1].latest, final.height),
            final=final.height,
        )

    async def _standing(self, node: Node) -> _Standing:
        """Return the state that a node sees. Raises: its own faults, also if it is behind."""
        await self._check_chain(node)
        latest = await _block(node, "latest")
        behind = self._clock.now() - latest.at
        if behind.total_seconds() > self.chain.quiet:
            raise Unavailable(f"{node.name} does not keep up: its newest block is {behind.total_seconds():.0f} s old")
        if -behind > _AHEAD:
            raise Unavailable(f"{node.name}, or our clock, is wrong: its newest block is of the future")
        final = await self._final(node, latest)
        if final.height > latest.height:
            raise Unavailable(f"{node.name} calls a block final that it does not have")
        return _Standing(latest.height, final)

    async def _final(self, node: Node, latest: Block) -> Block:
        if node.name not in self._counting:
            try:
                return await _block(node, "finalized")
            except NodeRefused as fault:
                if fault.code != _INVALID_PARAMS:
                    raise
                self._counting.add(node.name)
                log.warning(
                    "%s does not know what is final: it is counted, %s blocks", node.name, self.chain.confirmations
                )
        return await _block(node, hex(max(0, latest.height - self.chain.confirmations)))

    async def _hash_at(self, node: Node, standing: _Standing, height: int) -> str:
        if standing.final.height == height:
            return plain_hash(standing.final.hash)
        return plain_hash((await _block(node, hex(height))).hash)

    async def _check_chain(self, node: Node) -> None:
        if node.name in self._of_the_chain:
            return
        chain_id = quantity(await node.ask("eth_chainId", str))
        if chain_id != self.chain.chain_id:
            raise NotConfigured(f"{node.name} is of chain {chain_id}: {self.chain.network} is {self.chain.chain_id}")
        self._of_the_chain.add(node.name)

    def _note(self, node: Node, what: str, fault: Fault | None, *, counts: bool) -> None:
        """Log once that a node is left out of a kind of query, and once that it takes part again."""
        place = node.name, what
        if fault is None:
            if self._missing.pop(place, None) is not None:
                log.warning("%s is asked for %s again", node.name, what)
            return
        if place not in self._missing:
            log.warning("left out of questions for %s: %s", what, fault)
        self._missing[place] = _Miss(str(fault), self._clock.monotonic(), counts)

    def _contradicted(self, what: str) -> Unavailable:
        log.error("the nodes of %s contradict one another, so nothing is read: %s", self.chain.network, what)
        return Unavailable(f"the nodes of {self.chain.network} contradict one another: {what}")


async def quantity_at(node: Node, method: str, *params: Any) -> int:
    """Return a number that a node reports. Raises: as `Node.ask`."""
    return quantity(await node.ask(method, str, *params))


async def _block(node: Node, number: str) -> Block:
    block = await node.ask_for("eth_getBlockByNumber", Block, number, False)
    if block is None:
        raise Unavailable(f"{node.name} lacks block {number}")
    plain_hash(block.hash)
    if number.startswith("0x") and block.height != int(number, 16):
        raise Unavailable(f"{node.name} answers of another block")
    return block


async def tried(asked: Awaitable[T]) -> T | Fault:
    """Return the answer, or the fault instead."""
    try:
        return await asked
    except NO_ANSWER as fault:
        return fault


def joined(faults: Sequence[Fault]) -> Fault:
    """Return one fault for all: NotConfigured or NodeRefused if there is no other kind."""
    told = "; ".join(str(fault) for fault in faults)
    if all(isinstance(fault, NotConfigured) for fault in faults):
        return NotConfigured(told)
    refused = [fault for fault in faults if isinstance(fault, NodeRefused)]
    if len(refused) == len(faults):
        return NodeRefused(told, refused[0].code, said=refused[0].said)
    waits = [fault.retry_after for fault in faults if isinstance(fault, Unavailable) and fault.retry_after is not None]
    kind = TooOften if any(isinstance(fault, TooOften) for fault in faults) else Unavailable
    return kind(told, retry_after=min(waits, default=None))
