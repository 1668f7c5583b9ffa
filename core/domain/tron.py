"""TRON addresses in the spelling that people use: base58check of a version byte and 20 bytes.

A wrong letter in an address would send USDT where nobody can fetch it back, and the checksum is there to find it. So
an address is checked where it is written down, and again before something is sent to it.
"""

from hashlib import sha256

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS = {letter: value for value, letter in enumerate(_ALPHABET)}
_VERSION = b"\x41"
_PAYLOAD = 20
_CHECKSUM = 4
_LETTERS = 34
"""Of every address: with this version byte the number has neither more nor fewer digits, and begins with `T`."""


def is_tron_address(text: str) -> bool:
    """Whether `text` is an address of TRON, as written: no space around it, no hex form."""
    return tron_payload(text) is not None


def tron_payload(text: str) -> bytes | None:
    """The 20 bytes of an address of TRON; None for anything else."""
    if len(text) != _LETTERS:
        return None
    number = 0
    for letter in text:
        value = _DIGITS.get(letter)
        if value is None:
            return None
        number = number * len(_ALPHABET) + value
    raw = number.to_bytes(len(_VERSION) + _PAYLOAD + _CHECKSUM)  # so many letters make no larger number
    body, checksum = raw[:-_CHECKSUM], raw[-_CHECKSUM:]
    if not body.startswith(_VERSION) or _checksum(body) != checksum:
        return None
    return body[len(_VERSION) :]


def tron_address(payload: bytes) -> str:
    """The address of 20 bytes (of a public key's hash, or a contract). Raises ValueError for another length."""
    if len(payload) != _PAYLOAD:
        raise ValueError(f"an address is made of {_PAYLOAD} bytes")
    body = _VERSION + payload
    number = int.from_bytes(body + _checksum(body))
    letters: list[str] = []
    while number:
        number, value = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[value])
    return "".join(reversed(letters))


def _checksum(body: bytes) -> bytes:
    return sha256(sha256(body).digest()).digest()[:_CHECKSUM]
