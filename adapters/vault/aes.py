"""AES-256-GCM with keys from settings or from a key file (key_file.py).

An encrypted value consists of one byte key id, 12 bytes nonce, and the ciphertext with its 16-byte tag. `aad` is the
associated data. Random nonces of 96 bits are safe for 2^32 values per key, far more than one installation encrypts
between two rotations.
"""

import hmac
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...ports.vault import VaultError
from .tags import placed, tag_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_SIZE = 32
_NONCE_SIZE = 12
_TAG_SIZE = 16
_TAGGING = b"cambist tags"
"""Purpose of the derived tag key. Separate keys per purpose reveal nothing about each other."""


def _bytes(text: str) -> bytes:
    # Headers are fingerprinted before any validation, so no text may fail here.
    return text.encode("utf-8", "surrogatepass")


class AesVault:
    """Encrypt with the current key, decrypt with any known key. Old keys stay until every value is encrypted again."""

    __slots__ = ("_ciphers", "_current", "_fingerprints", "_keys", "_tagging")

    def __init__(self, keys: Mapping[int, bytes], current: int, pepper: bytes) -> None:
        """Raises VaultError if a key is not 32 bytes, its id is not 0 to 255, `current` names none of them, or the
        pepper is shorter than 32 bytes."""
        if any(not 0 <= number <= 255 for number in keys):
            raise VaultError("a vault key id is a number from 0 to 255")
        if any(len(key) != _KEY_SIZE for key in keys.values()):
            raise VaultError(f"a vault key has {_KEY_SIZE} bytes")
        if current not in keys:
            raise VaultError("the current vault key is not among the keys")
        if len(pepper) < _KEY_SIZE:
            raise VaultError(f"the pepper has at least {_KEY_SIZE} bytes")
        self._keys = dict(keys)
        self._ciphers: dict[int, AESGCM] = {}
        self._tagging = {number: hmac.digest(key, _TAGGING, "sha256") for number, key in keys.items()}
        self._current = current
        # Setting up the key takes longer than the rest, so it is done once and copied.
        self._fingerprints = hmac.new(pepper, digestmod="sha256")

    def __repr__(self) -> str:
        return "<AesVault>"

    def encrypt(self, plain: bytes, aad: str) -> bytes:
        """Return key id, nonce, ciphertext and tag, concatenated."""
        nonce = os.urandom(_NONCE_SIZE)
        return bytes((self._current,)) + nonce + self._cipher(self._current).encrypt(nonce, plain, _bytes(aad))

    def decrypt(self, sealed: bytes, aad: str) -> bytes:
        """Return the plain bytes. Raises VaultError, whose message does not contain the content."""
        number = self.key_of(sealed)
        if number not in self._keys:
            raise VaultError(f"a value is sealed with key {number}, which this vault does not have")
        cipher = self._cipher(number)
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(sealed[1 : 1 + _NONCE_SIZE], sealed[1 + _NONCE_SIZE :], _bytes(aad))
        except InvalidTag:
            raise VaultError("a sealed value was altered or belongs elsewhere") from None

    def _cipher(self, number: int) -> "AESGCM":
        """Return the cipher of a key, created at its first use: the library takes seven megabytes, and neither an idle
        service nor most commands need it."""
        cipher = self._ciphers.get(number)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = self._ciphers[number] = AESGCM(self._keys[number])
        return cipher

    @property
    def current(self) -> int:
        """Return the id of the encrypting key."""
        return self._current

    @property
    def keys(self) -> frozenset[int]:
        """Return the ids of all keys."""
        return frozenset(self._keys)

    def key_of(self, sealed: bytes) -> int:
        """Return the key id of an encrypted value. Raises VaultError if the value is too short."""
        if len(sealed) < 1 + _NONCE_SIZE + _TAG_SIZE:
            raise VaultError("a sealed value is too short")
        return sealed[0]

    def fingerprint(self, secret: str) -> bytes:
        """Return the HMAC-SHA256 under the pepper, 32 bytes. A slow hash is not needed, because the secrets have 256
        random bits."""
        fingerprint = self._fingerprints.copy()
        fingerprint.update(_bytes(secret))
        return fingerprint.digest()

    def tag(self, said: bytes, aad: str) -> bytes:
        """Return the current key's id and an HMAC-SHA256 under a key derived from the current key."""
        return bytes((self._current,)) + hmac.digest(self._tagging[self._current], placed(said, aad), "sha256")

    def fits(self, tag: bytes, said: bytes, aad: str) -> bool:
        """Compare a tag in constant time. Raises VaultError for a malformed tag or an unknown key."""
        key = self._tagging.get(tag_key(tag))
        if key is None:
            raise VaultError(f"a tag is by key {tag[0]}, which this vault does not have")
        return hmac.compare_digest(tag[1:], hmac.digest(key, placed(said, aad), "sha256"))
