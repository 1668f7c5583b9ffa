"""Answers of nodes, in the part that we read, and the movements of USDT in them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from ...ports.chain import UsdtTransfer
from ...ports.faults import Unavailable
from .networks import Chain

L = TypeVar("L")

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""First topic of every token's event Transfer(address,address,uint256)."""

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}\Z")
_HASH = re.compile(r"0x[0-9a-f]{64}\Z")
MOST_UNITS = 10**18
"""Ten billion USDT: no transfer to a merchant or a client moves more, and no answer of a provider may contain more
(frontends/guard).
"""
_LATEST = 253402300799
"""Last second of a datetime."""
_TOPICS = 3
_WORD = 66
"""Characters of 32 bytes, as JSON-RPC writes them."""


class Block(msgspec.Struct, frozen=True):
    """Head of a block."""

    number: str
    hash: str
    timestamp: str

    @property
    def height(self) -> int:
        return quantity(self.number)

    @property
    def at(self) -> datetime:
        seconds = quantity(self.timestamp)
        if seconds > _LATEST:
            raise Unavailable("a node says a moment that is none")
        return datetime.fromtimestamp(seconds, UTC)


class FoundLog(msgspec.Struct, frozen=True):
    """Transaction that a search for movements of USDT found, and its block."""

    tx_hash: str
    """Without `0x`, in lower case."""
    block_hash: str
    height: int


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a transaction in its block, in the parts on which money depends.

    Two nodes that agree give equal receipts, even if they spell them differently.
    """

    tx_hash: str
    """Without `0x`, in lower case."""
    block_hash: str
    height: int
    is_reverted: bool
    transfers: tuple[UsdtTransfer, ...]


class ToldReceipt(msgspec.Struct, frozen=True, rename="camel"):
    """Receipt as nodes send it. Some send one with nulls for a transaction that waits for a block."""

    transaction_hash: str
    block_number: str | None = None
    block_hash: str | None = None
    status: str | None = None
    logs: list[msgspec.Raw] | None = None


class _Log(msgspec.Struct, frozen=True, rename="camel"):
    address: str
    topics: list[str]
    data: str


class _ToldLog(_Log, frozen=True, rename="camel"):
    transaction_hash: str
    block_number: str | None
    block_hash: str | None
    removed: bool | None = None


class _Address(msgspec.Struct, frozen=True):
    address: str


def read_receipt(chain: Chain, told: ToldReceipt) -> Receipt | None:
    """Read a receipt; None if the transaction is in no block.

    Raises: Unavailable for a receipt that cannot be true, or may hide a movement of USDT.
    """
    if told.block_number is None or told.block_hash is None:
        return None
    if told.status is None or told.logs is None:
        raise Unavailable("a receipt does not say how its transaction ended")
    return Receipt(
        tx_hash=plain_hash(told.transaction_hash),
        block_hash=f"0x{plain_hash(told.block_hash)}",
        height=quantity(told.block_number),
        is_reverted=quantity(told.status) == 0,
        transfers=tuple(
            moved for index, each in enumerate(told.logs) if (moved := _moved_by(chain, each, index)) is not None
        ),
    )


def read_logs(chain: Chain, told: Sequence[msgspec.Raw], first: int, last: int) -> tuple[list[FoundLog], bool]:
    """Read the logs of blocks `first` to `last` one by one.

    Return those that move USDT, and whether all were readable. An unreadable log of another contract hides nothing.
    """
    found, is_whole = list[FoundLog](), True
    for raw in told:
        try:
            each = _found(chain, raw)
        except Unavailable:
            is_whole = False
            continue
        if each is not None and first <= each.height <= last:
            found.append(each)
        elif each is not None:
            is_whole = False
    return found, is_whole


def _found(chain: Chain, raw: msgspec.Raw) -> FoundLog | None:
    """Return the log; None if it moves no USDT, or is in no block. Raises: Unavailable."""
    log = _decoded(chain, raw, _ToldLog)
    if log is None or log.removed or (log.block_number is None and log.block_hash is None):
        return None
    if _moved(chain, log, 0) is None:
        return None
    if log.block_number is None or log.block_hash is None:
        raise Unavailable("a log says half of its block")
    return FoundLog(plain_hash(log.transaction_hash), f"0x{plain_hash(log.block_hash)}", quantity(log.block_number))


def _decoded(chain: Chain, raw: msgspec.Raw, shape: type[L]) -> L | None:
    """Return the decoded log; None for an unreadable one of another contract.

    Raises: Unavailable for any other unreadable log.
    """
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        is_usdt = msgspec.json.decode(raw, type=_Address).address.lower() == chain.usdt
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        is_usdt = True
    if is_usdt:
        raise Unavailable("a log cannot be read, and may be of USDT")
    return None


def _moved_by(chain: Chain, raw: msgspec.Raw, index: int) -> UsdtTransfer | None:
    log = _decoded(chain, raw, _Log)
    return None if log is None else _moved(chain, log, index)


def quantity(text: str) -> int:
    """Return the value of a JSON-RPC number. Raises: Unavailable."""
    if not _QUANTITY.match(text):
        raise Unavailable("a node says a number that is none")
    return int(text, 16)


def plain_hash(text: str) -> str:
    """Return a hash without its `0x`. Raises: Unavailable."""
    if not _HASH.match(text.lower()):
        raise Unavailable("a node says a hash that is none")
    return text[2:].lower()


def topic_of(payload: bytes) -> str:
    """Return an address as a topic, or as the argument of a call."""
    return f"0x{payload.rjust(32, bytes(1)).hex()}"


def _moved(chain: Chain, log: _Log, index: int) -> UsdtTransfer | None:
    """Return the movement of USDT in a log.

    None for other events, and for a movement of nothing: strangers send these to appear at an address. `index` is
    the log's position in its transaction. The number that nodes report counts by block, and changes when a block is
    reverted. Raises: Unavailable for a log of USDT that cannot be true.
    """
    if log.address.lower() != chain.usdt or not log.topics or log.topics[0].lower() != TRANSFER:
        return None
    if len(log.topics) != _TOPICS or len(log.data) != _WORD:
        raise Unavailable("a node sends a transfer of USDT that has not its shape")
    units = chain.units(quantity(log.data))
    if units > MOST_UNITS:
        raise Unavailable("a node sends a transfer of more USDT than there is")
    if units == 0:
        return None
    sender, recipient = (chain.spelling.write(_payload(each)) for each in log.topics[1:])
    return UsdtTransfer(index=index, sender=sender, recipient=recipient, units=units)


def _payload(topic: str) -> bytes:
    return bytes.fromhex(plain_hash(topic))[-20:]
