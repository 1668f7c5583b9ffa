"""TRON addresses in their usual spelling: base58check of a version byte and 20 bytes.

A wrong letter in an address would send USDT where nobody can recover it; the checksum detects that. So an address is
checked when it is entered, and again before something is sent to it.
"""

from hashlib import sha256

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS = {letter: value for value, letter in enumerate(_ALPHABET)}
_VERSION = b"\x41"
_PAYLOAD = 20
_CHECKSUM = 4
_LETTERS = 34
"""Length of every address: with this version byte the number always has this many digits, and begins with `T`."""


def is_tron_address(text: str) -> bool:
    """Return whether `text` is a TRON address exactly: no surrounding spaces, no hex form."""
    return tron_payload(text) is not None


def tron_payload(text: str) -> bytes | None:
    """Return the 20 bytes of a TRON address; None for anything else."""
    if len(text) != _LETTERS:
        return None
    number = 0
    for letter in text:
        value = _DIGITS.get(letter)
        if value is None:
            return None
        number = number * len(_ALPHABET) + value
    raw = number.to_bytes(len(_VERSION) + _PAYLOAD + _CHECKSUM)  # 34 letters cannot make a larger number
    body, checksum = raw[:-_CHECKSUM], raw[-_CHECKSUM:]
    if not body.startswith(_VERSION) or _checksum(body) != checksum:
        return None
    return body[len(_VERSION) :]


def tron_address(payload: bytes) -> str:
    """Return the address of 20 bytes (of a public key's hash, or a contract). Raises ValueError for another length."""
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
