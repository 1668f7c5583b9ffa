"""The nodes of one network, in the order of the setting: the first that keeps up is asked, and the others are what it
is held against (docs/providers/chains.md "Nodes").

None is believed alone where there are several: what counts as final has to be final at each that keeps up, with the
same hash, and what money moves by is read from two. Where they contradict one another nothing is read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec

from ...ports.clock import Clock
from ...ports.faults import NO_ANSWER, Fault, NotConfigured, Unavailable
from .networks import Chain
from .records import Block, Receipt, plain_hash, quantity
from .rpc import Node, NodeRefused, TooOften

T = TypeVar("T")

_HOLDS = 2.0
"""Seconds that a view is taken for the present."""
_AHEAD = timedelta(minutes=1)
"""So far a block's moment may be ahead of our clock."""
_INVALID_PARAMS = -32602
_NO_METHOD = -32601

log = logging.getLogger("cambist.providers")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The network as it stands."""

    nodes: tuple[Node, ...]
    """Those that keep up, one at least; the first is to be asked."""
    latest: int
    """The newest block that the first of them has."""
    final: int
    """No block up to this one can be taken back."""


class _Standing(msgspec.Struct, frozen=True):
    """How one node sees its network."""

    latest: int
    final: Block


class Nodes:
    """A network, seen by its nodes."""

    def __init__(self, chain: Chain, urls: Sequence[str], clock: Clock) -> None:
        """Opens nothing yet. Raises: NotConfigured."""
        if not urls:
            raise NotConfigured(f"{chain.network}: no node is set")
        self.chain = chain
        self._clock = clock
        self._nodes = [Node(f"{chain.network} node {place}", url, clock) for place, url in enumerate(urls, 1)]
        self._of_the_chain: set[str] = set()
        self._counting: set[str] = set()
        """Nodes that do not know the tag `finalized`."""
        self._left_out: dict[str, str] = {}
        self._view: tuple[float, View] | None = None
        self._looking: asyncio.Task[View] | None = None

    def __repr__(self) -> str:
        return f"<Nodes of {self.chain.network}: {len(self._nodes)}>"

    async def check(self) -> None:
        """Whether they are nodes of this network. Raises: NotConfigured where one is of another, or takes no key of
        ours; Unavailable when none answers."""
        answers = await asyncio.gather(*(_fault_of(self._check_chain(node)) for node in self._nodes))
        wrong = next((each for each in answers if isinstance(each, NotConfigured)), None)
        if wrong is not None:
            raise wrong
        if all(answers):
            raise _joined([each for each in answers if each is not None])

    async def view(self) -> View:
        """The network as it stands, or stood a moment ago. Raises: Unavailable, NotConfigured."""
        if self._view is not None and self._clock.monotonic() - self._view[0] < _HOLDS:
            return self._view[1]
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(self._looked)
        # Whoever gives up waiting does not take the answer from the others.
        return await asyncio.shield(self._looking)

    async def ask(self, view: View, question: Callable[[Node], Awaitable[T]]) -> T:
        """What the first says that says anything. Raises: NodeRefused, where that is a no; Unavailable,
        NotConfigured."""
        faults: list[Fault] = []
        for node in view.nodes:
            try:
                return await question(node)
            except NodeRefused as fault:
                if fault.code != _NO_METHOD:
                    raise
                faults.append(Unavailable(str(fault)))
            except NO_ANSWER as fault:
                faults.append(fault)
        raise _joined(faults)

    async def receipt(self, view: View, tx_hash: str) -> Receipt | None:
        """What became of a transaction; None where no node knows it. What is final two nodes have said, where two keep
        up. `tx_hash` without `0x`. Raises: Unavailable, NotConfigured."""
        found: Receipt | None = None
        for node in view.nodes:
            said = await self._receipt_at(node, tx_hash)
            if said is None:
                continue
            if said.height > view.final:
                return said
            if found is not None:
                if said != found:
                    raise self._contradicted(f"of transaction {tx_hash} they say different things")
                return found
            found = said
        if found is not None and len(view.nodes) > 1:
            raise self._contradicted(f"one alone knows transaction {tx_hash}, which is final there")
        return found

    async def block(self, view: View, height: int) -> Block:
        """The head of a block. Raises: Unavailable, NotConfigured."""
        try:
            return await self.ask(view, lambda node: _block(node, hex(height)))
        except NodeRefused as fault:
            raise Unavailable(str(fault)) from None

    async def close(self) -> None:
        """Close all connections."""
        for node in self._nodes:
            await node.close()
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _receipt_at(self, node: Node, tx_hash: str) -> Receipt | None:
        try:
            said = await node.ask_for("eth_getTransactionReceipt", Receipt, f"0x{tx_hash}")
        except NodeRefused as fault:
            raise Unavailable(str(fault)) from None
        if said is not None and plain_hash(said.transaction_hash) != tx_hash:
            raise Unavailable(f"{node.name} answers of another transaction")
        return None if said is None else _comparable(said)

    def _looked(self, task: asyncio.Task[View]) -> None:
        self._looking = None
        # Looked at, because nobody may be waiting any more.
        if not task.cancelled() and task.exception() is None:
            self._view = (self._clock.monotonic(), task.result())

    async def _look(self) -> View:
        answers = await asyncio.gather(*(_tried(self._standing(node)) for node in self._nodes))
        good: list[tuple[Node, _Standing]] = []
        for node, answer in zip(self._nodes, answers, strict=True):
            if isinstance(answer, _Standing):
                good.append((node, answer))
            self._note(node, None if isinstance(answer, _Standing) else str(answer))
        if not good:
            raise _joined([each for each in answers if isinstance(each, Fault)])
        final = min((standing.final for _, standing in good), key=lambda block: block.height)
        told = await asyncio.gather(*(self._hash_at(node, standing, final.height) for node, standing in good))
        if set(told) != {plain_hash(final.hash)}:
            raise self._contradicted(f"block {final.height} is final with different hashes")
        return View(
            nodes=tuple(node for node, _ in good),
            latest=max(good[0][1].latest, final.height),
            final=final.height,
        )

    async def _standing(self, node: Node) -> _Standing:
        """Raises: what a fault of its own is, also where it does not keep up."""
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
        try:
            return plain_hash((await _block(node, hex(height))).hash)
        except NodeRefused as fault:
            raise Unavailable(str(fault)) from None

    async def _check_chain(self, node: Node) -> None:
        if node.name in self._of_the_chain:
            return
        chain_id = quantity(await node.ask("eth_chainId", str))
        if chain_id != self.chain.chain_id:
            raise NotConfigured(f"{node.name} is of chain {chain_id}: {self.chain.network} is {self.chain.chain_id}")
        self._of_the_chain.add(node.name)

    def _note(self, node: Node, why: str | None) -> None:
        """Tell once that a node is left out, and once that it is back."""
        if why is not None and node.name not in self._left_out:
            log.warning("left out: %s", why)
            self._left_out[node.name] = why
        elif why is None and self._left_out.pop(node.name, None) is not None:
            log.warning("%s is asked again", node.name)

    def _contradicted(self, what: str) -> Unavailable:
        log.error("the nodes of %s contradict one another, so nothing is read: %s", self.chain.network, what)
        return Unavailable(f"the nodes of {self.chain.network} contradict one another: {what}")


async def _block(node: Node, number: str) -> Block:
    block = await node.ask_for("eth_getBlockByNumber", Block, number, False)
    if block is None:
        raise Unavailable(f"{node.name} lacks block {number}")
    plain_hash(block.hash)
    if number.startswith("0x") and block.height != int(number, 16):
        raise Unavailable(f"{node.name} answers of another block")
    return block


async def _tried(asked: Awaitable[T]) -> T | Fault:
    try:
        return await asked
    except (NodeRefused, *NO_ANSWER) as fault:
        return fault


async def _fault_of(asked: Awaitable[None]) -> Fault | None:
    return await _tried(asked)


def _joined(faults: Sequence[Fault]) -> Fault:
    """One fault that says all: NotConfigured where nothing else is the matter."""
    told = "; ".join(str(fault) for fault in faults)
    if all(isinstance(fault, NotConfigured) for fault in faults):
        return NotConfigured(told)
    waits = [fault.retry_after for fault in faults if isinstance(fault, Unavailable) and fault.retry_after is not None]
    kind = TooOften if any(isinstance(fault, TooOften) for fault in faults) else Unavailable
    return kind(told, retry_after=min(waits, default=None))


def _comparable(receipt: Receipt) -> Receipt:
    """The same as another node would write it."""
    lower = [
        msgspec.structs.replace(
            each, address=each.address.lower(), topics=[topic.lower() for topic in each.topics], data=each.data.lower()
        )
        for each in receipt.logs
    ]
    return msgspec.structs.replace(
        receipt,
        transaction_hash=receipt.transaction_hash.lower(),
        block_hash=receipt.block_hash.lower(),
        block_number=hex(receipt.height),
        status=hex(quantity(receipt.status)),
        logs=lower,
    )
