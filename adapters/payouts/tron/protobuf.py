"""The part of protobuf's wire format that transactions use: integers and bytes."""

from collections.abc import Mapping

Fields = Mapping[int, int | bytes]
"""Fields by number. A field with its default (0, empty) is left out, as on the wire."""

_VARINT, _BYTES = 0, 2
_MOST_BITS = 64


def encoded(fields: Fields) -> bytes:
    """Return the message with its fields in the order of their numbers, so that each message has one encoding."""
    out = bytearray()
    for number, value in sorted(fields.items()):
        if not value:
            continue
        if isinstance(value, bytes):
            out += _varint(number << 3 | _BYTES) + _varint(len(value)) + value
        else:
            out += _varint(number << 3 | _VARINT) + _varint(value)
    return bytes(out)


def decoded(message: bytes) -> dict[int, int | bytes]:
    """Return the fields.

    Raises: ValueError for an invalid message, for a type of field that transactions do not have, and for a repeated
    field.
    """
    fields: dict[int, int | bytes] = {}
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, place = _read_varint(message, place)
        elif kind == _BYTES:
            size, place = _read_varint(message, place)
            value, place = message[place : place + size], place + size
            if place > len(message):
                raise ValueError("it ends within a field")
        else:
            raise ValueError("a kind of field that is not known here")
        if number == 0 or number in fields:
            raise ValueError("a field of no number, or one that comes twice")
        fields[number] = value
    return fields


def _varint(number: int) -> bytes:
    if number < 0:
        raise ValueError("below zero")
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(message) and shift < _MOST_BITS:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
    raise ValueError("a number that does not end")
