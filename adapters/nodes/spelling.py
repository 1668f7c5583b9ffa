"""The networks' forms of the 20 bytes of an address, and the content of base58 with a checksum."""

import re
from collections.abc import Callable
from hashlib import sha256

import msgspec

from ...core.domain.keccak import keccak256

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_CHECKSUM = 4
_ADDRESS = 20
_TRON = b"\x41"
_EVM = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_MOST = 128
"""Characters that are read at most: an extended key has 111."""


class Spelling(msgspec.Struct, frozen=True):
    """A network's form of addresses."""

    write: Callable[[bytes], str]
    read: Callable[[str], bytes]
    """Returns the 20 bytes. Raises: ValueError for a text that is no address in this form."""


def base58check(body: bytes) -> str:
    """Return the text of the body and its checksum."""
    raw = body + _checksum(body)
    number, letters = int.from_bytes(raw), ""
    while number:
        number, value = divmod(number, len(_ALPHABET))
        letters = _ALPHABET[value] + letters
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + letters


def read_base58check(text: str) -> bytes:
    """Return the body of such a text, without its checksum. Raises: ValueError."""
    number, zeros = 0, len(text) - len(text.lstrip("1"))
    if len(text) > _MOST:
        raise ValueError("too long")
    for letter in text:
        value = _ALPHABET.find(letter)
        if value < 0:
            raise ValueError("a letter that base58 does not have")
        number = number * len(_ALPHABET) + value
    raw = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8)
    body, checksum = raw[:-_CHECKSUM], raw[-_CHECKSUM:]
    if not body or _checksum(body) != checksum:
        raise ValueError("its checksum does not fit")
    return body


def _tron(payload: bytes) -> str:
    return base58check(_TRON + _whole(payload))


def _read_tron(text: str) -> bytes:
    body = read_base58check(text)
    if not body.startswith(_TRON):
        raise ValueError("no address of TRON")
    return _whole(body[len(_TRON) :])


def _evm(payload: bytes) -> str:
    """Return the text with the checksum of EIP-55, which sets the case of its letters."""
    digits = _whole(payload).hex()
    marks = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(mark, 16) > 7 else digit for digit, mark in zip(digits, marks, strict=False)
    )


def _read_evm(text: str) -> bytes:
    if not _EVM.match(text):
        raise ValueError("no address of an EVM network")
    payload = bytes.fromhex(text[2:])
    if text[2:] not in (payload.hex(), payload.hex().upper()) and text != _evm(payload):
        raise ValueError("the case of its letters does not fit")
    return payload


def _whole(payload: bytes) -> bytes:
    if len(payload) != _ADDRESS:
        raise ValueError(f"an address is made of {_ADDRESS} bytes")
    return payload


def _checksum(body: bytes) -> bytes:
    return sha256(sha256(body).digest()).digest()[:_CHECKSUM]


TRON = Spelling(write=_tron, read=_read_tron)
EVM = Spelling(write=_evm, read=_read_evm)
