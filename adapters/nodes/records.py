"""What nodes answer, as far as it is read, and what it says of USDT."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from ...ports.chain import UsdtTransfer
from ...ports.faults import Unavailable
from .networks import Chain

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""The first topic of every token's event Transfer(address,address,uint256)."""

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}\Z")
_HASH = re.compile(r"0x[0-9a-f]{64}\Z")
_LATEST = 253402300799
"""The last second that a datetime has."""
_TOPICS = 3
_WORD = 66
"""Letters of 32 bytes, as JSON-RPC writes them."""


class Block(msgspec.Struct, frozen=True):
    """The head of a block."""

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


class Log(msgspec.Struct, frozen=True, rename="camel"):
    """An event that a contract told."""

    address: str
    topics: list[str]
    data: str


class FoundLog(Log, frozen=True, rename="camel"):
    """One that was searched for, with where it stands."""

    block_number: str
    block_hash: str
    transaction_hash: str
    removed: bool = False

    @property
    def height(self) -> int:
        return quantity(self.block_number)


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a transaction in its block."""

    transaction_hash: str
    block_number: str
    block_hash: str
    status: str
    logs: list[Log]

    @property
    def height(self) -> int:
        return quantity(self.block_number)

    @property
    def is_reverted(self) -> bool:
        return quantity(self.status) == 0


def quantity(text: str) -> int:
    """A number of JSON-RPC. Raises: Unavailable."""
    if not _QUANTITY.match(text):
        raise Unavailable("a node says a number that is none")
    return int(text, 16)


def plain_hash(text: str) -> str:
    """A hash without its `0x`. Raises: Unavailable."""
    if not _HASH.match(text.lower()):
        raise Unavailable("a node says a hash that is none")
    return text[2:].lower()


def topic_of(payload: bytes) -> str:
    """An address as a topic, or as the argument of a call."""
    return f"0x{payload.rjust(32, bytes(1)).hex()}"


def moves_something(chain: Chain, log: Log) -> bool:
    """Whether the event is a movement of the network's USDT. Such of nothing are sent to strangers' addresses to be
    seen there."""
    if log.address.lower() != chain.usdt or len(log.topics) != _TOPICS or log.topics[0].lower() != TRANSFER:
        return False
    return len(log.data) == _WORD and chain.units(quantity(log.data)) > 0


def transfers(chain: Chain, logs: Sequence[Log]) -> tuple[UsdtTransfer, ...]:
    """The movements of USDT among all events of a transaction. The index is the place among these events: that which
    nodes number by block changes when a block is taken back."""
    return tuple(
        UsdtTransfer(
            index=index,
            sender=chain.spelling.write(_payload(log.topics[1])),
            recipient=chain.spelling.write(_payload(log.topics[2])),
            units=chain.units(quantity(log.data)),
        )
        for index, log in enumerate(logs)
        if moves_something(chain, log)
    )


def _payload(topic: str) -> bytes:
    return bytes.fromhex(plain_hash(topic))[-20:]
