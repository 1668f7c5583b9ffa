"""A vault for a storage in memory: what is sealed never leaves the process, so nothing is encrypted, and embedding
needs no library for it.

A sealed value is a random token; the plain bytes stay here, under it. Whatever shows the storage's records (a log, a
repr, a dump) shows tokens.
"""

import hmac
import os

from ...ports.vault import VaultError
from .tags import placed, tag_key

_KEY = 1
_TOKEN_SIZE = 32


def _bytes(text: str) -> bytes:
    # Headers are fingerprinted before anything vouches for them: no text may fail here.
    return text.encode("utf-8", "surrogatepass")


class MemoryVault:
    """Opens what it sealed itself, and nothing after the end of the process."""

    __slots__ = ("_pepper", "_sealed", "_tagging")

    def __init__(self) -> None:
        self._pepper = os.urandom(32)
        self._tagging = os.urandom(32)
        self._sealed: dict[bytes, tuple[bytes, bytes]] = {}

    def __repr__(self) -> str:
        return "<MemoryVault>"

    @property
    def current(self) -> int:
        """There is one key, in name."""
        return _KEY

    @property
    def keys(self) -> frozenset[int]:
        """The same."""
        return frozenset((_KEY,))

    def key_of(self, sealed: bytes) -> int:
        """Always the one. Raises VaultError for what is too short to be a token."""
        if len(sealed) < 1 + _TOKEN_SIZE:
            raise VaultError("a sealed value is too short")
        return sealed[0]

    def seal(self, plain: bytes, place: str) -> bytes:
        """A token of its own for every call."""
        token = bytes((_KEY,)) + os.urandom(_TOKEN_SIZE)
        self._sealed[token] = (_bytes(place), bytes(plain))
        return token

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """The plain bytes. Raises VaultError, without a word of the content."""
        number = self.key_of(sealed)
        if number != _KEY:
            raise VaultError(f"a value is sealed with key {number}, which this vault does not have")
        kept = self._sealed.get(bytes(sealed))
        if kept is None or kept[0] != _bytes(place):
            raise VaultError("a sealed value was altered or belongs elsewhere")
        return kept[1]

    def fingerprint(self, secret: str) -> bytes:
        """HMAC-SHA256 under a pepper of this process."""
        return hmac.digest(self._pepper, _bytes(secret), "sha256")

    def tag(self, said: bytes, place: str) -> bytes:
        """HMAC-SHA256 under a key of this process."""
        return bytes((_KEY,)) + hmac.digest(self._tagging, placed(said, place), "sha256")

    def fits(self, tag: bytes, said: bytes, place: str) -> bool:
        """Compared in constant time. Raises VaultError, for a tag that is none, or of another key."""
        if tag_key(tag) != _KEY:
            raise VaultError(f"a tag is by key {tag[0]}, which this vault does not have")
        return hmac.compare_digest(tag[1:], hmac.digest(self._tagging, placed(said, place), "sha256"))
