"""The network's knowledge of a wallet's transactions: the state of a transfer, and the wallet's sent transfers."""

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial

import msgspec

from ....ports.faults import Unavailable
from ....ports.payouts import TransferState
from ...nodes.logs import LogSearch
from ...nodes.nodes import Nodes, View, quantity_at
from ...nodes.records import quantity, topic_of
from ...nodes.rpc import Node
from ..shared import seen
from . import transaction
from .transaction import Fees, Signed, Transaction, tx_hash

_DYNAMIC = 2


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """Search for a transfer."""

    owner: bytes
    recipient: bytes
    amount: int
    nonce: int
    hashes: Sequence[str]
    """Hashes of all transactions that were signed for it."""
    height: int | None
    """Final block before which no transaction had this number; None if no such block is known."""


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    """Transaction in the form that nodes send."""

    nonce: str
    gas: str
    input: str
    value: str
    v: str
    r: str
    s: str
    to: str | None = None
    type: str = "0x0"
    gas_price: str = "0x0"
    max_fee_per_gas: str | None = None
    max_priority_fee_per_gas: str | None = None


class Sightings:
    """Sightings of one wallet."""

    def __init__(self, nodes: Nodes, owner: bytes) -> None:
        self._nodes = nodes
        self._owner = owner

    async def count(self, view: View, tag: str, *, most: bool = False) -> int:
        """Return how many of the wallet's numbers are used: the lowest count that the required number of nodes report,
        or the highest with `most`. Raises: Unavailable, NotConfigured.
        """
        owner = f"0x{self._owner.hex()}"
        said = await self._nodes.agreed(
            view, "numbers", lambda node: quantity_at(node, "eth_getTransactionCount", owner, tag)
        )
        return max(said) if most else min(said)

    async def stands(self, view: View, moves: Moves) -> tuple[TransferState, str | None]:
        """Return the state of a transfer, and the transaction that decided it. Raises: Unavailable, NotConfigured."""
        for each in reversed(moves.hashes):
            receipt = await self._nodes.receipt(view, each)
            if receipt is not None:
                return seen(view, receipt, self._nodes.chain, moves), each
        # Use a block some way below the final one: nodes show a block before they know its contents.
        proven = hex(max(0, view.final - self._nodes.chain.reread))
        if await self.count(view, proven) <= moves.nonce:
            return TransferState.UNSEEN, None
        other = await self._in_its_place(view, moves)
        if other is None:
            return TransferState.FAILED, None
        receipt = await self._nodes.receipt(view, other)
        if receipt is None:
            raise Unavailable(f"transaction {other} was there and is gone")
        return seen(view, receipt, self._nodes.chain, moves), other

    async def is_known(self, view: View, hashes: Collection[str]) -> bool:
        """Return whether a node knows one of the transactions, in a block or waiting.

        The answer no needs the required number of nodes. Raises: Unavailable, NotConfigured.
        """
        for each in hashes:
            said = await self._nodes.voices(view, "transactions", partial(_told, of=each))
            if any(told is not None for told in said):
                return True
            self._nodes.demand(len(said), "transactions")
        return False

    async def sent(self, view: View, first: int) -> AsyncIterator[tuple[int, list[tuple[Signed, bytes]]]]:
        """Read the blocks from `first` in spans.

        Yield each span's last block, and the wallet's transfers of USDT in it with their signed bytes. Raises:
        Unavailable, NotConfigured; earlier spans stay valid.
        """
        spans = LogSearch(self._nodes).spans(view, first, view.latest, (), sender=topic_of(self._owner), sure=True)
        async for span in spans:
            found: list[tuple[Signed, bytes]] = []
            for of in {log.tx_hash: None for log in span.logs}:
                raw = await self._nodes.first(view, "transactions", partial(self._raw, of=of))
                try:
                    signed = transaction.read(raw)
                except ValueError:
                    continue
                if signed.by == self._owner:
                    found.append((signed, raw))
            yield span.end, found

    async def _in_its_place(self, view: View, moves: Moves) -> str | None:
        """Find another transaction with the same number that moved USDT to the recipient.

        The required number of nodes must agree, because one alone proves neither that there is nothing nor which
        number a transaction has.
        """
        if moves.height is None:
            raise Unavailable("where this number was given is not known: nothing is proven")
        spans = LogSearch(self._nodes).spans(
            view, moves.height, view.final, (topic_of(moves.recipient),), sender=topic_of(moves.owner), sure=True
        )
        async for span in spans:
            for of in {log.tx_hash: None for log in span.logs}:
                if moves.nonce in await self._nodes.agreed(view, "transactions", partial(_number_of, of=of)):
                    return of
        return None

    async def _raw(self, node: Node, of: str) -> bytes:
        """Rebuild the bytes of a transaction. Raises: Unavailable if their hash differs."""
        told = await _told(node, of)
        raw = b"" if told is None else _written(told, self._nodes.chain.chain_id)
        if tx_hash(raw) != of:
            raise Unavailable(f"{node.name} does not tell transaction {of} as it was signed")
        return raw


async def _told(node: Node, of: str) -> _Told | None:
    return await node.ask_for("eth_getTransactionByHash", _Told, f"0x{of}")


async def _number_of(node: Node, of: str) -> int:
    told = await _told(node, of)
    if told is None:
        raise Unavailable(f"{node.name} lacks transaction {of}, which is in a final block")
    return quantity(told.nonce)


def _written(told: _Told, chain_id: int) -> bytes:
    is_dynamic = quantity(told.type) == _DYNAMIC
    fees = (
        Fees(quantity(told.max_fee_per_gas or "0x0"), quantity(told.max_priority_fee_per_gas or "0x0"))
        if is_dynamic
        else Fees(quantity(told.gas_price))
    )
    try:
        made = Transaction(
            chain_id=chain_id,
            nonce=quantity(told.nonce),
            fees=fees,
            gas=quantity(told.gas),
            to=bytes.fromhex((told.to or "0x")[2:]),
            value=quantity(told.value),
            data=bytes.fromhex(told.input[2:]),
        )
    except ValueError:
        return b""
    v = quantity(told.v)
    parity = v if is_dynamic else (v - 35) % 2
    return made.signed(quantity(told.r).to_bytes(32) + quantity(told.s).to_bytes(32) + bytes((parity & 1,)))
