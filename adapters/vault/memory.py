"""A vault for a storage in memory. It uses only the standard library, so that embedding needs no further package.

The key is random and never leaves the process. Values are encrypted all the same, so that no log, repr or dump of the
storage's records shows them: XOR with a SHAKE-256 stream, then an HMAC over the associated data, nonce and ciphertext.
"""

import hashlib
import hmac
import os

from ...ports.vault import VaultError
from .tags import placed, tag_key

_KEY = 1
_NONCE_SIZE = 16
_MAC_SIZE = 32


def _bytes(text: str) -> bytes:
    # Headers are fingerprinted before any validation, so no text may fail here.
    return text.encode("utf-8", "surrogatepass")


class MemoryVault:
    """Decrypt values that it encrypted itself. After the process ends, nothing can be decrypted."""

    __slots__ = ("_encrypting", "_pepper", "_proving", "_tagging")

    def __init__(self) -> None:
        self._pepper = os.urandom(32)
        self._tagging = os.urandom(32)
        self._encrypting = os.urandom(32)
        self._proving = os.urandom(32)

    def __repr__(self) -> str:
        return "<MemoryVault>"

    @property
    def current(self) -> int:
        """Return the only key id."""
        return _KEY

    @property
    def keys(self) -> frozenset[int]:
        """Return the only key id, as a set."""
        return frozenset((_KEY,))

    def key_of(self, sealed: bytes) -> int:
        """Return the key id of an encrypted value. Raises VaultError if the value is too short."""
        if len(sealed) < 1 + _MAC_SIZE:
            raise VaultError("a sealed value is too short")
        return sealed[0]

    def encrypt(self, plain: bytes, aad: str) -> bytes:
        """Return key id, nonce, ciphertext and MAC, concatenated."""
        nonce = os.urandom(_NONCE_SIZE)
        mixed = self._mixed(nonce, plain)
        return bytes((_KEY,)) + nonce + mixed + self._mac(nonce, mixed, aad)

    def decrypt(self, sealed: bytes, aad: str) -> bytes:
        """Return the plain bytes. Raises VaultError, whose message does not contain the content."""
        number = self.key_of(sealed)
        if number != _KEY:
            raise VaultError(f"a value is sealed with key {number}, which this vault does not have")
        nonce, mixed = sealed[1 : 1 + _NONCE_SIZE], sealed[1 + _NONCE_SIZE : -_MAC_SIZE]
        if not hmac.compare_digest(sealed[-_MAC_SIZE:], self._mac(nonce, mixed, aad)):
            raise VaultError("a sealed value was altered or belongs elsewhere")
        return self._mixed(nonce, mixed)

    def _mixed(self, nonce: bytes, text: bytes) -> bytes:
        """XOR with the nonce's stream, which both encrypts and decrypts."""
        stream = hashlib.shake_256(self._encrypting + nonce).digest(len(text))
        return (int.from_bytes(text) ^ int.from_bytes(stream)).to_bytes(len(text))

    def _mac(self, nonce: bytes, mixed: bytes, aad: str) -> bytes:
        return hmac.digest(self._proving, placed(nonce + mixed, aad), "sha256")

    def fingerprint(self, secret: str) -> bytes:
        """Return the HMAC-SHA256 under a pepper of this process."""
        return hmac.digest(self._pepper, _bytes(secret), "sha256")

    def tag(self, said: bytes, aad: str) -> bytes:
        """Return the HMAC-SHA256 under a key of this process."""
        return bytes((_KEY,)) + hmac.digest(self._tagging, placed(said, aad), "sha256")

    def fits(self, tag: bytes, said: bytes, aad: str) -> bool:
        """Compare a tag in constant time. Raises VaultError for a malformed tag or another key."""
        if tag_key(tag) != _KEY:
            raise VaultError(f"a tag is by key {tag[0]}, which this vault does not have")
        return hmac.compare_digest(tag[1:], hmac.digest(self._tagging, placed(said, aad), "sha256"))
