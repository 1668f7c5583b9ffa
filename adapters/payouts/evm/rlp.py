"""RLP, the encoding of Ethereum's transactions: bytes, and lists of them. Each value has one encoding."""

from collections.abc import Sequence
from typing import TypeAlias

Item: TypeAlias = "bytes | Sequence[Item]"

_SHORT = 55
_TEXT, _LIST = 0x80, 0xC0
_DEPTH = 4
"""Depth of nested lists: an access list has three levels."""


def encoded(item: Item) -> bytes:
    """Return the encoded bytes."""
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < _TEXT else _head(len(item), _TEXT) + item
    body = b"".join(encoded(each) for each in item)
    return _head(len(body), _LIST) + body


def decoded(data: bytes) -> Item:
    """Return the decoded value. Raises: ValueError for invalid RLP, or an encoding other than that of `encoded`."""
    item, end = _read(data, 0, _DEPTH)
    if end != len(data) or encoded(item) != data:
        raise ValueError("no RLP, or spelled another way")
    return item


def number(value: int) -> bytes:
    """Return an integer in RLP's form, without leading zeros."""
    return value.to_bytes((value.bit_length() + 7) // 8)


def read_number(item: Item) -> int:
    """Return the integer. Raises: ValueError."""
    if not isinstance(item, bytes) or item[:1] == b"\0":
        raise ValueError("no number")
    return int.from_bytes(item)


def _head(size: int, kind: int) -> bytes:
    if size <= _SHORT:
        return bytes((kind + size,))
    digits = number(size)
    return bytes((kind + _SHORT + len(digits),)) + digits


def _read(data: bytes, place: int, depth: int) -> tuple[Item, int]:
    if place >= len(data) or depth == 0:
        raise ValueError("it ends too early, or lies too deep")
    first = data[place]
    if first < _TEXT:
        return data[place : place + 1], place + 1
    kind = _LIST if first >= _LIST else _TEXT
    size, begin = first - kind, place + 1
    if size > _SHORT:
        digits = size - _SHORT
        size, begin = int.from_bytes(data[begin : begin + digits]), begin + digits
    end = begin + size
    if end > len(data):
        raise ValueError("it ends too early")
    if kind == _TEXT:
        return data[begin:end], end
    items: list[Item] = []
    while begin < end:
        item, begin = _read(data[:end], begin, depth - 1)
        items.append(item)
    return items, end
