"""Signer with the key of the wallet that pays out."""

import re
from typing import Protocol

from ...core.domain.keccak import keccak256
from ...ports.faults import NotConfigured
from ..nodes.secp256k1 import SIGNATURE, Point, PrivateKey, can_sign, long_form, recover

_KEY = re.compile(r"(?:0x)?([0-9a-fA-F]{64})\Z")
_PAYLOAD = 20


class Signer(Protocol):
    """Signer for one address: a key in a file, or a device that never shows it (docs/providers/chains.md "On TRON")."""

    @property
    def payload(self) -> bytes:
        """The address as 20 bytes."""
        ...

    async def sign(self, digest: bytes) -> bytes:
        """Return the recoverable signature of these 32 bytes: r, s, and 0 or 1. Raises: Unavailable, NotConfigured."""
        ...


class KeySigner:
    """Signer with a key in memory. Its repr hides the key."""

    def __init__(self, key: str) -> None:
        """Read the key, 64 hex digits. Raises: NotConfigured, without quoting it, also if OpenSSL is too old."""
        if not can_sign():
            raise NotConfigured("the wallet signs with OpenSSL 3.2 or later: install the wheel of cryptography")
        match = _KEY.match(key.strip())
        try:
            self._key = PrivateKey(bytes.fromhex(match[1] if match else ""))
        except ValueError:
            raise NotConfigured("the wallet's key must be 64 hex digits of a private key") from None
        self.payload = _payload(self._key.public)

    def __repr__(self) -> str:
        return "<KeySigner>"

    async def sign(self, digest: bytes) -> bytes:
        return self._key.sign(digest)


def signer_of(signature: bytes, digest: bytes) -> bytes:
    """Return the address that signed. Raises: ValueError for an invalid signature."""
    if len(signature) != SIGNATURE:
        raise ValueError("a signature has 65 bytes")
    plain = signature[:-1] + bytes((signature[-1] % 27,))  # some signers write 27 and 28 for 0 and 1
    return _payload(recover(plain, digest))


def signer_is(payload: bytes, signature: bytes, digest: bytes) -> bool:
    """Return whether this address signed."""
    try:
        return signer_of(signature, digest) == payload
    except ValueError:
        return False


def _payload(key: Point) -> bytes:
    return keccak256(long_form(key))[-_PAYLOAD:]
