"""AES-256-GCM with keys from settings or from a key file (key_file.py).

A sealed value is: one byte key id, 12 bytes nonce, ciphertext with its 16-byte tag. The place is the associated data.
Random nonces of 96 bits are good for 2^32 values per key, far above what one installation seals between two rotations.
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
"""What the key of tags is derived for: a key of one use tells nothing of, and opens nothing by, that of another."""


def _bytes(text: str) -> bytes:
    # Headers are fingerprinted before anything vouches for them: no text may fail here.
    return text.encode("utf-8", "surrogatepass")


class SealedVault:
    """Seals with the current key, unseals with any key it has. Old keys stay until everything is sealed anew."""

    __slots__ = ("_ciphers", "_current", "_fingerprints", "_keys", "_tagging")

    def __init__(self, keys: Mapping[int, bytes], current: int, pepper: bytes) -> None:
        """Raises VaultError when a key is not 32 bytes or its id not 0 to 255, when `current` names none of them,
        or when the pepper is shorter than 32 bytes."""
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
        # To work the key in takes longer than the rest: it is done once, and copied.
        self._fingerprints = hmac.new(pepper, digestmod="sha256")

    def __repr__(self) -> str:
        return "<SealedVault>"

    def seal(self, plain: bytes, place: str) -> bytes:
        """Key id, nonce, ciphertext and tag, in one."""
        nonce = os.urandom(_NONCE_SIZE)
        return bytes((self._current,)) + nonce + self._cipher(self._current).encrypt(nonce, plain, _bytes(place))

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """The plain bytes. Raises VaultError, without a word of the content."""
        number = self.key_of(sealed)
        if number not in self._keys:
            raise VaultError(f"a value is sealed with key {number}, which this vault does not have")
        cipher = self._cipher(number)
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(sealed[1 : 1 + _NONCE_SIZE], sealed[1 + _NONCE_SIZE :], _bytes(place))
        except InvalidTag:
            raise VaultError("a sealed value was altered or belongs elsewhere") from None

    def _cipher(self, number: int) -> "AESGCM":
        """The cipher of a key, made when something is first sealed or opened: the library is seven megabytes, and
        neither a service at rest nor most commands need it."""
        cipher = self._ciphers.get(number)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = self._ciphers[number] = AESGCM(self._keys[number])
        return cipher

    @property
    def current(self) -> int:
        """The id of the key that seals."""
        return self._current

    @property
    def keys(self) -> frozenset[int]:
        """The ids of all keys."""
        return frozenset(self._keys)

    def key_of(self, sealed: bytes) -> int:
        """The id that stands before a sealed value. Raises VaultError for what is too short to be one."""
        if len(sealed) < 1 + _NONCE_SIZE + _TAG_SIZE:
            raise VaultError("a sealed value is too short")
        return sealed[0]

    def fingerprint(self, secret: str) -> bytes:
        """HMAC-SHA256 under the pepper: 32 bytes. No slow hash, because the secrets have 256 random bits."""
        fingerprint = self._fingerprints.copy()
        fingerprint.update(_bytes(secret))
        return fingerprint.digest()

    def tag(self, said: bytes, place: str) -> bytes:
        """Key id and HMAC-SHA256 under a key derived from that one."""
        return bytes((self._current,)) + hmac.digest(self._tagging[self._current], placed(said, place), "sha256")

    def fits(self, tag: bytes, said: bytes, place: str) -> bool:
        """Compared in constant time. Raises VaultError, for a tag that is none, or by a key that is not here."""
        key = self._tagging.get(tag_key(tag))
        if key is None:
            raise VaultError(f"a tag is by key {tag[0]}, which this vault does not have")
        return hmac.compare_digest(tag[1:], hmac.digest(key, placed(said, place), "sha256"))
